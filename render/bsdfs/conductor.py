"""The smooth metal: a coloured mirror."""

from __future__ import annotations

from typing import Any

from ...jit.arrays import functions as f
from ...jit.errors import SceneError
from ..fresnel import fresnel_conductor, reflect
from ..interfaces.bsdf import BSDF, BSDFContext, BSDFFlags
from ..interfaces.object import ParamFlags, TraversalCallback
from ..interfaces.records import BSDFSample, SurfaceInteraction
from ..registry import Parameter, register

CONDUCTOR = (
    Parameter("material", "string", "none", "name of a metal; none: a perfect mirror"),
    Parameter("eta", "unbounded", None, "real part of the index of refraction"),
    Parameter("k", "unbounded", None, "imaginary part of the index of refraction"),
    Parameter("specular_reflectance", "texture", 1.0, "factor on the reflected light"),
)


def index_of_refraction(props: Any) -> tuple[Any, Any]:
    """Return textures of eta and k from a material's name or the two properties."""
    from .. import spectra
    from ..slots import create
    from ..values import Rgb

    if "eta" in props or "k" in props:
        if "material" in props:
            raise SceneError("give either a material or eta and k, not both")
        eta, k = props["eta"], props["k"]
        if eta is None or k is None:
            raise SceneError("eta and k must be given together")
        return eta, k
    name = props["material"]
    if name == "none":
        values = [Rgb(0.0, 0.0, 0.0), Rgb(1.0, 1.0, 1.0)]
    else:
        values = [Rgb(*(float(v) for v in triplet)) for triplet in spectra.conductor(name)]
    eta, k = (create("texture", "srgb", {"color": v, "unbounded": True}, props, "material") for v in values)
    return eta, k


@register("bsdf", "conductor")
class Conductor(BSDF):
    """Reflects in the mirror direction only, on the front side. Differentiable in its textures."""

    parameters = CONDUCTOR
    merge_fields = ("eta", "k", "specular_reflectance")

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self.eta, self.k = index_of_refraction(props)
        self.specular_reflectance = props["specular_reflectance"]

    def flags(self) -> BSDFFlags:
        """Return a mirror on the front."""
        return BSDFFlags.DeltaReflection | BSDFFlags.FrontSide

    def traverse(self, callback: TraversalCallback) -> None:
        """Report `eta`, `k`, `specular_reflectance`."""
        moving = ParamFlags.Differentiable | ParamFlags.Discontinuous
        callback.put("eta", self.eta, moving)
        callback.put("k", self.k, moving)
        callback.put("specular_reflectance", self.specular_reflectance, ParamFlags.Differentiable)

    def sample(
        self, ctx: BSDFContext, si: SurfaceInteraction, sample1: Any, sample2: Any, active: Any = True
    ) -> tuple[BSDFSample, Any]:
        """Return the mirror direction; the weight is the reflectance."""
        types = self.types
        front = si.wi.z > 0.0
        value = fresnel_conductor(si.wi.z, self.eta.eval(si, active), self.k.eval(si, active))
        weight = f.select(front, value * self.specular_reflectance.eval(si, active), 0.0)
        kind = types.UInt32(int(BSDFFlags.DeltaReflection))
        pdf = f.select(front, types.Float(1.0), 0.0)
        return BSDFSample(types.Vector3f(reflect(si.wi)), pdf, types.Float(1.0), kind), types.Color3f(weight)

    def eval(self, ctx: BSDFContext, si: SurfaceInteraction, wo: Any, active: Any = True) -> Any:
        """Return 0: a delta lobe."""
        return self.types.Color3f(0.0)

    def pdf(self, ctx: BSDFContext, si: SurfaceInteraction, wo: Any, active: Any = True) -> Any:
        """Return 0: a delta lobe."""
        return self.types.Float(0.0)
