"""Totals over all chunks: partial results combined pairwise, in the order of the chunks."""

from __future__ import annotations

import math
from typing import Any

from ..codegen.memory import identity
from ..codegen.reduce import accumulator_type
from ..dtypes import DType, UInt32, UInt64
from ..runtime.evaluate import materialise
from ..trace import Node, literal


def partial_type(dtype: DType, op: str) -> DType:
    """Return the type of a chunk's result: double for sums and products of floats."""
    return accumulator_type(dtype, op)


def combine(op: str, dtype: DType, a: Any, b: Any) -> Any:
    """Return two partial results as one; integers wrap as the type does, NaN loses against numbers."""
    if op == "count":
        return a + b
    if op in ("add", "mul"):
        value = a + b if op == "add" else _product(a, b)
        return wrapped(dtype, value) if dtype.is_integer else value
    if op == "min":
        return b if b < a or a != a else a
    if op == "max":
        return b if b > a or a != a else a
    return a & b if op == "and" else a | b


def _product(a: Any, b: Any) -> Any:
    try:
        return a * b
    except OverflowError:
        return math.inf if (a > 0) == (b > 0) else -math.inf


def wrapped(dtype: DType, value: int) -> int:
    """Return an integer as its type holds it."""
    low, _ = dtype.limits
    return (value - low) % (1 << dtype.bits) + low


class Pairwise:
    """Partial results so far: one per power of two of chunks, so that each number takes part in log2(chunks) sums."""

    def __init__(self, op: str, dtype: DType) -> None:
        self.op, self.dtype = op, dtype
        self._stack: list[tuple[int, Any]] = []

    def add(self, value: Any) -> None:
        """Take the next chunk's result."""
        count = 1
        while self._stack and self._stack[-1][0] == count:
            value = combine(self.op, self.dtype, self._stack.pop()[1], value)
            count *= 2
        self._stack.append((count, value))

    def total(self) -> Any:
        """Return the result of all chunks."""
        if not self._stack:
            return 0 if self.op == "count" else identity(self.dtype, self.op)
        value = self._stack[-1][1]
        for _, earlier in reversed(self._stack[:-1]):
            value = combine(self.op, self.dtype, earlier, value)
        return value


class Total:
    """A reduction, or the contents of an array scattered to, over all chunks. `value` is its node once it is known."""

    def __init__(self, key: Any, op: str, dtype: DType, result: DType, where: str | None) -> None:
        self.key, self.op, self.dtype, self.result, self.where = key, op, dtype, result, where
        self.ready = False  # whether it depends on no total that is not known yet
        self.value: Node | None = None
        self.partials = Pairwise(op, dtype)
        self.running: Node | None = None  # an array scattered to, after the chunks so far
        self.nbytes = self.width = 0  # of that array
        self.level = 0  # the pass over the data that made it

    @property
    def scattered(self) -> bool:
        """Return whether this is an array scattered to."""
        return bool(self.key[0] == "scatter")

    def finish(self) -> None:
        """Make the value known, in memory, so that it is no constant of later kernels."""
        if self.scattered:
            self.value, self.running = self.running, None
            return
        value, kind = self.partials.total(), self.result
        if self.op == "count" and value > UInt32.limits[1]:
            kind = UInt64
        if kind.kind == "b":
            value = bool(value)
        self.value = materialise(literal(kind, value))
        self.partials = Pairwise(self.op, self.dtype)


__all__ = ["Pairwise", "Total", "combine", "partial_type"]
