"""Placement with NumPy arrays, for problems in which a buffer overlaps hundreds of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

LARGEST = 1 << 62  # bytes: sums of sizes must fit into 64 bits with room for one more
_CHECK_EVERY = 64  # buffers between two looks at the clock


def place(
    first: Sequence[int],
    last: Sequence[int],
    size: Sequence[int],
    align: Sequence[int] | None,
    order: Sequence[int],
    cap: int | None,
    tightest: bool,
    late: Callable[[], bool],
) -> list[int] | None:
    """Return the same offsets as `plan_greedy.place`, or None once something would end above `cap`.

    What is placed is held sorted by offset, in four arrays: first and last clique, offset, end.
    """
    n = len(size)
    placed = np.empty((4, n), np.int64)
    offsets = [0] * n
    for m, i in enumerate(order):
        if cap is not None and m % _CHECK_EVERY == 0 and late():
            return None
        starts, ends, lows, highs = placed[:, :m]
        met = np.flatnonzero((starts < last[i]) & (ends > first[i]))
        at = _hole(lows[met], highs[met], size[i], 1 if align is None else align[i], tightest) if len(met) else 0
        if cap is not None and at + size[i] > cap:
            return None
        offsets[i] = at
        k = int(np.searchsorted(lows, at))
        placed[:, k + 1 : m + 1] = placed[:, k:m].copy()
        placed[:, k] = first[i], last[i], at, at + size[i]
    return offsets


def _hole(lows: NDArray[np.int64], highs: NDArray[np.int64], size: int, align: int, tightest: bool) -> int:
    """Return where to place `size` bytes among ranges sorted by their low ends, which may overlap each other."""
    free = np.empty(len(lows) + 1, np.int64)  # where holes begin: at 0 and where everything lower has ended
    free[0] = 0
    np.maximum.accumulate(highs, out=free[1:])
    if align > 1:
        free = -(-free // align) * align
    fits = lows - free[:-1] >= size
    if not fits.any():
        return int(free[-1])
    if not tightest:
        return int(free[int(np.argmax(fits))])
    room = np.where(fits, lows - free[:-1], LARGEST)
    return int(free[int(np.argmin(room))])
