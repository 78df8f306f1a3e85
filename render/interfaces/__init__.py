"""Contracts of shapes, materials, lights, sensors and integrators; read these first."""
