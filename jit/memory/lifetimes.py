"""Lifetimes of buffers from a list of launches, and which outputs may take over the memory of an input.

The list is pure data: what each launch reads and writes, how, and in which wave. Launches of one wave may run at the
same time; waves run one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Access = Literal["own", "gather", "scatter", "whole"]
Kind = Literal["input", "output", "transient", "persistent"]


@dataclass(frozen=True)
class Buffer:
    """Memory that launches use.

    Transients live in the arena. Inputs come from the caller, outputs go to it, persistent buffers stay between runs.
    With `donate`, an input may be overwritten after its last use.
    """

    nbytes: int
    itemsize: int
    kind: Kind = "transient"
    donate: bool = False
    name: str = ""


@dataclass(frozen=True)
class Launch:
    """One kernel: (buffer, access) for each array that it reads and writes.

    Access is "own" if each thread touches only the element of its own index, and reads before it writes; "gather" for
    reads and "scatter" for writes at computed indices; "whole" for anything else, such as a fill or a reduction.
    """

    reads: tuple[tuple[int, Access], ...]
    writes: tuple[tuple[int, Access], ...]
    wave: int
    name: str = ""


@dataclass(frozen=True)
class Lifetimes:
    """Half-open lifetimes [start, end) in waves, one per buffer, and `sets` of buffers that share memory.

    Every buffer is in one set, which need not be listed in the order of use. `homes` holds per buffer the input or
    output whose memory its set lives in: -1 for the arena, and the buffer itself for inputs, outputs and persistent
    buffers that took over nothing.
    Transients that nothing touches have the lifetime [0, 0).
    """

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]
    homes: tuple[int, ...]


@dataclass
class _Uses:
    """What happens to one buffer: the launches that touch it, in order."""

    readers: list[int] = field(default_factory=list)
    writers: list[int] = field(default_factory=list)

    @property
    def launches(self) -> set[int]:
        return {*self.readers, *self.writers}


def lifetimes(
    launches: Sequence[Launch], buffers: Sequence[Buffer], *, inplace: bool = True, alignment: int = 64
) -> Lifetimes:
    """Return the lifetimes, and with `inplace` the sets of buffers of which each takes over the memory of the last.

    A transient or output takes over a buffer that the same launch reads if that is a transient or donated input in its
    last use, both have one item size and, rounded up to `alignment`, one size in bytes, and the launch touches each of
    the two once, at the threads' own index. A set that holds an output lives in the memory of the output, one that
    holds a donated input in that of the input.

    Raises:
        ValueError: for buffers that do not exist, waves that go back, a transient or output that is read before it is
            written, or an input that is written without being donated.
    """
    _check(launches, buffers)
    uses = _collect(launches, buffers)
    final = launches[-1].wave + 1 if launches else 0
    starts, ends = [], []
    for b, use in zip(buffers, uses, strict=True):
        waves = [launches[k].wave for k in use.launches]
        outside = b.kind in ("input", "persistent")
        starts.append(0 if outside else min(waves, default=0))
        # A donated input is the caller's until its last use and may be overwritten from then on.
        kept = b.kind in ("output", "persistent") or (b.kind == "input" and not b.donate)
        ends.append(final if kept else max(waves, default=-1) + 1)
    sets = _Sets(buffers)
    if inplace:
        for k, launch in enumerate(launches):
            _take_over(k, launch, launches, buffers, uses, sets, alignment)
    homes = tuple(sets.home[sets.find(i)] for i in range(len(buffers)))
    return Lifetimes(tuple(starts), tuple(ends), sets.members(), homes)


def _check(launches: Sequence[Launch], buffers: Sequence[Buffer]) -> None:
    for i, b in enumerate(buffers):
        if b.nbytes < 0 or b.itemsize < 1:
            raise ValueError(f"{_name(buffers, i)} has {b.nbytes} bytes in items of {b.itemsize}")
        if b.kind not in ("input", "output", "transient", "persistent"):
            raise ValueError(f"{_name(buffers, i)} is of kind {b.kind!r}: not input, output, transient or persistent")
        if b.donate and b.kind != "input":
            raise ValueError(f"{_name(buffers, i)} is donated, but is no input (kind {b.kind!r})")
    wave = 0
    for k, launch in enumerate(launches):
        if launch.wave < wave:
            raise ValueError(f"launch {k} is in wave {launch.wave}, after a launch in wave {wave}; waves must ascend")
        wave = launch.wave
        for uses, allowed in ((launch.reads, ("own", "gather", "whole")), (launch.writes, ("own", "scatter", "whole"))):
            for i, access in uses:
                if not 0 <= i < len(buffers):
                    raise ValueError(f"launch {k} uses buffer {i}, but there are {len(buffers)} buffers")
                if access not in allowed:
                    kind = "reads" if uses is launch.reads else "writes"
                    raise ValueError(f"launch {k} {kind} {_name(buffers, i)} by {access!r}, not {', '.join(allowed)}")


def _collect(launches: Sequence[Launch], buffers: Sequence[Buffer]) -> list[_Uses]:
    """Return what touches each buffer; raise for reads of what is not yet written and writes to plain inputs."""
    uses = [_Uses() for _ in buffers]
    for k, launch in enumerate(launches):
        for i, _ in launch.reads:
            if buffers[i].kind in ("transient", "output") and not uses[i].writers:
                raise ValueError(f"launch {k} reads {_name(buffers, i)} before any launch has written it")
            uses[i].readers.append(k)
        for i, _ in launch.writes:
            if buffers[i].kind == "input" and not buffers[i].donate:
                raise ValueError(
                    f"launch {k} writes {_name(buffers, i)}, an input; donate it, or make it persistent to keep changes"
                )
            uses[i].writers.append(k)
    return uses


def _name(buffers: Sequence[Buffer], i: int) -> str:
    return f"buffer {i} ({buffers[i].name})" if buffers[i].name else f"buffer {i}"


class _Sets:
    """Disjoint sets of buffers (union-find with path halving), with the largest size and the outside home of each."""

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self.buffers = buffers
        self.parent = list(range(len(buffers)))
        self.largest = [b.nbytes for b in buffers]
        self.home = [-1 if b.kind == "transient" else i for i, b in enumerate(buffers)]

    def find(self, i: int) -> int:
        while self.parent[i] != i:
            self.parent[i] = i = self.parent[self.parent[i]]
        return i

    def unite(self, i: int, o: int) -> bool:
        """Let o follow i in its memory, unless memory outside the arena, which is not rounded up, is too small."""
        a, b = self.find(i), self.find(o)
        home = self.home[a] if self.home[a] >= 0 else self.home[b]
        largest = max(self.largest[a], self.largest[b])
        if home >= 0 and self.buffers[home].nbytes < largest:
            return False
        self.parent[b], self.home[a], self.largest[a] = a, home, largest
        return True

    def members(self) -> tuple[tuple[int, ...], ...]:
        out: dict[int, list[int]] = {}
        for i in range(len(self.parent)):
            out.setdefault(self.find(i), []).append(i)
        return tuple(map(tuple, out.values()))


def _take_over(
    k: int,
    launch: Launch,
    launches: Sequence[Launch],
    buffers: Sequence[Buffer],
    uses: Sequence[_Uses],
    sets: _Sets,
    alignment: int,
) -> None:
    """Give each output of launch k that may have it the memory of one of its inputs, equal byte sizes first."""
    dying = [i for i, _ in launch.reads if _may_end(i, k, launch, launches, buffers, uses[i])]
    for o, _ in launch.writes:
        if not _may_begin(o, k, launch, launches, buffers, uses[o]):
            continue
        size = _rounded(buffers[o].nbytes, alignment)
        match = [
            i
            for i in dying
            if buffers[i].itemsize == buffers[o].itemsize and _rounded(buffers[i].nbytes, alignment) == size
        ]
        match.sort(key=lambda i: buffers[i].nbytes != buffers[o].nbytes)
        taken = next((i for i in match if sets.unite(i, o)), None)
        if taken is not None:
            dying.remove(taken)


def _rounded(nbytes: int, alignment: int) -> int:
    return -(-nbytes // alignment) * alignment


def _alone(i: int, k: int, launches: Sequence[Launch], use: _Uses) -> bool:
    """Return whether launch k is the only one of its wave that touches a buffer, and touches it once."""
    wave = launches[k].wave
    return [j for j in use.readers + use.writers if launches[j].wave == wave] == [k]


def _may_end(
    i: int, k: int, launch: Launch, launches: Sequence[Launch], buffers: Sequence[Buffer], use: _Uses
) -> bool:
    b = buffers[i]
    own = (b.kind == "transient" or b.donate) and (i, "own") in launch.reads
    return own and b.nbytes > 0 and max(use.launches) == k and _alone(i, k, launches, use)


def _may_begin(
    o: int, k: int, launch: Launch, launches: Sequence[Launch], buffers: Sequence[Buffer], use: _Uses
) -> bool:
    own = buffers[o].kind in ("transient", "output") and (o, "own") in launch.writes
    return own and min(use.launches) == k and _alone(o, k, launches, use)
