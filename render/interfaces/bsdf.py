"""Materials: how a surface scatters light.

`wi` (in the interaction) and `wo` are unit vectors in the local frame, both pointing away from the surface. Values
contain the cosine |wo.z|; densities are per solid angle of `wo`. Lanes on a side the material does not serve get 0.
`sample` returns a weight value / pdf. Everything is differentiable in the material's parameters; sampled directions
are not (they are drawn from detached values).
"""

from __future__ import annotations

import enum
from typing import Any

from .object import Object
from .records import BSDFSample, SurfaceInteraction


class BSDFFlags(enum.IntFlag):
    """Kinds of scattering lobes."""

    Empty = 0
    Null = 1
    DiffuseReflection = 2
    DiffuseTransmission = 4
    GlossyReflection = 8
    GlossyTransmission = 16
    DeltaReflection = 32
    DeltaTransmission = 64
    FrontSide = 1 << 16
    BackSide = 1 << 17
    Diffuse = DiffuseReflection | DiffuseTransmission
    Glossy = GlossyReflection | GlossyTransmission
    Smooth = Diffuse | Glossy
    Delta = Null | DeltaReflection | DeltaTransmission
    Transmission = DiffuseTransmission | GlossyTransmission | DeltaTransmission | Null


class TransportMode(enum.IntEnum):
    """What is transported: radiance from lights to the sensor, or importance."""

    Radiance = 0
    Importance = 1


class BSDFContext:
    """Which transport and which lobes are asked for."""

    def __init__(self, mode: TransportMode = TransportMode.Radiance) -> None:
        self.mode = mode


class BSDF(Object):
    """Base of materials: implement `flags`, `sample`, `eval` and `pdf`."""

    plugin_kind = "bsdf"

    def flags(self) -> BSDFFlags:
        """Return the lobes the material has."""
        raise NotImplementedError(f"{type(self).__name__}.flags()")

    def sample(
        self, ctx: BSDFContext, si: SurfaceInteraction, sample1: Any, sample2: Any, active: Any = True
    ) -> tuple[BSDFSample, Any]:
        """Return a sampled direction and the weight value / pdf, from one and two uniform numbers."""
        raise NotImplementedError(f"{type(self).__name__}.sample()")

    def eval(self, ctx: BSDFContext, si: SurfaceInteraction, wo: Any, active: Any = True) -> Any:
        """Return the value times |wo.z|; 0 for delta lobes."""
        raise NotImplementedError(f"{type(self).__name__}.eval()")

    def pdf(self, ctx: BSDFContext, si: SurfaceInteraction, wo: Any, active: Any = True) -> Any:
        """Return the density of `sample` for the direction; 0 for delta lobes."""
        raise NotImplementedError(f"{type(self).__name__}.pdf()")

    def eval_pdf(self, ctx: BSDFContext, si: SurfaceInteraction, wo: Any, active: Any = True) -> tuple[Any, Any]:
        """Return `eval` and `pdf` together."""
        return self.eval(ctx, si, wo, active), self.pdf(ctx, si, wo, active)

    def eval_pdf_sample(
        self, ctx: BSDFContext, si: SurfaceInteraction, wo: Any, sample1: Any, sample2: Any, active: Any = True
    ) -> tuple[Any, Any, BSDFSample, Any]:
        """Return `eval` and `pdf` for one direction and a sample of another."""
        value, pdf = self.eval_pdf(ctx, si, wo, active)
        return (value, pdf, *self.sample(ctx, si, sample1, sample2, active))

    def eval_diffuse_reflectance(self, si: SurfaceInteraction, active: Any = True) -> Any:
        """Return the albedo for feature images."""
        types = self.types
        wo = types.Vector3f(0.0, 0.0, 1.0)
        return self.eval(BSDFContext(), si, wo, active) * 3.141592653589793
