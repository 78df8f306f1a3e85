"""The disk of radius 1 in the plane z = 0, normal +z, moved by `to_world`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...jit.arrays import functions as f
from ...jit.arrays.linear import dot
from ...jit.errors import SceneError
from ..accel import geometry
from ..interfaces.records import Preliminary, Ray
from ..registry import register
from ..warp import sincos, square_to_uniform_disk_concentric
from .common import numpy_matrix
from .planar import Planar


@register("shape", "disk")
class Disk(Planar):
    """A flat disk; uv = (radius, azimuth / 2 pi). Differentiable in `to_world`, which may not scale x and y apart."""

    unit_area = math.pi

    def _check(self, matrix: np.ndarray) -> None:
        x, y = (np.linalg.norm(matrix[:3, k]) for k in (0, 1))
        if abs(x - y) > 1e-3 * max(x, y):
            raise SceneError(f"disk: to_world may not scale x and y by different factors, found {x:g} and {y:g}")
        super()._check(matrix)

    def geometry(self) -> geometry.Disk:
        """Return the transform for the accelerator."""
        return geometry.Disk(numpy_matrix(self.to_world))

    def bbox(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the box around the disk."""
        m = numpy_matrix(self.to_world)
        reach = np.sqrt(m[:3, 0] ** 2 + m[:3, 1] ** 2)
        return m[:3, 3] - reach, m[:3, 3] + reach

    def surface_point(self, ray: Ray, pi: Preliminary, active: Any) -> tuple[Any, ...]:
        """Return t, p, n, uv, dp_du, shading normal of a hit."""
        types = self.types
        n = types.Vector3f(self.normal)
        t = dot(self.center - ray.o, n) / dot(ray.d, n)
        p = types.Vector3f(ray.o + ray.d * t)
        offset = p - self.center
        x, y = dot(offset, self.du) / dot(self.du, self.du), dot(offset, self.dv) / dot(self.dv, self.dv)
        r = f.sqrt(x * x + y * y)
        azimuth = f.atan2(y, x) * (0.5 / math.pi)
        uv = types.Point2f(r, f.select(azimuth < 0.0, azimuth + 1.0, azimuth))
        inverse = f.select(r > 0.0, 1.0 / f.select(r > 0.0, r, 1.0), 0.0)
        radial = f.select(r > 0.0, self.du * (x * inverse) + self.dv * (y * inverse), self.du)
        return t, p, n, uv, types.Vector3f(radial), n

    def at_uv(self, uv: Any, active: Any = True) -> tuple[Any, Any, Any]:
        """Return point, normal and area per area of the unit square."""
        s, c = sincos(uv.y * (2.0 * math.pi))
        p = self.point(c * uv.x, s * uv.x)
        return p, self.normal, self.surface_area() * (2.0 * uv.x)

    def tangent_v(self, uv: Any, active: Any = True) -> Any:
        """Return dp/dv: around the centre."""
        s, c = sincos(uv.y * (2.0 * math.pi))
        return self.types.Vector3f((self.dv * c - self.du * s) * (uv.x * (2.0 * math.pi)))

    def sample_position(self, sample: Any, active: Any = True) -> tuple[Any, Any, Any, Any]:
        """Return a point uniform over the disk."""
        x, y = square_to_uniform_disk_concentric(sample)
        p = self.point(x, y)
        return p, self.normal, self.types.Point2f(sample.x, sample.y), self.inv_area
