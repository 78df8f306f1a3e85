"""What lights around the scene share: its bounding sphere, and records of directions that meet nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...jit.arrays import functions as f
from ...jit.arrays.create import opaque
from ...jit.arrays.linear import norm
from ..interfaces.records import DirectionSample


class Surroundings:
    """The bounding sphere of the scene, for lights at infinity."""

    center: Any
    scene_radius: Any

    def set_bounds(self, types: Any, bounds: tuple[np.ndarray, np.ndarray]) -> None:
        """Set the sphere around a box (an empty scene: radius 1 at the origin)."""
        low, high = bounds
        if not np.all(np.isfinite(low)) or not np.all(np.isfinite(high)):
            middle, radius = np.zeros(3), 1.0
        else:
            middle, radius = (low + high) / 2, max(float(np.linalg.norm(high - low)) / 2, 1e-5) * (1 + 1e-4)
        self.center = opaque(types.Point3f([float(x) for x in middle]))
        self.scene_radius = opaque(types.Float(radius))

    def beyond(self, types: Any, ref: Any, d: Any, pdf: Any) -> DirectionSample:
        """Return the sample of direction `d` that ends outside the scene."""
        reach = 2.0 * f.max(self.scene_radius, norm(ref.p - self.center))
        p = types.Point3f(ref.p + d * reach)
        return DirectionSample(
            p, types.Normal3f(-d), types.Point2f(0.0), types.Vector3f(d), reach, pdf, types.Bool(False), types.UInt32(0)
        )
