"""How many elements a chunk may have so that everything in memory at one time keeps to the bytes given."""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable, Sequence
from typing import Any

from .. import debug
from ..errors import MemoryBudgetError
from ..passes.program import PRIVATE_LIMIT
from ..runtime.engine import chunk_limit
from .outputs import Output
from .sources import Source
from .totals import Total

LEAST = 64  # elements of a chunk: the last may be shortened by a packet so that no chunk has a single element
_PAGE_OF_BYTES = 4096
_LARGEST = 1 << 30  # elements: indices within a chunk, of components too, have 32 bits
_BYTES = 256 << 20  # beyond so many a larger chunk is no faster
_SMALL = 256 << 10  # what partial results, argument blocks and rounding take


def nbytes(limit: Any) -> int:
    """Return a number of bytes given as such, as a text ("1 GiB") or as a fraction of the machine's memory."""
    if isinstance(limit, bool) or not isinstance(limit, (int, float, str)):
        raise TypeError(f"max_resident: expected bytes, a fraction or a text, found {type(limit).__name__}")
    if isinstance(limit, int):
        if limit <= 0:
            raise ValueError(f"max_resident must be positive, found {limit}")
        return limit
    try:
        found: int = debug.SETTINGS["memory_limit"].read(str(limit))
    except ValueError as error:
        raise ValueError(f"max_resident must be {error}, found {limit!r}") from None
    return found


class Need:
    """The bytes that a pass over the data takes at most, as a function of the elements per chunk."""

    def __init__(
        self, sources: Sequence[Source], outputs: Sequence[Output], totals: Sequence[Total], stored: int, params: int
    ) -> None:
        self.per_element = sum(s.resident for s in sources) + stored
        for o in outputs:
            self.per_element += o.row * (2 if o.inner else 1) + o.mapped
        pages = 2 * mmap.ALLOCATIONGRANULARITY * sum(s.mapped for s in sources)
        self.parts = {
            "params": params,
            "reading": pages + sum(s.scratch for s in sources),
            "results in memory": sum(o.resident for o in outputs),
            "the engine": _SMALL,
        }
        self.scattered = [(t.nbytes, t.width) for t in totals if t.scattered]  # bytes and elements of arrays

    def fixed(self, chunk: int) -> int:
        """Return the bytes that are needed once."""
        total = sum(self.parts.values())
        for size, width in self.scattered:
            # The array, a copy while others hold it, the next one; and one for each thread's share of the chunk.
            total += 3 * size
            if size <= PRIVATE_LIMIT and width <= max(chunk // 4, 4096):
                total += (chunk_limit() + 1) * size
        return total

    def __call__(self, chunk: int) -> int:
        return self.fixed(chunk) + chunk * self.per_element


def chunk_size(
    need: Need, budget: int, length: int, asked: int | None, sources: Sequence[Source], show: Callable[[int], str]
) -> int:
    """Return the elements per chunk; raises MemoryBudgetError if the least chunk does not fit into `budget` bytes."""
    least = min(LEAST, max(1, length))
    widest = max(max(1, math.prod(s.shape[1:])) for s in sources)
    most = max(LEAST, min(_LARGEST // widest, max(LEAST, _BYTES // max(1, need.per_element))))
    if asked is not None:
        if asked < 1:
            raise ValueError(f"chunk must be positive, found {asked}")
        chunk = min(max(LEAST, -(-asked // 32) * 32), _LARGEST // widest)
        if need(chunk) > budget:
            raise _refusal(need, budget, least, f"; chunks of {chunk} elements take {show(need(chunk))}", show)
        return chunk
    if need(least) > budget:
        raise _refusal(need, budget, least, "", show)
    low, high = least, max(least, min(most, -(-length // 32) * 32))
    while low < high:
        middle = (low + high + 1) // 2
        if need(middle) <= budget:
            low = middle
        else:
            high = middle - 1
    if low >= length:
        return max(LEAST, low)
    stored = math.lcm(*(s.multiple for s in sources))
    for unit in (math.lcm(stored, _PAGE_OF_BYTES), stored, _PAGE_OF_BYTES, 32):
        if unit <= low and (unit >= LEAST or low >= LEAST):
            return max(LEAST, low // unit * unit)
    return low


def _refusal(
    need: Need, budget: int, least: int, also: str, show: Callable[[int], str]
) -> MemoryBudgetError:
    parts = [f"{name} {show(size)}" for name, size in need.parts.items() if size]
    if need.scattered:
        parts.append(f"arrays scattered to {show(need.fixed(least) - sum(need.parts.values()))}")
    parts.append(f"{least} elements of {need.per_element} bytes")
    large = need.parts["results in memory"] > need(least) // 2
    hint = " Give a path or an array as `out`, so that the results need not be in memory." if large else ""
    error = MemoryBudgetError(
        f"max_resident of {show(budget)} is not enough: at least {need(least)} bytes ({show(need(least))}) are needed "
        f"({', '.join(parts)}){also}. Nothing was read or written.{hint}"
    )
    error.budget, error.least = budget, need(least)
    return error


def text(size: int) -> str:
    """Return a number of bytes as people write it."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size} bytes"


__all__ = ["LEAST", "Need", "chunk_size", "nbytes", "text"]
