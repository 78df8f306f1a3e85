"""The sphere, seen from outside or inside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...jit.arrays import functions as f
from ...jit.arrays.linear import dot, norm, normalize
from ...jit.errors import SceneError
from ..accel import geometry
from ..interfaces.object import ParamFlags, TraversalCallback
from ..interfaces.records import RAY_EPSILON, DirectionSample, Frame, Preliminary, Ray, coordinate_system
from ..interfaces.shape import Shape
from ..registry import Parameter, register
from ..transform import ScalarTransform4f
from ..warp import sincos, square_to_uniform_sphere, uniform_cone_pdf
from .common import COMMON, is_mirrored, matrix_of, numpy_matrix, transform_point, transform_vector


@register("shape", "sphere")
class Sphere(Shape):
    """A sphere of `radius` around `center`, moved by `to_world` (a uniform scale changes the radius).

    uv = (azimuth / 2 pi, angle from +z / pi). Differentiable in `to_world`.
    """

    parameters = (
        *COMMON,
        Parameter("center", "point", (0.0, 0.0, 0.0), "centre"),
        Parameter("radius", "float", 1.0, "radius"),
    )
    merge_fields = ("center", "radius", "axes", "inward")
    has_uv_map = True

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        center, radius = np.asarray(props["center"], float), props["radius"]
        if not radius > 0:
            raise SceneError(f"sphere: the radius must be positive, found {radius}")
        transform: ScalarTransform4f = props["to_world"] @ ScalarTransform4f().translate(center).scale(radius)
        columns = np.linalg.norm(transform.matrix[:3, :3], axis=0)
        if np.abs(columns - columns[0]).max() > 1e-3 * columns[0]:
            raise SceneError(f"sphere: to_world may only scale uniformly, found the factors {columns.tolist()}")
        self.to_world = matrix_of(self.types, transform)
        self._update()

    def _update(self) -> None:
        types, m = self.types, self.to_world
        # A mirrored sphere is turned inside out, as in Mitsuba.
        self.inward = self.flip_normals != is_mirrored(m)
        self.center = transform_point(m, types.Point3f(0.0, 0.0, 0.0))
        axes = [transform_vector(m, types.Vector3f(*[float(i == k) for i in range(3)])) for k in range(3)]
        self.radius = norm(axes[0])
        self.axes = [a / self.radius for a in axes]

    def traverse(self, callback: TraversalCallback) -> None:
        """Report `to_world` besides material and light."""
        super().traverse(callback)
        callback.put("to_world", self.to_world, ParamFlags.Differentiable | ParamFlags.Discontinuous)

    def parameters_changed(self, keys: Sequence[str] = ()) -> None:
        """Move the sphere."""
        super().parameters_changed(keys)
        if not keys or "to_world" in keys:
            self._update()

    def geometry(self) -> geometry.Sphere:
        """Return centre and radius for the accelerator."""
        m = numpy_matrix(self.to_world)
        return geometry.Sphere(m[:3, 3], float(np.linalg.norm(m[:3, 0])))

    def bbox(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the box around the sphere."""
        g = self.geometry()
        return g.center - g.radius, g.center + g.radius

    def surface_point(self, ray: Ray, pi: Preliminary, active: Any) -> tuple[Any, ...]:
        """Return t, p, n, uv, dp_du, shading normal of a hit; the point is put back onto the sphere."""
        types = self.types
        offset = types.Vector3f(ray.o - self.center)
        t = self._distance(offset, ray.d, types.Float(pi.t))
        n = normalize(offset + ray.d * t)
        p = self.center + n * self.radius
        local = types.Vector3f(*[dot(n, a) for a in self.axes])
        rd_2 = local.x * local.x + local.y * local.y
        azimuth = f.atan2(local.y, local.x)
        azimuth = f.select(azimuth < 0.0, azimuth + 2.0 * math.pi, azimuth)
        uv = types.Point2f(azimuth * (0.5 / math.pi), f.acos(f.clip(local.z, -1.0, 1.0)) * (1.0 / math.pi))
        du = self.axes[0] * -local.y + self.axes[1] * local.x
        du = f.select(rd_2 > 0.0, du, self.axes[0])
        dp_du = types.Vector3f(du * (self.radius * (2.0 * math.pi)))
        outward = types.Vector3f(-n if self.inward else n)
        return t, types.Vector3f(p), outward, uv, dp_du, outward

    def _distance(self, offset: Any, d: Any, found: Any) -> Any:
        """Return the distance to the hit that the accelerator found, computed again from the sphere."""
        a, b = dot(d, d), dot(offset, d)
        c = dot(offset, offset) - self.radius * self.radius
        # The discriminant from the closest approach loses no digits for far spheres (Haines et al. 2019).
        closest = offset - d * (b / a)
        root = f.safe_sqrt((self.radius * self.radius - dot(closest, closest)) * a)
        q = -(b + f.mulsign(root, b))
        near, far = q / a, f.select(q == 0.0, 0.0, c / f.select(q == 0.0, 1.0, q))
        first = f.abs(near - found) <= f.abs(far - found)
        return f.select(first, near, far)

    def at_uv(self, uv: Any, active: Any = True) -> tuple[Any, Any, Any]:
        """Return point, normal and area per area of the unit square."""
        types = self.types
        sin_phi, cos_phi = sincos(uv.x * (2.0 * math.pi))
        sin_theta, cos_theta = sincos(uv.y * math.pi)
        a, b, c = self.axes
        n = types.Vector3f(a * (cos_phi * sin_theta) + b * (sin_phi * sin_theta) + c * cos_theta)
        area = self.radius * self.radius * (2.0 * math.pi * math.pi) * sin_theta
        return types.Point3f(self.center + n * self.radius), types.Normal3f(-n if self.inward else n), area

    def tangent_v(self, uv: Any, active: Any = True) -> Any:
        """Return dp/dv: away from the pole +z."""
        sin_phi, cos_phi = sincos(uv.x * (2.0 * math.pi))
        sin_theta, cos_theta = sincos(uv.y * math.pi)
        a, b, c = self.axes
        d = a * (cos_phi * cos_theta) + b * (sin_phi * cos_theta) - c * sin_theta
        return self.types.Vector3f(d * (self.radius * math.pi))

    def surface_area(self) -> Any:
        """Return 4 pi r^2."""
        return self.radius * self.radius * (4.0 * math.pi)

    def sample_position(self, sample: Any, active: Any = True) -> tuple[Any, Any, Any, Any]:
        """Return a point uniform over the sphere."""
        types = self.types
        n = square_to_uniform_sphere(sample, types.Vector3f)
        p = self.center + n * self.radius
        normal = types.Normal3f(-n if self.inward else n)
        return p, normal, types.Point2f(sample.x, sample.y), f.rcp(self.surface_area())

    def pdf_position(self, active: Any = True) -> Any:
        """Return 1 / area."""
        return f.rcp(self.surface_area())

    def _outside(self, distance_2: Any) -> Any:
        edge = self.radius * ((1.0 + RAY_EPSILON) if self.inward else (1.0 - RAY_EPSILON))
        return distance_2 > edge * edge

    def sample_direction(self, ref: Any, sample: Any, active: Any = True) -> DirectionSample:
        """Return a direction: from outside uniform over the cone that the sphere fills, from inside over its area."""
        types = self.types
        to_center = types.Vector3f(self.center - ref.p)
        distance_2 = dot(to_center, to_center)
        outside = self._outside(distance_2)
        inverse = f.rsqrt(distance_2)
        sin_max = self.radius * inverse
        sin_max_2 = sin_max * sin_max
        cos_max = f.safe_sqrt(1.0 - sin_max_2)
        # For small cones 1 - cos^2 cancels; its first term is exact enough there.
        q = f.fma(cos_max - 1.0, sample.x, 1.0)
        sin_2 = f.select(sin_max_2 > 0.00068523, 1.0 - q * q, sin_max_2 * sample.x)
        cos = f.safe_sqrt(1.0 - sin_2)
        inv_sin_max = f.rcp(sin_max)
        cos_alpha = sin_2 * inv_sin_max + cos * f.safe_sqrt(f.fma(-sin_2, inv_sin_max * inv_sin_max, 1.0))
        sin_alpha = f.safe_sqrt(f.fma(-cos_alpha, cos_alpha, 1.0))
        s, c = sincos(sample.y * (2.0 * math.pi))
        axis = types.Vector3f(to_center * -inverse)
        s_axis, t_axis = coordinate_system(axis)
        frame = Frame(types.Vector3f(s_axis), types.Vector3f(t_axis), axis)
        cone = frame.to_world(types.Vector3f(c * sin_alpha, s * sin_alpha, cos_alpha))
        inside = square_to_uniform_sphere(sample, types.Vector3f)
        n = f.select(outside, cone, inside)
        p = types.Point3f(self.center + n * self.radius)
        d = types.Vector3f(p - ref.p)
        dist = norm(d)
        d = d / dist
        cosine = f.abs(dot(d, n))
        pdf_inside = f.select(cosine != 0.0, f.rcp(self.surface_area()) * dist * dist / cosine, 0.0)
        pdf = f.select(outside, uniform_cone_pdf(cos_max), pdf_inside)
        pdf = f.select(dist > 0.0, pdf, 0.0)
        normal = types.Normal3f(-n if self.inward else n)
        uv = types.Point2f(sample.x, sample.y)
        return DirectionSample(p, normal, uv, d, dist, pdf, types.Bool(False), types.UInt32(0))

    def pdf_direction(self, ref: Any, ds: DirectionSample, active: Any = True) -> Any:
        """Return the density of `sample_direction`."""
        to_center = self.center - ref.p
        distance_2 = dot(to_center, to_center)
        sin_max = self.radius * f.rsqrt(distance_2)
        cos_max = f.safe_sqrt(1.0 - sin_max * sin_max)
        cosine = f.abs(dot(ds.d, ds.n))
        inside = f.select(cosine != 0.0, f.rcp(self.surface_area()) * ds.dist * ds.dist / cosine, 0.0)
        return f.select(self._outside(distance_2), uniform_cone_pdf(cos_max), inside)
