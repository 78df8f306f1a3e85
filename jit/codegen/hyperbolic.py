"""Hyperbolic functions and their inverses, the cube root and the error function for W lanes."""

from __future__ import annotations

from ..dtypes import Float32, UInt32, UInt64
from . import polynomials as poly
from .elementary import LN2, clamp, exp, exp_parts, log, log1p_rest, mantissa, scaled
from .emitter import Emitter, Value
from .polynomials import horner, odd

_INFINITY = float("inf")


def _with_sign(e: Emitter, x: Value, sign: Value) -> Value:
    return e.intrinsic("copysign", x.dtype, x, sign)


def _half_exp(e: Emitter, a: Value) -> Value:
    """Return e^a / 2, finite up to where the hyperbolic functions are."""
    q, rounded = exp_parts(e, clamp(e, a, 0.0, 91.0 if a.dtype is Float32 else 712.0))
    return scaled(e, q, rounded - 1.0)


def _small_sinh(e: Emitter, x: Value) -> Value:
    return odd(e, x, poly.SINH_32 if x.dtype is Float32 else poly.SINH_64)


def sinh(e: Emitter, x: Value) -> Value:
    """Return the hyperbolic sine."""
    a = e.abs(x)
    half = _half_exp(e, a)
    return e.select(a < 1.0, _small_sinh(e, x), _with_sign(e, half - 0.25 / half, x))


def cosh(e: Emitter, x: Value) -> Value:
    """Return the hyperbolic cosine."""
    half = _half_exp(e, e.abs(x))
    return half + 0.25 / half


def tanh(e: Emitter, x: Value) -> Value:
    """Return the hyperbolic tangent."""
    a = e.abs(x)
    z = a * a
    even = horner(e, z, (1.0, 0.5, *(poly.COSH_32 if x.dtype is Float32 else poly.COSH_64)))
    square = exp(e, clamp(e, 2.0 * a, 0.0, 88.0))
    small = a < 1.0
    quotient = e.select(small, _small_sinh(e, a), -2.0) / e.select(small, even, square + 1.0)
    return _with_sign(e, e.select(small, quotient, quotient + 1.0), x)


def log1p(e: Emitter, x: Value) -> Value:
    """Return log(1 + x) for finite x > -1, accurate at small x too."""
    u = x + 1.0
    b = u - 1.0
    lost = (x - b) + (1.0 - (u - b))
    f, n = mantissa(e, u)
    high, low = LN2[x.dtype.bits]
    return e.fma(n, high, f + (e.fma(n, low, log1p_rest(e, f)) + lost / u))


def asinh(e: Emitter, x: Value) -> Value:
    """Return the inverse hyperbolic sine."""
    a = e.abs(x)
    large = a > (4096.0 if x.dtype is Float32 else 268435456.0)
    b = e.select(large, e.const(x.dtype, 1.0), a)
    z = b * b
    small = log1p(e, b + z / (1.0 + e.sqrt(z + 1.0)))
    return _with_sign(e, e.select(large, log(e, a) + 0.6931471805599453, small), x)


def acosh(e: Emitter, x: Value) -> Value:
    """Return the inverse hyperbolic cosine; NaN below 1."""
    large = x > (4096.0 if x.dtype is Float32 else 268435456.0)
    t = e.select(large, e.const(x.dtype, 1.0), x - 1.0)
    small = log1p(e, t + e.sqrt(e.fma(t, t, 2.0 * t)))
    return e.select(large, log(e, x) + 0.6931471805599453, e.select(x < 1.0, float("nan"), small))


def atanh(e: Emitter, x: Value) -> Value:
    """Return the inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond."""
    a = e.abs(x)
    inside = 0.5 * log1p(e, (2.0 * a) / (1.0 - a))
    ends = e.select(a.eq(1.0), _INFINITY, e.select(a > 1.0, float("nan"), inside))
    return _with_sign(e, ends, x)


def cbrt(e: Emitter, x: Value) -> Value:
    """Return the real cube root."""
    single = x.dtype is Float32
    word = UInt32 if single else UInt64
    a = e.abs(x)
    tiny = a < 2.0**-100
    a = e.select(tiny, a * (2.0**24 if single else 2.0**54), a)
    # A third of the bits, and two thirds of the bias: within 6 per cent of the root.
    third = e.fma(a.bits(word).cast(x.dtype), 1 / 3, 709921077.0 if single else 3.071306382e18)
    y = third.cast(word).bits(x.dtype)
    for _ in range(1 if single else 2):  # Halley: the error's cube each time; everything by 4 against overflow
        cube = 0.5 * y * y * y
        y = y * (e.fma(cube, 0.5, 0.5 * a) / e.fma(a, 0.25, cube))
    square = y * y
    y = y - e.fma(square, y, -a) / (3.0 * square)
    y = e.select(tiny, y * (2.0**-8 if single else 2.0**-18), y)
    proper = (a > 0.0) & (a < _INFINITY)
    return e.select(proper, _with_sign(e, y, x), x)


def erf(e: Emitter, x: Value) -> Value:
    """Return the error function."""
    single = x.dtype is Float32
    a = e.abs(x)
    z = a * a
    inner = e.fma(x, horner(e, z, poly.ERF_32 if single else poly.ERF_64), x)
    u = clamp(e, a, 1.0, 4.0 if single else 6.0) - 2.0
    outer = 1.0 - exp(e, horner(e, u, poly.ERF_TAIL_32 if single else poly.ERF_TAIL_64))
    return e.select(a < 1.0, inner, _with_sign(e, outer, x))
