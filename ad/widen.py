"""Gradients of one element that stand for many."""

from __future__ import annotations

from typing import Any

from ..jit.arrays.create import full
from ..jit.trace import LITERAL


def widened(x: Any, size: int) -> Any:
    """Return `x` with `size` elements (a size-1 gradient stands for all)."""
    if x._n.size == size:
        return x
    return x + full(type(x), 0, size) if x._n.op is not LITERAL else full(type(x), x.item(), size)
