"""The tree of boxes in memory, as the traversal functions read it.

Node (128 bytes): two times 64 bytes with the same boxes in two forms, each with the codes of both children.
First half: lower and upper corner of child 0, then of child 1, codes, and which child comes first for which
directions; second half: centre and half size, codes. All boxes are
padded outwards, so that rounding in the tests cannot lose a primitive: see `PAD`.

Record (64 bytes, in the order of the leaves): three corners (9 floats), primitive number, geometry number, kind.
For a sphere or disk the first integer is its place in the table of `analytic` records instead of a corner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import analytic
from .bvh_build import Tree
from .geometry import Floats, Geometry, Sphere, Triangles, boxes

NODE_SIZE, RECORD_SIZE = 128, 64
# In floats: lower/upper or centre/half of child k begin at 6 * k, and the second half of the node at 16.
CHILD_PLACE, ORDER_PLACE, SECOND_HALF = 12, 14, 16
PRIM_PLACE, GEOM_PLACE, KIND_PLACE = 9, 10, 11
TRIANGLE = 0

# Relative padding of boxes, and of ray origins in the box tests. The roundings of a box test (reciprocal, product
# with the origin, two fused multiply-adds) and those of projecting a corner in the triangle test are each below
# 2**-24 times the largest coordinate, and there are fewer than 16 of them.
PAD = 2.0**-20

# Offsets of pointers in the block that `Accelerator.scene` points to.
SCENE_NODES, SCENE_RECORDS, SCENE_ANALYTIC, SCENE_WIDE, SCENE_BLOCKS = 0, 8, 16, 24, 32
SCENE_SIZE = 64

# Values of the number that the accelerator's argument blocks hold.
ARGS_PACKET, ARGS_SINGLE = 0, 1


def aligned(count: int, dtype: str | np.dtype[np.void]) -> NDArray[Any]:
    """Return an array of zeros that begins at a multiple of 64 bytes."""
    size = max(count, 1) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype)


def padded(lower: Floats, upper: Floats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return boxes (..., 3) grown by `PAD` of their largest coordinate; empty ones stay empty."""
    lo, hi = lower.astype(np.float64), upper.astype(np.float64)
    full = np.isfinite(lo)
    reach = np.where(full, np.maximum(np.abs(lo), np.abs(hi)), 0).max(-1, keepdims=True) * PAD
    return np.where(full, lo - reach, np.inf), np.where(full, hi + reach, -np.inf)


def node_array(tree: Tree) -> NDArray[np.float32]:
    """Return the nodes of a tree (nodes, 32) as in the module's text; codes are stored as integers."""
    lo, hi = padded(tree.lower, tree.upper)
    full = np.isfinite(lo)
    with np.errstate(invalid="ignore"):
        centre = np.where(full, (lo + hi) / 2, 0).astype(np.float32)
        half = np.where(full, np.maximum(hi - centre, centre - lo) * (1 + 2.0**-22), -np.inf)
    nodes = aligned(len(tree.child) * 32, "f4").reshape(-1, 32)
    for child in range(2):
        for place, values in ((0, lo), (3, hi), (SECOND_HALF, centre), (SECOND_HALF + 3, half)):
            nodes[:, 6 * child + place : 6 * child + place + 3] = values[:, child]
    for half_place in (CHILD_PLACE, SECOND_HALF + CHILD_PLACE):
        nodes[:, half_place : half_place + 2] = tree.child.astype(np.int32).view(np.float32)
    nodes.view(np.int32)[:, ORDER_PLACE] = _orders(centre)
    return nodes


def _orders(centre: Floats) -> NDArray[np.int32]:
    """Return per node a bit for each octant of directions: whether child 1 comes first.

    Bit number: 1 for a negative x, 2 for y, 4 for z, added up.
    """
    apart = centre[:, 1].astype(np.float64) - centre[:, 0]
    signs = 1 - 2 * (np.arange(8)[:, None] >> np.arange(3) & 1)
    bits: NDArray[np.int64] = ((apart @ signs.T < 0) << np.arange(8)).sum(1)
    return bits.astype(np.int32)


class Primitives:
    """All primitives of a scene in one numbering: geometry after geometry, faces in their order."""

    def __init__(self, geometry: Sequence[Geometry]) -> None:
        self.geometry = list(geometry)
        sizes = [len(item.faces) if isinstance(item, Triangles) else 1 for item in geometry]
        self.first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        both = [boxes(item) for item in geometry]
        empty = [np.zeros((0, 3), np.float32)]
        self.lower = np.concatenate(empty + [lo for lo, _ in both])
        self.upper = np.concatenate(empty + [hi for _, hi in both])
        shapes = [item for item in geometry if not isinstance(item, Triangles)]
        self.analytic = aligned(len(shapes), analytic.RECORD)
        for place, item in enumerate(shapes):
            self.analytic[place] = analytic.record(item)[0]

    def __len__(self) -> int:
        return int(self.first[-1])

    def records(self) -> NDArray[np.float32]:
        """Return the records (N, 16) of all primitives in their own order."""
        out = np.zeros((len(self), 16), np.float32)
        numbers = out.view(np.int32)
        shapes = 0
        for number, item in enumerate(self.geometry):
            part = slice(self.first[number], self.first[number + 1])
            numbers[part, GEOM_PLACE] = number
            if isinstance(item, Triangles):
                out[part, :9] = item.vertices[item.faces].reshape(-1, 9)
                numbers[part, PRIM_PLACE] = np.arange(len(item.faces))
            else:
                numbers[part, 0] = shapes
                numbers[part, KIND_PLACE] = analytic.SPHERE if isinstance(item, Sphere) else analytic.DISK
                shapes += 1
        return out
