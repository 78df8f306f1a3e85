"""Reduction of angles: sin(x), cos(x) and tan(x) from an angle near zero, for arguments of any size.

Small arguments lose a multiple of pi in three fused steps. Beyond `LIMIT` a call that no usual packet makes multiplies
the mantissa with those bits of 1/(2 pi) that matter, in integers (after Payne and Hanek, 1983).
"""

from __future__ import annotations

from collections.abc import Callable

from ..dtypes import Bool, DType, Float32, Float64, Int64, UInt32, UInt64
from . import memory
from .emitter import Emitter, Value

# pi in three parts of one precision each, rounded down: all of one sign, so that -0 stays -0.
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


def function(e: Emitter, name: str, x: Value, body: Callable[[Emitter, Value], Value]) -> Value:
    """Return a call of a function of one value that is written once per module and kept out of line."""
    sub = Emitter(e.width, e.target)
    lanes = e.type(x.dtype)
    result = body(sub, Value(sub, x.dtype, "%x"))
    kind = sub.type(result.dtype)
    head = f"define internal {kind} @{name}({lanes} %x) noinline cold #0 {{\nentry:"
    text = "\n".join([head, *sub.entry, *sub.lines, f"  ret {kind} {result.name}", "}"])
    e.globals.update(sub.globals)
    e.declarations.update(sub.declarations)
    e.globals[text] = None
    return e.op(result.dtype, f"call {kind} @{name}({lanes} {x.name})")


def half_turns(e: Emitter, x: Value, quarter: bool = False) -> Value:
    """Return r in [-pi/2, pi/2] with sin(r) = sin(x), or sin(r) = cos(x) for `quarter`."""
    bits = x.dtype.bits
    magic = MAGIC[bits] + (1 if quarter else 0)  # odd: the parity comes out flipped, as cos(x) = -sin(x - pi/2)
    if quarter:
        rounded = e.fma(x, 1 / 3.141592653589793, -0.5) + magic
        turns = (rounded - magic) + 0.5
    else:
        rounded = e.fma(x, 1 / 3.141592653589793, magic)
        turns = rounded - magic
    r = x
    for part in PI[bits]:
        r = e.fma(turns, -part, r)
    r = _flip(r, rounded.bits(_word(x.dtype)))
    return rarely(e, e.abs(x) >= LIMIT[bits], [r], lambda: [far(e, x, quarter, True)])[0]


def quarter_turns(e: Emitter, x: Value) -> tuple[Value, Value]:
    """Return (r, odd) with r in [-pi/4, pi/4] and tan(x) = tan(r), or -1 / tan(r) where `odd` is set."""
    bits = x.dtype.bits
    rounded = e.fma(x, 2 / 3.141592653589793, MAGIC[bits])
    turns = rounded - MAGIC[bits]
    r = x
    for part in PI[bits]:
        r = e.fma(turns, -0.5 * part, r)
    parity = (rounded.bits(_word(x.dtype)) & 1).ne(0)
    r, parity = rarely(e, e.abs(x) >= LIMIT[bits], [r, parity], lambda: _nearer(e, x))
    return r, parity


def _nearer(e: Emitter, x: Value) -> list[Value]:
    r = far(e, x, False, False)
    odd = e.abs(r) > 0.25 * 3.141592653589793
    return [e.select(odd, far(e, x, True, False), r), odd]


def _word(dtype: DType) -> DType:
    return UInt32 if dtype.bits == 32 else UInt64


def _flip(r: Value, parity: Value) -> Value:
    return (r.bits(parity.dtype) ^ (parity << (parity.dtype.bits - 1))).bits(r.dtype)


def far(e: Emitter, x: Value, quarter: bool, flip: bool) -> Value:
    """Return what `half_turns` does for any |x| >= LIMIT; without `flip`, x minus a multiple of pi (plus pi/2)."""
    name = f"far.{x.dtype.short}{'.quarter' if quarter else ''}{'.flip' if flip else ''}"
    body = _far32 if x.dtype is Float32 else _far64
    return function(e, name, x, lambda sub, v: body(sub, v, quarter, flip))


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


def _finish(e: Emitter, x: Value, r: Value, parity: Value, quarter: bool, flip: bool) -> Value:
    word = _word(x.dtype)
    if not (quarter and flip):  # the cosine alone is even
        r = (r.bits(word) ^ (x.bits(word) & (1 << (word.bits - 1)))).bits(x.dtype)
    if flip:
        r = _flip(r, parity.cast(word))
    return e.select(e.abs(x) < float("inf"), r, float("nan"))


def _far32(e: Emitter, x: Value, quarter: bool, flip: bool) -> Value:
    word = x.bits(UInt32)
    exponent = (word >> 23) & 0xFF
    start = e.select(exponent > 118, exponent - 118, 0)
    mantissa = (word & 0x7FFFFF) | 0x800000
    w0, w1, w2 = _window(e, UInt32, start, 3)
    m = mantissa.cast(UInt64)
    turn = ((mantissa * w0).cast(UInt64) << 32) + m * w1.cast(UInt64) + ((m * w2.cast(UInt64)) >> 32)
    if quarter:
        turn = turn + (1 << 62)
    parity = (turn + (1 << 62)) >> 63
    # Twice the fraction of a turn, modulo one: what is left of half turns, as a signed number.
    rest = (turn << 1).bits(Int64).cast(Float64)
    return _finish(e, x, (rest * (3.141592653589793 / 2**64)).cast(Float32), parity, quarter, flip)


def _wide(a: Value, b: Value) -> tuple[Value, Value]:
    """Return the upper and lower word of the 128-bit product of two UInt64."""
    low, mask = a * b, 0xFFFFFFFF
    a0, a1, b0, b1 = a & mask, a >> 32, b & mask, b >> 32
    middle = a1 * b0 + ((a0 * b0) >> 32)
    other = a0 * b1 + (middle & mask)
    return a1 * b1 + (middle >> 32) + (other >> 32), low


def _far64(e: Emitter, x: Value, quarter: bool, flip: bool) -> Value:
    word = x.bits(UInt64)
    exponent = (word >> 52) & 0x7FF
    start = e.select(exponent > 1011, exponent - 1011, 0)
    mantissa = (word & ((1 << 52) - 1)) | (1 << 52)
    w0, w1, w2 = _window(e, UInt64, start, 3)
    high, low = _wide(mantissa, w1)
    below, _ = _wide(mantissa, w2)
    low = low + below
    high = high + mantissa * w0 + (low < below).cast(UInt64)
    if quarter:
        high = high + (1 << 62)
    parity = (high + (1 << 62)) >> 63
    high, low = e.intrinsic("fshl", UInt64, high, low, e.const(UInt64, 1)), low << 1
    negative = high.bits(Int64) < 0
    high = e.select(negative, ~high + low.eq(0).cast(UInt64), high)
    low = e.select(negative, -low, low)
    # All 53 bits must be left after the leading zeros of an angle close to a multiple of pi.
    zeros = e.intrinsic("ctlz", UInt64, high, extra=", i1 false")
    top = e.intrinsic("fshl", UInt64, high, low, zeros)
    scale = ((1023 - 64 - zeros) << 52).bits(Float64)
    big, small = (top & ~0x7FF & (2**64 - 1)).cast(Float64), (top & 0x7FF).cast(Float64)
    pi_high, pi_low = PI[64][:2]
    product = big * pi_high
    error = e.fma(big, pi_high, -product) + e.fma(big, pi_low, small * pi_high)
    r = (product + error) * scale
    r = (r.bits(UInt64) | (negative.cast(UInt64) << 63)).bits(Float64)
    return _finish(e, x, r, parity, quarter, flip)
