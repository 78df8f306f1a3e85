"""Integrators: rendering and its derivatives, one file each."""
