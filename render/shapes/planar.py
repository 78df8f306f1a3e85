"""What flat shapes share: a part of the plane z = 0, normal +z, moved by `to_world`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...jit.arrays import functions as f
from ...jit.arrays.linear import cross, norm, normalize
from ...jit.errors import SceneError
from ..interfaces.object import ParamFlags, TraversalCallback
from ..interfaces.shape import Shape
from .common import COMMON, is_mirrored, matrix_of, transform_point, transform_vector


class Planar(Shape):
    """Base of flat shapes: centre, images `du` and `dv` of the axes, normal, and area (`unit_area` before moving)."""

    parameters = COMMON
    merge_fields = ("center", "du", "dv", "normal", "inv_area")
    has_uv_map = True
    unit_area: ClassVar[float]

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self._check(props["to_world"].matrix)
        self.to_world = matrix_of(self.types, props["to_world"])
        self._update()

    def _check(self, matrix: np.ndarray) -> None:
        if not np.linalg.norm(np.cross(*matrix[:3, :2].T)) > 0:
            raise SceneError(f"{self.plugin_name}: to_world flattens it to nothing")

    def _update(self) -> None:
        types, m = self.types, self.to_world
        self.center = transform_point(m, types.Point3f(0.0, 0.0, 0.0))
        self.du = transform_vector(m, types.Vector3f(1.0, 0.0, 0.0))
        self.dv = transform_vector(m, types.Vector3f(0.0, 1.0, 0.0))
        n = cross(self.du, self.dv)
        self.inv_area = f.rcp(norm(n) * self.unit_area)
        normal = types.Normal3f(normalize(n))
        # Normals transform by the inverse transpose: a mirrored plane still faces where +z goes.
        self.turned = self.flip_normals != is_mirrored(m)
        self.normal = -normal if self.turned else normal

    def traverse(self, callback: TraversalCallback) -> None:
        """Report `to_world` besides material and light."""
        super().traverse(callback)
        callback.put("to_world", self.to_world, ParamFlags.Differentiable | ParamFlags.Discontinuous)

    def parameters_changed(self, keys: Sequence[str] = ()) -> None:
        """Move the shape."""
        super().parameters_changed(keys)
        if not keys or "to_world" in keys:
            self._update()

    def point(self, x: Any, y: Any) -> Any:
        """Return where a point of the plane z = 0 goes."""
        return self.center + self.du * x + self.dv * y

    def surface_area(self) -> Any:
        """Return the area."""
        return f.rcp(self.inv_area)

    def pdf_position(self, active: Any = True) -> Any:
        """Return 1 / area."""
        return self.inv_area
