"""What integrators share."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...ad import api
from ...jit.arrays import functions as f
from ...jit.control import while_loop
from ...jit.errors import SceneError
from ...jit.instances import NONE
from ..interfaces.bsdf import BSDFContext, BSDFFlags
from ..interfaces.integrator import SamplingIntegrator
from ..interfaces.records import Ray, offset_point
from ..registry import Parameter
from ..scene import Reference

UNLIMITED = 0xFFFFFFFF
PASSES = Parameter("samples_per_pass", "int", None, "samples of every pixel at a time; as many as fit if absent")


def mis_weight(a: Any, b: Any) -> Any:
    """Return the weight of a strategy with density `a` beside one with density `b` (power heuristic, Veach 1997)."""
    a2, b2 = a * a, b * b
    w = a2 / (a2 + b2)
    return f.select(f.isfinite(w), w, 0.0)


def found_weight(scene: Any, path: Any, si: Any, index: Any) -> Any:
    """Return the weight of having found light `index` at `si` by sampling the material at the path's last vertex."""
    ds = scene.direction_to(si, Reference(path.prev_p), index)
    em_pdf = scene.pdf_emitter_direction(Reference(path.prev_p), ds, path.active & ~path.prev_delta)
    return mis_weight(path.prev_pdf, api.detach(em_pdf))


def fixed_sample(scene: Any, si: Any, bs: Any, weight: Any, index: Any, active: Any) -> tuple[Any, Any]:
    """Return the sampled directions, which parameters do not move, and their weights with the gradients for that.

    If directions moved with roughness or normals, rays would cross the edges of lights and shapes, and those edges have
    no derivative here: gradients would be biased. Instead the value at a fixed direction varies, over a fixed density
    (detached sampling, Zeltner et al. 2021, "Monte Carlo Estimators for Differential Light Transport"). Perfectly
    specular directions move, for there is no other.
    """
    types = scene.types
    d = types.Vector3f(si.to_world(bs.wo))
    if not api.grad_enabled(d):
        return d, weight
    specular = (bs.sampled_type & int(BSDFFlags.Delta)) != 0
    fixed = api.detach(d)
    wo = types.Vector3f(si.to_local(fixed))
    spread = active & ~specular
    value, pdf = scene.bsdfs.call(index, lambda b, mask: b.eval_pdf(BSDFContext(), si, wo, mask), active=spread)
    spread = spread & (pdf != 0.0)
    again = value / f.select(spread, api.detach(pdf), 1.0)
    moving = api.replace_grad(types.Color3f(weight), types.Color3f(again))
    return types.Vector3f(f.select(specular, d, fixed)), types.Color3f(f.select(spread, moving, weight))


class PathIntegrator(SamplingIntegrator):
    """Base of integrators that follow paths: the parameters `max_depth`, `rr_depth` and `hide_emitters`, checked."""

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self.max_depth, self.rr_depth = props["max_depth"], props["rr_depth"]
        self.hide_emitters = props["hide_emitters"]
        if self.max_depth < -1:
            raise SceneError(f"max_depth must be -1 (no bound) or >= 0, found {self.max_depth}")
        if self.rr_depth <= 0:
            raise SceneError(f"rr_depth must be > 0, found {self.rr_depth}")

    @property
    def depth_limit(self) -> int:
        """Return the longest path as an unsigned number."""
        return UNLIMITED if self.max_depth < 0 else int(self.max_depth)


def pass_lights(scene: Any, ray: Ray, active: Any = True) -> Ray:
    """Return camera rays that start behind the shining surfaces they meet first (`hide_emitters`)."""
    if not any(shape.emitter is not None for shape in scene.shapes()):
        return ray
    types = scene.types

    def body(o: Any, maxt: Any, going: Any) -> tuple[Any, Any, Any]:
        here = Ray(o, ray.d, maxt)
        si = scene.ray_intersect(here, True, going)
        shines = si.is_valid() & (scene.emitter_index(si) != NONE)
        behind = offset_point(si.p, si.n, ray.d)
        o = types.Point3f(f.select(shines, behind, o))
        return o, types.Float(f.select(shines, maxt - si.t, maxt)), shines

    start = (types.Point3f(ray.o), types.Float(ray.maxt), types.Bool(active))
    o, maxt, _ = while_loop(start, lambda o, maxt, going: going, body, labels=("origin", "maxt", "going"))
    return dataclasses.replace(ray, o=o, maxt=maxt)
