"""The tree with eight children per node for single rays, made from the binary one, and its memory.

Node (256 bytes): lower x of the eight children, lower y, lower z, then the upper three, then the eight codes: a node
number, or `~block` for a leaf. Block (352 bytes): the corners of up to eight triangles, each component for all eight
together, then their record numbers in rising order, then a bit mask of the slots that hold a sphere or disk instead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .bvh_build import LEAF_BITS, STACK, Ints, Tree, area
from .bvh_memory import KIND_PLACE, TRIANGLE, aligned, padded

FAN = 8
NODE_SIZE, BLOCK_SIZE = 256, 352
UPPER_OFFSET, CODE_OFFSET = 96, 192
NUMBER_OFFSET, SHAPES_OFFSET = 288, 320
STACK_WIDE = (FAN - 1) * STACK  # a wide tree is no deeper than the binary one; each level leaves 7 children behind


def _subtrees(tree: Tree) -> tuple[Ints, Ints]:
    """Return first place and number of primitives below each child (nodes, 2); they are contiguous in the order."""
    start, count = ~tree.child >> LEAF_BITS, ~tree.child & (1 << LEAF_BITS) - 1
    for first, end in reversed(list(zip(tree.levels[:-1], tree.levels[1:], strict=True))):
        node, slot = np.nonzero(tree.child[first:end] >= 0)
        below = tree.child[first + node, slot]
        start[first + node, slot] = start[below].min(1)
        count[first + node, slot] = count[below].sum(1)
    return start, count


def _open(tree: Tree, nodes: Ints, size: NDArray[np.float32]) -> tuple[Ints, Ints]:
    """Return the children of wide nodes made from binary `nodes`, as parent and slot (n, 8); -1 where there are fewer.

    Starting with its two children, the child with the largest `size` is replaced by its own children again and again.
    """
    m, each = len(nodes), np.arange(len(nodes))
    parent, slot, key = np.full((m, FAN), -1), np.zeros((m, FAN), np.int64), np.full((m, FAN), -1.0, np.float32)
    for k in range(2):
        parent[:, k], slot[:, k], key[:, k] = nodes, k, size[nodes, k]
    for used in range(2, FAN):
        widest = key.argmax(1)
        row = each[key[each, widest] >= 0]
        if not len(row):
            break
        column = widest[row]
        # Rows stop at different times, but a row that goes on has always used the same number of places.
        inner = tree.child[parent[row, column], slot[row, column]]
        for k, place in enumerate((column, np.full(len(row), used))):
            parent[row, place], slot[row, place], key[row, place] = inner, k, size[inner, k]
    return parent, slot


def wide_arrays(tree: Tree, records: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the nodes (N, 64) and blocks (B, 88) over records (in the order of the tree's leaves)."""
    start, count = _subtrees(tree)
    # What may be opened further: larger subtrees by their area; leaves and small subtrees never.
    size = np.where((tree.child >= 0) & (count > FAN), area(tree.lower, tree.upper), np.float32(-1))
    current, nodes = np.zeros(1, np.int64), 1
    parts: list[tuple[Ints, Ints, Ints]] = []
    # Block 0 is empty: unused children lead there, should a box test with NaN ever let a ray in.
    blocks: list[Ints] = [np.zeros((1, 2), np.int64)]
    filled = 1
    while len(current):
        parent, slot = _open(tree, current, size)
        used = (parent >= 0) & (count[parent, slot] > 0)
        inner = used & (size[parent, slot] >= 0)
        leaf = used & ~inner
        code = np.full(parent.shape, ~0)
        code[inner] = nodes + np.arange(int(inner.sum()))
        code[leaf] = ~(filled + np.arange(int(leaf.sum())))
        nodes += int(inner.sum())
        filled += int(leaf.sum())
        blocks.append(np.stack([start[parent, slot][leaf], count[parent, slot][leaf]], 1))
        parts.append((np.where(used, parent, -1), slot, code))
        current = tree.child[parent[inner], slot[inner]]
    parents, slots, codes = (np.concatenate([part[i] for part in parts]) for i in range(3))
    return _nodes(tree, parents, slots, codes), _blocks(records, np.concatenate(blocks))


def _nodes(tree: Tree, parent: Ints, slot: Ints, code: Ints) -> NDArray[np.float32]:
    lower, upper = padded(tree.lower[parent, slot], tree.upper[parent, slot])
    unused = (parent < 0)[..., None]
    out = aligned(len(code) * NODE_SIZE // 4, "f4").reshape(len(code), 8, FAN)
    with np.errstate(over="ignore"):
        low, high = lower.astype(np.float32), upper.astype(np.float32)
    # Rounding to nearest takes less than the padding gives.
    out[:, :3] = np.where(unused, np.float32(np.inf), low).transpose(0, 2, 1)
    out[:, 3:6] = np.where(unused, np.float32(-np.inf), high).transpose(0, 2, 1)
    out[:, 6] = code.astype(np.int32).view(np.float32)
    return out.reshape(len(code), -1)


def _blocks(records: NDArray[np.float32], spans: Ints) -> NDArray[np.float32]:
    out = aligned(max(len(spans), 1) * BLOCK_SIZE // 4, "f4").reshape(-1, BLOCK_SIZE // 4)
    out[:, :72] = np.nan  # an unused slot is hit by nothing
    numbers = out.view(np.int32)
    for k in range(FAN):
        row = np.flatnonzero(spans[:, 1] > k)
        record = spans[row, 0] + k
        shape = records.view(np.int32)[record, KIND_PLACE] != TRIANGLE
        corners = np.where(shape[:, None], np.float32(np.nan), records[record, :9])
        out[row[:, None], k + FAN * np.arange(9)] = corners
        numbers[row, NUMBER_OFFSET // 4 + k] = record
        numbers[row, SHAPES_OFFSET // 4] |= np.where(shape, 1 << k, 0).astype(np.int32)
    return out
