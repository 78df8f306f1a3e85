"""Reductions along the lanes: accumulated in registers per chunk, one partial result each."""

from __future__ import annotations

from ..dtypes import DType, Float64, UInt32
from .emitter import Emitter, Value
from .memory import identity, reduce_lanes


def accumulator_type(dtype: DType, op: str) -> DType:
    """Return the type partial results are kept in: sums and products of floats in double, counts as UInt32."""
    if op == "count":
        return UInt32
    if op in ("add", "mul") and dtype.is_float and dtype.bits < 64:
        # 2^31 ones add up exactly; single-precision partial sums stall at 2^24 per lane.
        return Float64
    return dtype


class Accumulator:
    """One reduction root inside a kernel."""

    def __init__(self, e: Emitter, values: dict[int, Value], slot: int, number: int, op: str, dtype: DType) -> None:
        self.e, self.values, self.slot, self.number = e, values, slot, number
        self.dtype = accumulator_type(dtype, op)
        self.op = "add" if op == "count" else op
        self.total: Value | None = None

    def begin(self, before: str, count: int = 1) -> None:
        """Write `count` accumulators at the head of a loop entered from block `before`; the first goes on from what
        is there already, the packets of one turn go to one each."""
        e = self.e
        lanes = e.type(self.dtype)
        nothing = e.const(self.dtype, identity(self.dtype, self.op))
        self._heads: list[tuple[int, str]] = []
        self._sums: list[Value] = []
        for k in range(count):
            start = self.total if k == 0 and self.total is not None else nothing
            head = Value(e, self.dtype, e.name("sum"))
            self._heads.append((len(e.lines), f"  {head.name} = phi {lanes} [ {start.name}, %{before} ]"))
            e.lines.append("")
            self._sums.append(head)
        self._ends = list(self._sums)

    def add(self, valid: Value | None, k: int = 0) -> None:
        """Write the update of accumulator `k` by this packet's values; lanes beyond the end (not `valid`) do not
        count."""
        value = self.values[self.number].cast(self.dtype)
        if valid is not None:
            value = self.e.select(valid, value, identity(self.dtype, self.op))
        self._sums[k] = self._combine(self._sums[k], value)

    def close(self, tail: str) -> None:
        """Join the loop's last block to its head."""
        for (line, text), new in zip(self._heads, self._sums, strict=True):
            self.e.lines[line] = f"{text}, [ {new.name}, %{tail} ]"

    def merge(self) -> None:
        """Write, behind the loop, the sum of its accumulators."""
        self.total = self._ends[0]
        for other in self._ends[1:]:
            self.total = self._combine(self.total, other)

    def _combine(self, total: Value, value: Value) -> Value:
        op = self.op
        if op == "add":
            return total + value
        if op == "mul":
            return total * value
        if op == "and":
            return total & value
        if op == "or":
            return total | value
        # A NaN never wins a comparison, so min and max skip it.
        return self.e.select(value < total if op == "min" else value > total, value, total)

    def finish(self, pointer: str) -> None:
        """Write the chunk's result into its place."""
        e = self.e
        assert self.total is not None
        total = reduce_lanes(e, self.total, self.op)
        memory = self.dtype.memory
        address = e.raw(f"getelementptr {memory}, ptr {pointer}, i64 %chunk")
        e.line(f"store {memory} {total}, ptr {address}, align {self.dtype.itemsize}")


__all__ = ["Accumulator", "accumulator_type"]
