"""A light without extent that shines in all directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...jit.arrays import functions as f
from ...jit.arrays.linear import norm
from ...jit.errors import SceneError
from ..interfaces.emitter import Emitter, EmitterFlags
from ..interfaces.object import ParamFlags, TraversalCallback
from ..interfaces.records import DirectionSample, SurfaceInteraction
from ..registry import Parameter, register


@register("emitter", "point")
class Point(Emitter):
    """Radiant intensity in all directions from `position`. Differentiable in `intensity` and `position`."""

    parameters = (
        Parameter("position", "point", None, "position, or to_world"),
        Parameter("to_world", "transform", None, "the position is where it moves the origin"),
        Parameter("intensity", "emissive", 1.0, "radiant intensity, W / sr"),
        Parameter("sampling_weight", "float", 1.0, "share of light samples"),
    )
    merge_fields = ("position", "intensity")

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        position, transform = props["position"], props["to_world"]
        if position is not None and transform is not None:
            raise SceneError("point: give either position or to_world, not both")
        if position is None:
            position = transform.translation() if transform is not None else (0.0, 0.0, 0.0)
        self.position = self.types.Point3f([float(x) for x in position])
        self.intensity = props["intensity"]
        self.sampling_weight = props["sampling_weight"]

    def flags(self) -> EmitterFlags:
        """Return: without extent."""
        return EmitterFlags.DeltaPosition

    def traverse(self, callback: TraversalCallback) -> None:
        """Report `position` and `intensity`."""
        callback.put("position", self.position, ParamFlags.Differentiable)
        callback.put("intensity", self.intensity, ParamFlags.Differentiable)

    def parameters_changed(self, keys: Sequence[str] = ()) -> None:
        """Nothing is derived from the parameters."""

    def eval(self, si: SurfaceInteraction, active: Any = True) -> Any:
        """Return 0: rays cannot hit it."""
        return self.types.Color3f(0.0)

    def sample_direction(self, ref: Any, sample: Any, active: Any = True) -> tuple[DirectionSample, Any]:
        """Return the direction to the light; density 1."""
        types = self.types
        offset = types.Vector3f(self.position - ref.p)
        dist = norm(offset)
        inverse = f.rcp(dist)
        d = offset * inverse
        ds = DirectionSample(
            # Of as many lanes as the reference points.
            self.position + ref.p * 0.0, types.Normal3f(0.0), types.Point2f(0.5), d, dist, types.Float(1.0),
            types.Bool(True), types.UInt32(0),
        )  # fmt: skip
        return ds, types.Color3f(self.intensity.eval(ds, active) * (inverse * inverse))

    def pdf_direction(self, ref: Any, ds: DirectionSample, active: Any = True) -> Any:
        """Return 0: no other strategy finds the light."""
        return self.types.Float(0.0)

    def eval_direction(self, ref: Any, ds: DirectionSample, active: Any = True) -> Any:
        """Return intensity / distance^2, with gradients."""
        offset = self.position - ref.p
        inverse = f.rcp(norm(offset))
        return self.types.Color3f(self.intensity.eval(ds, active) * (inverse * inverse))

    def place(self, ds: DirectionSample) -> Any:
        """Return the position."""
        return self.position + ds.p * 0.0
