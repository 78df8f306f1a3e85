"""The path tracer: paths from the camera, lights sampled at every vertex, both strategies weighted together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...ad import api
from ...jit.arrays import functions as f
from ...jit.control import while_loop
from ..interfaces.bsdf import BSDFContext, BSDFFlags
from ..interfaces.records import Ray
from ..registry import Parameter, register
from .common import PASSES, UNLIMITED, PathIntegrator, fixed_sample, found_weight, mis_weight, pass_lights


@dataclass
class PathState:
    """What a path carries from vertex to vertex."""

    o: Any  # next ray
    d: Any
    maxt: Any
    throughput: Any
    result: Any
    eta: Any
    depth: Any
    valid: Any
    prev_p: Any  # previous vertex
    prev_pdf: Any  # density with which the present direction was sampled there
    prev_delta: Any  # whether that lobe was a delta
    active: Any
    sampler: Any


@register("integrator", "path")
class Path(PathIntegrator):
    """Unidirectional path tracing with emitter sampling and multiple importance sampling.

    Differentiable in everything smooth by plain automatic differentiation (memory grows with the depth; `prb` does the
    same in constant memory). `max_depth`: number of path segments, -1 without bound; from `rr_depth` on paths end at
    random.
    """

    parameters = (
        Parameter("max_depth", "int", -1, "longest path, in segments; 1: only directly visible lights"),
        Parameter("rr_depth", "int", 5, "depth from which paths end at random"),
        Parameter("hide_emitters", "bool", False, "do not show lights directly"),
        PASSES,
    )

    def sample(self, scene: Any, sampler: Any, ray: Ray, active: Any = True) -> tuple[Any, Any, list[Any]]:
        """Return the radiance along the rays."""
        types = self.types
        if self.max_depth == 0:
            return types.Color3f(0.0), types.Bool(False), []
        if self.hide_emitters:
            ray = pass_lights(scene, ray, active)
        state = PathState(
            types.Point3f(ray.o), types.Vector3f(ray.d), types.Float(ray.maxt), types.Color3f(1.0), types.Color3f(0.0),
            types.Float(1.0), types.UInt32(0), types.Bool(not self.hide_emitters and scene.environment() is not None),
            types.Point3f(0.0), types.Float(1.0), types.Bool(True), types.Bool(active), sampler.loop_state(),
        )  # fmt: skip

        def body(s: PathState) -> tuple[PathState]:
            sampler.set_loop_state(s.sampler)
            self.bounce(scene, sampler, s)
            s.sampler = sampler.loop_state()
            return (s,)

        bound = self.max_depth + 1 if self.max_depth >= 0 else None
        (state,) = while_loop((state,), lambda s: s.active, body, labels=("path",), max_iterations=bound)
        sampler.set_loop_state(state.sampler)
        return f.select(state.valid, state.result, 0.0), state.valid, []

    def bounce(self, scene: Any, sampler: Any, s: PathState) -> None:
        """Extend the paths by one vertex."""
        ctx = BSDFContext()
        si = scene.ray_intersect(Ray(s.o, s.d, s.maxt), s.depth == 0, s.active)
        self.add_emission(scene, s, si)
        active_next = s.active & (s.depth + 1 < self.depth_limit) & si.is_valid()
        index = scene.bsdf_index(si)
        smooth = scene.smooth_mask(index, active_next)
        ds, em_weight = scene.sample_emitter_direction(si, sampler.next_2d(), True, active_next & smooth)
        wo = si.to_local(ds.d)
        u1, u2 = sampler.next_1d(), sampler.next_2d()
        value, pdf, bs, weight = scene.bsdfs.call(
            index, lambda b, mask: b.eval_pdf_sample(ctx, si, wo, u1, u2, mask), active=active_next
        )
        lit = active_next & smooth & (ds.pdf != 0.0)
        mis = f.select(ds.delta, 1.0, mis_weight(api.detach(ds.pdf), api.detach(pdf)))
        s.result = f.select(lit, s.result + s.throughput * value * em_weight * mis, s.result)
        d, weight = fixed_sample(scene, si, bs, weight, index, active_next)
        self.advance(sampler, s, si, bs, d, weight, active_next)

    def add_emission(self, scene: Any, s: PathState, si: Any) -> None:
        """Add the light that the present ray found."""
        if not scene.emitters():
            return
        index = scene.emitter_index(si)
        if self.hide_emitters:
            index = f.select(s.depth == 0, self.types.UInt32(UNLIMITED), index)
        mis = found_weight(scene, s, si, index)
        radiance = scene.eval_emitter(si, index, s.active)
        s.result = f.select(s.active, s.result + s.throughput * radiance * mis, s.result)

    def advance(self, sampler: Any, s: PathState, si: Any, bs: Any, d: Any, weight: Any, active_next: Any) -> None:
        """Follow the sampled directions; end paths at random from `rr_depth` on."""
        types = self.types
        ray = si.spawn_ray(d)
        s.o, s.d, s.maxt = types.Point3f(ray.o), ray.d, types.Float(ray.maxt)
        s.throughput = types.Color3f(s.throughput * weight)
        s.eta = s.eta * bs.eta
        null = (bs.sampled_type & int(BSDFFlags.Null)) != 0
        s.valid = s.valid | (s.active & si.is_valid() & ~null)
        s.prev_p, s.prev_pdf = si.p, api.detach(bs.pdf)
        s.prev_delta = (bs.sampled_type & int(BSDFFlags.Delta)) != 0
        s.depth = f.select(si.is_valid(), s.depth + 1, s.depth)
        largest = f.max(s.throughput.x, f.max(s.throughput.y, s.throughput.z))
        keep = f.min(largest * s.eta * s.eta, 0.95)
        roulette = s.depth >= self.rr_depth
        goes_on = sampler.next_1d() < keep
        s.throughput = f.select(
            roulette & (keep > 0.0), s.throughput / f.select(keep > 0.0, _detached(keep), 1.0), s.throughput
        )
        s.active = active_next & (~roulette | goes_on) & (largest != 0.0)


def _detached(x: Any) -> Any:
    return type(x).wrap(x._n)
