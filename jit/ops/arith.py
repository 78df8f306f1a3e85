"""Arithmetic, comparison, selection and rounding."""

from __future__ import annotations

from ..codegen.emitter import Emitter, Value
from ..dtypes import DType
from .row import intrinsic, row


def _divide(e: Emitter, dtype: DType, x: Value, y: Value) -> Value:
    # Packets divide all lanes, wanted or not: a zero or overflowing divisor is replaced, or the processor traps.
    zero = y.eq(0)
    safe = e.select(zero, 1, y)
    if dtype.kind == "i":
        overflow = x.eq(dtype.limits[0]) & y.eq(-1)
        safe = e.select(overflow, 1, safe)
    quotient = x / safe
    return e.select(zero, -1 if dtype.kind == "i" else dtype.limits[1], quotient)


def _remainder(e: Emitter, dtype: DType, x: Value, y: Value) -> Value:
    zero = y.eq(0)
    safe = e.select(zero, 1, y)
    if dtype.kind == "i":
        safe = e.select(y.eq(-1), 1, safe)
    op = "srem" if dtype.kind == "i" else "urem"
    rest = e.op(dtype, f"{op} {e.type(dtype)} {x.name}, {safe.name}")
    return e.select(zero, x, rest)


def _numpy_divide(np, x, y):  # type: ignore[no-untyped-def]
    safe = np.where(y == 0, 1, y)
    with np.errstate(over="ignore"):
        quotient = np.where((x < 0) != (y < 0), -(abs(x.astype(object)) // abs(safe.astype(object))), 0)
        quotient = np.where((x < 0) != (y < 0), quotient, abs(x.astype(object)) // abs(safe.astype(object)))
    bits = 8 * x.dtype.itemsize
    wrapped = np.array([int(q) % (1 << bits) for q in quotient.ravel()], dtype=f"u{x.dtype.itemsize}")
    result = wrapped.reshape(quotient.shape).astype(x.dtype)
    return np.where(y == 0, np.array(-1).astype(x.dtype), result)


def _numpy_remainder(np, x, y):  # type: ignore[no-untyped-def]
    safe = np.where(y == 0, 1, y)
    return np.where(y == 0, x, np.fmod(x, np.where(safe == -1, 1, safe)) if x.dtype.kind == "i" else x % safe)


def _minimum(e: Emitter, dtype: DType, x: Value, y: Value) -> Value:
    return e.select(x < y, x, y) if not dtype.is_float else e.select(x.ne(x), x, e.select(x < y, x, y))


def _maximum(e: Emitter, dtype: DType, x: Value, y: Value) -> Value:
    return e.select(x > y, x, y) if not dtype.is_float else e.select(x.ne(x), x, e.select(x > y, x, y))


def _fmin(e: Emitter, dtype: DType, x: Value, y: Value) -> Value:
    return e.select(y.ne(y), x, e.select(x < y, x, y))


def _fmax(e: Emitter, dtype: DType, x: Value, y: Value) -> Value:
    return e.select(y.ne(y), x, e.select(x > y, x, y))


def _fma(e: Emitter, dtype: DType, x: Value, y: Value, z: Value) -> Value:
    return e.fma(x, y, z) if dtype.is_float else x * y + z


def _sign(e: Emitter, dtype: DType, x: Value) -> Value:
    if dtype.is_float:
        return e.intrinsic("copysign", dtype, e.const(dtype, 1.0), x)
    return e.select(x < 0, -1, e.const(dtype, 1)) if dtype.kind == "i" else e.const(dtype, 1)


def _rcp(e: Emitter, dtype: DType, x: Value) -> Value:
    return 1.0 / x


def _rsqrt(e: Emitter, dtype: DType, x: Value) -> Value:
    return 1.0 / e.sqrt(x)


_wide = (-100.0, 100.0)
_unit = (-2.0, 2.0)

row("add", "Return x + y.", 2, "iuf", lambda np, x, y: x + y, lambda e, t, x, y: x + y,
    weights=(1.0, 1.0), domain=(_wide, _wide))  # fmt: skip
row("sub", "Return x - y.", 2, "iuf", lambda np, x, y: x - y, lambda e, t, x, y: x - y,
    weights=(1.0, -1.0), domain=(_wide, _wide))  # fmt: skip
row("mul", "Return x * y.", 2, "iuf", lambda np, x, y: x * y, lambda e, t, x, y: x * y,
    weights=(lambda f, r, x, y: y, lambda f, r, x, y: x), domain=(_wide, _wide))  # fmt: skip
row("div", "Return x / y of floating-point values.", 2, "f", lambda np, x, y: x / y, lambda e, t, x, y: x / y,
    weights=(lambda f, r, x, y: f.rcp(y), lambda f, r, x, y: -r / y), domain=(_wide, (0.1, 10.0)))  # fmt: skip
row("idiv", "Return x // y of integers, truncated; all bits set where y is 0 (never traps).", 2, "iu",
    _numpy_divide, _divide, domain=(_wide, _wide))  # fmt: skip
row("imod", "Return x % y of integers with the sign of x; x where y is 0 (never traps).", 2, "iu",
    _numpy_remainder, _remainder, domain=(_wide, _wide))  # fmt: skip
row("fma", "Return x * y + z, rounded once.", 3, "iuf", lambda np, x, y, z: x * y + z, _fma,
    weights=(lambda f, r, x, y, z: y, lambda f, r, x, y, z: x, 1.0), domain=(_unit, _unit, _unit), ulp=1.0)  # fmt: skip
row("neg", "Return -x.", 1, "iuf", lambda np, x: -x, lambda e, t, x: -x, weights=(-1.0,), domain=(_wide,))
row("abs", "Return the absolute value of x.", 1, "iuf", lambda np, x: abs(x), lambda e, t, x: e.abs(x),
    weights=(lambda f, r, x: f.select(x == 0, 0.0, f.sign(x)),), domain=(_wide,))  # fmt: skip
row("min", "Return the lesser of x and y; NaN if either is NaN.", 2, "iuf", lambda np, x, y: np.minimum(x, y), _minimum,
    weights=(lambda f, r, x, y: f.select(x < y, 1.0, f.zero(x)), lambda f, r, x, y: f.select(x < y, f.zero(x), 1.0)),
    domain=(_wide, _wide))  # fmt: skip
row("max", "Return the greater of x and y; NaN if either is NaN.", 2, "iuf",
    lambda np, x, y: np.maximum(x, y), _maximum,
    weights=(lambda f, r, x, y: f.select(x > y, 1.0, f.zero(x)), lambda f, r, x, y: f.select(x > y, f.zero(x), 1.0)),
    domain=(_wide, _wide))  # fmt: skip
row("fmin", "Return the lesser of x and y, ignoring a NaN.", 2, "f", lambda np, x, y: np.fmin(x, y), _fmin,
    weights=(lambda f, r, x, y: f.select(x < y, 1.0, f.zero(x)), lambda f, r, x, y: f.select(x < y, f.zero(x), 1.0)),
    domain=(_wide, _wide))  # fmt: skip
row("fmax", "Return the greater of x and y, ignoring a NaN.", 2, "f", lambda np, x, y: np.fmax(x, y), _fmax,
    weights=(lambda f, r, x, y: f.select(x > y, 1.0, f.zero(x)), lambda f, r, x, y: f.select(x > y, f.zero(x), 1.0)),
    domain=(_wide, _wide))  # fmt: skip
row("sqrt", "Return the square root of x, correctly rounded; NaN below 0.", 1, "f", lambda np, x: np.sqrt(x),
    lambda e, t, x: e.sqrt(x), weights=(lambda f, r, x: 0.5 / r,), domain=((0.1, 100.0),))  # fmt: skip
row("rcp", "Return 1 / x, correctly rounded.", 1, "f", lambda np, x: 1 / x, _rcp,
    weights=(lambda f, r, x: -r * r,), domain=((0.1, 100.0),))  # fmt: skip
row("rsqrt", "Return 1 / sqrt(x).", 1, "f", lambda np, x: 1 / np.sqrt(x), _rsqrt,
    weights=(lambda f, r, x: -0.5 * r * r * r,), domain=((0.1, 100.0),), ulp=1.5)  # fmt: skip
row("copysign", "Return the magnitude of x with the sign of y.", 2, "f", lambda np, x, y: np.copysign(x, y),
    intrinsic("copysign"), weights=(lambda f, r, x, y: f.mulsign(f.sign(x), y), None),
    domain=(_wide, _wide))  # fmt: skip
row("mulsign", "Return x, negated where the sign bit of y is set.", 2, "f",
    lambda np, x, y: x * np.copysign(1, y).astype(x.dtype),
    lambda e, t, x, y: x * e.intrinsic("copysign", t, e.const(t, 1.0), y),
    weights=(lambda f, r, x, y: f.sign(y), None), domain=(_wide, _wide))  # fmt: skip
row("sign", "Return 1 or -1 by the sign bit of x (1 at +0).", 1, "iuf",
    lambda np, x: np.where(np.signbit(x), -1, 1).astype(x.dtype), _sign, domain=(_wide,))  # fmt: skip

for _name, _numpy, _llvm, _doc in (
    ("floor", "floor", "floor", "the greatest integer not above x"),
    ("ceil", "ceil", "ceil", "the least integer not below x"),
    ("trunc", "trunc", "trunc", "x without its fraction"),
    ("round", "rint", "roundeven", "the nearest integer, of two equally near ones the even"),
):
    row(_name, f"Return {_doc}, as floating point.", 1, "f", lambda np, x, n=_numpy: getattr(np, n)(x),
        intrinsic(_llvm), domain=(_wide,))  # fmt: skip

for _name, _doc, _fn in (
    ("lt", "x < y", lambda x, y: x < y),
    ("le", "x <= y", lambda x, y: x <= y),
    ("gt", "x > y", lambda x, y: x > y),
    ("ge", "x >= y", lambda x, y: x >= y),
):
    row(_name, f"Return the mask {_doc}.", 2, "iuf", lambda np, x, y, fn=_fn: fn(x, y),
        lambda e, t, x, y, fn=_fn: fn(x, y), domain=(_wide, _wide), result="bool")  # fmt: skip
row("eq", "Return the mask x == y (false for NaN).", 2, "biuf", lambda np, x, y: x == y,
    lambda e, t, x, y: x.eq(y), domain=(_wide, _wide), result="bool")  # fmt: skip
row("neq", "Return the mask x != y (true for NaN).", 2, "biuf", lambda np, x, y: x != y,
    lambda e, t, x, y: x.ne(y), domain=(_wide, _wide), result="bool")  # fmt: skip

row("select", "Return x where the mask is set, else y.", 3, "biuf", lambda np, m, x, y: np.where(m, x, y),
    lambda e, t, m, x, y: e.select(m, x, y),
    weights=(None, lambda f, r, m, x, y: f.select(m, f.one(x), f.zero(x)),
             lambda f, r, m, x, y: f.select(m, f.zero(x), f.one(x))),
    domain=((0, 1), _wide, _wide), mask_first=True)  # fmt: skip
