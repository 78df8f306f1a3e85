"""Participating media, phase functions and volumes."""
