"""Shapes and mesh files."""
