"""One number everywhere."""

from __future__ import annotations

from typing import Any

from ..interfaces.object import ParamFlags, TraversalCallback
from ..interfaces.records import SurfaceInteraction
from ..interfaces.texture import Texture
from ..registry import Parameter, register


@register("texture", "uniform")
class Uniform(Texture):
    """The same number at every point, in all channels. Differentiable in `value`."""

    parameters = (Parameter("value", "float", doc="the number"),)
    merge_fields = ("value",)

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self.value = self.types.Float(props["value"])

    def traverse(self, callback: TraversalCallback) -> None:
        """Report `value`."""
        callback.put("value", self.value, ParamFlags.Differentiable)

    def eval(self, si: SurfaceInteraction, active: Any = True) -> Any:
        """Return the number as a grey."""
        return self.types.Color3f(self.value)

    def eval_1(self, si: SurfaceInteraction, active: Any = True) -> Any:
        """Return the number."""
        return self.value

    def mean(self) -> Any:
        """Return the number."""
        return self.value

    def is_spatially_varying(self) -> bool:
        """Return False."""
        return False
