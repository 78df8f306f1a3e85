"""The Gaussian filter, cut off at four standard deviations and lowered to reach 0 there."""

from __future__ import annotations

import math
from typing import Any

from ...jit.arrays import functions as f
from ...jit.errors import SceneError
from ..interfaces.rfilter import ReconstructionFilter
from ..registry import Parameter, register


@register("rfilter", "gaussian")
class Gaussian(ReconstructionFilter):
    """Weight exp(-x^2 / 2 stddev^2) - exp(-8)."""

    parameters = (Parameter("stddev", "float", 0.5, "standard deviation in pixels"),)

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self.stddev = props["stddev"]
        if not self.stddev > 0:
            raise SceneError(f"gaussian: stddev must be positive, found {self.stddev}")
        self.radius = 4.0 * self.stddev

    def eval(self, x: Any) -> Any:
        """Return the weight."""
        alpha = -1.0 / (2.0 * self.stddev * self.stddev)
        return f.max(0.0, f.exp(x * x * alpha) - math.exp(alpha * self.radius * self.radius))
