"""The distance to what is visible."""

from __future__ import annotations

from typing import Any

from ...jit.arrays import functions as f
from ..interfaces.integrator import SamplingIntegrator
from ..interfaces.records import Ray
from ..registry import register
from .common import PASSES


@register("integrator", "depth")
class Depth(SamplingIntegrator):
    """An image of distances along the camera rays, 0 where nothing is hit."""

    parameters = (PASSES,)

    def sample(self, scene: Any, sampler: Any, ray: Ray, active: Any = True) -> tuple[Any, Any, list[Any]]:
        """Return the distances as grey."""
        si = scene.ray_intersect(ray, True, active)
        return self.types.Color3f(f.select(si.is_valid(), si.t, 0.0)), si.is_valid(), []
