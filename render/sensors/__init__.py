"""Cameras and other sensors, one file each."""
