"""The same light from everywhere."""

from __future__ import annotations

import math
from typing import Any

from ...jit.arrays import functions as f
from ..interfaces.emitter import Emitter, EmitterFlags
from ..interfaces.object import ParamFlags, TraversalCallback
from ..interfaces.records import DirectionSample, SurfaceInteraction
from ..registry import Parameter, register
from ..warp import square_to_uniform_sphere
from .common import Surroundings

_DENSITY = 0.25 / math.pi


@register("emitter", "constant")
class Constant(Emitter, Surroundings):
    """Constant radiance from all directions around the scene. Differentiable in `radiance`."""

    parameters = (
        Parameter("radiance", "emissive", 1.0, "radiance, W / m^2 / sr"),
        Parameter("sampling_weight", "float", 1.0, "share of light samples"),
        Parameter("to_world", "transform", None, "accepted, without effect"),
    )

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self.radiance = props["radiance"]
        self.sampling_weight = props["sampling_weight"]

    def flags(self) -> EmitterFlags:
        """Return: at infinity."""
        return EmitterFlags.Infinite

    def set_scene(self, scene: Any) -> None:
        """Learn the extent of the scene."""
        self.set_bounds(self.types, scene)

    def traverse(self, callback: TraversalCallback) -> None:
        """Report `radiance`."""
        callback.put("radiance", self.radiance, ParamFlags.Differentiable)

    def eval(self, si: SurfaceInteraction, active: Any = True) -> Any:
        """Return the radiance."""
        return self.radiance.eval(si, active)

    def sample_direction(self, ref: Any, sample: Any, active: Any = True) -> tuple[DirectionSample, Any]:
        """Return a direction uniform over the sphere."""
        types = self.types
        d = square_to_uniform_sphere(sample, types.Vector3f)
        ds = self.beyond(types, ref, d, types.Float(_DENSITY))
        return ds, types.Color3f(self.radiance.eval(ds, active) * (1.0 / _DENSITY))

    def pdf_direction(self, ref: Any, ds: DirectionSample, active: Any = True) -> Any:
        """Return 1 / 4 pi."""
        return self.types.Float(_DENSITY)

    def eval_direction(self, ref: Any, ds: DirectionSample, active: Any = True) -> Any:
        """Return the radiance."""
        return f.select(active, self.radiance.eval(ds, active), 0.0)
