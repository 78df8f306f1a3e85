"""Placement of buffers one after the other, each into the lowest (or tightest) free place of its lifetime.

The orders are greedy by size and by breadth (Pisarchyk and Lee 2020, arXiv:2001.03288), by duration and by area.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Sequence

from . import plan_dense

DENSE_DEGREE = 300  # above it, the arrays of plan_dense are faster than lists of neighbours
_CHECK_EVERY = 64  # buffers between two looks at the clock


class Budget:
    """Work that may still be done, in units of about a microsecond, and a time of the clock after which all stops.

    The units are counted from the shape of the problem, so a plan does not depend on the speed of the machine.
    """

    def __init__(self, work: int, seconds: float) -> None:
        self.work, self.deadline = work, time.monotonic() + seconds

    def spend(self, work: int) -> None:
        """Take off work that is done."""
        self.work -= work

    def late(self) -> bool:
        """Return whether the cap on wall clock time is reached."""
        return time.monotonic() > self.deadline

    def spent(self) -> bool:
        """Return whether nothing more may be started."""
        return self.work <= 0 or self.late()


class Problem:
    """Buffers that all live at some time: lifetimes as ranges [first, last) of clique numbers, sizes, alignments.

    Cliques are the times at which a buffer starts and the next event is an end: two lifetimes overlap exactly if they
    share a clique, and no other time can have more live bytes. `life` are the durations in the caller's time.
    `align` is None if every size is a multiple of one alignment, which offsets then are by themselves.
    """

    def __init__(
        self,
        first: Sequence[int],
        last: Sequence[int],
        size: Sequence[int],
        life: Sequence[int],
        align: Sequence[int] | None = None,
    ) -> None:
        self.first, self.last, self.size, self.life, self.align = first, last, size, life, align
        self.n = len(size)
        self.cliques = max(last, default=0)
        self.load = _running_sum(first, last, size, self.cliques)
        self.bound = max(self.load, default=0)
        live = _running_sum(first, last, [1] * self.n, self.cliques)
        # A buffer meets what already lives when it starts; starts of the same clique meet each other.
        starting = [0] * (self.cliques + 1)
        for f in first:
            starting[f] += 1
        self.pairs = sum(s * (c - s) + s * (s - 1) // 2 for s, c in zip(starting, live, strict=False))
        self._neighbours: list[list[int]] | None = None

    @property
    def degree(self) -> float:
        """Return how many others a buffer overlaps in time, on average."""
        return 2 * self.pairs / max(1, self.n)

    @property
    def neighbours(self) -> list[list[int]]:
        """Return for each buffer those it overlaps in time."""
        if self._neighbours is None:
            self._neighbours = _neighbours(self.first, self.last, self.n)
        return self._neighbours


def _running_sum(first: Sequence[int], last: Sequence[int], value: Sequence[int], length: int) -> list[int]:
    change = [0] * (length + 1)
    for f, e, v in zip(first, last, value, strict=True):
        change[f] += v
        change[e] -= v
    total, out = 0, []
    for c in change[:length]:
        total += c
        out.append(total)
    return out


def _neighbours(first: Sequence[int], last: Sequence[int], n: int) -> list[list[int]]:
    out: list[list[int]] = [[] for _ in range(n)]
    live: list[int] = []
    for i in sorted(range(n), key=first.__getitem__):
        start = first[i]
        live = [j for j in live if last[j] > start]
        for j in live:
            out[j].append(i)
        out[i].extend(live)
        live.append(i)
    return out


def cliques(starts: Sequence[int], ends: Sequence[int]) -> list[int]:
    """Return the starts t, ascending, for which something ends after t and not after the next start."""
    times, ending = sorted(set(starts)), sorted(ends)
    out = []
    for t, following in zip(times, [*times[1:], None], strict=False):  # of no starts, None is left over
        k = bisect_left(ending, t + 1)
        if k < len(ending) and (following is None or ending[k] <= following):
            out.append(t)
    return out


def by_size(p: Problem) -> list[int]:
    """Return the order by decreasing size; the longer lived first among equals."""
    return sorted(range(p.n), key=lambda i: (-p.size[i], -p.life[i], p.first[i]))


def by_duration(p: Problem) -> list[int]:
    """Return the order by decreasing duration; the larger first among equals."""
    return sorted(range(p.n), key=lambda i: (-p.life[i], -p.size[i], p.first[i]))


def by_breadth(p: Problem) -> list[int]:
    """Return the order of the busiest clique of each buffer, by decreasing size inside a clique."""
    rank = [0] * p.cliques
    for r, c in enumerate(sorted(range(p.cliques), key=lambda c: (-p.load[c], c))):
        rank[c] = r
    tables = [rank]  # tables[k][c]: least rank among the cliques c to c + 2**k - 1
    while 2 << len(tables) <= 2 * p.cliques:
        step, previous = 1 << (len(tables) - 1), tables[-1]
        tables.append(list(map(min, previous, previous[step:])))

    def least(i: int) -> int:
        a, b = p.first[i], p.last[i]
        k = (b - a).bit_length() - 1
        return min(tables[k][a], tables[k][b - (1 << k)])

    return sorted(range(p.n), key=lambda i: (least(i), -p.size[i], -p.life[i]))


def place(
    p: Problem, order: Sequence[int], budget: Budget, cap: int | None = None, tightest: bool = False
) -> list[int] | None:
    """Return the offsets of a placement in this order, or None once something would end above `cap`.

    Each buffer takes the lowest free place, or with `tightest` the smallest hole that holds it.
    """
    total = sum(p.size)
    if p.degree > DENSE_DEGREE and total < plan_dense.LARGEST:
        budget.spend(p.n * (12 + int(p.degree) // 60))
        return plan_dense.place(p.first, p.last, p.size, p.align, order, cap, tightest, budget.late)
    budget.spend(2 * p.n + p.pairs // 6)
    shift = total.bit_length() + 1
    if p.align is not None:
        shift += max(p.align).bit_length() + p.n.bit_length()
    mask = (1 << shift) - 1
    key: list[int] = [-1] * p.n  # offset and end in one integer, which sorts by offset
    offsets = [0] * p.n
    for count, i in enumerate(order):
        if cap is not None and count % _CHECK_EVERY == 0 and budget.late():
            return None
        taken = sorted([k for k in map(key.__getitem__, p.neighbours[i]) if k >= 0])
        size, align = p.size[i], 1 if p.align is None else p.align[i]
        at = _tightest(taken, shift, size, align) if tightest else _lowest(taken, shift, mask, size, align)
        if cap is not None and at + size > cap:
            return None
        offsets[i] = at
        key[i] = at << shift | (at + size)
    return offsets


def _lowest(taken: list[int], shift: int, mask: int, size: int, align: int) -> int:
    at = 0
    for k in taken:
        if (k >> shift) - at >= size:
            start = -(-at // align) * align
            if (k >> shift) - start >= size:
                return start
        end = k & mask
        if end > at:
            at = end
    return -(-at // align) * align


def _tightest(taken: list[int], shift: int, size: int, align: int) -> int:
    at, best, least, mask = 0, -1, 0, (1 << shift) - 1
    for k in taken:
        start = -(-at // align) * align
        room = (k >> shift) - start
        if room >= size and (best < 0 or room < least):
            best, least = start, room
        at = max(at, k & mask)
    return best if best >= 0 else -(-at // align) * align
