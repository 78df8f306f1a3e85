"""Placement into several blocks of limited size, for devices that give out no larger ones."""

from __future__ import annotations

from collections.abc import Sequence

from .plan_greedy import Problem, by_breadth, by_duration, by_size


def split(p: Problem, limit: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Return block and offset of each buffer, and the sizes of the blocks, none above `limit`.

    Every buffer fits into a block by itself; each goes into the lowest place of the first block that has room. Of three
    orders the one with fewest blocks is taken, then with fewest bytes.
    """
    tries = [_first_fit(p, order, limit) for order in (by_size(p), by_breadth(p), by_duration(p))]
    return min(tries, key=lambda found: (len(found[1]), sum(found[1])))


def _first_fit(p: Problem, order: Sequence[int], limit: int) -> tuple[list[tuple[int, int]], list[int]]:
    where: list[tuple[int, int] | None] = [None] * p.n
    heights: list[int] = []
    for i in order:
        met: dict[int, list[tuple[int, int]]] = {}
        for j in p.neighbours[i]:
            placed = where[j]
            if placed is not None:
                met.setdefault(placed[0], []).append((placed[1], placed[1] + p.size[j]))
        align = 1 if p.align is None else p.align[i]
        block = 0
        while (at := _lowest(sorted(met.get(block, ())), p.size[i], align)) + p.size[i] > limit:
            block += 1
        if block == len(heights):
            heights.append(0)
        heights[block] = max(heights[block], at + p.size[i])
        where[i] = block, at
    return [w for w in where if w is not None], heights


def _lowest(taken: Sequence[tuple[int, int]], size: int, align: int) -> int:
    at = 0
    for low, high in taken:
        if low - at >= size:
            return at
        at = max(at, -(-high // align) * align)
    return at
