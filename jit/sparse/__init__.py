"""Sparse data: grids of bricks and matrices of compressed rows."""
