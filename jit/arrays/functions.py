"""The functions of rows, on flat and nested arrays, tensors and Python numbers: sin(x), select(m, a, b), ..."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dtypes import Bool, Int32
from ..ops.row import ROWS, Row
from ..trace import scalar
from . import tree
from .base import ArrayBase, apply
from .flat import Flat, convert, promoted, wrap_literal
from .nested import Nested

_new = object.__new__


def common(values: list[Any]) -> Any:
    """Return the flat type that all operands (flat arrays and Python numbers) are converted to."""
    cls: Any = None
    for v in values:
        if isinstance(v, Flat):
            cls = type(v) if cls is None else promoted(cls, type(v))
    floats = any(isinstance(v, float) for v in values)
    if floats and not cls.dtype.is_float:
        from ..dtypes import Float32

        cls = cls.ns.flat(Float32)
    return cls


def call(row: Row, *args: Any) -> Any:
    """Return row(*args) for any mix of arrays and Python numbers."""
    simple = _same_type(row, args)
    if simple is not None:
        return apply(row, simple)
    first = None
    for a in args:
        if isinstance(a, ArrayBase):
            if isinstance(a, Flat):
                first = first or "flat"
            elif isinstance(a, Nested):
                first = "nested" if first != "tensor" else first
            else:
                first = "tensor"
    if first == "flat":
        return _call_flat(row, args)
    if first == "nested":
        return _call_nested(row, args)
    if first == "tensor":
        from .tensor import call_tensor

        return call_tensor(row, args)
    return _call_numbers(row, args)


def _same_type(row: Row, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the operands if they are flat arrays of one type, or numbers that become constants of it; else None."""
    cls = args[-1].__class__
    if len(args) == 1:
        return args if issubclass(cls, Flat) and cls.dtype.kind in row.kinds else None
    if cls is float or cls is int:
        for a in args:
            if isinstance(a, Flat):
                cls = a.__class__
        if row.mask_first and args[0].__class__ is cls:
            return None
    if not issubclass(cls, Flat):
        return None
    dtype = cls.dtype
    kind = dtype.kind
    if kind not in row.kinds:
        return None
    mixed = False
    for a in args:
        c = a.__class__
        if c is cls:
            continue
        if c is float and kind == "f" or c is int and kind != "b":
            mixed = True
        elif a is not args[0] or not row.mask_first or c is not cls.mask:
            return None
    if row.mask_first and args[0].__class__ is not cls.mask:
        return None
    return tuple([constant(cls, a) if a.__class__ in (float, int) else a for a in args]) if mixed else args


def constant(cls: Any, value: float | int) -> Any:
    """Return a number (no bool) as an operand: an array of size 1 whose node others may share."""
    r = _new(cls)
    r._n = scalar(cls.dtype, value)
    r._ad = None
    return r


def _call_flat(row: Row, args: tuple[Any, ...]) -> Any:
    if row.mask_first:
        mask, *rest = args
        cls = common(rest) if any(isinstance(r, Flat) for r in rest) else _from_mask(mask, rest)
        if not isinstance(mask, Flat):
            if not isinstance(mask, (bool, int)):
                raise TypeError(f"{row.name}(): the mask must be a bool or a mask array, found {type(mask).__name__}")
            mask = wrap_literal(cls.mask, bool(mask))
        elif mask.dtype is not Bool:
            raise TypeError(f"{row.name}(): the mask must be a mask array, found {type(mask).__name__}; compare first")
        return apply(row, (mask, *(convert(cls, r) for r in rest)))
    cls = common(list(args))
    if "i" not in row.kinds and not cls.dtype.is_float and len(args) and row.kinds == "f":
        raise TypeError(f"{row.name}(): expected floating-point arguments, found {cls.__name__}")
    return apply(row, tuple(convert(cls, a) for a in args))


def _from_mask(mask: Any, values: list[Any]) -> Any:
    from ..dtypes import Float32

    ns = mask.ns
    if any(isinstance(v, float) for v in values):
        return ns.flat(Float32)
    return ns.flat(Bool) if all(isinstance(v, bool) for v in values) else ns.flat(Int32)


def _call_nested(row: Row, args: tuple[Any, ...]) -> Any:
    deepest = max((a for a in args if isinstance(a, Nested)), key=lambda a: a.depth)
    n = deepest.static_shape[0]
    for a in args:
        if isinstance(a, Nested) and a.depth == deepest.depth and len(a._c) != n:
            names = " and ".join(type(x).__name__ for x in args if isinstance(x, Nested))
            raise RuntimeError(f"Incompatible arguments: {row.name}() of {names}")
    columns = [a._c if isinstance(a, Nested) and a.depth == deepest.depth else [a] * n for a in args]
    out = [call(row, *(c[k] for c in columns)) for k in range(n)]
    values = [a for a in (args[1:] if row.mask_first else args) if isinstance(a, Nested)]
    # Subtypes (points, colours) stay what they are when element type and shape do.
    for a in values:
        if out and type(out[0]) is a.value_t and len(a._c) == n:
            return type(a).of(out)
    return _nested_of(deepest, out)


def _nested_of(like: Any, out: list[Any]) -> Any:
    first = out[0]
    if isinstance(first, Flat):
        return first.ns.nested((len(out),), first.dtype).of(out)
    if isinstance(first, Nested):
        return first.ns.nested((len(out), *first.static_shape), first.dtype).of(out)
    dtype = Bool if isinstance(first, bool) else like.dtype
    return like.ns.nested(like.static_shape, dtype).of(out)


def _call_numbers(row: Row, args: tuple[Any, ...]) -> Any:
    import numpy as np

    if row.name == "select":
        if not isinstance(args[0], (bool, np.bool_)):
            raise TypeError(f"select(): the mask must be a bool or a mask array, found {type(args[0]).__name__}")
        return args[1] if args[0] else args[2]
    for a in args:
        if not isinstance(a, (bool, int, float, np.number, np.bool_)):
            raise TypeError(f"{row.name}(): an array or a number is needed, found {type(a).__name__}")
    with np.errstate(all="ignore"):
        if row.kinds == "f" or any(isinstance(a, float) for a in args):
            return row.reference(np, *(np.array([float(a)]) for a in args))[0].item()
        kind = np.bool_ if all(isinstance(a, bool) for a in args) else np.int64
        return row.reference(np, *(np.array([a], kind) for a in args))[0].item()


def function(name: str) -> Callable[..., Any]:
    """Return the public function of a row."""
    row = ROWS[name]

    def fn(*args: Any) -> Any:
        if len(args) != row.arity:
            raise TypeError(f"{name}(): expected {row.arity} arguments, found {len(args)}")
        simple = _same_type(row, args)
        return apply(row, simple) if simple is not None else call(row, *args)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = row.doc
    return fn


select = function("select")


def power(x: Any, y: Any) -> Any:
    """Return x to the power y; integer exponents (Python ints) by repeated squaring, exact for integers."""
    if isinstance(y, int) and not isinstance(y, bool):
        return _integer_power(x, y)
    if isinstance(x, ArrayBase) and not x.dtype.is_float and not isinstance(y, (int, ArrayBase)):
        raise TypeError(f"power(): an integer array can only be raised to an integer >= 0, found {y!r}")
    if not isinstance(x, ArrayBase) and not isinstance(y, ArrayBase):
        return x**y
    return call(ROWS["pow"], x, y)


def _integer_power(x: Any, k: int) -> Any:
    if not isinstance(x, ArrayBase):
        return x**k
    if k < 0:
        if not x.dtype.is_float:
            raise TypeError(f"power(): an integer array can only be raised to an integer >= 0, found {k}")
        return call(ROWS["rcp"], _integer_power(x, -k))
    result = None
    square = x
    while k:
        if k & 1:
            result = square if result is None else result * square
        k >>= 1
        if k:
            square = square * square
    return type(x)(1) + x * 0 if result is None else result


def zero(x: Any) -> Any:
    """Return a 0 of the type of `x`."""
    return constant(x.__class__, 0)


def one(x: Any) -> Any:
    """Return a 1 of the type of `x`."""
    return constant(x.__class__, 1)


def isnan(x: Any) -> Any:
    """Return the mask of NaN elements."""
    return x != x


def isinf(x: Any) -> Any:
    """Return the mask of infinite elements."""
    return call(ROWS["abs"], x) == float("inf")


def isfinite(x: Any) -> Any:
    """Return the mask of elements that are neither NaN nor infinite."""
    return call(ROWS["abs"], x) < float("inf")


def clip(x: Any, low: Any, high: Any) -> Any:
    """Return x limited to [low, high]; NaN stays NaN."""
    return call(ROWS["max"], call(ROWS["min"], x, high), low)


def lerp(a: Any, b: Any, t: Any) -> Any:
    """Return a * (1 - t) + b * t."""
    return call(ROWS["fma"], b, t, call(ROWS["fma"], -a, t, a)) if _floats(a, b, t) else a * (1 - t) + b * t


def _floats(*values: Any) -> bool:
    return all(isinstance(v, float) or (isinstance(v, ArrayBase) and v.dtype.is_float) for v in values)


def square(x: Any) -> Any:
    """Return x * x."""
    return x * x


def tracked(x: Any) -> bool:
    """Return whether any array in a PyTree has a derivative node."""
    return any(a._ad is not None for a in tree.arrays(x))


def safe_sqrt(x: Any) -> Any:
    """Return the square root of max(x, 0); its derivative is 0 where x <= 0 (the true one is infinite at 0)."""
    if not tracked(x):
        return call(ROWS["sqrt"], call(ROWS["max"], x, 0.0))
    positive = x > 0
    return select(positive, call(ROWS["sqrt"], select(positive, x, 1.0)), 0.0)


def hypot(x: Any, y: Any) -> Any:
    """Return sqrt(x^2 + y^2) without overflow in between.

    Infinite where either is infinite, also if the other is NaN (C99, F.9.4.3); Dr.Jit gives NaN there.

    >>> import luxgrad as dr
    >>> dr.hypot(3.0, 4.0)
    5.0
    """
    a, b = call(ROWS["abs"], x), call(ROWS["abs"], y)
    large, small = call(ROWS["max"], a, b), call(ROWS["min"], a, b)
    ratio = call(ROWS["select"], large == 0.0, 0.0, small / call(ROWS["select"], large == 0.0, 1.0, large))
    length = large * call(ROWS["sqrt"], call(ROWS["fma"], ratio, ratio, 1.0))
    infinity = float("inf")
    return call(ROWS["select"], (a == infinity) | (b == infinity), infinity, length)


_FUNCTIONS: dict[str, Any] = {}


def __getattr__(name: str) -> Any:
    """Return the function of the row `name` (rules of derivatives write f.sin(x))."""
    if name in ROWS:
        if name not in _FUNCTIONS:
            _FUNCTIONS[name] = function(name)
        return _FUNCTIONS[name]
    raise AttributeError(f"no operation is called '{name}'")
