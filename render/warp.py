"""Maps from uniform numbers in the unit square to directions and points, with their densities."""

from __future__ import annotations

import math
from typing import Any

from ..jit.arrays import functions as f
from ..jit.arrays.linear import dot

INV_PI = 1.0 / math.pi


def sincos(x: Any) -> tuple[Any, Any]:
    """Return sine and cosine."""
    return f.sin(x), f.cos(x)


def square_to_uniform_disk_concentric(sample: Any) -> tuple[Any, Any]:
    """Return x, y uniform on the unit disk (Shirley and Chiu 1997, branch-free form by Cline)."""
    x, y = f.fma(2.0, sample.x, -1.0), f.fma(2.0, sample.y, -1.0)
    zero = (x == 0.0) & (y == 0.0)
    swap = f.abs(x) < f.abs(y)
    r, other = f.select(swap, y, x), f.select(swap, x, y)
    phi = (0.25 * math.pi) * other / r
    phi = f.select(swap, 0.5 * math.pi - phi, phi)
    phi = f.select(zero, 0.0, phi)
    s, c = sincos(phi)
    return r * c, r * s


def square_to_cosine_hemisphere(sample: Any, vector: Any) -> Any:
    """Return a unit vector of type `vector` around +z with density cos / pi per solid angle."""
    x, y = square_to_uniform_disk_concentric(sample)
    z = f.safe_sqrt(1.0 - f.fma(x, x, y * y))
    return vector(x, y, z)


def square_to_cosine_hemisphere_pdf(v: Any) -> Any:
    """Return the density of `square_to_cosine_hemisphere` (upper half)."""
    return v.z * INV_PI


def square_to_uniform_sphere(sample: Any, vector: Any) -> Any:
    """Return a unit vector, uniform over the sphere (density 1 / 4 pi)."""
    z = f.fma(-2.0, sample.y, 1.0)
    r = f.safe_sqrt(f.fma(-z, z, 1.0))
    s, c = sincos(sample.x * (2.0 * math.pi))
    return vector(r * c, r * s, z)


def square_to_uniform_triangle(sample: Any) -> tuple[Any, Any]:
    """Return barycentric coordinates b1, b2, uniform over a triangle."""
    t = f.safe_sqrt(1.0 - sample.x)
    return 1.0 - t, t * sample.y


def uniform_cone_pdf(cos_cutoff: Any) -> Any:
    """Return the density of directions uniform over a cone."""
    return (0.5 * INV_PI) / (1.0 - cos_cutoff)


def tent(sample: Any) -> Any:
    """Return numbers in (-1, 1) with density 1 - |x|."""
    low = sample < 0.5
    x = f.select(low, 2.0 * sample, 2.0 - 2.0 * sample)
    return f.select(low, f.sqrt(x) - 1.0, 1.0 - f.sqrt(x))


__all__ = ["dot"]
