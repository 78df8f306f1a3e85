"""Reduction of angles to [-pi/4, pi/4], for arguments of any size.

Small arguments lose a multiple of pi in three fused steps. Beyond `LIMIT` a call that no usual packet makes multiplies
the mantissa with those bits of 1/(2 pi) that matter, in integers (after Payne and Hanek, 1983).
"""

from __future__ import annotations

from collections.abc import Callable

from ..dtypes import Bool, DType, Float32, Float64, Int64, UInt32, UInt64
from . import memory
from .emitter import Emitter, Value

# pi in three parts of one precision each, rounded down.
PI = {
    32: (3.141592502593994, 1.5099578831723193e-07, 1.078060505991553e-14),
    64: (3.141592653589793, 1.224646799147353e-16, 2.1657133478438278e-32),
}
LIMIT = {32: 131072.0, 64: 1073741824.0}
MAGIC = {32: 12582912.0, 64: 6755399441055744.0}  # 1.5 times 2^(mantissa bits): adding it rounds to an integer

# 1 / (2 pi) = 0.0010100010111... in 64-bit words.
_TURNS = (
    0x28BE60DB9391054A, 0x7F09D5F47D4D3770, 0x36D8A5664F10E410, 0x7F9458EAF7AEF158, 0x6DC91B8E909374B8,
    0x01924BBA82746487, 0x3F877AC72C4A69CF, 0xBA208D7D4BAED121, 0x3A671C09AD17DF90, 0x4E64758E60D4CE7D,
    0x272117E2EF7E4A0E, 0xC7FE25FFF7816603, 0xFBCBC462D6829B47, 0xDB4D9FB3C9F2C26D, 0xD3D18FD9A797FA8B,
    0x5D49EEB1FAF97C5E, 0xCF41CE7DE294A4BA, 0x9AFED7EC47E35742, 0x1580CC11BF1EDAEA, 0xFC33EF0826BD0D87,
)  # fmt: skip


def rarely(e: Emitter, mask: Value, usual: list[Value], other: Callable[[], list[Value]]) -> list[Value]:
    """Return `other()` in lanes where `mask` is set, else `usual`; skipped when no lane needs it."""
    e.globals['!7 = !{!"branch_weights", i32 1, i32 4000}'] = None
    rare, done, before = e.new_label("rare"), e.new_label("usual"), e.label
    e.line(f"br i1 {e.any(mask)}, label %{rare}, label %{done}, !prof !7")
    e.start(rare)
    merged = [e.select(mask, b, a) for a, b in zip(usual, other(), strict=True)]
    end = e.label
    e.branch(done)
    e.start(done)
    return [
        e.op(a.dtype, f"phi {e.type(a.dtype)} [ {b.name}, %{end} ], [ {a.name}, %{before} ]")
        for a, b in zip(usual, merged, strict=True)
    ]


def quarter_turns(e: Emitter, x: Value, ahead: int = 0) -> tuple[Value, Value]:
    """Return (r, n) with x = (n - ahead) pi/2 + r, |r| <= pi/4, for x >= 0; of n two bits are right."""
    bits = x.dtype.bits
    word = UInt32 if bits == 32 else UInt64
    magic = MAGIC[bits] + ahead
    rounded = e.fma(x, 2 / 3.141592653589793, magic)
    turns = rounded - magic
    r = x
    for part in PI[bits]:
        r = e.fma(turns, -0.5 * part, r)
    usual = [r, rounded.bits(word)]
    r, quadrant = rarely(e, x >= LIMIT[bits], usual, lambda: _far(e, x, ahead))
    return r, quadrant


def _far(e: Emitter, x: Value, ahead: int) -> list[Value]:
    """Return what `quarter_turns` does, for any x >= LIMIT, by a function written once per module."""
    name = f"far.{x.dtype.short}.{ahead}"
    sub = Emitter(e.width, e.target)
    word = UInt32 if x.dtype is Float32 else UInt64
    lanes, integers = e.type(x.dtype), e.type(word)
    pair = f"{{ {lanes}, {integers} }}"
    r, quadrant = (_far32 if x.dtype is Float32 else _far64)(sub, Value(sub, x.dtype, "%x"), ahead)
    one = sub.raw(f"insertvalue {pair} poison, {lanes} {r.name}, 0")
    two = sub.raw(f"insertvalue {pair} {one}, {integers} {quadrant.name}, 1")
    head = f"define internal {pair} @{name}({lanes} %x) noinline cold #0 {{\nentry:"
    e.globals.update(sub.globals)
    e.declarations.update(sub.declarations)
    e.globals["\n".join([head, *sub.entry, *sub.lines, f"  ret {pair} {two}", "}"])] = None
    both = e.raw(f"call {pair} @{name}({lanes} {x.name})")
    return [
        e.op(x.dtype, f"extractvalue {pair} {both}, 0"),
        e.op(word, f"extractvalue {pair} {both}, 1"),
    ]


def _window(e: Emitter, dtype: DType, start: Value, count: int) -> list[Value]:
    """Return `count` words of the bits of 1/(2 pi) from bit `start` (counted with one word of zeros in front)."""
    bits = dtype.bits
    words = [0] + [w >> (64 - bits * (k + 1)) & ((1 << bits) - 1) for w in _TURNS for k in range(64 // bits)]
    words = words[:10] if bits == 32 else words
    table = f"@turns.{dtype.short}"
    values = ", ".join(f"i{bits} {w}" for w in words)
    e.globals[f"{table} = private constant [{len(words)} x i{bits}] [{values}], align 64"] = None
    index = start >> (5 if bits == 32 else 6)
    always = e.const(Bool, True)
    read = [memory.gather(e, dtype, table, index + k if k else index, always, False) for k in range(count + 1)]
    shift = start & (bits - 1)
    return [e.intrinsic("fshl", dtype, a, b, shift) for a, b in zip(read, read[1:], strict=False)]


def _far32(e: Emitter, x: Value, ahead: int) -> tuple[Value, Value]:
    word = x.bits(UInt32)
    exponent = (word >> 23) & 0xFF
    start = e.select(exponent > 118, exponent - 118, 0)
    mantissa = (word & 0x7FFFFF) | 0x800000
    w0, w1, w2 = _window(e, UInt32, start, 3)
    m = mantissa.cast(UInt64)
    turn = ((mantissa * w0).cast(UInt64) << 32) + m * w1.cast(UInt64) + ((m * w2.cast(UInt64)) >> 32)
    quadrant = ((turn + (1 << 61)) >> 62).cast(UInt32)
    # Four times the fraction of a turn, modulo one: what is left of quarter turns, as a signed number.
    rest = (turn << 2).bits(Int64).cast(Float64)
    r = (rest * (1.5707963267948966 / 2**64)).cast(Float32)
    return e.select(x < float("inf"), r, float("nan")), quadrant + ahead


def _wide(a: Value, b: Value) -> tuple[Value, Value]:
    """Return the upper and lower word of the 128-bit product of two UInt64."""
    low, mask = a * b, 0xFFFFFFFF
    a0, a1, b0, b1 = a & mask, a >> 32, b & mask, b >> 32
    middle = a1 * b0 + ((a0 * b0) >> 32)
    other = a0 * b1 + (middle & mask)
    return a1 * b1 + (middle >> 32) + (other >> 32), low


def _far64(e: Emitter, x: Value, ahead: int) -> tuple[Value, Value]:
    word = x.bits(UInt64)
    exponent = (word >> 52) & 0x7FF
    start = e.select(exponent > 1011, exponent - 1011, 0)
    mantissa = (word & ((1 << 52) - 1)) | (1 << 52)
    w0, w1, w2 = _window(e, UInt64, start, 3)
    high, low = _wide(mantissa, w1)
    below, _ = _wide(mantissa, w2)
    low = low + below
    high = high + mantissa * w0 + (low < below).cast(UInt64)
    quadrant = (high + (1 << 61)) >> 62
    high, low = (high << 2) | (low >> 62), low << 2
    negative = high.bits(Int64) < 0
    high = e.select(negative, ~high + low.eq(0).cast(UInt64), high)
    low = e.select(negative, -low, low)
    # All 53 bits must be left after the leading zeros of an angle close to a multiple of pi / 2.
    zeros = e.intrinsic("ctlz", UInt64, high, extra=", i1 false")
    top = e.intrinsic("fshl", UInt64, high, low, zeros)
    scale = ((1023 - 64 - zeros) << 52).bits(Float64)
    big, small = (top & (2**64 - 2**11)).cast(Float64), (top & 0x7FF).cast(Float64)
    half_high, half_low = 0.5 * PI[64][0], 0.5 * PI[64][1]
    product = big * half_high
    error = e.fma(big, half_high, -product) + e.fma(big, half_low, small * half_high)
    r = (product + error) * scale
    r = (r.bits(UInt64) | (negative.cast(UInt64) << 63)).bits(Float64)
    return e.select(x < float("inf"), r, float("nan")), quadrant + ahead
