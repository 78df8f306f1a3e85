"""The rough metal: mirrors tilted by a microfacet distribution."""

from __future__ import annotations

from typing import Any

from ...jit.arrays import functions as f
from ...jit.arrays.linear import dot, normalize
from ...jit.errors import SceneError
from ..fresnel import fresnel_conductor, reflect_about
from ..interfaces.bsdf import BSDF, BSDFContext, BSDFFlags
from ..interfaces.object import ParamFlags, TraversalCallback
from ..interfaces.records import BSDFSample, SurfaceInteraction
from ..microfacet import Microfacets
from ..registry import Parameter, register
from .conductor import CONDUCTOR, index_of_refraction

MICROFACETS = (
    Parameter("distribution", "string", "beckmann", "distribution of normals", choices=("beckmann", "ggx")),
    Parameter("alpha", "texture", 0.1, "root-mean-square slope, not its square"),
    Parameter("alpha_u", "texture", None, "slope along dp_du, with alpha_v instead of alpha"),
    Parameter("alpha_v", "texture", None, "slope across"),
    Parameter("sample_visible", "bool", True, "sample only normals that are seen"),
)


def roughness(props: Any) -> tuple[Any, Any]:
    """Return the textures alpha_u and alpha_v."""
    if "alpha_u" in props or "alpha_v" in props:
        if "alpha" in props or props["alpha_u"] is None or props["alpha_v"] is None:
            raise SceneError("give either alpha, or alpha_u and alpha_v together")
        return _checked(props, "alpha_u"), _checked(props, "alpha_v")
    alpha = _checked(props, "alpha")
    return alpha, alpha


def _checked(props: Any, name: str) -> Any:
    """Return a roughness; raises SceneError if it is one number and that is negative or NaN."""
    texture = props[name]
    number = props.raw(name) if name in props else 0.0
    if isinstance(number, (int, float)) and not number >= 0.0:
        raise SceneError(f"{name} must not be negative, found {number}")
    return texture


@register("bsdf", "roughconductor")
class RoughConductor(BSDF):
    """A metal with rough surface (Walter et al. 2007), on the front side. Differentiable in its textures."""

    parameters = (*CONDUCTOR, *MICROFACETS)
    merge_fields = ("eta", "k", "specular_reflectance", "alpha_u", "alpha_v", "distribution", "sample_visible")

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self.eta, self.k = index_of_refraction(props)
        self.specular_reflectance = props["specular_reflectance"]
        self.alpha_u, self.alpha_v = roughness(props)
        self.distribution: str = props["distribution"]
        self.sample_visible: bool = props["sample_visible"]

    def flags(self) -> BSDFFlags:
        """Return glossy reflection on the front."""
        return BSDFFlags.GlossyReflection | BSDFFlags.FrontSide

    def traverse(self, callback: TraversalCallback) -> None:
        """Report roughness, `eta`, `k`, `specular_reflectance`."""
        moving = ParamFlags.Differentiable | ParamFlags.Discontinuous
        if self.alpha_u is self.alpha_v:
            callback.put("alpha", self.alpha_u, moving)
        else:
            callback.put("alpha_u", self.alpha_u, moving)
            callback.put("alpha_v", self.alpha_v, moving)
        callback.put("eta", self.eta, moving)
        callback.put("k", self.k, moving)
        callback.put("specular_reflectance", self.specular_reflectance, ParamFlags.Differentiable)

    def _microfacets(self, si: SurfaceInteraction, active: Any) -> Microfacets:
        alpha_u, alpha_v = self.alpha_u.eval_1(si, active), self.alpha_v.eval_1(si, active)
        return Microfacets(self.distribution, alpha_u, alpha_v, self.sample_visible)

    def _reflectance(self, si: SurfaceInteraction, cosine: Any, active: Any) -> Any:
        value = fresnel_conductor(cosine, self.eta.eval(si, active), self.k.eval(si, active))
        return value * self.specular_reflectance.eval(si, active)

    def sample(
        self, ctx: BSDFContext, si: SurfaceInteraction, sample1: Any, sample2: Any, active: Any = True
    ) -> tuple[BSDFSample, Any]:
        """Return a direction mirrored about a sampled normal."""
        types = self.types
        surface = self._microfacets(si, active)
        m, pdf_m = surface.sample(si.wi, sample2)
        wo = reflect_about(si.wi, m)
        valid = (si.wi.z > 0.0) & (pdf_m != 0.0) & (wo.z > 0.0)
        if self.sample_visible:
            weight = surface.smith_g1(wo, m)
        else:
            weight = surface.g(si.wi, wo, m) * dot(si.wi, m) / (si.wi.z * m.z)
        pdf = f.select(valid, pdf_m / (4.0 * dot(wo, m)), 0.0)
        value = f.select(valid, self._reflectance(si, dot(si.wi, m), active) * weight, 0.0)
        kind = types.UInt32(int(BSDFFlags.GlossyReflection))
        return BSDFSample(types.Vector3f(wo), pdf, types.Float(1.0), kind), types.Color3f(value)

    def _half(self, si: SurfaceInteraction, wo: Any) -> tuple[Any, Any]:
        h = self.types.Vector3f(normalize(wo + si.wi))
        return h, (si.wi.z > 0.0) & (wo.z > 0.0)

    def eval(self, ctx: BSDFContext, si: SurfaceInteraction, wo: Any, active: Any = True) -> Any:
        """Return D G F / (4 cos wi)."""
        h, both = self._half(si, wo)
        surface = self._microfacets(si, active)
        d = surface.eval(h)
        both = both & (d != 0.0)
        value = d * surface.g(si.wi, wo, h) / (4.0 * si.wi.z)
        return f.select(both, self._reflectance(si, dot(si.wi, h), active) * value, 0.0)

    def pdf(self, ctx: BSDFContext, si: SurfaceInteraction, wo: Any, active: Any = True) -> Any:
        """Return the density of the mirrored direction."""
        h, both = self._half(si, wo)
        both = both & (dot(si.wi, h) > 0.0) & (dot(wo, h) > 0.0)
        surface = self._microfacets(si, active)
        if self.sample_visible:
            pdf = surface.eval(h) * surface.smith_g1(si.wi, h) / (4.0 * si.wi.z)
        else:
            pdf = surface.pdf(si.wi, h) / (4.0 * dot(wo, h))
        return f.select(both, pdf, 0.0)
