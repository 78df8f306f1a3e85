"""A shape that shines."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...jit.arrays import functions as f
from ...jit.arrays.linear import dot
from ..interfaces.emitter import Emitter, EmitterFlags
from ..interfaces.object import ParamFlags, TraversalCallback
from ..interfaces.records import DirectionSample, SurfaceInteraction
from ..registry import Parameter, register


@register("emitter", "area")
class Area(Emitter):
    """Radiates from the surface it is nested in, to the side of the normal. Differentiable in `radiance`."""

    parameters = (
        Parameter("radiance", "emissive", 1.0, "radiance, W / m^2 / sr"),
        Parameter("sampling_weight", "float", 1.0, "share of light samples"),
    )
    merge_fields = ("radiance", "shape")

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self.radiance = props["radiance"]
        self.sampling_weight = props["sampling_weight"]

    def flags(self) -> EmitterFlags:
        """Return: a surface."""
        return EmitterFlags.Surface

    def traverse(self, callback: TraversalCallback) -> None:
        """Report `radiance`."""
        callback.put("radiance", self.radiance, ParamFlags.Differentiable)

    def eval(self, si: SurfaceInteraction, active: Any = True) -> Any:
        """Return the radiance on the front."""
        return f.select(si.wi.z > 0.0, self.radiance.eval(si, active), 0.0)

    @property
    def by_texture(self) -> bool:
        """Return whether points are drawn by the brightness of a texture."""
        return bool(self.shape.has_uv_map and self.radiance.is_sampled())

    def sample_direction(self, ref: Any, sample: Any, active: Any = True) -> tuple[DirectionSample, Any]:
        """Return a direction to a point of the surface."""
        draw = self._sample_texture if self.by_texture else self.shape.sample_direction
        ds = draw(ref, sample, active)
        valid = (dot(ds.d, ds.n) < 0.0) & (ds.pdf != 0.0)
        radiance = self.radiance.eval(_at(ds, self.types), active) / f.select(valid, ds.pdf, 1.0)
        return dataclasses.replace(ds, pdf=f.select(valid, ds.pdf, 0.0)), f.select(valid, radiance, 0.0)

    def _sample_texture(self, ref: Any, sample: Any, active: Any) -> DirectionSample:
        """Return a direction to a point drawn by the texture."""
        types = self.types
        uv, pdf = self.radiance.sample_position(sample, active)
        p, n, area = self.shape.at_uv(uv, active)
        d = types.Vector3f(p - ref.p)
        dist_2 = dot(d, d)
        dist = f.sqrt(dist_2)
        d = d / dist
        cosine = f.abs(dot(d, n))
        valid = (pdf > 0.0) & (cosine > 0.0) & (area > 0.0)
        density = f.select(valid, pdf * dist_2 / f.select(valid, area * cosine, 1.0), 0.0)
        return DirectionSample(p, n, uv, d, dist, density, types.Bool(False), types.UInt32(0))

    def pdf_direction(self, ref: Any, ds: DirectionSample, active: Any = True) -> Any:
        """Return the density of directions to the surface."""
        cosine = -dot(ds.d, ds.n)
        front = cosine > 0.0
        if not self.by_texture:
            return f.select(front, self.shape.pdf_direction(ref, ds, active), 0.0)
        _, _, area = self.shape.at_uv(ds.uv, active)
        front = front & (area > 0.0)
        pdf = self.radiance.pdf_position(ds.uv, active) * ds.dist * ds.dist
        return f.select(front, pdf / f.select(front, area * cosine, 1.0), 0.0)

    def eval_direction(self, ref: Any, ds: DirectionSample, active: Any = True) -> Any:
        """Return the radiance towards the reference point."""
        return f.select(dot(ds.d, ds.n) < 0.0, self.radiance.eval(_at(ds, self.types), active), 0.0)


def _at(ds: DirectionSample, types: Any) -> Any:
    """Return what a texture needs to know of the sampled point."""
    from types import SimpleNamespace

    return SimpleNamespace(p=ds.p, n=ds.n, uv=ds.uv, prim=types.UInt32(0), shape=types.UInt32(0))
