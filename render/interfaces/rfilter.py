"""Reconstruction filters: how much a sample counts for the pixels around it."""

from __future__ import annotations

import math
from typing import Any

from .object import Object


class ReconstructionFilter(Object):
    """Base of filters: a `radius` in pixels and the weight at a distance along one axis (separable)."""

    plugin_kind = "rfilter"
    radius: float = 0.5

    def eval(self, x: Any) -> Any:
        """Return the weight at distance `x` (pixels, may be negative), 0 beyond the radius."""
        raise NotImplementedError(f"{type(self).__name__}.eval()")

    @property
    def is_box(self) -> bool:
        """Return whether samples count for their own pixel only."""
        return self.radius <= 0.5

    @property
    def border(self) -> int:
        """Return how many pixels beyond its own a sample can reach."""
        return max(0, math.ceil(self.radius - 0.5 - 2e-4))
