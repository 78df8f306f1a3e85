"""Kernels for running sums, compaction and sums of blocks: two passes, first one total per chunk, then the results.

They run over elements, not packets; their argument blocks are listed at each function, in words. Sums of floats are
kept in double precision.
"""

from __future__ import annotations

from ..dtypes import Bool, DType, UInt32
from .emitter import Emitter, Value, scalar_constant
from .memory import identity, scalar_combine
from .reduce import accumulator_type
from .utility import _end, _loop, _module, _words


def _element(e: Emitter, dtype: DType, pointer: str, index: str, result: DType) -> str:
    """Return one element as a scalar of the accumulator's type."""
    value = e.raw(f"load {dtype.memory}, ptr {e.raw(f'getelementptr {dtype.memory}, ptr {pointer}, i64 {index}')}")
    if dtype is result:
        return value
    if dtype is Bool:
        return e.raw(f"zext i8 {value} to {result.memory}")
    return Value(e, dtype, value).cast(result).name


def _running(e: Emitter, kind: DType, start: str) -> str:
    total = e.alloca(kind.memory, 8)
    e.line(f"store {kind.memory} {start}, ptr {total}")
    return total


def _constant(kind: DType, value: bool | int | float) -> str:
    return str(int(value)) if kind is Bool else scalar_constant(kind, value)


def _accumulate(e: Emitter, kind: DType, total: str, value: str, op: str) -> tuple[str, str]:
    """Add one scalar to a running total; return the total before and after."""
    old = e.raw(f"load {kind.memory}, ptr {total}")
    new = scalar_combine(e, kind, old, value, op)
    e.line(f"store {kind.memory} {new}, ptr {total}")
    return old, new


def chunk_totals(attributes: str, dtype: DType, result: DType) -> str:
    """Sum the elements of each chunk. args: totals, source."""
    e = Emitter(1)
    totals, source = _words(e, "ptr", "ptr")
    total = _running(e, result, _constant(result, 0))
    loop = _loop(e, "%begin", "%end")
    _accumulate(e, result, total, _element(e, dtype, source, loop[0], result), "add")
    _end(e, loop)
    address = e.raw(f"getelementptr {result.memory}, ptr {totals}, i64 %chunk")
    e.line(f"store {result.memory} {e.raw(f'load {result.memory}, ptr {total}')}, ptr {address}")
    e.line("ret void")
    return _module(e, attributes)


def _before(e: Emitter, kind: DType, totals: str) -> str:
    """Return a running total that starts with the sum of all chunks before this one."""
    total = _running(e, kind, _constant(kind, 0))
    loop = _loop(e, "0", "%chunk")
    _accumulate(e, kind, total, _element(e, kind, totals, loop[0], kind), "add")
    _end(e, loop)
    return total


def running_sums(attributes: str, dtype: DType, exclusive: bool) -> str:
    """Write the sum of all elements before each one (and itself). args: totals of chunks, source, target."""
    kind = accumulator_type(dtype, "add")
    e = Emitter(1)
    totals, source, target = _words(e, "ptr", "ptr", "ptr")
    total = _before(e, kind, totals)
    loop = _loop(e, "%begin", "%end")
    old, new = _accumulate(e, kind, total, _element(e, dtype, source, loop[0], kind), "add")
    value = Value(e, kind, old if exclusive else new).cast(dtype).name
    address = e.raw(f"getelementptr {dtype.memory}, ptr {target}, i64 {loop[0]}")
    e.line(f"store {dtype.memory} {value}, ptr {address}")
    _end(e, loop)
    e.line("ret void")
    return _module(e, attributes)


def compact(attributes: str) -> str:
    """Write the indices of the masks that are set, in order. args: counts of chunks, masks, target (UInt32)."""
    e = Emitter(1)
    counts, masks, target = _words(e, "ptr", "ptr", "ptr")
    nowhere = e.alloca("i32", 4)
    total = _before(e, UInt32, counts)
    loop = _loop(e, "%begin", "%end")
    mask = _element(e, Bool, masks, loop[0], UInt32)
    old, _ = _accumulate(e, UInt32, total, mask, "add")
    # No branch: what is not set goes to a slot nobody reads.
    place = e.raw(f"getelementptr i32, ptr {target}, i64 {e.raw(f'zext i32 {old} to i64')}")
    place = e.raw(f"select i1 {e.raw(f'icmp ne i32 {mask}, 0')}, ptr {place}, ptr {nowhere}")
    e.line(f"store i32 {e.raw(f'trunc i64 {loop[0]} to i32')}, ptr {place}")
    _end(e, loop)
    e.line("ret void")
    return _module(e, attributes)


def _bounds(e: Emitter, number: str, block: str, count: str) -> tuple[str, str]:
    """Return the first element of a block and the one after its last."""
    first = e.raw(f"mul i64 {number}, {block}")
    last = e.raw(f"add i64 {first}, {block}")
    return first, e.raw(f"select i1 {e.raw(f'icmp ult i64 {last}, {count}')}, i64 {last}, i64 {count}")


def block_totals(attributes: str, op: str, dtype: DType) -> str:
    """Combine the elements of each block (the last may be short). args: target, source, block length, elements."""
    kind = accumulator_type(dtype, op)
    e = Emitter(1)
    target, source, block, count = _words(e, "ptr", "ptr", "i64", "i64")
    total = _running(e, kind, _constant(kind, identity(kind, op)))
    outer = _loop(e, "%begin", "%end")
    e.line(f"store {kind.memory} {_constant(kind, identity(kind, op))}, ptr {total}")
    inner = _loop(e, *_bounds(e, outer[0], block, count))
    _accumulate(e, kind, total, _element(e, dtype, source, inner[0], kind), op)
    _end(e, inner)
    value = e.raw(f"load {kind.memory}, ptr {total}")
    value = value if kind is dtype else Value(e, kind, value).cast(dtype).name
    address = e.raw(f"getelementptr {dtype.memory}, ptr {target}, i64 {outer[0]}")
    e.line(f"store {dtype.memory} {value}, ptr {address}")
    _end(e, outer)
    e.line("ret void")
    return _module(e, attributes)


def block_running_sums(attributes: str, dtype: DType, exclusive: bool) -> str:
    """Write running sums that start anew in each block. args: target, source, block length, elements."""
    kind = accumulator_type(dtype, "add")
    e = Emitter(1)
    target, source, block, count = _words(e, "ptr", "ptr", "i64", "i64")
    total = _running(e, kind, _constant(kind, 0))
    outer = _loop(e, "%begin", "%end")
    e.line(f"store {kind.memory} {_constant(kind, 0)}, ptr {total}")
    inner = _loop(e, *_bounds(e, outer[0], block, count))
    old, new = _accumulate(e, kind, total, _element(e, dtype, source, inner[0], kind), "add")
    value = Value(e, kind, old if exclusive else new).cast(dtype).name
    e.line(f"store {dtype.memory} {value}, ptr {e.raw(f'getelementptr {dtype.memory}, ptr {target}, i64 {inner[0]}')}")
    _end(e, inner)
    _end(e, outer)
    e.line("ret void")
    return _module(e, attributes)
