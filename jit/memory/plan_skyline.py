"""Placement from the bottom up, and a search over its priorities.

The skyline is the upper edge of what is placed, as a step function of time. Its lowest step takes the buffer of highest
priority that fits into its width; if none fits, the step is lifted to its lower neighbour (Sekiyama et al. 2018,
arXiv:1804.10001; the rule is the best-fit of Burke et al. 2004 for strip packing).

Sets of buffers are integers, one bit per buffer, the lowest bit for the highest priority: what fits into a step is two
intersections, and the winner its lowest set bit.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Sequence

from .plan_greedy import Budget, Problem

_FEW = 24  # cliques at which wasted room is counted
_CHECK_EVERY = 128  # steps between two looks at the clock


class Skyline:
    """Builds skylines of one problem."""

    def __init__(self, problem: Problem) -> None:
        self.p = problem
        # Room below a step that can no longer be used counts against the busiest cliques.
        busiest = sorted(range(problem.cliques), key=lambda c: (-problem.load[c], c))[:_FEW]
        self.busy = sorted(busiest)

    def run(self, order: Sequence[int], budget: Budget, cap: int | None = None) -> list[int] | None:
        """Return the offsets for priorities in descending `order`, or None once `cap` would be exceeded."""
        p = self.p
        size, first, last, align = p.size, p.first, p.last, p.align
        after, before = self._masks(order)
        edges, heights = [0, p.cliques], [0]
        offsets = [0] * p.n
        waiting = (1 << p.n) - 1
        busy = self.busy
        spare = None if cap is None else [cap - p.load[c] for c in busy]
        step = 0
        while waiting:
            step += 1
            if spare is not None and step % _CHECK_EVERY == 0 and budget.late():
                return None
            h = min(heights)
            k = heights.index(h)
            a, b = edges[k], edges[k + 1]
            fits = waiting & after[a] & before[b]
            if not fits:
                low = _lift(edges, heights, k)
                if spare is not None and _waste(spare, bisect_left(busy, a), bisect_left(busy, b), low - h):
                    break
                continue
            bit = fits & -fits
            i = order[bit.bit_length() - 1]
            at = h if align is None else -(-h // align[i]) * align[i]
            top = at + size[i]
            if cap is not None and top > cap:
                break
            waiting ^= bit
            offsets[i] = at
            _raise(edges, heights, k, first[i], last[i], top)
        budget.spend(2 * p.n + 2 * step)
        return None if waiting else offsets

    def _masks(self, order: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the sets of buffers that start at or after each clique, and of those that end at or before it."""
        first, last, n = self.p.first, self.p.last, self.p.cliques
        after, before = [0] * (n + 1), [0] * (n + 1)
        bit = 1
        for i in order:
            after[first[i]] |= bit
            before[last[i]] |= bit
            bit <<= 1
        for c in range(n):
            before[c + 1] |= before[c]
            after[n - 1 - c] |= after[n - c]
        return after, before


def _lift(edges: list[int], heights: list[int], k: int) -> int:
    """Lift step k to its lower neighbour, join them, and return the new height."""
    left = heights[k - 1] if k else None
    right = heights[k + 1] if k + 1 < len(heights) else None
    if left is not None and (right is None or left <= right):
        if left == right:
            del edges[k : k + 2], heights[k : k + 2]
        else:
            del edges[k], heights[k]
        return left
    assert right is not None  # with one step only, everything that waits fits
    del edges[k + 1], heights[k]
    return right


def _waste(spare: list[int], low: int, high: int, lost: int) -> bool:
    """Take lost room off the busy cliques of a lifted step; return whether one can no longer stay below the cap."""
    for j in range(low, high):
        spare[j] -= lost
        if spare[j] < 0:
            return True
    return False


def _raise(edges: list[int], heights: list[int], k: int, a: int, b: int, top: int) -> None:
    """Raise the part [a, b) of step k to `top`; steps of equal height are joined."""
    h = heights[k]
    low, high = edges[k], edges[k + 1]
    inner, levels = [a, b], [top]
    i, j = k, k + 1  # the steps replaced
    if a > low:
        inner.insert(0, low)
        levels.insert(0, h)
    elif k and heights[k - 1] == top:
        i, inner[0] = k - 1, edges[k - 1]
    if b < high:
        inner.append(high)
        levels.append(h)
    elif j < len(heights) and heights[j] == top:
        j, inner[-1] = j + 1, edges[j + 1]
    edges[i : j + 1] = inner
    heights[i:j] = levels


def ranked(values: Sequence[float]) -> list[int]:
    """Return the indices by ascending value, ties by index."""
    return sorted(range(len(values)), key=values.__getitem__)


def keys(p: Problem) -> dict[str, list[float]]:
    """Return the priorities (smaller comes first) of the skyline passes by name.

    Logarithms are rounded, since their last bit may differ between machines.
    """
    width = [b - a for a, b in zip(p.first, p.last, strict=True)]
    sums = [0]
    for v in p.load:
        sums.append(sums[-1] + v)
    load = [(sums[b] - sums[a]) / (b - a) / max(1, p.bound) for a, b in zip(p.first, p.last, strict=True)]
    d = [round(math.log(v), 9) for v in p.life]
    w = [round(math.log(v), 9) for v in width]
    s = [round(math.log(v), 9) for v in p.size]
    return {
        "duration": [-v for v in d],
        "mixed": [round(-(x + 0.5 * y + 30 * z), 9) for x, y, z in zip(w, s, load, strict=True)],
        "area": [-(x + y) for x, y in zip(d, s, strict=True)],
        "width": [-v for v in w],
        "size": [-v for v in s],
    }


def search(
    sky: Skyline, pool: list[tuple[int, list[float]]], best: int, goal: int, budget: Budget, seed: int
) -> tuple[list[int], list[int], int] | None:
    """Return offsets, order and height of the best skyline below `best` found in the budget, or None.

    `pool` are the heights and priorities to start from. Priorities are disturbed at random; what is not higher than the
    present skyline is kept, so the search drifts over plateaus.
    """
    rng = random.Random(seed)
    pool = sorted(pool, key=lambda entry: entry[0])[:3]
    height, current = pool[0]
    size, n = sky.p.size, sky.p.n
    found: tuple[list[int], list[int], int] | None = None
    stall = 0
    while best > goal and not budget.spent():
        fresh = rng.random() < 0.15
        if fresh:
            spread = rng.random() * 1.2
            values = [v + spread * _noise(rng) for v in rng.choice(pool)[1]]
            cap = best + best // 50
        else:
            values = list(current)
            for _ in range(max(1, int(n * rng.choice((0.01, 0.02, 0.05, 0.1))))):
                values[rng.randrange(n)] += 3 * _noise(rng)
            cap = height + (int(height * 0.01 * rng.random()) if stall > 30 else 0)
        order = ranked(values)
        budget.spend(n)
        offsets = sky.run(order, budget, cap)
        if offsets is None:
            stall += 1
            continue
        top = max(map(int.__add__, offsets, size))
        stall = 0 if top < height else stall + 1
        height, current = top, values
        if top < best:
            best, found = top, (offsets, order, top)
    return found


def _noise(rng: random.Random) -> float:
    """Return a number of mean 0 and deviation 1/2, near to normal; additions only, the same on every machine."""
    return rng.random() + rng.random() + rng.random() - 1.5
