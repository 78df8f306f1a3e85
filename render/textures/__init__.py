"""Textures and spectra, one file each."""
