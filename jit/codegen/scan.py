"""Kernels for running sums, compaction and sums of blocks: two passes, first one total per chunk, then the results.

They run over elements: whole packets of 16, then what is left one by one, so that no buffer need be padded. Their
argument blocks are listed at each function, in words. Sums of floats are kept in double precision; the order of
additions depends on the number of elements alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dtypes import Bool, DType, UInt8, UInt32
from .emitter import Emitter, Value, scalar_constant
from .memory import identity, reduce_lanes, scalar_combine
from .reduce import accumulator_type
from .utility import _end, _loop, _module, _words

_W = 16


class _Scan:
    """One kernel being written: packets through `e`, single elements through `one`, into the same lines."""

    def __init__(self, *kinds: str) -> None:
        self.e, self.one = Emitter(_W), Emitter(1)
        self.one.lines, self.one.entry = self.e.lines, self.e.entry
        self.one.declarations, self.one.globals = self.e.declarations, self.e.globals
        self.one._count = 1 << 30  # names must differ from those of the packets
        self.args = _words(self.e, *kinds)

    def finish(self, attributes: str) -> str:
        self.e.line("ret void")
        return _module(self.e, attributes)

    def address(self, memory: str, pointer: str, index: str) -> str:
        return self.e.raw(f"getelementptr {memory}, ptr {pointer}, i64 {index}")

    def element(self, dtype: DType, pointer: str, index: str, kind: DType) -> str:
        """Return one element as a scalar of the accumulator's type."""
        value = self.e.raw(f"load {dtype.memory}, ptr {self.address(dtype.memory, pointer, index)}")
        return self.converted(dtype, value, kind)

    def converted(self, dtype: DType, value: str, kind: DType) -> str:
        if dtype is kind:
            return value
        if dtype is Bool:
            return self.e.raw(f"zext i8 {value} to {kind.memory}")
        return Value(self.one, dtype, value).cast(kind).name

    def packet(self, dtype: DType, pointer: str, index: str, kind: DType) -> Value:
        """Return 16 elements from `index` on, in the accumulator's type."""
        lanes = self.e.vector(dtype.memory)
        name = self.e.raw(f"load {lanes}, ptr {self.address(dtype.memory, pointer, index)}, align {dtype.itemsize}")
        if dtype is Bool:
            return self.e.op(kind, f"zext {lanes} {name} to {self.e.type(kind)}")
        return Value(self.e, dtype, name).cast(kind)

    def store(self, value: Value, pointer: str, index: str) -> None:
        dtype = value.dtype
        address = self.address(dtype.memory, pointer, index)
        self.e.line(f"store {self.e.type(dtype)} {value.name}, ptr {address}, align {dtype.itemsize}")

    def slot(self, memory: str, start: str) -> str:
        """Return a variable with a start value."""
        slot = self.e.alloca(memory)
        self.e.line(f"store {memory} {start}, ptr {slot}")
        return slot

    def read(self, memory: str, slot: str) -> str:
        return self.e.raw(f"load {memory}, ptr {slot}")

    def write(self, memory: str, slot: str, value: str) -> None:
        self.e.line(f"store {memory} {value}, ptr {slot}")

    def packets(self, begin: str, end: str) -> tuple[tuple[str, str, str], str, str]:
        """Open a loop over the whole packets of a range; return it, the first element, and where they stop."""
        count = self.e.raw(f"lshr i64 {self.e.raw(f'sub i64 {end}, {begin}')}, 4")
        stop = self.e.raw(f"add i64 {begin}, {self.e.raw(f'shl i64 {count}, 4')}")
        loop = _loop(self.e, "0", count)
        return loop, self.e.raw(f"add i64 {begin}, {self.e.raw(f'shl i64 {loop[0]}, 4')}"), stop

    def combine(self, kind: DType, total: str, value: str, op: str) -> tuple[str, str]:
        """Combine a scalar with a running total; return the total before and after."""
        old = self.read(kind.memory, total)
        new = scalar_combine(self.e, kind, old, value, op)
        self.write(kind.memory, total, new)
        return old, new

    def reduction(
        self, kind: DType, dtype: DType, op: str, source: str, begin: str, end: str, lanes: str, total: str
    ) -> None:
        """Add the elements of a range to `total`; `lanes` is a variable of 16 lanes at its neutral value."""
        loop, index, stop = self.packets(begin, end)
        value, old = self.packet(dtype, source, index, kind), Value(self.e, kind, self.read(self.e.type(kind), lanes))
        self.write(self.e.type(kind), lanes, _combined(self.e, op, old, value).name)
        _end(self.e, loop)
        whole = reduce_lanes(self.e, Value(self.e, kind, self.read(self.e.type(kind), lanes)), op)
        self.combine(kind, total, whole, op)
        tail = _loop(self.e, stop, end)
        self.combine(kind, total, self.element(dtype, source, tail[0], kind), op)
        _end(self.e, tail)

    def before(self, kind: DType, totals: str) -> str:
        """Return a running total that starts with the sum of all chunks before this one."""
        total = self.slot(kind.memory, scalar_constant(kind, 0))
        loop = _loop(self.e, "0", "%chunk")
        self.combine(kind, total, self.element(kind, totals, loop[0], kind), "add")
        _end(self.e, loop)
        return total

    def running(
        self, dtype: DType, exclusive: bool, source: str, target: str, begin: str, end: str, total: str
    ) -> None:
        """Write running sums of a range that go on from `total`."""
        kind = accumulator_type(dtype, "add")
        loop, index, stop = self.packets(begin, end)
        value = self.packet(dtype, source, index, kind)
        for distance in (1, 2, 4, 8):
            value = value + self.shifted(value, distance)
        carry = self.e.splat(kind, self.read(kind.memory, total))
        through = value + carry
        self.store((self.shifted(value, 1) + carry if exclusive else through).cast(dtype), target, index)
        self.write(kind.memory, total, self.e.extract(through, _W - 1))
        _end(self.e, loop)
        tail = _loop(self.e, stop, end)
        old, new = self.combine(kind, total, self.element(dtype, source, tail[0], kind), "add")
        result = self.converted(kind, old if exclusive else new, dtype)
        self.e.line(f"store {dtype.memory} {result}, ptr {self.address(dtype.memory, target, tail[0])}")
        _end(self.e, tail)

    def shifted(self, value: Value, distance: int) -> Value:
        """Return the lanes moved up by `distance`, zeros before them."""
        lanes = self.e.type(value.dtype)
        order = _lanes([_W if k < distance else k - distance for k in range(_W)])
        return self.e.op(value.dtype, f"shufflevector {lanes} {value.name}, {lanes} zeroinitializer, {order}")


def _lanes(numbers: Sequence[int]) -> str:
    return f"<{len(numbers)} x i32> <" + ", ".join(f"i32 {n}" for n in numbers) + ">"


def _combined(e: Emitter, op: str, old: Value, value: Value) -> Value:
    if op == "min":
        return e.select(value < old, value, old)
    if op == "max":
        return e.select(value > old, value, old)
    return {"add": old.__add__, "mul": old.__mul__, "and": old.__and__, "or": old.__or__}[op](value)


def _neutral(s: _Scan, kind: DType, op: str) -> tuple[str, str]:
    """Return the neutral value of a reduction in 16 lanes and as one."""
    constant = scalar_constant(kind, identity(kind, op))
    return f"splat ({kind.llvm} {constant})", constant


def chunk_totals(attributes: str, dtype: DType, result: DType) -> str:
    """Sum the elements of each chunk. args: totals, source."""
    s = _Scan("ptr", "ptr")
    totals, source = s.args
    wide, single = _neutral(s, result, "add")
    lanes, total = s.slot(s.e.type(result), wide), s.slot(result.memory, single)
    s.reduction(result, dtype, "add", source, "%begin", "%end", lanes, total)
    s.e.line(f"store {result.memory} {s.read(result.memory, total)}, ptr {s.address(result.memory, totals, '%chunk')}")
    return s.finish(attributes)


def running_sums(attributes: str, dtype: DType, exclusive: bool) -> str:
    """Write the sum of all elements before each one (and itself). args: totals of chunks, source, target."""
    s = _Scan("ptr", "ptr", "ptr")
    totals, source, target = s.args
    total = s.before(accumulator_type(dtype, "add"), totals)
    s.running(dtype, exclusive, source, target, "%begin", "%end", total)
    return s.finish(attributes)


def compact(attributes: str) -> str:
    """Write the indices of the masks that are set, in order. args: counts of chunks, masks, target (UInt32)."""
    s = _Scan("ptr", "ptr", "ptr")
    counts, masks, target = s.args
    e, lanes = s.e, s.e.type(UInt32)
    mask_type = e.type(Bool)
    e.declarations[f"declare {lanes} @llvm.experimental.vector.compress.v16i32({lanes}, {mask_type}, {lanes})"] = None
    e.declarations[f"declare void @llvm.masked.store.v16i32.p0({lanes}, ptr, i32, {mask_type})"] = None
    total = s.before(UInt32, counts)
    loop, index, stop = s.packets("%begin", "%end")
    wanted = s.packet(UInt8, masks, index, UInt8).ne(0)
    numbers = e.splat(UInt32, e.raw(f"trunc i64 {index} to i32")) + e.lanes()
    packed = e.raw(
        f"call {lanes} @llvm.experimental.vector.compress.v16i32({lanes} {numbers.name}, {mask_type} {wanted.name}, "
        f"{lanes} poison)"
    )
    count = e.raw(f"zext i16 {_popcount(e, wanted)} to i32")
    old = s.read("i32", total)
    # Stores exactly the lanes that are wanted: what follows belongs to another chunk.
    kept = e.lanes() < e.splat(UInt32, count)
    place = s.address("i32", target, e.raw(f"zext i32 {old} to i64"))
    e.line(f"call void @llvm.masked.store.v16i32.p0({lanes} {packed}, ptr {place}, i32 4, {mask_type} {kept.name})")
    s.write("i32", total, e.raw(f"add i32 {old}, {count}"))
    _end(e, loop)
    nowhere = e.alloca("i32", 4)
    tail = _loop(e, stop, "%end")
    mask = s.element(Bool, masks, tail[0], UInt32)
    old, _ = s.combine(UInt32, total, mask, "add")
    place = s.address("i32", target, e.raw(f"zext i32 {old} to i64"))
    place = e.raw(f"select i1 {e.raw(f'icmp ne i32 {mask}, 0')}, ptr {place}, ptr {nowhere}")
    e.line(f"store i32 {e.raw(f'trunc i64 {tail[0]} to i32')}, ptr {place}")
    _end(e, tail)
    return s.finish(attributes)


def _popcount(e: Emitter, mask: Value) -> str:
    e.declarations["declare i16 @llvm.ctpop.i16(i16)"] = None
    bits = e.raw(f"bitcast {e.type(Bool)} {mask.name} to i16")
    return e.raw(f"call i16 @llvm.ctpop.i16(i16 {bits})")


def _bounds(s: _Scan, number: str, block: str, count: str) -> tuple[str, str]:
    """Return the first element of a block and the one after its last."""
    first = s.e.raw(f"mul i64 {number}, {block}")
    last = s.e.raw(f"add i64 {first}, {block}")
    return first, s.e.raw(f"select i1 {s.e.raw(f'icmp ult i64 {last}, {count}')}, i64 {last}, i64 {count}")


def block_totals(attributes: str, op: str, dtype: DType) -> str:
    """Combine the elements of each block (the last may be short). args: target, source, block length, elements."""
    dtype = UInt8 if dtype is Bool else dtype
    kind = accumulator_type(dtype, op)
    s = _Scan("ptr", "ptr", "i64", "i64")
    target, source, block, count = s.args
    wide, single = _neutral(s, kind, op)
    lanes, total = s.slot(s.e.type(kind), wide), s.slot(kind.memory, single)
    outer = _loop(s.e, "%begin", "%end")
    s.write(s.e.type(kind), lanes, wide)
    s.write(kind.memory, total, single)
    first, last = _bounds(s, outer[0], block, count)
    s.reduction(kind, dtype, op, source, first, last, lanes, total)
    value = s.converted(kind, s.read(kind.memory, total), dtype)
    s.e.line(f"store {dtype.memory} {value}, ptr {s.address(dtype.memory, target, outer[0])}")
    _end(s.e, outer)
    return s.finish(attributes)


def block_running_sums(attributes: str, dtype: DType, exclusive: bool) -> str:
    """Write running sums that start anew in each block. args: target, source, block length, elements."""
    kind = accumulator_type(dtype, "add")
    s = _Scan("ptr", "ptr", "i64", "i64")
    target, source, block, count = s.args
    total = s.slot(kind.memory, scalar_constant(kind, 0))
    outer = _loop(s.e, "%begin", "%end")
    s.write(kind.memory, total, scalar_constant(kind, 0))
    first, last = _bounds(s, outer[0], block, count)
    s.running(dtype, exclusive, source, target, first, last, total)
    _end(s.e, outer)
    return s.finish(attributes)
