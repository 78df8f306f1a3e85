"""x to the power y for W lanes: the logarithm with bits to spare, since y multiplies its error."""

from __future__ import annotations

from ..dtypes import Bool, Float32, Float64, Int64, UInt64
from . import polynomials as poly
from .angles import MAGIC
from .elementary import clamp, mantissa, scaled
from .emitter import Emitter, Value
from .polynomials import horner

_LN2, _LN2_LOW = 0.6931471805599453, 2.3190468138462996e-17
_INFINITY = float("inf")


def power(e: Emitter, x: Value, y: Value) -> Value:
    """Return x to the power y, as C's pow at zeros, infinities, negative bases and NaN."""
    magnitude = _single(e, x, y) if x.dtype is Float32 else _double(e, x, y)
    trunc, half = e.intrinsic("trunc", y.dtype, y), y * 0.5
    integer = trunc.eq(y)
    odd = integer & e.intrinsic("trunc", y.dtype, half).ne(half) & (e.abs(y) < _INFINITY)
    negative = e.intrinsic("copysign", x.dtype, e.const(x.dtype, 1.0), x) < 0.0
    result = e.select((x < 0.0) & ~integer & (x > -_INFINITY), float("nan"), magnitude)
    result = e.select(negative & odd, -result, result)
    always = x.eq(1.0) | y.eq(0.0) | (x.eq(-1.0) & e.abs(y).eq(_INFINITY))
    return e.select(always, 1.0, e.select(x.ne(x), x, e.select(y.ne(y), y, result)))


def _ends(e: Emitter, a: Value, y: Value, logarithm: Value) -> Value:
    """Return y * log(a) where it is not finite: a is 0 or infinite."""
    exponent = e.select(a.eq(0.0), -_INFINITY, e.const(a.dtype, _INFINITY)) * y
    return e.select((a > 0.0) & (a < _INFINITY), logarithm, exponent)


def _single(e: Emitter, x: Value, y: Value) -> Value:
    """Return |x|^y by way of double precision."""
    a, y = e.abs(x).cast(Float64), y.cast(Float64)
    i = a.bits(UInt64) - 0x3FE6A09E667F3BCD
    n = (i.bits(Int64) >> 52).cast(Float64)
    f = ((i & ((1 << 52) - 1)) + 0x3FE6A09E667F3BCD).bits(Float64) - 1.0
    s = f / (f + 2.0)
    z = s * s
    series = e.fma(z, horner(e, z, poly.LOG_SHORT_64), 2.0)
    binary = e.fma(s * series, 1.4426950408889634, n)
    exponent = clamp(e, _ends(e, a, y, binary * y), -200.0, 200.0)
    rounded = exponent + MAGIC[64]
    r = (exponent - (rounded - MAGIC[64])) * _LN2
    q = e.fma(r * r, horner(e, r, poly.EXP_SHORT_64), r)
    # 2^n is far inside double precision's range; the conversion rounds to single, denormal numbers too.
    factor = ((rounded.bits(UInt64) << 52) + (1023 << 52)).bits(Float64)
    return e.fma(q, factor, factor).cast(Float32)


def _sum(a: Value, b: Value) -> tuple[Value, Value]:
    """Return a + b rounded, and what that loses, for |a| >= |b|."""
    total = a + b
    return total, b - (total - a)


def _product(e: Emitter, a: Value, b: Value) -> tuple[Value, Value]:
    total = a * b
    return total, e.fma(a, b, -total)


def _double(e: Emitter, x: Value, y: Value) -> Value:
    """Return |x|^y with the logarithm as an unevaluated sum of two numbers."""
    a = e.abs(x)
    high, low = _log_pair(e, a)
    exponent, error = _product(e, high, y)
    error = e.fma(low, y, error)
    exponent = clamp(e, _ends(e, a, y, exponent), -800.0, 800.0)
    error = e.select(e.abs(error) < 1.0, error, 0.0)  # not a number only where the result is 0 or infinite anyway
    rounded = e.fma(exponent, 1.4426950408889634, MAGIC[64])
    n = rounded - MAGIC[64]
    r = e.fma(n, -_LN2, exponent)
    r, error = _sum(r, e.fma(n, -_LN2_LOW, error))
    q = e.fma(r * r, horner(e, r, poly.EXP_64), r)
    # e^(r + error) = e^r (1 + error)
    return scaled(e, q + e.fma(q, error, error), rounded)


def _log_pair(e: Emitter, a: Value) -> tuple[Value, Value]:
    """Return log(a) of positive finite numbers as a sum of two, to about 2^-65."""
    f, n = mantissa(e, a)
    # s = f / (2 + f), the remainder of the division in `s_low`; 2 + f is exact in two parts.
    d, d_low = _sum(e.const(f.dtype, 2.0) + f * 0.0, f)
    s = f / d
    s_low = e.fma(-s, d_low, e.fma(-s, d, f)) / d
    z, z_low = _product(e, s, s)
    z_low = e.fma(s * 2.0, s_low, z_low)
    # log = 2 s (1 + z / 3 + z^2 R)
    third, third_low = 0.3333333333333333, 1.850371707708594e-17
    t, t_low = _product(e, z, e.const(f.dtype, third))
    t_low = t_low + e.fma(z, third_low, z_low * third) + z * z * (0.5 * horner(e, z, poly.LOG_REST_64))
    product, product_low = _product(e, s, t)
    product_low = e.fma(s_low, t, e.fma(s, t_low, product_low))
    high, low = _sum(s, product)
    low = low + (s_low + product_low)
    high, low = high * 2.0, low * 2.0
    whole, whole_low = _product(e, n, e.const(f.dtype, _LN2))
    top, rest = _sum(whole, high)
    # Where n is 0 the sum is `high` itself; otherwise |n ln 2| is the greater.
    zero = n.eq(0.0)
    rest = rest + (low + e.fma(n, _LN2_LOW, whole_low))
    top, rest = e.select(zero, high, top), e.select(zero, low, rest)
    return _sum(top, rest)


__all__ = ["power", "Bool"]
