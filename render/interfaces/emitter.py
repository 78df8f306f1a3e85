"""Lights.

`eval` is the radiance (W/m^2/sr) that leaves towards the origin of the ray which found the light. `sample_direction`
draws a direction from a reference point: the weight is radiance / pdf (density per solid angle; delta lights: 1 over
the squared distance or such, pdf 1). Visibility is not tested here. Differentiable in the light's parameters.
"""

from __future__ import annotations

import enum
from typing import Any

from .object import Object
from .records import DirectionSample, SurfaceInteraction


class EmitterFlags(enum.IntFlag):
    """Kinds of lights."""

    Empty = 0
    DeltaPosition = 1
    DeltaDirection = 2
    Infinite = 4
    Surface = 8
    SpatiallyVarying = 16
    Delta = DeltaPosition | DeltaDirection


class Emitter(Object):
    """Base of lights: implement `flags`, `eval`, `sample_direction`, `pdf_direction`."""

    plugin_kind = "emitter"
    sampling_weight: float = 1.0
    shape: Any = None  # the surface that shines, for area lights

    def flags(self) -> EmitterFlags:
        """Return what kind of light this is."""
        raise NotImplementedError(f"{type(self).__name__}.flags()")

    def is_environment(self) -> bool:
        """Return whether the light surrounds the scene."""
        return bool(self.flags() & EmitterFlags.Infinite) and not self.flags() & EmitterFlags.Delta

    def set_scene(self, scene: Any) -> None:
        """Learn the extent of the scene (infinite lights)."""

    def eval(self, si: SurfaceInteraction, active: Any = True) -> Any:
        """Return the radiance in direction si.wi."""
        raise NotImplementedError(f"{type(self).__name__}.eval()")

    def sample_direction(self, ref: Any, sample: Any, active: Any = True) -> tuple[DirectionSample, Any]:
        """Return a sampled direction from the point ref.p and radiance / pdf."""
        raise NotImplementedError(f"{type(self).__name__}.sample_direction()")

    def pdf_direction(self, ref: Any, ds: DirectionSample, active: Any = True) -> Any:
        """Return the density with which `sample_direction` chooses ds.d."""
        raise NotImplementedError(f"{type(self).__name__}.pdf_direction()")

    def eval_direction(self, ref: Any, ds: DirectionSample, active: Any = True) -> Any:
        """Return the radiance along a direction that `sample_direction` chose, with gradients."""
        raise NotImplementedError(f"{type(self).__name__}.eval_direction()")

    def place(self, ds: DirectionSample) -> Any:
        """Return the point that `ds` leads to, with gradients if the light has a `position` of its own."""
        return ds.p
