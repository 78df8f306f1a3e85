"""Transcendental functions: lowered to own polynomials, the same on every target. Errors are tabled in docs/ulp.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..codegen import elementary, hyperbolic, inverse
from ..codegen.emitter import Emitter, Value
from ..codegen.power import power
from ..dtypes import DType, Float16, Float32
from .row import Lower, row


def _lowered(function: Callable[..., Value]) -> Lower:
    """Return the lowering; half precision is computed in single."""

    def lower(e: Emitter, dtype: DType, *args: Value) -> Value:
        if dtype is Float16:
            return function(e, *(a.cast(Float32) for a in args)).cast(Float16)
        return function(e, *args)

    return lower


def _log2_weight(f: Any, r: Any, x: Any) -> Any:
    return 1.4426950408889634 / x


def _pow_base(f: Any, r: Any, x: Any, y: Any) -> Any:
    # y x^(y-1); where y is 0 the function is constant, also at x = 0.
    return f.select(y == 0.0, 0.0, y * f.pow(x, y - 1.0))


def _pow_exponent(f: Any, r: Any, x: Any, y: Any) -> Any:
    return f.select(x == 0.0, 0.0, r * f.log(x))


def _atan2_weights() -> tuple[Any, Any]:
    def scale(f: Any, x: Any, y: Any) -> Any:
        return f.rcp(f.fma(x, x, y * y))

    return lambda f, r, y, x: x * scale(f, x, y), lambda f, r, y, x: -y * scale(f, x, y)


def _numpy_erf(np: Any, x: Any) -> Any:
    import math

    return np.array([math.erf(float(v)) for v in x.ravel()], dtype=x.dtype).reshape(x.shape)


_wide, _unit = (-10.0, 10.0), (-0.99, 0.99)

row("sin", "Return the sine of x (radians).", 1, "f", lambda np, x: np.sin(x), _lowered(elementary.sin),
    weights=(lambda f, r, x: f.cos(x),), domain=(_wide,), ulp=1.6)  # fmt: skip
row("cos", "Return the cosine of x (radians).", 1, "f", lambda np, x: np.cos(x), _lowered(elementary.cos),
    weights=(lambda f, r, x: -f.sin(x),), domain=(_wide,), ulp=1.6)  # fmt: skip
row("tan", "Return the tangent of x (radians).", 1, "f", lambda np, x: np.tan(x), _lowered(elementary.tan),
    weights=(lambda f, r, x: f.fma(r, r, 1.0),), domain=((-1.5, 1.5),), ulp=3.0)  # fmt: skip
row("exp", "Return e to the power x.", 1, "f", lambda np, x: np.exp(x), _lowered(elementary.exp),
    weights=(lambda f, r, x: r,), domain=(_wide,), ulp=1.1)  # fmt: skip
row("exp2", "Return 2 to the power x.", 1, "f", lambda np, x: np.exp2(x), _lowered(elementary.exp2),
    weights=(lambda f, r, x: r * 0.6931471805599453,), domain=(_wide,), ulp=1.2)  # fmt: skip
row("log", "Return the natural logarithm of x; -inf at 0, NaN below.", 1, "f", lambda np, x: np.log(x),
    _lowered(elementary.log), weights=(lambda f, r, x: f.rcp(x),), domain=((0.01, 100.0),), ulp=1.0)  # fmt: skip
row("log2", "Return the logarithm of x to base 2; -inf at 0, NaN below.", 1, "f", lambda np, x: np.log2(x),
    _lowered(elementary.log2), weights=(_log2_weight,), domain=((0.01, 100.0),), ulp=1.1)  # fmt: skip
row("asin", "Return the arc sine of x; NaN outside of [-1, 1].", 1, "f", lambda np, x: np.arcsin(x),
    _lowered(inverse.asin), weights=(lambda f, r, x: f.rsqrt(f.fma(-x, x, 1.0)),), domain=(_unit,),
    ulp=2.5)  # fmt: skip
row("acos", "Return the arc cosine of x; NaN outside of [-1, 1].", 1, "f", lambda np, x: np.arccos(x),
    _lowered(inverse.acos), weights=(lambda f, r, x: -f.rsqrt(f.fma(-x, x, 1.0)),), domain=(_unit,),
    ulp=1.2)  # fmt: skip
row("atan", "Return the arc tangent of x.", 1, "f", lambda np, x: np.arctan(x), _lowered(inverse.atan),
    weights=(lambda f, r, x: f.rcp(f.fma(x, x, 1.0)),), domain=(_wide,), ulp=2.0)  # fmt: skip
row("atan2", "Return the angle of the point (y, x given in this order) in (-pi, pi].", 2, "f",
    lambda np, y, x: np.arctan2(y, x), _lowered(inverse.atan2), weights=_atan2_weights(),
    domain=(_wide, (0.1, 10.0)), ulp=2.1)  # fmt: skip
row("pow", "Return x to the power y.", 2, "f", lambda np, x, y: np.power(x, y), _lowered(power),
    weights=(_pow_base, _pow_exponent), domain=((0.1, 10.0), (-5.0, 5.0)), ulp=1.1)  # fmt: skip
row("sinh", "Return the hyperbolic sine of x.", 1, "f", lambda np, x: np.sinh(x), _lowered(hyperbolic.sinh),
    weights=(lambda f, r, x: f.cosh(x),), domain=((-5.0, 5.0),), ulp=1.7)  # fmt: skip
row("cosh", "Return the hyperbolic cosine of x.", 1, "f", lambda np, x: np.cosh(x), _lowered(hyperbolic.cosh),
    weights=(lambda f, r, x: f.sinh(x),), domain=((-5.0, 5.0),), ulp=1.5)  # fmt: skip
row("tanh", "Return the hyperbolic tangent of x.", 1, "f", lambda np, x: np.tanh(x), _lowered(hyperbolic.tanh),
    weights=(lambda f, r, x: f.fma(-r, r, 1.0),), domain=((-3.0, 3.0),), ulp=2.5)  # fmt: skip
row("asinh", "Return the inverse hyperbolic sine of x.", 1, "f", lambda np, x: np.arcsinh(x),
    _lowered(hyperbolic.asinh), weights=(lambda f, r, x: f.rsqrt(f.fma(x, x, 1.0)),), domain=(_wide,),
    ulp=1.9)  # fmt: skip
row("acosh", "Return the inverse hyperbolic cosine of x; NaN below 1.", 1, "f", lambda np, x: np.arccosh(x),
    _lowered(hyperbolic.acosh), weights=(lambda f, r, x: f.rsqrt(f.fma(x, x, -1.0)),), domain=((1.1, 10.0),),
    ulp=1.9)  # fmt: skip
row("atanh", "Return the inverse hyperbolic tangent of x; infinite at -1 and 1, NaN beyond.", 1, "f",
    lambda np, x: np.arctanh(x), _lowered(hyperbolic.atanh), weights=(lambda f, r, x: f.rcp(f.fma(-x, x, 1.0)),),
    domain=(_unit,), ulp=2.1)  # fmt: skip
row("cbrt", "Return the real cube root of x.", 1, "f", lambda np, x: np.cbrt(x), _lowered(hyperbolic.cbrt),
    weights=(lambda f, r, x: f.rcp(3.0 * r * r),), domain=((0.1, 100.0),), ulp=0.8)  # fmt: skip
row("erf", "Return the error function of x.", 1, "f", _numpy_erf, _lowered(hyperbolic.erf),
    weights=(lambda f, r, x: 1.1283791670955126 * f.exp(-x * x),), domain=((-3.0, 3.0),), ulp=1.2)  # fmt: skip

# Derivatives of the rows above: a lane that a mask has left out has gradient 0, whatever its weight is there.
row("scaled", "Return x * y, 0 where x is 0 even if y is infinite or NaN: a gradient times a weight.", 2, "f",
    lambda np, x, y: np.where(x == 0, np.zeros_like(x), x * y),
    lambda e, t, x, y: e.select(x.eq(0.0), e.const(t, 0.0), x * y),
    weights=(lambda f, r, x, y: y, lambda f, r, x, y: x), domain=(_wide, _wide))  # fmt: skip
