"""Brute force in double precision, and scenes and rays, for the tests of the accelerators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from luxgrad.render.accel.geometry import Geometry, Sphere, Triangles

Array = NDArray[np.float64]


def _triangles(item: Triangles, o: Array, d: Array) -> Array:
    """Return t (rays, faces), inf on a miss, by Cramer's rule."""
    corners = item.vertices.astype(np.float64)[item.faces]
    a, e1, e2 = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    p = np.cross(d[:, None], e2[None])
    det = (p * e1).sum(-1)
    s = o[:, None] - a[None]
    u = (s * p).sum(-1) / det
    q = np.cross(s, e1[None])
    v = (q * d[:, None]).sum(-1) / det
    t = (q * e2).sum(-1) / det
    return np.where((u >= 0) & (v >= 0) & (u + v <= 1) & np.isfinite(t), t, np.inf)


def _roots(item: Geometry, o: Array, d: Array) -> Array:
    """Return all crossings (rays, 1 or 2) of a sphere or disk, inf on a miss."""
    if isinstance(item, Sphere):
        s = o - item.center
        a, b, c = (d * d).sum(-1), (s * d).sum(-1), (s * s).sum(-1) - item.radius**2
        root = np.sqrt(b * b - a * c)
        t = np.stack([(-b - root) / a, (-b + root) / a], -1)
        return np.where(np.isfinite(t), t, np.inf)
    inverse = np.linalg.inv(item.to_world)  # type: ignore[union-attr]
    lo, ld = o @ inverse[:3, :3].T + inverse[:3, 3], d @ inverse[:3, :3].T
    t = -lo[:, 2] / ld[:, 2]
    p = lo + t[:, None] * ld
    return np.where(np.isfinite(t) & ((p[:, :2] ** 2).sum(-1) <= 1), t, np.inf)[:, None]


def brute_force(
    geometry: Sequence[Geometry], origins: Array, directions: Array, tnear: float = 0.0, tfar: float = np.inf
) -> tuple[Array, NDArray[np.int64], NDArray[np.int64]]:
    """Return t, primitive and geometry of the nearest hits (inf, -1, -1 on a miss)."""
    o, d = origins.astype(np.float64), directions.astype(np.float64)
    best, prim, geom = np.full(len(o), np.inf), np.full(len(o), -1), np.full(len(o), -1)
    for number, item in enumerate(geometry):
        with np.errstate(all="ignore"):
            t = _triangles(item, o, d) if isinstance(item, Triangles) else _roots(item, o, d)
            t = np.where((t > tnear) & (t <= tfar), t, np.inf)
        if t.shape[1]:
            index = t.argmin(1)
            near = t[np.arange(len(o)), index]
            closer = near < best
            best = np.where(closer, near, best)
            prim = np.where(closer, index if isinstance(item, Triangles) else 0, prim)
            geom = np.where(closer, number, geom)
    return best, prim, geom


def random_rays(count: int, seed: int, spread: float = 2.0) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return origins and directions of rays that start around the unit cube and cross it in all directions."""
    rng = np.random.default_rng(seed)
    o = rng.uniform(-spread, spread, (count, 3)).astype(np.float32)
    target = rng.uniform(-1, 1, (count, 3))
    return o, (target - o).astype(np.float32)


def soup(count: int, seed: int, size: float = 0.3) -> Triangles:
    """Return unconnected random triangles in the cube from -1 to 1."""
    rng = np.random.default_rng(seed)
    corners = rng.uniform(-1, 1, (count, 1, 3)) + rng.uniform(-size, size, (count, 3, 3))
    return Triangles(corners.reshape(-1, 3), np.arange(3 * count).reshape(-1, 3))


def box(lower: Sequence[float], upper: Sequence[float]) -> Triangles:
    """Return a box of 12 triangles."""
    bits = np.array([[i & 1, i >> 1 & 1, i >> 2] for i in range(8)])
    quads = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)]
    faces = [f for a, b, c, e in quads for f in ((a, b, c), (a, c, e))]
    return Triangles(np.where(bits == 1, upper, lower), faces)


def cornell() -> list[Geometry]:
    """Return a room with two boxes inside: 36 triangles."""
    tall, low = box((-0.7, -0.99, -0.6), (-0.1, 0.2, 0)), box((0.1, -0.98, 0), (0.7, -0.4, 0.6))
    return [box((-1, -1, -1), (1, 1, 1)), tall, low]


def icosphere(levels: int, jitter: float = 0.0, seed: int = 0) -> Triangles:
    """Return a closed mesh of 20 * 4**levels triangles around the origin, its vertices moved along the radius."""
    g = (1 + 5**0.5) / 2
    v = np.array(
        [(-1, g, 0), (1, g, 0), (-1, -g, 0), (1, -g, 0), (0, -1, g), (0, 1, g), (0, -1, -g), (0, 1, -g)]
        + [(g, 0, -1), (g, 0, 1), (-g, 0, -1), (-g, 0, 1)]
    )
    rows = "0 11 5 0 5 1 0 1 7 0 7 10 0 10 11 1 5 9 5 11 4 11 10 2 10 7 6 7 1 8 3 9 4 3 4 2 3 2 6 3 6 8 3 8 9"
    f = np.array([*map(int, rows.split()), 4, 9, 5, 2, 4, 11, 6, 2, 10, 8, 6, 7, 9, 8, 1]).reshape(-1, 3)
    for _ in range(levels):
        edges = np.sort(np.concatenate([f[:, [0, 1]], f[:, [1, 2]], f[:, [2, 0]]]), axis=1)
        unique, index = np.unique(edges, axis=0, return_inverse=True)
        a, b, c = (len(v) + index.reshape(3, -1)).reshape(3, -1)
        v = np.concatenate([v, v[unique].mean(1)])
        f = np.concatenate([np.stack(x, 1) for x in ((f[:, 0], a, c), (f[:, 1], b, a), (f[:, 2], c, b), (a, b, c))])
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    v *= 1 + jitter * np.random.default_rng(seed).standard_normal((len(v), 1))
    return Triangles(v, f)
