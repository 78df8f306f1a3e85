"""Light that takes one bounce at most, by sampling lights and materials with given numbers of samples."""

from __future__ import annotations

from typing import Any

from ...ad import api
from ...jit.arrays import functions as f
from ...jit.errors import SceneError
from ..interfaces.bsdf import BSDFContext, BSDFFlags
from ..interfaces.integrator import SamplingIntegrator
from ..interfaces.records import Ray
from ..registry import Parameter, register
from ..scene import Reference
from .common import PASSES, UNLIMITED, fixed_sample, mis_weight, pass_lights


@register("integrator", "direct")
class Direct(SamplingIntegrator):
    """Direct illumination. Differentiable by plain automatic differentiation."""

    parameters = (
        Parameter("shading_samples", "int", None, "sets both numbers below"),
        Parameter("emitter_samples", "int", None, "samples of lights (1)"),
        Parameter("bsdf_samples", "int", None, "samples of materials (1)"),
        Parameter("hide_emitters", "bool", False, "do not show lights directly"),
        PASSES,
    )

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        both = props["shading_samples"]
        separate = [props["emitter_samples"], props["bsdf_samples"]]
        if both is not None and any(n is not None for n in separate):
            raise SceneError("direct: give either shading_samples, or emitter_samples and bsdf_samples")
        default = 1 if both is None else both
        self.emitter_samples, self.bsdf_samples = (default if n is None else n for n in separate)
        self.hide_emitters = props["hide_emitters"]
        if min(self.emitter_samples, self.bsdf_samples) < 0 or self.emitter_samples + self.bsdf_samples == 0:
            raise SceneError("direct: at least one sample of lights or materials is needed")

    def sample(self, scene: Any, sampler: Any, ray: Ray, active: Any = True) -> tuple[Any, Any, list[Any]]:
        """Return emitted and once-reflected radiance along the rays."""
        types = self.types
        ctx = BSDFContext()
        if self.hide_emitters:
            ray = pass_lights(scene, ray, active)
        si = scene.ray_intersect(ray, True, active)
        result = types.Color3f(0.0)
        if not self.hide_emitters:
            result = result + scene.eval_emitter(si, scene.emitter_index(si), active)
        valid = si.is_valid()
        index = scene.bsdf_index(si)
        total = self.emitter_samples + self.bsdf_samples
        share_light, share_bsdf = self.emitter_samples / total, self.bsdf_samples / total
        smooth = scene.smooth_mask(index, valid)
        for _ in range(self.emitter_samples):
            lit = valid & smooth
            # Masked draws, in this order, as in Mitsuba: pictures agree sample by sample.
            ds, weight = scene.sample_emitter_direction(si, sampler.next_2d(lit), True, lit)
            lit = lit & (ds.pdf != 0.0)
            wo = si.to_local(ds.d)
            value, pdf = scene.bsdfs.call(index, lambda b, mask, wo=wo: b.eval_pdf(ctx, si, wo, mask), active=lit)
            mis = f.select(ds.delta, 1.0, mis_weight(api.detach(ds.pdf) * share_light, api.detach(pdf) * share_bsdf))
            result = result + f.select(lit, value * weight * (mis * (1.0 / self.emitter_samples)), 0.0)
        for _ in range(self.bsdf_samples):
            u2 = sampler.next_2d(valid)
            u1 = sampler.next_1d(valid)
            bs, weight = scene.bsdfs.call(
                index, lambda b, mask, u1=u1, u2=u2: b.sample(ctx, si, u1, u2, mask), active=valid
            )
            going = valid & ((weight.x != 0.0) | (weight.y != 0.0) | (weight.z != 0.0))
            d, weight = fixed_sample(scene, si, bs, weight, index, valid)
            hit = scene.ray_intersect(si.spawn_ray(d), False, going)
            found = scene.emitter_index(hit)
            going = going & (found != UNLIMITED)
            radiance = scene.eval_emitter(hit, found, going)
            ds = scene.direction_to(hit, Reference(si.p), found)
            delta = (bs.sampled_type & int(BSDFFlags.Delta)) != 0
            em_pdf = f.select(delta, 0.0, scene.pdf_emitter_direction(Reference(si.p), ds, going & ~delta))
            mis = mis_weight(api.detach(bs.pdf) * share_bsdf, api.detach(em_pdf) * share_light)
            result = result + f.select(going, weight * radiance * (mis * (1.0 / self.bsdf_samples)), 0.0)
        return types.Color3f(result), valid, []
