"""Plans for recorded launches: which transient lies where in the arena."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .lifetimes import Buffer, Launch, Lifetimes, lifetimes
from .plan import Effort, Plan, PlanCache, plan
from .plan_report import arena_report, to_csv
from .verify import verify

__all__ = ["LaunchPlan", "plan_launches"]


@dataclass(frozen=True)
class LaunchPlan:
    """Where the buffers of recorded launches lie.

    `arena` places the sets of buffers `sets`, in their order. `offsets` and `blocks` say the same per buffer; the
    offset is None for buffers outside the arena: those in the memory of an input or output (`lifetimes.homes`), and
    those that no launch touches. `unshared_peak` are the most live bytes without in-place reuse.
    """

    buffers: tuple[Buffer, ...]
    lifetimes: Lifetimes
    sets: tuple[tuple[int, ...], ...]
    arena: Plan
    offsets: tuple[int | None, ...]
    blocks: tuple[int, ...]
    unshared_peak: int
    alignment: int

    @property
    def height(self) -> int:
        """Return the bytes of the arena."""
        return self.arena.height

    def report(self, columns: int = 64) -> str:
        """Return a text: bytes and what saved them, a map of the arena around the peak, the largest buffers there."""
        sets = [(self._name(s), *self._span(s), *place) for s, place in zip(self.sets, self._places(), strict=True)]
        apart = sum(self._rounded(i) for i in range(len(self.buffers)) if self._is_transient(i))
        moved = sum(self._is_transient(i) and home >= 0 for i, home in enumerate(self.lifetimes.homes))
        together = sum(size for *_, size in sets)
        return arena_report(self.arena, sets, apart, together, moved, self.unshared_peak, columns)

    def to_csv(self) -> str:
        """Return the sets of the arena with their lifetimes and offsets in the format of MiniMalloc."""
        names = [self._name(s) for s in self.sets]
        spans = [self._span(s) for s in self.sets]
        sizes = [size for *_, size in self._places()]
        return to_csv([a for a, _ in spans], [b for _, b in spans], sizes, self.arena.offsets, names)

    def _places(self) -> list[tuple[int, int]]:
        """Return offset, counted over all blocks, and rounded size of each set."""
        base = [sum(self.arena.block_sizes[:k]) for k in range(len(self.arena.block_sizes))]
        return [
            (base[block] + offset, max(self._rounded(i) for i in members))
            for members, block, offset in zip(self.sets, self.arena.blocks, self.arena.offsets, strict=True)
        ]

    def _span(self, members: Sequence[int]) -> tuple[int, int]:
        return min(self.lifetimes.starts[i] for i in members), max(self.lifetimes.ends[i] for i in members)

    def _name(self, members: Sequence[int]) -> str:
        return "=".join(self.buffers[i].name or f"b{i}" for i in members)

    def _rounded(self, i: int) -> int:
        return -(-self.buffers[i].nbytes // self.alignment) * self.alignment

    def _is_transient(self, i: int) -> bool:
        return self.buffers[i].kind == "transient" and self.lifetimes.ends[i] > self.lifetimes.starts[i]


@dataclass(frozen=True)
class _Layout:
    """The transients of the arena, one by one, for the check."""

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    sizes: tuple[int, ...]
    alignments: tuple[int, ...]
    offsets: tuple[int | None, ...]
    blocks: tuple[int, ...]
    block_sizes: tuple[int, ...]


def plan_launches(
    launches: Sequence[Launch],
    buffers: Sequence[Buffer],
    *,
    alias: bool = True,
    inplace: bool = True,
    alignment: int = 64,
    effort: Effort = "default",
    max_block: int | None = None,
    cache: PlanCache | None = None,
) -> LaunchPlan:
    """Return where the transients of a recorded program lie; the plan is verified buffer by buffer.

    With `alias` false nothing shares memory, for debugging. With `inplace` false no output takes over an input.
    A `cache` keeps plans by sizes; its own alignment, effort and largest block then count.

    Raises:
        ValueError: for launches that `lifetimes` refuses, or a buffer that is larger than `max_block`.
    """
    if cache is not None:
        alignment = cache.alignment
    apart = lifetimes(launches, buffers, inplace=False, alignment=alignment)
    spans = lifetimes(launches, buffers, inplace=True, alignment=alignment) if alias and inplace else apart
    sets = tuple(s for s in spans.sets if spans.homes[s[0]] < 0 and spans.ends[s[0]] > spans.starts[s[0]])
    sizes = [max(buffers[i].nbytes for i in s) for s in sets]
    starts = [min(spans.starts[i] for i in s) for s in sets] if alias else [0] * len(sets)
    ends = [max(spans.ends[i] for i in s) for s in sets] if alias else [1] * len(sets)
    if cache is not None:
        arena = cache.plan(starts, ends, sizes)
    else:
        arena = plan(starts, ends, sizes, alignment, effort=effort, max_block=max_block)
    offsets: list[int | None] = [None] * len(buffers)
    blocks = [0] * len(buffers)
    for members, offset, block in zip(sets, arena.offsets, arena.blocks, strict=True):
        for i in members:
            offsets[i], blocks[i] = offset, block
    _verify(buffers, spans, offsets, blocks, arena)
    peak = _peak(buffers, apart, alignment)
    return LaunchPlan(tuple(buffers), spans, sets, arena, tuple(offsets), tuple(blocks), peak, alignment)


def _verify(
    buffers: Sequence[Buffer],
    spans: Lifetimes,
    offsets: Sequence[int | None],
    blocks: Sequence[int],
    arena: Plan,
) -> None:
    """Check the transients one by one; those outside the arena count as empty."""
    placed = [offset is not None for offset in offsets]
    layout = _Layout(
        spans.starts,
        spans.ends,
        tuple(b.nbytes if p else 0 for b, p in zip(buffers, placed, strict=True)),
        (arena.alignments[0] if arena.alignments else 1,) * len(buffers),
        tuple(offset or 0 for offset in offsets),
        tuple(blocks),
        arena.block_sizes,
    )
    verify(layout, spans.sets)


def _peak(buffers: Sequence[Buffer], spans: Lifetimes, alignment: int) -> int:
    """Return the most bytes of transients that live in one wave, each rounded up."""
    change: dict[int, int] = {}
    for b, start, end in zip(buffers, spans.starts, spans.ends, strict=True):
        if b.kind == "transient" and end > start:
            size = -(-b.nbytes // alignment) * alignment
            change[start] = change.get(start, 0) + size
            change[end] = change.get(end, 0) - size
    live = peak = 0
    for _, c in sorted(change.items()):
        live += c
        peak = max(peak, live)
    return peak
