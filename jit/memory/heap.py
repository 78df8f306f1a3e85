"""Free intervals of an address range: best fit, split on taking, merged on giving back. Numbers only, no memory.

Measured on traces of renderer steps: one growing range with best fit holds 1.01 times the live bytes (median; worst
1.26), lists of power-of-two blocks 1.94 (worst 3.99).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort


class Heap:
    """Free intervals, found by size."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}  # start -> size
        self.starts: dict[int, int] = {}  # end -> start
        self.order: list[tuple[int, int]] = []  # (size, start), ascending

    def take(self, size: int) -> int | None:
        """Return the start of `size` bytes cut from the smallest interval that holds them (the lowest of equals); None
        if no interval is large enough."""
        order = self.order
        place = bisect_left(order, (size, 0))
        if place == len(order):
            return None
        found, start = order.pop(place)
        del self.sizes[start], self.starts[start + found]
        if found > size:
            self._insert(start + size, found - size)
        return start

    def remove(self, start: int) -> int:
        """Take out the interval at `start` and return its size."""
        size = self.sizes.pop(start)
        del self.starts[start + size]
        self.order.pop(bisect_left(self.order, (size, start)))
        return size

    def give(self, start: int, size: int) -> None:
        """Take an interval back, joined with free neighbours."""
        end = start + size
        before = self.starts.get(start)
        if before is not None:
            start, size = before, size + self.remove(before)
        if end in self.sizes:
            size += self.remove(end)
        self._insert(start, size)

    def _insert(self, start: int, size: int) -> None:
        self.sizes[start] = size
        self.starts[start + size] = start
        insort(self.order, (size, start))

    @property
    def largest(self) -> int:
        """Return the size of the largest interval."""
        return self.order[-1][0] if self.order else 0


class Touched:
    """Which addresses have memory behind them: disjoint intervals, joined where they meet."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, start: int, end: int) -> int:
        """Count an interval as touched and return how many of its bytes were not before."""
        starts, ends = self._starts, self._ends
        first = bisect_left(ends, start)  # the first interval that meets or follows
        if first < len(starts) and starts[first] <= start and end <= ends[first]:
            return 0
        last = bisect_right(starts, end)
        known = sum(min(ends[k], end) - max(starts[k], start) for k in range(first, last))
        low = min(start, starts[first]) if first < last else start
        high = max(end, ends[last - 1]) if first < last else end
        starts[first:last], ends[first:last] = [low], [high]
        return end - start - known

    def discard(self, start: int, end: int) -> int:
        """Count an interval as given back and return how many of its bytes had been touched."""
        starts, ends = self._starts, self._ends
        first, last = bisect_right(ends, start), bisect_left(starts, end)
        pieces, gone = [], 0
        for k in range(first, last):
            a, b = starts[k], ends[k]
            gone += min(b, end) - max(a, start)
            pieces += [(a, start)] if a < start else []
            pieces += [(end, b)] if b > end else []
        starts[first:last], ends[first:last] = [a for a, _ in pieces], [b for _, b in pieces]
        return gone


__all__ = ["Heap", "Touched"]
