"""Smooth glass: reflects and refracts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...jit.arrays import functions as f
from ...jit.errors import SceneError
from ..fresnel import fresnel, reflect, refract
from ..interfaces.bsdf import BSDF, BSDFContext, BSDFFlags, TransportMode
from ..interfaces.object import ParamFlags, TraversalCallback
from ..interfaces.records import BSDFSample, SurfaceInteraction
from ..registry import Parameter, register


def relative_index(props: Any) -> float:
    """Return the index inside over that outside, from names or numbers."""
    from .. import spectra

    values = []
    for name in ("int_ior", "ext_ior"):
        value = props[name]
        values.append(spectra.ior(value) if isinstance(value, str) else float(value))
    if min(values) <= 0:
        raise SceneError(f"indices of refraction must be positive, found {values}")
    return values[0] / values[1]


@register("bsdf", "dielectric")
class Dielectric(BSDF):
    """A smooth interface between two transparent media; the normal points to the outer one.

    Differentiable in the two factors.
    """

    parameters = (
        Parameter("int_ior", "ior", "bk7", "index of refraction inside: a number or a name"),
        Parameter("ext_ior", "ior", "air", "index of refraction outside: a number or a name"),
        Parameter("specular_reflectance", "texture", 1.0, "factor on reflected light"),
        Parameter("specular_transmittance", "texture", 1.0, "factor on transmitted light"),
    )
    merge_fields = ("eta", "specular_reflectance", "specular_transmittance")

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self.eta = self.types.Float(relative_index(props))
        self.specular_reflectance = props["specular_reflectance"]
        self.specular_transmittance = props["specular_transmittance"]

    def flags(self) -> BSDFFlags:
        """Return reflection and transmission on both sides."""
        both = BSDFFlags.FrontSide | BSDFFlags.BackSide
        return BSDFFlags.DeltaReflection | BSDFFlags.DeltaTransmission | both

    def traverse(self, callback: TraversalCallback) -> None:
        """Report `eta` and the factors."""
        callback.put("eta", self.eta, ParamFlags.NonDifferentiable)
        callback.put("specular_reflectance", self.specular_reflectance, ParamFlags.Differentiable)
        callback.put("specular_transmittance", self.specular_transmittance, ParamFlags.Differentiable)

    def parameters_changed(self, keys: Sequence[str] = ()) -> None:
        """Nothing is derived from the parameters."""

    def sample(
        self, ctx: BSDFContext, si: SurfaceInteraction, sample1: Any, sample2: Any, active: Any = True
    ) -> tuple[BSDFSample, Any]:
        """Return the reflected or refracted direction, chosen by the reflectance."""
        types = self.types
        r, cos_t, eta_it, eta_ti = fresnel(si.wi.z, self.eta)
        reflected = sample1 <= r
        pdf = f.select(reflected, r, 1.0 - r)
        wo = f.select(reflected, reflect(si.wi), refract(si.wi, cos_t, eta_ti))
        scale = eta_ti * eta_ti if ctx.mode == TransportMode.Radiance else types.Float(1.0)
        factor = f.select(
            reflected, self.specular_reflectance.eval(si, active), self.specular_transmittance.eval(si, active) * scale
        )
        kind = f.select(
            reflected, types.UInt32(int(BSDFFlags.DeltaReflection)), types.UInt32(int(BSDFFlags.DeltaTransmission))
        )
        eta = f.select(reflected, 1.0, eta_it)
        return BSDFSample(types.Vector3f(wo), pdf, eta, kind), types.Color3f(factor)

    def eval(self, ctx: BSDFContext, si: SurfaceInteraction, wo: Any, active: Any = True) -> Any:
        """Return 0: delta lobes."""
        return self.types.Color3f(0.0)

    def pdf(self, ctx: BSDFContext, si: SurfaceInteraction, wo: Any, active: Any = True) -> Any:
        """Return 0: delta lobes."""
        return self.types.Float(0.0)
