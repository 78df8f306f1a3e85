"""Sine to logarithm for W lanes in single and double precision: what rows of `jit/ops/math.py` lower to."""

from __future__ import annotations

import functools

from ..dtypes import Float32, Int32, Int64, UInt32, UInt64
from . import polynomials as poly
from .angles import MAGIC, quarter_turns
from .emitter import Emitter, Value
from .polynomials import horner, odd

LN2 = {
    32: (0.6931471228599548, 5.769998878690785e-08),
    64: (0.6931471805599453, 2.3190468138462996e-17),
}
_LOG2E = (1.4426950408889634, {32: 1.925963033500577e-08, 64: 2.0355273740931033e-17})
_INFINITY = float("inf")


def _sin_cos(e: Emitter, r: Value) -> tuple[Value, Value]:
    """Return sine and cosine of |r| <= pi/4."""
    single = r.dtype is Float32
    z = r * r
    s = e.fma(r * z, horner(e, z, poly.SIN_32 if single else poly.SIN_64), r)
    return s, horner(e, z, (1.0, -0.5, *(poly.COS_32 if single else poly.COS_64)))


def _with_sign_bits(y: Value, bits: Value) -> Value:
    """Return y, negated where the highest bit is set."""
    word = bits.dtype
    return (y.bits(word) ^ (bits & (1 << (word.bits - 1)))).bits(y.dtype)


def _wave(e: Emitter, x: Value, ahead: int) -> tuple[Value, Value]:
    """Return (s, b): the sine of |x| + ahead * pi/2 is s, negated where the highest bit of b is set."""
    r, quadrant = quarter_turns(e, e.abs(x), ahead)
    s, c = _sin_cos(e, r)
    return e.select((quadrant & 1).ne(0), c, s), quadrant << (quadrant.dtype.bits - 2)


def sin(e: Emitter, x: Value) -> Value:
    """Return the sine; NaN for infinite x."""
    y, sign = _wave(e, x, 0)
    return _with_sign_bits(y, sign ^ x.bits(sign.dtype))


def cos(e: Emitter, x: Value) -> Value:
    """Return the cosine; NaN for infinite x."""
    return _with_sign_bits(*_wave(e, x, 1))


def tan(e: Emitter, x: Value) -> Value:
    """Return the tangent; NaN for infinite x."""
    r, quadrant = quarter_turns(e, e.abs(x))
    inverse = (quadrant & 1).ne(0)
    if x.dtype is Float32:
        t = odd(e, r, poly.TAN_32)
        y = e.select(inverse, 1.0 / t, t)
    else:
        s, c = _sin_cos(e, r)
        y = e.select(inverse, c, s) / e.select(inverse, s, c)
    word = quadrant.dtype
    return _with_sign_bits(y, (quadrant << (word.bits - 1)) ^ x.bits(word))


def clamp(e: Emitter, x: Value, low: float, high: float) -> Value:
    """Return x limited to [low, high]; NaN stays NaN."""
    low_value, high_value = e.const(x.dtype, low), e.const(x.dtype, high)
    x = e.select(low_value > x, low_value, x)
    return e.select(high_value < x, high_value, x)


@functools.cache
def _scales() -> bool:
    """Return whether this processor scales by a power of two in one instruction; others would call the C library."""
    from . import host

    return "+avx512f" in host.target().features.split(",")


def scaled(e: Emitter, q: Value, rounded: Value) -> Value:
    """Return (1 + q) * 2^n, rounded once more where it is denormal; `rounded` is n + MAGIC."""
    if e.width > 1 and e.target == "host" and _scales():
        n = (rounded - MAGIC[q.dtype.bits]).cast(Int32)
        name = f"llvm.ldexp.v{e.width}f{q.dtype.bits}.v{e.width}i32"
        lanes, integers = e.type(q.dtype), e.type(Int32)
        e.declarations[f"declare {lanes} @{name}({lanes}, {integers})"] = None
        return e.op(q.dtype, f"call {lanes} @{name}({lanes} {(q + 1.0).name}, {integers} {n.name})")
    word, mantissa, bias = (UInt32, 23, 127) if q.dtype is Float32 else (UInt64, 52, 1023)
    # MAGIC's own bits are shifted out on the left, so the number's low bits serve as n. Two factors: 2^n alone
    # overflows or is denormal where the product is not. Factors, not additions to the exponent, keep NaN.
    n = rounded.bits(word)
    half = n >> 1
    first = ((half << mantissa) + (bias << mantissa)).bits(q.dtype)
    return e.fma(q, first, first) * (((n - half) << mantissa) + (bias << mantissa)).bits(q.dtype)


def exp_parts(e: Emitter, x: Value, base2: bool = False) -> tuple[Value, Value]:
    """Return (q, n + MAGIC) with e^x = (1 + q) * 2^n (2^x for `base2`) and |q| < 0.42."""
    bits = x.dtype.bits
    if base2:
        rounded = x + MAGIC[bits]
        r = (x - (rounded - MAGIC[bits])) * 0.6931471805599453
    else:
        rounded = e.fma(x, _LOG2E[0], MAGIC[bits])
        n = rounded - MAGIC[bits]
        r = e.fma(n, -LN2[bits][1], e.fma(n, -LN2[bits][0], x))
    p = horner(e, r, poly.EXP_32 if bits == 32 else poly.EXP_64)
    return e.fma(r * r, p, r), rounded


def exp(e: Emitter, x: Value) -> Value:
    """Return e to the power x."""
    x = clamp(e, x, -104.0, 89.0) if x.dtype is Float32 else clamp(e, x, -746.0, 710.0)
    q, rounded = exp_parts(e, x)
    return scaled(e, q, rounded)


def exp2(e: Emitter, x: Value) -> Value:
    """Return 2 to the power x."""
    x = clamp(e, x, -150.0, 129.0) if x.dtype is Float32 else clamp(e, x, -1076.0, 1025.0)
    q, rounded = exp_parts(e, x, base2=True)
    return scaled(e, q, rounded)


def mantissa(e: Emitter, x: Value) -> tuple[Value, Value]:
    """Return (m - 1, n) as floats with x = m * 2^n and m in [sqrt(1/2), sqrt(2)), for positive finite x."""
    single = x.dtype is Float32
    word, signed, bits, least = (UInt32, Int32, 23, 2.0**-126) if single else (UInt64, Int64, 52, 2.0**-1022)
    root = 0x3F3504F3 if single else 0x3FE6A09E667F3BCD
    denormal = x < least
    i = e.select(denormal, x * 2.0**bits, x).bits(word) - root
    n = (i.bits(signed) >> bits).cast(x.dtype) + e.select(denormal, e.const(x.dtype, -bits), 0.0)
    m = ((i & ((1 << bits) - 1)) + root).bits(x.dtype)
    return m - 1.0, n


def log1p_rest(e: Emitter, f: Value) -> Value:
    """Return log(1 + f) - f for 1 + f in [sqrt(1/2), sqrt(2))."""
    z = f * f
    if f.dtype is Float32:
        return e.fma(z, -0.5, f * z * horner(e, f, poly.LOG_32))
    # With s = f / (2 + f): log(1 + f) = 2 s + ..., and 2 s = f - f^2 / 2 + s f^2 / 2.
    s = f / (f + 2.0)
    s2, half = s * s, 0.5 * z
    return e.fma(s, e.fma(s2, horner(e, s2, poly.LOG_64), half), -half)


def _log_ends(e: Emitter, x: Value, y: Value) -> Value:
    """Return the logarithm `y` with the values for 0, infinity, negative numbers and NaN put in."""
    ends = e.select(x.eq(0.0), -_INFINITY, e.select(x < 0.0, float("nan"), x))
    return e.select((x > 0.0) & (x < _INFINITY), y, ends)


def log(e: Emitter, x: Value) -> Value:
    """Return the natural logarithm; NaN below 0, -inf at 0."""
    f, n = mantissa(e, x)
    high, low = LN2[x.dtype.bits]
    y = e.fma(n, high, f + e.fma(n, low, log1p_rest(e, f)))
    return _log_ends(e, x, y)


def log2(e: Emitter, x: Value) -> Value:
    """Return the logarithm to base 2; NaN below 0, -inf at 0."""
    f, n = mantissa(e, x)
    high, low = _LOG2E[0], _LOG2E[1][x.dtype.bits]
    rest = e.fma(f, low, log1p_rest(e, f) * high)
    return _log_ends(e, x, n + e.fma(f, high, rest))
