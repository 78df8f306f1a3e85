"""Rays, frames, interactions and samples with Mitsuba's names and constructors, made for one variant."""

from __future__ import annotations

import math
from typing import Any

from luxgrad.render.interfaces import records as r
from luxgrad.render.variants import Types

__all__ = ["make"]


def make(name: str, types: Types) -> Any:
    """Return the record type called `name` for a variant: a subclass of the renderer's own that `dr.zeros` can make."""
    base, fields = _described(name, types)
    members: dict[str, Any] = {"DRJIT_STRUCT": fields, "__module__": "luxgrad.mi", "__doc__": base.__doc__}
    if base is r.Ray:
        members["__init__"] = _ray_init(types)
    elif base is r.Frame:
        members["__init__"] = _frame_init(types)
    else:
        members["__init__"] = _empty_init(fields)
    return type(name, (base,), members)


def _described(name: str, t: Types) -> tuple[Any, dict[str, Any]]:
    if name in ("Ray3f", "RayDifferential3f"):
        return r.Ray, {"o": t.Point3f, "d": t.Vector3f, "maxt": t.Float, "time": t.Float}
    frame = {"s": t.Vector3f, "t": t.Vector3f, "n": t.Normal3f}
    if name == "Frame3f":
        return r.Frame, frame
    if name == "SurfaceInteraction3f":
        return r.SurfaceInteraction, {
            "t": t.Float, "p": t.Point3f, "n": t.Normal3f, "uv": t.Point2f, "dp_du": t.Vector3f,
            "sh_frame": make("Frame3f", t), "wi": t.Vector3f, "prim": t.UInt32, "shape": t.UInt32, "valid": t.Bool,
        }  # fmt: skip
    if name == "DirectionSample3f":
        return r.DirectionSample, {
            "p": t.Point3f, "n": t.Normal3f, "uv": t.Point2f, "d": t.Vector3f, "dist": t.Float, "pdf": t.Float,
            "delta": t.Bool, "emitter": t.UInt32,
        }  # fmt: skip
    return r.BSDFSample, {"wo": t.Vector3f, "pdf": t.Float, "eta": t.Float, "sampled_type": t.UInt32}


def _ray_init(types: Types) -> Any:
    def init(
        self: Any, o: Any = 0.0, d: Any = 0.0, maxt: Any = math.inf, time: Any = 0.0, wavelengths: Any = ()
    ) -> None:
        if isinstance(o, r.Ray):
            o, d, maxt, time = o.o, o.d, o.maxt, o.time
        self.o, self.d = types.Point3f(o), types.Vector3f(d)
        self.maxt, self.time = types.Float(maxt), types.Float(time)

    return init


def _frame_init(types: Types) -> Any:
    def init(self: Any, s: Any = None, t: Any = None, n: Any = None) -> None:
        if s is not None and t is None and n is None:
            s, t, n = (s.s, s.t, s.n) if isinstance(s, r.Frame) else (*r.coordinate_system(types.Vector3f(s)), s)
        x, y, z = ([float(i == k) for i in range(3)] for k in range(3))
        self.s = types.Vector3f(x if s is None else s)
        self.t = types.Vector3f(y if t is None else t)
        self.n = types.Normal3f(z if n is None else n)

    return init


def _empty_init(fields: dict[str, Any]) -> Any:
    def init(self: Any, **values: Any) -> None:
        for name, kind in fields.items():
            value = values.pop(name, None)
            # Records are made by their own constructors, arrays start as zeros.
            setattr(self, name, value if value is not None else (kind() if hasattr(kind, "DRJIT_STRUCT") else kind(0)))
        if values:
            raise TypeError(f"unknown fields {', '.join(values)}; there are {', '.join(fields)}")

    return init
