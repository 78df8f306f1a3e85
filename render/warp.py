"""Maps from uniform numbers in the unit square to directions and points, with their densities."""

from __future__ import annotations

import math
from typing import Any

from ..jit.arrays import functions as f

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


def square_to_tent(sample: Any) -> Any:
    """Return numbers in (-1, 1) with density 1 - |x|, per component of a point."""
    return type(sample)(*(_tent(x) for x in sample))


def _tent(x: Any) -> Any:
    low = x < 0.5
    root = f.safe_sqrt(f.select(low, 2.0 * x, 2.0 - 2.0 * x))
    return f.select(low, root - 1.0, 1.0 - root)


def interval_to_linear(v0: Any, v1: Any, sample: Any) -> Any:
    """Return numbers in [0, 1] whose density goes linearly from v0 to v1 (not normalised)."""
    # The formula cancels where both are nearly equal.
    steep = f.abs(v0 - v1) > 1e-4 * (v0 + v1)
    root = f.safe_sqrt(f.fma(sample, v1 * v1 - v0 * v0, v0 * v0))
    return f.select(steep, (v0 - root) / f.select(steep, v0 - v1, 1.0), sample)


def square_to_bilinear(v00: Any, v10: Any, v01: Any, v11: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return x, y and density of a point whose density is bilinear between four corner values (mean 1)."""
    y = interval_to_linear(v00 + v10, v01 + v11, y)
    c0, c1 = f.fma(y, v01 - v00, v00), f.fma(y, v11 - v10, v10)
    x = interval_to_linear(c0, c1, x)
    return x, y, f.fma(x, c1 - c0, c0)


def square_to_bilinear_pdf(v00: Any, v10: Any, v01: Any, v11: Any, x: Any, y: Any) -> Any:
    """Return the density of `square_to_bilinear`."""
    c0, c1 = f.fma(y, v01 - v00, v00), f.fma(y, v11 - v10, v10)
    return f.fma(x, c1 - c0, c0)
