"""The rectangle [-1, 1]^2 in the plane z = 0, normal +z, moved by `to_world`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...jit.arrays import functions as f
from ...jit.arrays.linear import cross, norm, normalize
from ...jit.errors import SceneError
from ..interfaces.object import ParamFlags, TraversalCallback
from ..interfaces.shape import Shape
from ..registry import register
from .common import COMMON, TriangleData, is_mirrored, matrix_of, numpy_matrix, transform_point, transform_vector

_CORNERS = ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0))


@register("shape", "rectangle")
class Rectangle(Shape):
    """A rectangle; uv = (x + 1, y + 1) / 2. Differentiable in `to_world`."""

    parameters = COMMON
    merge_fields = ("center", "du", "dv", "normal", "inv_area")
    is_triangles = True
    has_uv_map = True

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        if not np.linalg.norm(np.cross(*props["to_world"].matrix[:3, :2].T)) > 0:
            raise SceneError("rectangle: to_world flattens it to nothing")
        self.to_world = matrix_of(self.types, props["to_world"])
        self._update()

    def _update(self) -> None:
        types, m = self.types, self.to_world
        self.center = transform_point(m, types.Point3f(0.0, 0.0, 0.0))
        self.du = transform_vector(m, types.Vector3f(1.0, 0.0, 0.0))
        self.dv = transform_vector(m, types.Vector3f(0.0, 1.0, 0.0))
        n = cross(self.du, self.dv)
        area = norm(n)
        normal = types.Normal3f(normalize(n))
        # Normals transform by the inverse transpose: a mirrored plane still faces where +z goes.
        self.turned = self.flip_normals != is_mirrored(m)
        self.normal = -normal if self.turned else normal
        self.inv_area = f.rcp(4.0 * area)

    def traverse(self, callback: TraversalCallback) -> None:
        """Report `to_world` besides material and light."""
        super().traverse(callback)
        callback.put("to_world", self.to_world, ParamFlags.Differentiable | ParamFlags.Discontinuous)

    def parameters_changed(self, keys: Sequence[str] = ()) -> None:
        """Move the rectangle."""
        super().parameters_changed(keys)
        if not keys or "to_world" in keys:
            self._update()

    def triangles(self) -> TriangleData:
        """Return two triangles."""
        points = [self.center + self.du * x + self.dv * y for x, y in _CORNERS]
        uv = np.array([((x + 1) / 2, (y + 1) / 2) for x, y in _CORNERS], np.float32)
        return TriangleData(points, np.array([[0, 1, 2], [2, 3, 0]], np.uint32), None, uv, self.turned)

    def bbox(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the box around the corners."""
        m = numpy_matrix(self.to_world)
        corners = np.array([m[:3, 0] * x + m[:3, 1] * y + m[:3, 3] for x, y in _CORNERS])
        return corners.min(0), corners.max(0)

    def surface_area(self) -> Any:
        """Return the area."""
        return f.rcp(self.inv_area)

    def sample_position(self, sample: Any, active: Any = True) -> tuple[Any, Any, Any, Any]:
        """Return a point of the rectangle by its uv."""
        x, y = f.fma(2.0, sample.x, -1.0), f.fma(2.0, sample.y, -1.0)
        p = self.center + self.du * x + self.dv * y
        return p, self.normal, self.types.Point2f(sample.x, sample.y), self.inv_area

    def at_uv(self, uv: Any, active: Any = True) -> tuple[Any, Any, Any]:
        """Return point, normal and the whole area."""
        p, n, _, _ = self.sample_position(uv, active)
        return p, n, self.surface_area()

    def pdf_position(self, active: Any = True) -> Any:
        """Return 1 / area."""
        return self.inv_area
