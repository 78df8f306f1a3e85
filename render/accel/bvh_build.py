"""A binary tree of boxes over any primitives, built level by level with NumPy and the surface area heuristic.

All nodes of a level are split at once: their primitives are sorted into bins along the longest axis of the centres,
and the split between bins with the least area-weighted cost is taken (Wald 2007, "On fast construction of SAH-based
bounding volume hierarchies").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .geometry import Floats

LEAF = 4
LEAF_BITS = 3  # of a leaf's code hold its count
_BINS = 16
# From this level on nodes are halved by count, so no tree is deeper than this plus log2(primitives).
_BALANCED_FROM = 48
STACK = 96  # entries that suffice for every tree: 48 + 31 levels of 32-bit primitive numbers, rounded up

Ints = NDArray[np.int64]


@dataclass
class Tree:
    """A binary tree. Node i holds the boxes and codes of its two children.

    `lower`, `upper` (nodes, 2, 3): boxes of the children; (inf, -inf) is never entered. `child` (nodes, 2): a node
    number, or for a leaf `~(start << LEAF_BITS | count)`, which covers `order[start:start + count]`. `order` is a
    permutation of the primitives. `levels` are the first nodes of all levels, then the number of nodes.
    """

    lower: Floats
    upper: Floats
    child: Ints
    order: Ints
    levels: list[int]

    @property
    def depth(self) -> int:
        """Return the number of levels of nodes, which is what a traversal stack must hold."""
        return len(self.levels) - 1

    def cost(self) -> float:
        """Return the expected work of a ray that meets the root, in primitive tests; for comparing two states."""
        work = np.where(self.child < 0, ~self.child & (1 << LEAF_BITS) - 1, 1)
        return float((area(self.lower, self.upper) * work).sum() / max(float(area(*self.root()).sum()), 1e-30))

    def root(self) -> tuple[Floats, Floats]:
        """Return the box of everything."""
        return self.lower[0].min(0), self.upper[0].max(0)

    def refit(self, lower: Floats, upper: Floats) -> None:
        """Recompute all boxes from new boxes (N, 3) of the primitives, keeping the tree."""
        leaf = self.child < 0
        start, count = _span(self.child[leaf])
        filled = count > 0
        lo, hi = np.full((len(start), 3), np.inf, np.float32), np.full((len(start), 3), -np.inf, np.float32)
        for k in range(LEAF):
            use = count > k
            primitive = self.order[start[use] + k]
            lo[use] = np.minimum(lo[use], lower[primitive])
            hi[use] = np.maximum(hi[use], upper[primitive])
        self.lower[leaf] = np.where(filled[:, None], lo, np.float32(np.inf))
        self.upper[leaf] = np.where(filled[:, None], hi, np.float32(-np.inf))
        for first, end in reversed(list(zip(self.levels[:-1], self.levels[1:], strict=True))):
            node, slot = np.nonzero(~leaf[first:end])
            below = self.child[first + node, slot]
            self.lower[first + node, slot] = self.lower[below].min(1)
            self.upper[first + node, slot] = self.upper[below].max(1)


def _span(code: Ints) -> tuple[Ints, Ints]:
    """Return first position and count of leaf codes."""
    return ~code >> LEAF_BITS, ~code & (1 << LEAF_BITS) - 1


def area(lower: Floats, upper: Floats) -> Floats:
    """Return half the surface of boxes (..., 3); 0 for empty ones."""
    with np.errstate(invalid="ignore"):
        d = np.fmax(upper - lower, 0)
    return np.asarray(d[..., 0] * (d[..., 1] + d[..., 2]) + d[..., 1] * d[..., 2])


def build_tree(lower: Floats, upper: Floats) -> Tree:
    """Return the tree over primitives with boxes (N, 3); empty boxes (inf, -inf) take part and widen nothing."""
    n = len(lower)
    lower, upper = np.ascontiguousarray(lower.T), np.ascontiguousarray(upper.T)
    empty = ~(lower <= upper).all(0)
    with np.errstate(invalid="ignore"):
        centre = lower * np.float32(0.5) + upper * np.float32(0.5)
    # Empty primitives go where the others are, so that they spread over the leaves.
    centre[:, empty] = centre[:, ~empty].mean(1, keepdims=True) if (~empty).any() else 0
    order = np.arange(n)
    if n <= LEAF:
        return _single(lower, upper, order)
    boxes_lo, boxes_hi, children, levels = [], [], [], [0]
    start, end = np.zeros(1, np.int64), np.full(1, n)
    while len(start):
        count_left, lo, hi = _split(lower, upper, centre, order, start, end, len(levels) > _BALANCED_FROM)
        middle = start + count_left
        first, last = np.stack([start, middle], 1).ravel(), np.stack([middle, end], 1).ravel()
        size = last - first
        child = ~(first << LEAF_BITS | size)
        inner = np.flatnonzero(size > LEAF)
        levels.append(levels[-1] + len(start))
        child[inner] = levels[-1] + np.arange(len(inner))
        boxes_lo.append(lo)
        boxes_hi.append(hi)
        children.append(child.reshape(-1, 2))
        start, end = first[inner], last[inner]
    return Tree(np.concatenate(boxes_lo), np.concatenate(boxes_hi), np.concatenate(children), order, levels)


def _single(lower: Floats, upper: Floats, order: Ints) -> Tree:
    """Return a tree of one node: the first child holds everything, the second is empty."""
    lo, hi = np.full((1, 2, 3), np.inf, np.float32), np.full((1, 2, 3), -np.inf, np.float32)
    if len(order):
        lo[0, 0], hi[0, 0] = lower.min(1), upper.max(1)
    return Tree(lo, hi, np.array([[~len(order), ~0]]), order, [0, 1])


def _split(
    lower: Floats, upper: Floats, centre: Floats, order: Ints, start: Ints, end: Ints, balanced: bool
) -> tuple[Ints, Floats, Floats]:
    """Reorder the primitives of nodes [start, end) and return how many go left, with both boxes (nodes, 2, 3)."""
    size, m = end - start, len(start)
    first = np.concatenate([[0], np.cumsum(size)[:-1]])
    node = np.repeat(np.arange(m), size)
    place = np.arange(int(size.sum())) - np.repeat(first - start, size)
    primitive = order[place]
    points = centre[:, primitive]
    least = np.minimum.reduceat(points, first, axis=1)
    extent = np.maximum.reduceat(points, first, axis=1) - least
    axis, each = extent.argmax(0), np.arange(m)
    width = extent[axis, each]
    with np.errstate(divide="ignore", over="ignore"):
        scale = np.where(width > 0, np.float32(_BINS * (1 - 1e-5)) / width, 0)
    scale = np.where(np.isfinite(scale), scale, 0)  # an extent so small that its inverse overflows
    offset = points[axis[node], np.arange(len(primitive))] - least[axis, each][node]
    bins = np.minimum(offset * scale[node], _BINS - 1).astype(np.int64)
    if balanced:  # bins by rank instead: equal counts
        rank = np.empty(len(primitive), np.int64)
        rank[np.lexsort((offset, node))] = np.arange(len(primitive))
        bins = np.where(rank - first[node] >= (size // 2)[node], _BINS - 1, 0)
    key = node * _BINS + bins
    sort = np.argsort(key, kind="stable")
    primitive = primitive[sort]
    order[place] = primitive
    count = np.bincount(key, minlength=m * _BINS)
    return _best_split(lower[:, primitive], upper[:, primitive], count.reshape(m, _BINS), size)


def _best_split(lower: Floats, upper: Floats, count: Ints, size: Ints) -> tuple[Ints, Floats, Floats]:
    """Return counts and boxes of the cheapest split between bins; halves by count where all share one bin."""
    m = len(count)
    used = np.flatnonzero(count.ravel())
    first = np.concatenate([[0], np.cumsum(count.ravel()[used])[:-1]])
    flat_lo, flat_hi = np.full((3, m * _BINS), np.inf, np.float32), np.full((3, m * _BINS), -np.inf, np.float32)
    flat_lo[:, used] = np.minimum.reduceat(lower, first, axis=1)
    flat_hi[:, used] = np.maximum.reduceat(upper, first, axis=1)
    lo, hi = flat_lo.reshape(3, m, _BINS), flat_hi.reshape(3, m, _BINS)
    left_lo, left_hi = np.minimum.accumulate(lo, 2), np.maximum.accumulate(hi, 2)
    # Of the bins from a cut to the right end, at the place of the cut's left bin.
    right_lo = np.minimum.accumulate(lo[:, :, ::-1], 2)[:, :, -2::-1]
    right_hi = np.maximum.accumulate(hi[:, :, ::-1], 2)[:, :, -2::-1]
    left = np.cumsum(count, 1)[:, :-1]
    right = size[:, None] - left
    work = _area3(left_lo[:, :, :-1], left_hi[:, :, :-1]) * left + _area3(right_lo, right_hi) * right
    cost = np.where((left > 0) & (right > 0), work, np.inf)
    cut, each = cost.argmin(1), np.arange(m)
    halved = ~np.isfinite(cost[each, cut])

    def side(inner: Floats, whole: Floats) -> Floats:
        # A node whose primitives cannot be told apart gives both halves the whole box.
        return np.where(halved, whole[:, :, -1], inner[:, each, cut]).T

    return (
        np.where(halved, size // 2, left[each, cut]),
        np.stack([side(left_lo, left_lo), side(right_lo, left_lo)], 1),
        np.stack([side(left_hi, left_hi), side(right_hi, left_hi)], 1),
    )


def _area3(lower: Floats, upper: Floats) -> Floats:
    """Return half the surface of boxes given by components (3, ...); 0 for empty ones."""
    with np.errstate(invalid="ignore"):
        d = np.fmax(upper - lower, 0)
    return np.asarray(d[0] * (d[1] + d[2]) + d[1] * d[2])
