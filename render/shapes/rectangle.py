"""The rectangle [-1, 1]^2 in the plane z = 0, normal +z, moved by `to_world`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...jit.arrays import functions as f
from ..registry import register
from .common import TriangleData, numpy_matrix
from .planar import Planar

_CORNERS = ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0))


@register("shape", "rectangle")
class Rectangle(Planar):
    """A rectangle; uv = (x + 1, y + 1) / 2. Differentiable in `to_world`."""

    unit_area = 4.0
    is_triangles = True

    def triangles(self) -> TriangleData:
        """Return two triangles."""
        points = [self.point(x, y) for x, y in _CORNERS]
        uv = np.array([((x + 1) / 2, (y + 1) / 2) for x, y in _CORNERS], np.float32)
        return TriangleData(points, np.array([[0, 1, 2], [2, 3, 0]], np.uint32), None, uv, self.turned)

    def bbox(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the box around the corners."""
        m = numpy_matrix(self.to_world)
        corners = np.array([m[:3, 0] * x + m[:3, 1] * y + m[:3, 3] for x, y in _CORNERS])
        return corners.min(0), corners.max(0)

    def sample_position(self, sample: Any, active: Any = True) -> tuple[Any, Any, Any, Any]:
        """Return a point of the rectangle by its uv."""
        x, y = f.fma(2.0, sample.x, -1.0), f.fma(2.0, sample.y, -1.0)
        p = self.point(x, y)
        return p, self.normal, self.types.Point2f(sample.x, sample.y), self.inv_area

    def at_uv(self, uv: Any, active: Any = True) -> tuple[Any, Any, Any]:
        """Return point, normal and the whole area."""
        p, n, _, _ = self.sample_position(uv, active)
        return p, n, self.surface_area()
