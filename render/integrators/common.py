"""What integrators share."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...jit.arrays import functions as f
from ...jit.control import while_loop
from ...jit.instances import NONE
from ..interfaces.records import Ray, offset_point


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
