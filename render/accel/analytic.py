"""Ray tests of spheres and disks, as records in memory and as code for any number of lanes.

A record has 128 bytes: 12 doubles of shape data, then the box (lower and upper corner, 6 floats), then the kind.
The tests run in double precision: a ray that starts on a large sphere must not find it again a little further on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...jit.dtypes import Float32, Float64
from .code import Part, Value
from .geometry import Disk, Doubles, Sphere, boxes

RECORD = np.dtype(
    [("shape", "f8", 12), ("lower", "f4", 3), ("upper", "f4", 3), ("kind", "i4"), ("unused", "i4")], align=False
)
BOX_OFFSET = 96
SPHERE, DISK = 1, 2
LARGEST_FLOAT = float(np.finfo(np.float32).max)

Vector = tuple[Value, Value, Value]


def record(geometry: Sphere | Disk) -> NDArray[np.void]:
    """Return the record (1,) of one sphere or disk; its box is empty if it can never be hit."""
    entry = np.zeros(1, RECORD)
    lower, upper = boxes(geometry)
    entry["lower"], entry["upper"] = lower, upper
    if isinstance(geometry, Sphere):
        entry["kind"] = SPHERE
        entry["shape"][0, :3] = geometry.center
        entry["shape"][0, 3] = geometry.radius * geometry.radius
    else:
        entry["kind"] = DISK
        entry["shape"][0] = _inverse(geometry.to_world).reshape(12)
    return entry


def _inverse(to_world: Doubles) -> Doubles:
    """Return the first three rows of the inverse of an affine matrix; NaN, which no ray hits, if there is none."""
    with np.errstate(all="ignore"):
        try:
            inverse = np.linalg.inv(to_world[:3, :3])
        except np.linalg.LinAlgError:
            return np.full((3, 4), np.nan)
        return np.concatenate([inverse, -inverse @ to_world[:3, 3:]], axis=1)


def _dot(e: Part, a: Vector, b: Vector) -> Value:
    return e.fma(a[2], b[2], e.fma(a[1], b[1], a[0] * b[0]))


def _double(v: Vector) -> Vector:
    return v[0].cast(Float64), v[1].cast(Float64), v[2].cast(Float64)


def hit_sphere(
    e: Part, pointer: str, origin: Vector, direction: Vector, tnear: Value, tfar: Value
) -> tuple[Value, Value]:
    """Return (mask, t) of the nearest crossing of the sphere of a record with tnear < t <= tfar.

    The discriminant is the squared radius less the squared distance of the line from the centre, which keeps its
    digits for far origins (Haines, Günther and Akenine-Möller 2019, "Precision improvements for ray/sphere
    intersection").
    """
    o, d = _double(origin), _double(direction)
    offset = tuple(o[i] - e.broadcast(Float64, pointer, 8 * i) for i in range(3))
    to_centre = (-offset[0], -offset[1], -offset[2])
    square = _dot(e, d, d)
    middle = _dot(e, to_centre, d) / square
    closest = tuple(e.fma(d[i], middle, offset[i]) for i in range(3))
    apart = e.broadcast(Float64, pointer, 24) - _dot(e, _three(closest), _three(closest))
    half = e.sqrt(apart / square)
    first, second = middle - half, middle + half
    t = e.select(first > tnear.cast(Float64), first, second)
    return _in_range(e, t, tnear, tfar, apart >= 0.0)


def hit_disk(
    e: Part, pointer: str, origin: Vector, direction: Vector, tnear: Value, tfar: Value
) -> tuple[Value, Value]:
    """Return (mask, t) of the crossing of the disk of a record with tnear < t <= tfar."""
    o, d = _double(origin), _double(direction)
    row = [[e.broadcast(Float64, pointer, 8 * (4 * i + j)) for j in range(4)] for i in range(3)]
    local_o = [e.fma(r[0], o[0], e.fma(r[1], o[1], e.fma(r[2], o[2], r[3]))) for r in row]
    local_d = [_dot(e, _three(r), d) for r in row]
    t = -local_o[2] / local_d[2]
    x, y = e.fma(t, local_d[0], local_o[0]), e.fma(t, local_d[1], local_o[1])
    return _in_range(e, t, tnear, tfar, e.fma(x, x, y * y) <= 1.0)


def _three(values: list[Value] | tuple[Value, ...]) -> Vector:
    return values[0], values[1], values[2]


def _in_range(e: Part, t: Value, tnear: Value, tfar: Value, mask: Value) -> tuple[Value, Value]:
    # Comparisons with NaN are false, so a zero direction or a NaN matrix hits nothing.
    mask = mask & (t > tnear.cast(Float64)) & (t <= tfar.cast(Float64)) & (t <= LARGEST_FLOAT)
    return mask, t.cast(Float32)
