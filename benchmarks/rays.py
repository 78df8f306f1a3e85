"""Rays per second of the accelerators on one thread: a room of 36 triangles and a rough closed surface of 82 000.

Run `python benchmarks/rays.py [--side 256] [--rounds 5]`; prints million rays per second of processor time, medians of
interleaved rounds, for camera rays and for rays that leave the surfaces cosine-distributed, each as nearest hit and
as shadow ray. `coherent` and `incoherent` name the argument block.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np
import trimesh
from numpy.typing import NDArray

from luxgrad.render.accel import query
from luxgrad.render.accel.embree import available
from luxgrad.render.accel.geometry import Geometry, Triangles
from luxgrad.render.accel.interface import Accelerator
from luxgrad.render.accel.select import build

Floats = NDArray[np.float32]
Rays = tuple[Floats, Floats]


def cornell() -> list[Geometry]:
    """Return the room with two boxes: 5 walls and a lamp (6 quads), 2 boxes turned about the vertical."""
    corners = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], float)
    x, y, z = np.eye(3)
    quads = [(-y, x, -z), (y, x, z), (-z, x, y), (-x, z, y), (x, -z, y)]  # centre, two sides
    out: list[Geometry] = [
        Triangles(c + corners[:, :1] * a + corners[:, 1:2] * b, [[0, 1, 2], [0, 2, 3]]) for c, a, b in quads
    ]
    out.append(Triangles(np.array([0, 0.99, 0.01]) + corners[:, [0, 2, 1]] * [0.23, 1, 0.19], [[0, 1, 2], [0, 2, 3]]))
    low, tall = ((0.335, -0.7, 0.38), (0.3, 0.3, 0.3), -17.0), ((-0.33, -0.4, -0.28), (0.3, 0.61, 0.3), 18.25)
    for centre, half, turn in (low, tall):
        mesh = trimesh.creation.box(extents=2 * np.array(half))
        c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
        turned = np.asarray(mesh.vertices) @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]).T
        out.append(Triangles(turned + centre, np.asarray(mesh.faces)))
    return out


def rough_sphere() -> list[Geometry]:
    """Return a closed surface of 81 920 triangles with bumps and every vertex displaced: hard for bounced rays."""
    mesh = trimesh.creation.icosphere(subdivisions=6)
    v = np.asarray(mesh.vertices)
    waves = 0.15 * np.sin(5 * v[:, 0] + 1) * np.sin(4 * v[:, 1]) * np.sin(6 * v[:, 2] + 2)
    fine = 0.02 * np.sin(40 * v[:, 0]) * np.sin(37 * v[:, 1] + 1) * np.sin(43 * v[:, 2])
    radius = 1 + waves + fine + 0.0015 * np.random.default_rng(0).standard_normal(len(v))
    return [Triangles(v * radius[:, None], np.asarray(mesh.faces))]


def camera(side: int, eye: Sequence[float], target: Sequence[float], field: float) -> Rays:
    """Return rays through the pixels of a square image, in blocks of 4 x 4 pixels per packet."""
    forward = np.subtract(target, eye)
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, [0, 1, 0])
    right /= np.linalg.norm(right)
    up = np.cross(right, forward)
    index = np.arange(side * side)
    block, inside = np.divmod(index, 16)
    row, column = np.divmod(block, side // 4)
    x, y = column * 4 + inside % 4, row * 4 + inside // 4
    scale = np.tan(np.radians(field) / 2)
    plane = [((p + 0.5) / side * 2 - 1) * scale for p in (x, y)]
    d = plane[0][:, None] * right - plane[1][:, None] * up + forward
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    return np.broadcast_to(np.float32(eye), d.shape).copy(), d.astype(np.float32)


def bounced(geometry: list[Geometry], accelerator: Accelerator, rays: Rays) -> Rays:
    """Return cosine-distributed rays from the points that rays hit."""
    o, d = rays
    hits = query.closest(accelerator, o, d, coherent=True)
    normals = np.zeros_like(o)
    for number, item in enumerate(geometry):
        if isinstance(item, Triangles):
            a, b, c = np.moveaxis(item.vertices[item.faces].astype(float), 1, 0)
            n = np.cross(b - a, c - a)
            n /= np.linalg.norm(n, axis=1, keepdims=True)
            normals[hits.geom == number] = n[hits.prim[hits.geom == number]]
    normals *= np.where((normals * d).sum(1) > 0, -1, 1)[:, None]
    around = np.random.default_rng(0).standard_normal(o.shape)
    direction = normals + around / np.linalg.norm(around, axis=1, keepdims=True)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    t = np.where(hits.geom >= 0, hits.t, 1)[:, None]
    return (o + t * d + 1e-4 * normals).astype(np.float32), direction.astype(np.float32)


def measure(batches: dict[str, query.Batch], rounds: int) -> dict[str, float]:
    """Return the median speed of every batch in million rays per second of processor time."""
    times: dict[str, list[float]] = {name: [] for name in batches}
    for _ in range(rounds + 1):
        for name, batch in batches.items():
            start = time.thread_time()
            batch.run()
            times[name].append(time.thread_time() - start)
    return {name: batch.count / float(np.median(times[name][1:])) / 1e6 for name, batch in batches.items()}


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=256, help="pixels of the image's side")
    parser.add_argument("--rounds", type=int, default=5, help="rounds to take the median of")
    parser.add_argument("--width", type=int, default=16, help="rays per packet")
    options = parser.parse_args()
    scenes = {
        "cornell": (cornell(), camera(options.side, (0, 0, 3.9), (0, 0, 0), 39.3)),
        "rough sphere": (rough_sphere(), camera(options.side, (0.3, 0.1, 0.5), (0, -0.2, -1), 70)),
    }
    for name, (geometry, primary) in scenes.items():
        for kind in ("embree", "bvh") if available() else ("bvh",):
            start = time.perf_counter()
            accelerator = build(geometry, kind, options.width)
            print(f"{name:12} {kind:6} built in {time.perf_counter() - start:.3f} s")
            for rays_name, rays in (("camera", primary), ("bounce", bounced(geometry, accelerator, primary))):
                batches = {
                    f"{what} {'coherent' if coherent else 'incoherent'}": query.Batch(
                        accelerator, *rays, coherent=coherent, occluded=what == "shadow"
                    )
                    for what in ("nearest", "shadow")
                    for coherent in (True, False)
                }
                speeds = measure(batches, options.rounds)
                print(f"    {rays_name}: " + ", ".join(f"{case} {speed:.2f}" for case, speed in speeds.items()))


if __name__ == "__main__":
    main()
