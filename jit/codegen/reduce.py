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

    def begin(self, before: str, tail: str) -> None:
        """Write the accumulator at the head of the packet loop."""
        e = self.e
        start = e.const(self.dtype, identity(self.dtype, self.op)).name
        self.total = Value(e, self.dtype, e.name("sum"))
        self.following = e.name("sumnext")
        lanes = e.type(self.dtype)
        e.lines.append(f"  {self.total.name} = phi {lanes} [ {start}, %{before} ], [ {self.following}, %{tail} ]")

    def add(self, valid: Value) -> None:
        """Write the update by this packet's values; lanes beyond the end do not count."""
        e, op = self.e, self.op
        value = self.values[self.number].cast(self.dtype)
        value = e.select(valid, value, identity(self.dtype, op))
        if op == "add":
            new = self.total + value
        elif op == "mul":
            new = self.total * value
        elif op == "and":
            new = self.total & value
        elif op == "or":
            new = self.total | value
        else:
            # A NaN never wins a comparison, so min and max skip it.
            new = e.select(value < self.total if op == "min" else value > self.total, value, self.total)
        lanes = e.type(self.dtype)
        kind = "i1 true" if e.width == 1 else f"<{e.width} x i1> splat (i1 true)"
        e.lines.append(f"  {self.following} = select {kind}, {lanes} {new.name}, {lanes} {self.total.name}")

    def finish(self, pointer: str) -> None:
        """Write the chunk's result into its place."""
        e = self.e
        after = Value(e, self.dtype, self.following)
        total = reduce_lanes(e, after, self.op)
        memory = self.dtype.memory
        address = e.raw(f"getelementptr {memory}, ptr {pointer}, i64 %chunk")
        e.line(f"store {memory} {total}, ptr {address}, align {self.dtype.itemsize}")


__all__ = ["Accumulator", "accumulator_type"]
