"""Arrays, surface points and objects for tests of single plugins."""

from __future__ import annotations

from typing import Any

import numpy as np

from luxgrad.jit.arrays.base import ArrayBase
from luxgrad.render.interfaces.bsdf import BSDF
from luxgrad.render.interfaces.records import Frame, SurfaceInteraction
from luxgrad.render.variants import types as types_of
from luxgrad.scenes.loader import load_dict

SINGLE = types_of("llvm_ad_rgb")
DOUBLE = types_of("llvm_ad_rgb_double")


def load(description: dict[str, Any], types: Any = SINGLE) -> Any:
    """Return the object a dictionary describes."""
    return load_dict(description, types=types)


def numbers(x: ArrayBase | Any, lanes: int = 1) -> np.ndarray:
    """Return an array of any kind as NumPy: (lanes,) or (components, lanes)."""
    values = np.asarray(x.numpy(), np.float64)
    if values.shape[-1] != lanes:
        values = np.broadcast_to(values, (*values.shape[:-1], lanes))
    return values


def vectors(kind: Any, values: Any) -> Any:
    """Return a nested array from NumPy (components, n)."""
    values = np.asarray(values)
    base = kind(0.0)
    element = type(base[0])
    return kind(*(element(np.ascontiguousarray(v, element.dtype.numpy)) for v in values))


def uniform(types: Any, dimensions: int, lanes: int, seed: int = 1) -> Any:
    """Return random numbers in [0, 1): a Float, or a Point2f."""
    u = np.random.default_rng(seed).random((dimensions, lanes))
    u = np.minimum(u, 1.0 - 2.0**-24)
    return types.Float(np.ascontiguousarray(u[0], types.dtype.numpy)) if dimensions == 1 else vectors(types.Point2f, u)


def surface(types: Any, wi: Any, uv: tuple[float, float] = (0.4, 0.6)) -> SurfaceInteraction:
    """Return points of the plane z = 0 seen from local directions `wi` (3, n)."""
    wi = vectors(types.Vector3f, wi)
    frame = Frame(types.Vector3f(1, 0, 0), types.Vector3f(0, 1, 0), types.Normal3f(0, 0, 1))
    return SurfaceInteraction(
        t=types.Float(1.0), p=types.Point3f(0, 0, 0), n=types.Normal3f(0, 0, 1), uv=types.Point2f(*uv),
        dp_du=types.Vector3f(1, 0, 0), sh_frame=frame, wi=wi, prim=types.UInt32(0), shape=types.UInt32(0),
        valid=types.Bool(True),
    )  # fmt: skip


def bsdf(description: dict[str, Any], types: Any = SINGLE) -> BSDF:
    """Return the material a dictionary describes."""
    made: BSDF = load(description, types)
    return made
