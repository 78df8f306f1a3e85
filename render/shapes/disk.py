"""The disk of radius 1 in the plane z = 0, normal +z, moved by `to_world`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...jit.arrays import functions as f
from ...jit.arrays.linear import cross, dot, norm, normalize
from ...jit.errors import SceneError
from ..accel import geometry
from ..interfaces.object import ParamFlags, TraversalCallback
from ..interfaces.records import Preliminary, Ray
from ..interfaces.shape import Shape
from ..registry import register
from ..warp import sincos, square_to_uniform_disk_concentric
from .common import COMMON, is_mirrored, matrix_of, numpy_matrix, transform_point, transform_vector


@register("shape", "disk")
class Disk(Shape):
    """A flat disk; uv = (radius, azimuth / 2 pi). Differentiable in `to_world`, which may not scale x and y apart."""

    parameters = COMMON
    has_uv_map = True
    merge_fields = ("center", "du", "dv", "normal", "inv_area")

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        transform = props["to_world"]
        x, y = (np.linalg.norm(transform.matrix[:3, k]) for k in (0, 1))
        if abs(x - y) > 1e-3 * max(x, y):
            raise SceneError(f"disk: to_world may not scale x and y by different factors, found {x:g} and {y:g}")
        if not np.linalg.norm(np.cross(*props["to_world"].matrix[:3, :2].T)) > 0:
            raise SceneError("disk: to_world flattens it to nothing")
        self.to_world = matrix_of(self.types, transform)
        self._update()

    def _update(self) -> None:
        types, m = self.types, self.to_world
        self.center = transform_point(m, types.Point3f(0.0, 0.0, 0.0))
        self.du = transform_vector(m, types.Vector3f(1.0, 0.0, 0.0))
        self.dv = transform_vector(m, types.Vector3f(0.0, 1.0, 0.0))
        n = cross(self.du, self.dv)
        self.inv_area = f.rcp(norm(n) * math.pi)
        normal = types.Normal3f(normalize(n))
        # Normals transform by the inverse transpose: a mirrored plane still faces where +z goes.
        self.turned = self.flip_normals != is_mirrored(m)
        self.normal = -normal if self.turned else normal

    def traverse(self, callback: TraversalCallback) -> None:
        """Report `to_world` besides material and light."""
        super().traverse(callback)
        callback.put("to_world", self.to_world, ParamFlags.Differentiable | ParamFlags.Discontinuous)

    def parameters_changed(self, keys: Sequence[str] = ()) -> None:
        """Move the disk."""
        super().parameters_changed(keys)
        if not keys or "to_world" in keys:
            self._update()

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
        p = self.center + self.du * (c * uv.x) + self.dv * (s * uv.x)
        return p, self.normal, self.surface_area() * (2.0 * uv.x)

    def tangent_v(self, uv: Any, active: Any = True) -> Any:
        """Return dp/dv: around the centre."""
        s, c = sincos(uv.y * (2.0 * math.pi))
        return self.types.Vector3f((self.dv * c - self.du * s) * (uv.x * (2.0 * math.pi)))

    def surface_area(self) -> Any:
        """Return the area."""
        return f.rcp(self.inv_area)

    def sample_position(self, sample: Any, active: Any = True) -> tuple[Any, Any, Any, Any]:
        """Return a point uniform over the disk."""
        x, y = square_to_uniform_disk_concentric(sample)
        p = self.center + self.du * x + self.dv * y
        return p, self.normal, self.types.Point2f(sample.x, sample.y), self.inv_area

    def pdf_position(self, active: Any = True) -> Any:
        """Return 1 / area."""
        return self.inv_area
