"""The box filter: every sample counts for its own pixel only."""

from __future__ import annotations

from typing import Any

from ...jit.arrays import functions as f
from ..interfaces.rfilter import ReconstructionFilter
from ..registry import register


@register("rfilter", "box")
class Box(ReconstructionFilter):
    """Weight 1 within half a pixel."""

    parameters = ()
    radius = 0.5

    def eval(self, x: Any) -> Any:
        """Return 1 within the radius."""
        return f.select(f.abs(x) <= self.radius, 1.0, 0.0)
