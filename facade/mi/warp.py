"""`mi.warp`: maps from the unit square under the current variant, and their densities."""

from __future__ import annotations

from typing import Any

from luxgrad.mi.state import current_types
from luxgrad.render import warp as _warp

__all__ = [
    "square_to_cosine_hemisphere", "square_to_cosine_hemisphere_pdf", "square_to_tent",
    "square_to_uniform_disk_concentric", "square_to_uniform_sphere", "square_to_uniform_sphere_pdf",
    "square_to_uniform_triangle",
]  # fmt: skip


def _point(sample: Any) -> Any:
    return current_types("mi.warp").Point2f(sample)


def square_to_cosine_hemisphere(sample: Any) -> Any:
    """Return unit vectors around +z with density cos / pi per solid angle."""
    return _warp.square_to_cosine_hemisphere(_point(sample), current_types().Vector3f)


def square_to_cosine_hemisphere_pdf(v: Any) -> Any:
    """Return the density of `square_to_cosine_hemisphere`."""
    return _warp.square_to_cosine_hemisphere_pdf(current_types("mi.warp").Vector3f(v))


def square_to_uniform_sphere(sample: Any) -> Any:
    """Return unit vectors, uniform over the sphere."""
    return _warp.square_to_uniform_sphere(_point(sample), current_types().Vector3f)


def square_to_uniform_sphere_pdf(v: Any) -> Any:
    """Return the density of `square_to_uniform_sphere`, 1 / 4 pi."""
    return 0.25 * _warp.INV_PI * (current_types("mi.warp").Vector3f(v).x * 0.0 + 1.0)


def square_to_uniform_disk_concentric(sample: Any) -> Any:
    """Return points uniform over the unit disk."""
    return current_types("mi.warp").Point2f(*_warp.square_to_uniform_disk_concentric(_point(sample)))


def square_to_uniform_triangle(sample: Any) -> Any:
    """Return barycentric coordinates (b1, b2), uniform over a triangle."""
    return current_types("mi.warp").Point2f(*_warp.square_to_uniform_triangle(_point(sample)))


def square_to_tent(sample: Any) -> Any:
    """Return points of (-1, 1)^2 with density (1 - |x|) (1 - |y|)."""
    return _warp.square_to_tent(_point(sample))
