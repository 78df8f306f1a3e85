"""The passes of the planner, run in turn over one problem until one reaches the lower bound."""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from . import plan_greedy as greedy
from .plan_greedy import Budget, Problem
from .plan_skyline import Skyline, keys, ranked, search

_SEED = 20  # of the search


@dataclass(frozen=True)
class Order:
    """How a plan was made: a `method`, and the buffers in the order in which it took them.

    With `grouped`, each entry stands for all buffers of the same lifetime. Methods: "first-fit", "best-fit", "skyline".
    """

    method: str
    grouped: bool
    sequence: tuple[int, ...]


class Job:
    """One run of the planner over the buffers `live`: keeps the best placement."""

    def __init__(
        self, live: list[int], begin: list[int], end: list[int], taken: list[int], align: list[int], budget: Budget
    ) -> None:
        self.live, self.budget = live, budget
        points = greedy.cliques([begin[i] for i in live], [end[i] for i in live])
        at = {t: bisect_left(points, t) for i in live for t in (begin[i], end[i])}
        span = [(at[begin[i]], at[end[i]]) for i in live]
        life = [end[i] - begin[i] for i in live]
        size, align = [taken[i] for i in live], [align[i] for i in live]
        mixed = len(set(align)) > 1
        first, last = [s for s, _ in span], [e for _, e in span]
        self.single = Problem(first, last, size, life, align if mixed else None)
        bundles: dict[tuple[int, int], list[int]] = {}
        for k, s in enumerate(span):
            bundles.setdefault(s, []).append(k)
        self.members = list(bundles.values())
        if mixed:  # sizes are multiples of alignments, so all members of a bundle are aligned if the first is
            self.members = [sorted(m, key=lambda k: -align[k]) for m in self.members]
        self.bundled = Problem(
            [a for a, _ in bundles],
            [b for _, b in bundles],
            [sum(size[k] for k in m) for m in self.members],
            [max(life[k] for k in m) for m in self.members],
            [align[m[0]] for m in self.members] if mixed else None,
        )
        self.bound = self.single.bound
        self.height, self.offsets = 0, [0] * len(live)
        self.found_by, self.order = "nothing to place", Order("first-fit", True, ())
        self.skylines: dict[bool, Skyline] = {}

    def work(self, order: Order | None, short: bool) -> None:
        """Run the passes in turn until one reaches the lower bound or the budget is spent; only a few if `short`."""
        if order is not None and self._repeat(order):
            return
        if self._portfolio(True, short):
            return
        if len(self.members) < len(self.live) and self._portfolio(False, short):
            return
        if not self.budget.spent():
            self._search(True)

    def _problem(self, grouped: bool) -> Problem:
        return self.bundled if grouped else self.single

    def _skyline(self, grouped: bool) -> Skyline:
        if grouped not in self.skylines:
            self.skylines[grouped] = Skyline(self._problem(grouped))
        return self.skylines[grouped]

    def _cap(self) -> int | None:
        """Return the height that a better placement stays at or below; None if there is none yet."""
        return self.height - 1 if self.height else None

    def _take(self, offsets: list[int] | None, method: str, grouped: bool, order: Sequence[int], name: str) -> bool:
        """Keep a placement if it is better; return whether the lower bound is reached."""
        if offsets is None:
            return False
        p = self._problem(grouped)
        height = max(a + b for a, b in zip(offsets, p.size, strict=True))
        if self.height and height >= self.height:
            return self.height == self.bound
        self.height, self.found_by = height, name if grouped else f"{name}, one by one"
        first = [m[0] for m in self.members] if grouped else range(len(self.live))
        self.order = Order(method, grouped, tuple(self.live[first[k]] for k in order))
        if grouped:
            for offset, members in zip(offsets, self.members, strict=True):
                for k in members:
                    self.offsets[k] = offset
                    offset += self.single.size[k]
        else:
            self.offsets = offsets
        return height == self.bound

    def _fit(self, grouped: bool, order: list[int], tightest: bool, name: str) -> bool:
        offsets = greedy.place(self._problem(grouped), order, self.budget, self._cap(), tightest)
        return self._take(offsets, "best-fit" if tightest else "first-fit", grouped, order, name)

    def _rise(self, grouped: bool, order: list[int], name: str) -> bool:
        offsets = self._skyline(grouped).run(order, self.budget, self._cap())
        return self._take(offsets, "skyline", grouped, order, name)

    def _portfolio(self, grouped: bool, short: bool) -> bool:
        """Run the single passes; return whether one reached the lower bound. The first of all always runs."""
        p = self._problem(grouped)
        if self._fit(grouped, greedy.by_size(p), False, "size"):
            return True
        if short and not grouped:
            return False
        passes: list[Callable[[], bool]] = [partial(self._fit, grouped, greedy.by_breadth(p), False, "breadth")]
        priorities = keys(p)
        for name in ("duration",) if short else ("duration", "mixed", "area"):
            order = ranked(priorities[name])
            passes.append(partial(self._rise, grouped, order, f"skyline {name}"))
        if not short:
            passes.append(partial(self._fit, grouped, greedy.by_duration(p), True, "duration"))
        for run in passes:
            if (short or not self.budget.spent()) and run():
                return True
        return False

    def _search(self, grouped: bool) -> None:
        sky = self._skyline(grouped)
        pool = []
        for values in keys(self._problem(grouped)).values():
            offsets = sky.run(ranked(values), self.budget)
            if offsets is not None:
                pool.append((max(map(operator.add, offsets, sky.p.size)), values))
        found = search(sky, pool, self.height, self.bound, self.budget, _SEED)
        if found is not None:
            self._take(found[0], "skyline", grouped, found[1], "search")

    def _repeat(self, order: Order) -> bool:
        """Run the pass of an earlier plan, with what it did not know placed last."""
        items: dict[int, int] = {}
        for item, members in enumerate(self.members if order.grouped else [[k] for k in range(len(self.live))]):
            for k in members:
                items[self.live[k]] = item
        sequence = dict.fromkeys(items[i] for i in order.sequence if i in items)
        known = [*sequence, *(k for k in greedy.by_size(self._problem(order.grouped)) if k not in sequence)]
        if order.method == "skyline":
            return self._rise(order.grouped, known, "the earlier order")
        return self._fit(order.grouped, known, order.method == "best-fit", "the earlier order")
