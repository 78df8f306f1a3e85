"""Indices outside of their array: never followed, and told about under the Debug flag.

Every gather and scatter compares its indices with the length of the array, one argument of the kernel. Lanes outside
read zero and write nothing: a wrong index must not end the process or change another array. A kernel made under the
Debug flag also notes the first such lane in a block of three words: claimed, instruction, index.
"""

from __future__ import annotations

from ..dtypes import Int64, UInt32, UInt64
from .emitter import Emitter, Value

WORDS = 3  # of the block that a kernel reports to


def limits(e: Emitter, extent: str, narrow: bool) -> Value:
    """Return the length of an array (`extent`, an i64 in IR) in all lanes, made once in the entry block."""
    with e.at_entry():
        return e.splat(UInt32, e.raw(f"trunc i64 {extent} to i32")) if narrow else e.splat(UInt64, extent)


def inside(index: Value, limit: Value) -> Value:
    """Return which lanes of an integer index are below the limit and not negative.

    Bits of a negative index make a large number without sign, so one comparison finds both ends.
    """
    dtype = index.dtype
    if limit.dtype is UInt32:
        return index.bits(UInt32) < limit
    wide = index if dtype.bits == 64 else index.cast(Int64 if dtype.kind == "i" else UInt64)
    return wide.bits(UInt64) < limit


def report(e: Emitter, block: str, number: int, index: Value, outside: Value) -> None:
    """Write, for kernels under the Debug flag, the note of the first lane that is `outside`."""
    found, won, done = e.new_label("outside"), e.new_label("note"), e.new_label("noted")
    e.branch_if(e.any(outside), found, done)
    e.start(found)
    wide = index if index.dtype.bits == 64 else index.cast(Int64 if index.dtype.kind == "i" else UInt64)
    word = wide.name if e.width == 1 else _first_lane(e, wide, outside)
    pair = e.raw(f"cmpxchg ptr {block}, i64 0, i64 1 monotonic monotonic")
    e.branch_if(e.raw(f"extractvalue {{ i64, i1 }} {pair}, 1"), won, done)
    e.start(won)
    for k, value in ((1, str(number)), (2, word)):
        e.line(f"store i64 {value}, ptr {e.raw(f'getelementptr i64, ptr {block}, i64 {k}')}, align 8")
    e.branch(done)
    e.start(done)


def _first_lane(e: Emitter, value: Value, mask: Value) -> str:
    w, lanes = e.width, e.type(value.dtype)
    slots = e.alloca(lanes)
    e.line(f"store {lanes} {value.name}, ptr {slots}, align 64")
    bits = e.raw(f"bitcast <{w} x i1> {mask.name} to i{w}")
    e.declarations[f"declare i{w} @llvm.cttz.i{w}(i{w}, i1)"] = None
    first = e.raw(f"zext i{w} {e.raw(f'call i{w} @llvm.cttz.i{w}(i{w} {bits}, i1 true)')} to i64")
    return e.raw(f"load i64, ptr {e.raw(f'getelementptr i64, ptr {slots}, i64 {first}')}, align 8")


__all__ = ["WORDS", "inside", "limits", "report"]
