"""Gives a one-sided material to both sides of a surface."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...jit.arrays import functions as f
from ...jit.errors import SceneError
from ..interfaces.bsdf import BSDF, BSDFContext, BSDFFlags
from ..interfaces.object import ParamFlags, TraversalCallback
from ..interfaces.records import BSDFSample, SurfaceInteraction
from ..registry import Parameter, register


@register("bsdf", "twosided")
class TwoSided(BSDF):
    """The nested material on both sides, or one on the front and another on the back. None may transmit light."""

    parameters = (Parameter("brdfs", "bsdf", doc="one material, or front and back", many=True),)
    merge_fields = ("brdf_0", "brdf_1", "same")

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        nested = props["brdfs"]
        if len(nested) not in (1, 2):
            raise SceneError(f"twosided: one or two nested materials are needed, found {len(nested)}")
        self.same = len(nested) == 1
        self.brdf_0, self.brdf_1 = nested[0], nested[-1]
        for b in nested:
            if b.flags() & BSDFFlags.Transmission:
                raise SceneError("twosided: only materials without a transmission component can be nested")

    def flags(self) -> BSDFFlags:
        """Return the lobes of both sides."""
        both: BSDFFlags = self.brdf_0.flags() | self.brdf_1.flags()
        return both | BSDFFlags.FrontSide | BSDFFlags.BackSide

    def traverse(self, callback: TraversalCallback) -> None:
        """Report brdf_0 and, if there is another one, brdf_1."""
        callback.put("brdf_0", self.brdf_0, ParamFlags.Differentiable)
        if not self.same:
            callback.put("brdf_1", self.brdf_1, ParamFlags.Differentiable)

    @staticmethod
    def _flip(v: Any, back: Any) -> Any:
        return type(v)(v.x, v.y, f.select(back, -v.z, v.z))

    def _sides(self, si: SurfaceInteraction) -> tuple[SurfaceInteraction, Any]:
        back = si.wi.z < 0.0
        return dataclasses.replace(si, wi=self._flip(si.wi, back)), back

    def sample(
        self, ctx: BSDFContext, si: SurfaceInteraction, sample1: Any, sample2: Any, active: Any = True
    ) -> tuple[BSDFSample, Any]:
        """Sample the side that wi is on."""
        upright, back = self._sides(si)
        bs, weight = self.brdf_0.sample(ctx, upright, sample1, sample2, active)
        if not self.same:
            bs1, weight1 = self.brdf_1.sample(ctx, upright, sample1, sample2, active)
            bs = BSDFSample(*(f.select(back, b, a) for a, b in zip(_fields(bs), _fields(bs1), strict=True)))
            weight = f.select(back, weight1, weight)
        return dataclasses.replace(bs, wo=self._flip(bs.wo, back)), weight

    def eval(self, ctx: BSDFContext, si: SurfaceInteraction, wo: Any, active: Any = True) -> Any:
        """Evaluate the side that wi is on."""
        upright, back = self._sides(si)
        wo = self._flip(wo, back)
        value = self.brdf_0.eval(ctx, upright, wo, active)
        return value if self.same else f.select(back, self.brdf_1.eval(ctx, upright, wo, active), value)

    def pdf(self, ctx: BSDFContext, si: SurfaceInteraction, wo: Any, active: Any = True) -> Any:
        """Return the density of the side that wi is on."""
        upright, back = self._sides(si)
        wo = self._flip(wo, back)
        value = self.brdf_0.pdf(ctx, upright, wo, active)
        return value if self.same else f.select(back, self.brdf_1.pdf(ctx, upright, wo, active), value)

    def eval_diffuse_reflectance(self, si: SurfaceInteraction, active: Any = True) -> Any:
        """Return the albedo of the side that wi is on."""
        upright, back = self._sides(si)
        value = self.brdf_0.eval_diffuse_reflectance(upright, active)
        return value if self.same else f.select(back, self.brdf_1.eval_diffuse_reflectance(upright, active), value)


def _fields(bs: BSDFSample) -> tuple[Any, ...]:
    return (bs.wo, bs.pdf, bs.eta, bs.sampled_type)
