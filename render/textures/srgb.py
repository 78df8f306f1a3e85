"""One colour everywhere."""

from __future__ import annotations

from typing import Any

from ..interfaces.object import ParamFlags, TraversalCallback
from ..interfaces.records import SurfaceInteraction
from ..interfaces.texture import Texture, luminance
from ..registry import Parameter, register


@register("texture", "srgb")
class Srgb(Texture):
    """The same linear RGB colour at every point. Differentiable in `value`."""

    parameters = (
        Parameter("color", "any", doc="linear RGB"),
        Parameter("unbounded", "bool", False, "accepted: values above 1 are allowed either way"),
    )
    merge_fields = ("value",)

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        color = props["color"]
        color = getattr(color, "array", color)
        self.value = self.types.Color3f([float(c) for c in color])

    def traverse(self, callback: TraversalCallback) -> None:
        """Report `value`."""
        callback.put("value", self.value, ParamFlags.Differentiable)

    def eval(self, si: SurfaceInteraction, active: Any = True) -> Any:
        """Return the colour."""
        return self.value.__copy__()

    def eval_1(self, si: SurfaceInteraction, active: Any = True) -> Any:
        """Return the luminance."""
        return luminance(self.value)

    def mean(self) -> Any:
        """Return the mean of the channels."""
        return (self.value.x + self.value.y + self.value.z) * (1.0 / 3.0)

    def is_spatially_varying(self) -> bool:
        """Return False."""
        return False
