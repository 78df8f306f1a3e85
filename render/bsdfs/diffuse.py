"""The ideal diffuse (Lambertian) material."""

from __future__ import annotations

from typing import Any

from ...jit.arrays import functions as f
from ..interfaces.bsdf import BSDF, BSDFContext, BSDFFlags
from ..interfaces.object import ParamFlags, TraversalCallback
from ..interfaces.records import BSDFSample, SurfaceInteraction
from ..registry import Parameter, register
from ..warp import INV_PI, square_to_cosine_hemisphere, square_to_cosine_hemisphere_pdf


@register("bsdf", "diffuse")
class Diffuse(BSDF):
    """Reflects the same radiance in all directions, on the side of the shading normal only.

    Differentiable in `reflectance`.
    """

    parameters = (Parameter("reflectance", "texture", 0.5, "share of light reflected, in [0, 1]"),)
    merge_fields = ("reflectance",)

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self.reflectance = props["reflectance"]

    def flags(self) -> BSDFFlags:
        """Return diffuse reflection on the front."""
        return BSDFFlags.DiffuseReflection | BSDFFlags.FrontSide

    def traverse(self, callback: TraversalCallback) -> None:
        """Report `reflectance`."""
        callback.put("reflectance", self.reflectance, ParamFlags.Differentiable)

    def sample(
        self, ctx: BSDFContext, si: SurfaceInteraction, sample1: Any, sample2: Any, active: Any = True
    ) -> tuple[BSDFSample, Any]:
        """Return a direction with density cos / pi; the weight is the reflectance."""
        types = self.types
        wo = square_to_cosine_hemisphere(sample2, types.Vector3f)
        pdf = square_to_cosine_hemisphere_pdf(wo)
        valid = (si.wi.z > 0.0) & (pdf > 0.0)
        weight = f.select(valid, self.reflectance.eval(si, valid & active), 0.0)
        bs = BSDFSample(wo, f.select(valid, pdf, 0.0), types.Float(1.0), types.UInt32(int(BSDFFlags.DiffuseReflection)))
        return bs, types.Color3f(weight)

    def eval(self, ctx: BSDFContext, si: SurfaceInteraction, wo: Any, active: Any = True) -> Any:
        """Return reflectance / pi * cos."""
        both = (si.wi.z > 0.0) & (wo.z > 0.0)
        return f.select(both, self.reflectance.eval(si, both & active) * (wo.z * INV_PI), 0.0)

    def pdf(self, ctx: BSDFContext, si: SurfaceInteraction, wo: Any, active: Any = True) -> Any:
        """Return cos / pi."""
        return f.select((si.wi.z > 0.0) & (wo.z > 0.0), square_to_cosine_hemisphere_pdf(wo), 0.0)

    def eval_diffuse_reflectance(self, si: SurfaceInteraction, active: Any = True) -> Any:
        """Return the reflectance."""
        return self.reflectance.eval(si, active)
