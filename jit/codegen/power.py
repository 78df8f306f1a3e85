"""x to the power y for W lanes: the logarithm with bits to spare, since y multiplies its error."""

from __future__ import annotations

from . import polynomials as poly
from .angles import MAGIC, rarely
from .elementary import LN2, clamp, mantissa, scaled
from .emitter import Emitter, Value
from .polynomials import horner

_THIRD = {32: (0.3333333432674408, -9.934107481068821e-09), 64: (0.3333333333333333, 1.850371707708594e-17)}
_LIMITS = {32: (-105.0, 90.0), 64: (-750.0, 711.0)}
_INFINITY = float("inf")


def power(e: Emitter, x: Value, y: Value) -> Value:
    """Return x to the power y, as C's pow at zeros, infinities, negative bases and NaN."""
    magnitude = _magnitude(e, e.abs(x), y)
    usual = (x > 0.0) & (x < _INFINITY) & (e.abs(y) < _INFINITY)
    return rarely(e, ~usual, [magnitude], lambda: [_unusual(e, x, y, magnitude)])[0]


def _unusual(e: Emitter, x: Value, y: Value, magnitude: Value) -> Value:
    """Return x^y where x is not a positive number or y not a number; `magnitude` is |x|^y of finite numbers."""
    a, b = e.abs(x), e.abs(y)
    integer = e.intrinsic("trunc", y.dtype, y).eq(y)
    half = y * 0.5
    odd = integer & e.intrinsic("trunc", y.dtype, half).ne(half) & (b < _INFINITY)
    # Here |x| is 0, infinite, or compared with 1 by an infinite y.
    grows = (y > 0.0).ne(a < 1.0)
    limit = e.select(grows, _INFINITY, e.const(x.dtype, 0.0))
    ends = a.eq(0.0) | a.eq(_INFINITY) | b.eq(_INFINITY)
    result = e.select(ends, limit, magnitude)
    result = e.select((x < 0.0) & ~integer & (x > -_INFINITY), float("nan"), result)
    negative = e.intrinsic("copysign", x.dtype, e.const(x.dtype, 1.0), x) < 0.0
    result = e.select(negative & odd, -result, result)
    result = e.select(x.ne(x), x, e.select(y.ne(y), y, result))
    return e.select(x.eq(1.0) | y.eq(0.0) | (a.eq(1.0) & b.eq(_INFINITY)), 1.0, result)


def _sum(a: Value, b: Value) -> tuple[Value, Value]:
    """Return a + b rounded, and what that loses, for |a| >= |b|."""
    total = a + b
    return total, b - (total - a)


def _product(e: Emitter, a: Value, b: Value) -> tuple[Value, Value]:
    total = a * b
    return total, e.fma(a, b, -total)


def _magnitude(e: Emitter, a: Value, y: Value) -> Value:
    """Return a^y for finite a > 0 and y, with the logarithm as an unevaluated sum of two numbers."""
    bits = a.dtype.bits
    ln2, ln2_low = LN2[bits]
    high, low = _log_pair(e, a)
    exponent, error = _product(e, high, y)
    error = e.fma(low, y, error)
    exponent = clamp(e, exponent, *_LIMITS[bits])
    error = e.select(e.abs(error) < 1.0, error, 0.0)  # large only where the result is 0 or infinite anyway
    rounded = e.fma(exponent, 1.4426950408889634, MAGIC[bits])
    n = rounded - MAGIC[bits]
    r, error = _sum(e.fma(n, -ln2, exponent), e.fma(n, -ln2_low, error))
    q = e.fma(r * r, horner(e, r, poly.EXP_32 if bits == 32 else poly.EXP_64), r)
    # e^(r + error) = e^r (1 + error)
    return scaled(e, q + e.fma(q, error, error), rounded)


def _log_pair(e: Emitter, a: Value) -> tuple[Value, Value]:
    """Return log(a) of positive finite numbers as a sum of two, with a dozen bits more than one has."""
    bits = a.dtype.bits
    f, n = mantissa(e, a)
    # s = f / (2 + f), the remainder of the division in `s_low`; 2 + f is exact in two parts.
    d = f + 2.0
    d_low = f - (d - 2.0)
    inverse = 1.0 / d
    s = f * inverse
    s_low = e.fma(-s, d_low, e.fma(-s, d, f)) * inverse
    z, z_low = _product(e, s, s)
    z_low = e.fma(s * 2.0, s_low, z_low)
    # log = 2 s (1 + z / 3 + z^2 R / 2)
    third, third_low = _THIRD[bits]
    rest = horner(e, z, poly.LOG_REST_32 if bits == 32 else poly.LOG_REST_64)
    t, t_low = _product(e, z, e.const(f.dtype, third))
    t_low = t_low + e.fma(z, third_low, z_low * third) + z * z * (0.5 * rest)
    product, product_low = _product(e, s, t)
    product_low = e.fma(s_low, t, e.fma(s, t_low, product_low))
    high, low = _sum(s, product)
    low = low + (s_low + product_low)
    high, low = high * 2.0, low * 2.0
    ln2, ln2_low = LN2[bits]
    whole, whole_low = _product(e, n, e.const(f.dtype, ln2))
    top, lost = _sum(whole, high)
    # Where n is 0 the sum is `high` itself; otherwise |n ln 2| is the greater.
    zero = n.eq(0.0)
    lost = lost + (low + e.fma(n, ln2_low, whole_low))
    return _sum(e.select(zero, high, top), e.select(zero, low, lost))
