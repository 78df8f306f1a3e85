"""Offsets for buffers of known sizes and lifetimes in one arena, so that what lives at the same time shares no byte.

Pure data in, pure data out: nothing here knows arrays or kernels. The same input gives the same plan on every run:
work is counted, the clock only stops a plan that takes absurdly long.
"""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, SupportsIndex

from .plan_blocks import split
from .plan_greedy import Budget
from .plan_passes import Job, Order
from .verify import verify

Effort = Literal["low", "default", "high"]
WORK = {"low": 0, "default": 60_000, "high": 1_000_000}  # about microseconds, see Budget
SECONDS = {"low": 30.0, "default": 30.0, "high": 120.0}  # far above what the work takes, even on a busy machine


@dataclass(frozen=True)
class Plan:
    """Where each buffer lies. `blocks` are numbers of blocks and `offsets` bytes from the start of the block.

    `height` are the bytes of all blocks together, `lower_bound` the most bytes that live at one time, with sizes
    rounded up to alignments. `found_by` names the pass that found the plan, `order` repeats it for other sizes.
    `starts`, `ends`, `sizes` and `alignments` are the input.
    """

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    sizes: tuple[int, ...]
    alignments: tuple[int, ...]
    offsets: tuple[int, ...]
    blocks: tuple[int, ...]
    block_sizes: tuple[int, ...]
    lower_bound: int
    groups: int
    found_by: str
    order: Order = field(repr=False)

    @property
    def height(self) -> int:
        """Return the bytes of all blocks together."""
        return sum(self.block_sizes)


def plan(
    starts: Sequence[SupportsIndex],
    ends: Sequence[SupportsIndex],
    sizes: Sequence[SupportsIndex],
    alignment: int = 64,
    *,
    alignments: Sequence[SupportsIndex] | None = None,
    effort: Effort = "default",
    max_block: int | None = None,
    max_binding: int | None = None,
    order: Order | None = None,
    seconds: float | None = None,
) -> Plan:
    """Return a verified plan for buffers that live in the half-open times [start, end) and have `sizes` in bytes.

    A buffer takes its size rounded up to its alignment (one for all, or `alignments`), and lies at a multiple of it.
    Buffers of no bytes or no lifetime are allowed and lie at offset 0.

    Args:
        effort: "low" makes a few passes, "default" also searches for about 50 ms, "high" for about a second.
        max_block: bytes of the largest block that can be had; beyond it the buffers are spread over several blocks.
        max_binding: bytes of the largest buffer that a kernel can be given.
        order: the order of an earlier plan, tried first.
        seconds: cap on the time taken; reaching it makes the plan depend on the speed of the machine.

    Raises:
        ValueError: for lengths that differ, values that are no integers, negative sizes, ends before starts,
            alignments that are no powers of two (with number and value), or a buffer beyond a limit.

    >>> p = plan([0, 1, 2], [2, 3, 4], [100, 200, 100])
    >>> p.offsets, p.height, p.lower_bound
    ((256, 0, 256), 384, 384)
    """
    if effort not in WORK:
        raise ValueError(f"effort {effort!r} is none of {', '.join(WORK)}")
    begin, end, size, align = _checked(starts, ends, sizes, alignment, alignments)
    taken = [-(-s // a) * a for s, a in zip(size, align, strict=True)]
    _check_limits(size, taken, max_block, max_binding)
    live = [i for i, s in enumerate(size) if s and end[i] > begin[i]]
    job = Job(live, begin, end, taken, align, Budget(WORK[effort], SECONDS[effort] if seconds is None else seconds))
    if live:
        job.work(order, effort == "low")
    n = len(size)
    offsets, blocks = [0] * n, [0] * n
    idle = max((taken[i] for i in range(n) if end[i] == begin[i]), default=0)
    block_sizes = [max(job.height, idle)]
    if max_block is not None and block_sizes[0] > max_block:
        where, block_sizes = split(job.single, max_block)
        block_sizes[0] = max(block_sizes[0], idle)
        for i, (block, offset) in zip(live, where, strict=True):
            blocks[i], offsets[i] = block, offset
    else:
        for i, offset in zip(live, job.offsets, strict=True):
            offsets[i] = offset
    inputs = tuple(begin), tuple(end), tuple(size), tuple(align)
    places = tuple(offsets), tuple(blocks), tuple(block_sizes)
    out = Plan(*inputs, *places, max(job.bound, idle), job.bundled.n, job.found_by, job.order)
    verify(out)
    return out


def _checked(
    starts: Sequence[SupportsIndex],
    ends: Sequence[SupportsIndex],
    sizes: Sequence[SupportsIndex],
    alignment: SupportsIndex,
    alignments: Sequence[SupportsIndex] | None,
) -> tuple[list[int], list[int], list[int], list[int]]:
    """Return starts, ends, sizes and alignments as lists of integers, or raise ValueError."""
    begin, end, size = _integers("start", starts), _integers("end", ends), _integers("size", sizes)
    one = _integers("alignment", [alignment])[0]
    align = [one] * len(size) if alignments is None else _integers("alignment", alignments)
    if not len(begin) == len(end) == len(size) == len(align):
        raise ValueError(
            f"a plan needs one entry per buffer in each list, not {len(begin)} starts, {len(end)} ends, "
            f"{len(size)} sizes and {len(align)} alignments"
        )
    for i, a in enumerate([one] if alignments is None else align):
        if a < 1 or a & (a - 1):
            where = "alignment" if alignments is None else f"alignment {i}"
            raise ValueError(f"{where} is {a}, which is no power of two")
    for i, s in enumerate(size):
        if s < 0:
            raise ValueError(f"size {i} is {s}; sizes are bytes, at least 0")
        if end[i] < begin[i]:
            raise ValueError(f"buffer {i} ends at {end[i]}, before its start at {begin[i]}")
    return begin, end, size, align


def _integers(name: str, values: Sequence[SupportsIndex]) -> list[int]:
    out = []
    for i, v in enumerate(values):
        try:
            out.append(operator.index(v))
        except TypeError:
            raise ValueError(f"{name} {i} is {v!r}, which is no integer") from None
    return out


def _check_limits(size: list[int], taken: list[int], max_block: int | None, max_binding: int | None) -> None:
    for i, (s, t) in enumerate(zip(size, taken, strict=True)):
        if max_binding is not None and s > max_binding:
            raise ValueError(f"buffer {i} of {s} bytes is larger than the largest binding of {max_binding} bytes")
        if max_block is not None and t > max_block:
            raise ValueError(f"buffer {i} takes {t} bytes, which fit into no block of at most {max_block} bytes")


class PlanCache:
    """Plans by lifetimes and sizes; the last `capacity` are kept.

    New sizes for lifetimes seen before first try the order of the latest plan with these lifetimes.
    """

    def __init__(
        self, capacity: int = 8, alignment: int = 64, effort: Effort = "default", max_block: int | None = None
    ) -> None:
        if capacity < 1:
            raise ValueError(f"a cache of {capacity} plans can keep none; use at least 1")
        self.capacity, self.alignment, self.effort, self.max_block = capacity, alignment, effort, max_block
        self.hits, self.misses = 0, 0
        self._plans: OrderedDict[tuple[tuple[int, ...], ...], Plan] = OrderedDict()

    def __len__(self) -> int:
        return len(self._plans)

    def plan(self, starts: Sequence[int], ends: Sequence[int], sizes: Sequence[int]) -> Plan:
        """Return the plan for these buffers, made now or earlier."""
        key = (tuple(starts), tuple(ends), tuple(sizes))
        known = self._plans.get(key)
        if known is not None:
            self.hits += 1
            self._plans.move_to_end(key)
            return known
        self.misses += 1
        earlier = next((p.order for k, p in reversed(self._plans.items()) if k[:2] == key[:2]), None)
        made = plan(
            starts, ends, sizes, self.alignment, effort=self.effort, max_block=self.max_block, order=earlier
        )
        self._plans[key] = made
        if len(self._plans) > self.capacity:
            self._plans.popitem(last=False)
        return made
