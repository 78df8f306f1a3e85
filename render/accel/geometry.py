"""What an accelerator is built from: triangle meshes, spheres and disks, with their boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...jit.datacache import content_digest
from ...jit.errors import SceneError

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

# Boxes beyond this are left out: their areas would overflow. Embree draws the same line.
LARGEST = 1.8e18


@dataclass(frozen=True, init=False, eq=False)
class Triangles:
    """A triangle mesh in world space: `vertices` (V, 3) float32 and `faces` (F, 3) uint32; either may be empty.

    Triangles with a NaN or infinite corner, or without area, are allowed and never hit.
    Raises SceneError for wrong shapes and for faces that name a vertex which is not there.
    """

    vertices: Floats
    faces: NDArray[np.uint32]

    def __init__(self, vertices: ArrayLike, faces: ArrayLike) -> None:
        v = np.ascontiguousarray(np.asarray(vertices, np.float32))
        f = np.asarray(faces)
        if v.size == 0:
            v = v.reshape(0, 3)
        if f.size == 0:
            f = np.zeros((0, 3), np.uint32)
        if v.ndim != 2 or v.shape[1] != 3 or f.ndim != 2 or f.shape[1] != 3:
            raise SceneError(
                f"a triangle mesh needs vertices (V, 3) and faces (F, 3), got {v.shape} and {f.shape}: reshape them"
            )
        if f.size and (f.min() < 0 or f.max() >= len(v)):
            bad = int(np.flatnonzero((f < 0).any(1) | (f >= len(v)).any(1))[0])
            raise SceneError(
                f"face {bad} of a triangle mesh names the vertices {f[bad].tolist()}, but there are only {len(v)}"
            )
        object.__setattr__(self, "vertices", v)
        object.__setattr__(self, "faces", np.ascontiguousarray(f, np.uint32))


@dataclass(frozen=True, init=False, eq=False)
class Sphere:
    """A sphere: `center` (3,) and `radius` in world space. A radius that is not positive and finite is never hit."""

    center: Doubles
    radius: float

    def __init__(self, center: ArrayLike, radius: float) -> None:
        object.__setattr__(self, "center", _shaped(center, (3,), "the centre of a sphere"))
        object.__setattr__(self, "radius", float(radius))


@dataclass(frozen=True, init=False, eq=False)
class Disk:
    """The disk of radius 1 in the plane z = 0 around the origin, moved by `to_world` (4, 4), which must be affine.

    A matrix without inverse makes a disk that is never hit.
    """

    to_world: Doubles

    def __init__(self, to_world: ArrayLike) -> None:
        object.__setattr__(self, "to_world", _shaped(to_world, (4, 4), "the transform of a disk"))


Geometry = Triangles | Sphere | Disk


def geometry_digest(geometry: Sequence[Geometry]) -> str:
    """Return a text that stands for all numbers of a list of geometries, in this order."""
    parts: list[NDArray[Any]] = []
    for item in geometry:
        if isinstance(item, Triangles):
            parts += [item.vertices, item.faces]
        elif isinstance(item, Sphere):
            parts.append(np.append(item.center, item.radius))
        else:
            parts.append(item.to_world)
    return content_digest(*parts)


def _shaped(value: ArrayLike, shape: tuple[int, ...], what: str) -> Doubles:
    array = np.array(value, np.float64)
    if array.shape != shape:
        raise SceneError(f"{what} must have the shape {shape}, got {array.shape}")
    return array


def round_out(lower: Doubles, upper: Doubles) -> tuple[Floats, Floats]:
    """Return boxes in single precision that contain the given boxes in double precision."""
    with np.errstate(over="ignore"):
        lo, hi = lower.astype(np.float32), upper.astype(np.float32)
    lo = np.where(lo > lower, np.nextafter(lo, np.float32(-np.inf)), lo)
    hi = np.where(hi < upper, np.nextafter(hi, np.float32(np.inf)), hi)
    return lo, hi


def boxes(geometry: Geometry) -> tuple[Floats, Floats]:
    """Return the lower and upper corners (N, 3) of the boxes of all primitives.

    Primitives that can never be hit get the empty box (inf, -inf).
    """
    if isinstance(geometry, Triangles):
        if not len(geometry.faces):
            return np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)
        a, b, c = (geometry.vertices[geometry.faces[:, i]] for i in range(3))
        lo, hi = np.minimum(np.minimum(a, b), c), np.maximum(np.maximum(a, b), c)  # NaN goes through both
    elif isinstance(geometry, Sphere):
        r = geometry.radius if geometry.radius > 0 else np.nan
        lo, hi = round_out(geometry.center[None] - r, geometry.center[None] + r)
    else:
        m = geometry.to_world[:3, :3]
        usable = np.isfinite(geometry.to_world).all() and abs(np.linalg.det(m)) > 0
        half = np.hypot(m[:, 0], m[:, 1]) if usable else np.full(3, np.nan)
        lo, hi = round_out((geometry.to_world[:3, 3] - half)[None], (geometry.to_world[:3, 3] + half)[None])
    with np.errstate(invalid="ignore"):
        good = ((lo > -LARGEST) & (hi < LARGEST)).all(1, keepdims=True)
    return np.where(good, lo, np.float32(np.inf)), np.where(good, hi, np.float32(-np.inf))


def bounds(geometry: Geometry) -> tuple[Floats, Floats]:
    """Return the corners (3,) of the box around all that `boxes` returns boxes of."""
    if isinstance(geometry, Triangles) and len(geometry.faces):
        used = np.zeros(len(geometry.vertices), np.bool_)
        used[geometry.faces.ravel()] = True
        corners = geometry.vertices if used.all() else geometry.vertices[used]
        lower, upper = corners.min(0), corners.max(0)
        if (lower > -LARGEST).all() and (upper < LARGEST).all():  # false for NaN: then triangles are left out
            return lower, upper
    return union(*boxes(geometry))


def union(lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Return the corners (3,) of the box around boxes (N, 3); (inf, -inf) if there is nothing in them."""
    start = np.full((1, 3), np.inf, np.float32)
    return np.concatenate([start, lower]).min(0), np.concatenate([-start, upper]).max(0)


def moved(geometry: Sequence[Geometry], index: int, change: Floats | Sphere | Disk) -> Geometry:
    """Return geometry `index` after `Accelerator.update`; raises SceneError if the change does not fit it."""
    if not 0 <= index < len(geometry):
        raise SceneError(f"geometry {index} was to be updated, but there are the geometries 0 to {len(geometry) - 1}")
    old = geometry[index]
    if isinstance(old, Triangles) and not isinstance(change, Sphere | Disk):
        new = np.asarray(change, np.float32).reshape(-1, 3)
        if len(new) == len(old.vertices):
            return Triangles(new, old.faces)
        raise SceneError(f"mesh {index} has {len(old.vertices)} vertices, but the update brings {len(new)}: build anew")
    if isinstance(change, Sphere | Disk) and type(change) is type(old):
        return change
    raise SceneError(f"geometry {index} is a {type(old).__name__}, but the update brings a {type(change).__name__}")
