"""Transcendental functions: filled in by the polynomials of `codegen/polynomials.py`."""
