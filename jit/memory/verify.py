"""A check of plans that shares no code with the planner."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Protocol


class PlanError(ValueError):
    """A plan that would let two values overwrite each other, or that places a buffer where it must not be.

    `buffers` are the numbers of the one or two buffers concerned.
    """

    def __init__(self, message: str, *buffers: int) -> None:
        super().__init__(message)
        self.buffers = buffers


class Placed(Protocol):
    """What can be verified: lifetimes, sizes, alignments, and for each buffer a block and an offset in it."""

    @property
    def starts(self) -> Sequence[int]:
        """First time of each buffer."""

    @property
    def ends(self) -> Sequence[int]:
        """Time after the last one of each buffer."""

    @property
    def sizes(self) -> Sequence[int]:
        """Bytes of each buffer."""

    @property
    def alignments(self) -> Sequence[int]:
        """Bytes of which the offset of each buffer is a multiple."""

    @property
    def offsets(self) -> Sequence[int | None]:
        """Bytes from the start of its block to each buffer."""

    @property
    def blocks(self) -> Sequence[int]:
        """Number of the block that holds each buffer."""

    @property
    def block_sizes(self) -> Sequence[int]:
        """Bytes of each block."""


def verify(plan: Placed, aliases: Sequence[Sequence[int]] = ()) -> None:
    """Return if a plan is sound, in time O(n log n); raise PlanError otherwise.

    Two buffers that live at the same time may share no byte, unless both are in one of the sets `aliases`: the buffers
    of a set have one offset, and count as one buffer that is as large as the largest and lives from the first start to
    the last end. Each takes over from the one before, which may at most still live at that one time.
    Offsets are aligned and inside the blocks. Buffers of no bytes or no lifetime meet nothing.
    """
    _check_places(plan)
    blocks: dict[int, list[tuple[int, int, int, int, int]]] = {}
    together: set[int] = set()
    for members in aliases:
        living = [i for i in members if plan.ends[i] > plan.starts[i]]
        together.update(members)
        if living:
            blocks.setdefault(plan.blocks[living[0]], []).append(_union(plan, living))
    for i, (start, end, size) in enumerate(zip(plan.starts, plan.ends, plan.sizes, strict=True)):
        if size > 0 and end > start and i not in together:
            offset = plan.offsets[i]
            assert offset is not None  # _check_places has raised otherwise
            blocks.setdefault(plan.blocks[i], []).append((start, end, offset, offset + size, i))
    members_of = {members[0]: list(members) for members in map(sorted, aliases) if members}
    for ranges in blocks.values():
        found = _collision([r for r in ranges if r[3] > r[2]])
        if found is not None:
            a, b, when = found
            _raise_overlap(plan, members_of.get(a, [a]), members_of.get(b, [b]), when)


def _check_places(plan: Placed) -> None:
    """Raise for a buffer that has no place, a misaligned one, or one outside its block."""
    n = len(plan.sizes)
    for name in ("starts", "ends", "alignments", "offsets", "blocks"):
        if len(getattr(plan, name)) != n:
            raise PlanError(f"a plan of {n} buffers has {len(getattr(plan, name))} {name}")
    rows = zip(plan.offsets, plan.sizes, plan.alignments, plan.blocks, strict=True)
    for i, (offset, size, alignment, block) in enumerate(rows):
        if offset is None or offset < 0:
            raise PlanError(f"buffer {i} of {size} bytes is not placed (offset {offset})", i)
        if offset % alignment:
            raise PlanError(f"buffer {i} is at offset {offset}, which is no multiple of its alignment {alignment}", i)
        if not 0 <= block < len(plan.block_sizes):
            raise PlanError(f"buffer {i} is in block {block}, but there are {len(plan.block_sizes)} blocks", i)
        if offset + size > plan.block_sizes[block]:
            raise PlanError(
                f"buffer {i} ends at {offset + size}, outside its block {block} of {plan.block_sizes[block]} bytes", i
            )


def _union(plan: Placed, members: Sequence[int]) -> tuple[int, int, int, int, int]:
    """Return start, end, low and high end of a set of aliases as one buffer, and its least member."""
    least = min(members)
    for i in members:
        if (plan.offsets[i], plan.blocks[i]) != (plan.offsets[least], plan.blocks[least]):
            raise PlanError(
                f"buffers {least} and {i} are aliases, but one is at offset {plan.offsets[least]} of block "
                f"{plan.blocks[least]} and the other at {plan.offsets[i]} of block {plan.blocks[i]}",
                least,
                i,
            )
    ordered = sorted(members, key=lambda i: (plan.starts[i], plan.ends[i]))
    for i, j in zip(ordered, ordered[1:], strict=False):
        if plan.starts[j] < plan.ends[i] - 1:
            when = plan.starts[j]
            raise PlanError(f"buffers {i} and {j} are aliases, but both live at the times {when} and {when + 1}", i, j)
    low = plan.offsets[least]
    assert low is not None
    start, end = min(plan.starts[i] for i in members), max(plan.ends[i] for i in members)
    return start, end, low, low + max(plan.sizes[i] for i in members), least


def _collision(ranges: Sequence[tuple[int, int, int, int, int]]) -> tuple[int, int, int] | None:
    """Return the names of two ranges (start, end, low, high, name) that collide, and when; None if none do.

    Sweeps over time. What lives at one time is disjoint, so a new range can be compared with its two neighbours only.
    """
    events = sorted(
        [(start, 1, k) for k, (start, *_) in enumerate(ranges)] + [(r[1], 0, k) for k, r in enumerate(ranges)]
    )
    lows: list[int] = []
    live: list[int] = []
    for when, begins, k in events:
        _, _, low, high, name = ranges[k]
        at = bisect_left(lows, low)
        if not begins:
            del lows[at], live[at]
            continue
        if at < len(lows) and lows[at] < high:
            return ranges[live[at]][4], name, when
        if at and ranges[live[at - 1]][3] > low:
            return ranges[live[at - 1]][4], name, when
        lows.insert(at, low)
        live.insert(at, k)
    return None


def _raise_overlap(plan: Placed, first: Sequence[int], second: Sequence[int], when: int) -> None:
    """Raise for two buffers, or sets of aliases, that collide; names the members that live at that time."""
    a, b = (next((i for i in s if plan.starts[i] <= when < plan.ends[i]), s[0]) for s in (first, second))
    texts = [
        f"buffer {i} (bytes {plan.offsets[i]} to {(plan.offsets[i] or 0) + plan.sizes[i]}, times {plan.starts[i]} to "
        f"{plan.ends[i]})"
        for i in (a, b)
    ]
    raise PlanError(f"{texts[0]} and {texts[1]} overlap in block {plan.blocks[a]} at time {when}", a, b)
