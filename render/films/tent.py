"""The tent filter: weights fall linearly."""

from __future__ import annotations

from typing import Any

from ...jit.arrays import functions as f
from ...jit.errors import SceneError
from ..interfaces.rfilter import ReconstructionFilter
from ..registry import Parameter, register


@register("rfilter", "tent")
class Tent(ReconstructionFilter):
    """Weight 1 - |x| / radius."""

    parameters = (Parameter("radius", "float", 1.0, "where the weight reaches 0, in pixels"),)

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self.radius = props["radius"]
        if not self.radius > 0:
            raise SceneError(f"tent: radius must be positive, found {self.radius}")

    def eval(self, x: Any) -> Any:
        """Return the weight."""
        return f.max(0.0, 1.0 - f.abs(x) * (1.0 / self.radius))
