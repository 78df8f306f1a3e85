"""Transients that live in the memory of a result before the result is written."""

from __future__ import annotations

from collections.abc import Sequence

from .lifetimes import Buffer, Lifetimes

__all__ = ["tenants"]


def tenants(buffers: Sequence[Buffer], spans: Lifetimes, alignment: int = 64) -> dict[int, int]:
    """Return for transients that need no place in the arena the output whose memory they use.

    Results get their memory when a replay starts. Sets of transients that end before the first write to an output (or
    to what it took over), and fit, may use it until then, one after the other; the largest choose first.
    """
    opens: dict[int, int] = {}  # output -> first wave that needs its memory
    for members in spans.sets:
        home = spans.homes[members[0]]
        if home >= 0 and buffers[home].kind == "output":
            opens[home] = min(spans.starts[i] for i in members if spans.ends[i] > spans.starts[i] or i == home)
    taken: dict[int, list[tuple[int, int]]] = {o: [] for o in opens}
    found: dict[int, int] = {}
    movable = [s for s in spans.sets if spans.homes[s[0]] < 0 and spans.ends[s[0]] > spans.starts[s[0]]]
    for members in sorted(movable, key=lambda s: (-max(buffers[i].nbytes for i in s), s)):
        size = max(-(-buffers[i].nbytes // alignment) * alignment for i in members)
        start, end = min(spans.starts[i] for i in members), max(spans.ends[i] for i in members)
        for o in sorted(opens, key=lambda o: (buffers[o].nbytes, o)):
            free = all(end <= a or b <= start for a, b in taken[o])
            if size and buffers[o].nbytes >= size and end <= opens[o] and free:
                taken[o].append((start, end))
                found |= dict.fromkeys(members, o)
                break
    return found
