"""Inverse trigonometric functions for W lanes in single and double precision."""

from __future__ import annotations

from ..dtypes import Float32, UInt32, UInt64
from . import polynomials as poly
from .emitter import Emitter, Value
from .polynomials import horner, odd

_PI, _HALF_PI = 3.141592653589793, 1.5707963267948966
# What rounding leaves of pi / 2.
_REST = {32: -4.371139000186241e-08, 64: 6.123233995736766e-17}


def _word(x: Value) -> Value:
    return x.bits(UInt32 if x.dtype is Float32 else UInt64)


def _with_sign(e: Emitter, x: Value, sign: Value) -> Value:
    return e.intrinsic("copysign", x.dtype, x, sign)


def _arcsine(e: Emitter, x: Value) -> tuple[Value, Value]:
    """Return (asin(s), mask) with s = |x| or, where the mask is set (|x| > 1/2), s = sqrt((1 - |x|) / 2)."""
    a = e.abs(x)
    outer = a > 0.5
    z = e.select(outer, e.fma(a, -0.5, e.const(x.dtype, 0.5)), a * a)
    s = e.select(outer, e.sqrt(z), a)
    p = horner(e, z, poly.ASIN_32 if x.dtype is Float32 else poly.ASIN_64)
    return e.fma(s * z, p, s), outer


def asin(e: Emitter, x: Value) -> Value:
    """Return the arc sine; NaN outside of [-1, 1]."""
    s, outer = _arcsine(e, x)
    rest = _REST[x.dtype.bits]
    return _with_sign(e, e.select(outer, _HALF_PI - (2.0 * s - rest), s), x)


def acos(e: Emitter, x: Value) -> Value:
    """Return the arc cosine; NaN outside of [-1, 1]."""
    s, outer = _arcsine(e, x)
    rest = _REST[x.dtype.bits]
    signed = _with_sign(e, s, x)
    near = e.select(x < 0.0, _PI - (2.0 * s - 2 * rest), 2.0 * s)
    return e.select(outer, near, _HALF_PI - (signed - rest))


def _arctangent(e: Emitter, t: Value) -> Value:
    return odd(e, t, poly.ATAN_32 if t.dtype is Float32 else poly.ATAN_64)


def atan(e: Emitter, x: Value) -> Value:
    """Return the arc tangent."""
    a = e.abs(x)
    outer = a > 1.0
    one = e.const(x.dtype, 1.0)
    t = _arctangent(e, e.select(outer, one, a) / e.select(outer, a, one))
    return _with_sign(e, e.select(outer, _HALF_PI - (t - _REST[x.dtype.bits]), t), x)


def atan2(e: Emitter, y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y), as C's atan2 at zeros and infinities."""
    rest = _REST[x.dtype.bits]
    a, b = e.abs(x), e.abs(y)
    steep = b > a
    large, small = e.select(steep, b, a), e.select(steep, a, b)
    equal = a.eq(b) & (a.eq(0.0) | a.eq(float("inf")))
    quotient = small / large
    t = e.select(equal, e.select(a.eq(0.0), 0.0, e.const(x.dtype, 1.0)), quotient)
    angle = _arctangent(e, t)
    angle = e.select(steep, _HALF_PI - (angle - rest), angle)
    negative = (_word(x) >> (x.dtype.bits - 1)).ne(0)
    angle = e.select(negative, _PI - (angle - 2 * rest), angle)
    # A NaN in y alone would be lost in the comparison.
    return _with_sign(e, e.select(y.ne(y), y, angle), y)
