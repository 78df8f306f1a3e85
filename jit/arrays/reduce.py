"""Reductions: over the components of nested arrays, over the elements of flat ones, over axes of tensors."""

from __future__ import annotations

import builtins
import operator
from typing import Any

from ..dtypes import Bool, UInt32
from ..ops.row import ROWS
from ..trace import LITERAL, value_of
from .base import ArrayBase, hooks
from .flat import Flat, reduce_node, wrap_literal
from .nested import Nested

_DEFAULT = ...
_COMBINE = {"add": operator.add, "mul": operator.mul, "and": operator.and_, "or": operator.or_}


def _flat(x: Any, op: str, result: Any) -> Any:
    """Return a size-1 array of type `result` with the reduction of a flat array."""
    if hooks.reduce is not None:
        streamed = hooks.reduce(op, x, result)
        if streamed is not None:
            return streamed
    n = x._n
    r = object.__new__(result)
    r._ad = None
    if n.size == 1 and op != "count":
        r._n = n
        r._ad = x._ad
        return r
    if n.op is LITERAL or n.size == 0:
        r._n = wrap_literal(result, _literal(n, op, x.dtype))._n
    else:
        r._n = reduce_node(result, x, op)
    if x._ad is not None:
        r._ad = hooks.custom("reduce", r, x, op)  # type: ignore[misc]
    return r


def _literal(n: Any, op: str, dtype: Any) -> Any:
    from ..codegen.memory import identity

    if n.size == 0:
        return 0 if op == "count" else identity(dtype, op)
    value: Any = value_of(n)
    if op == "add":
        value = value * n.size
        if dtype.is_integer:
            low, high = dtype.limits
            value = (value - low) % (high - low + 1) + low
    elif op == "mul":
        value = _power(value, n.size, dtype)
    elif op == "count":
        value = n.size if value else 0
    return value


def _power(value: Any, count: int, dtype: Any) -> Any:
    """Return value ** count as the type holds it: integers wrap, floats overflow to infinity."""
    if dtype.is_integer:
        wrapped = pow(int(value), count, 1 << dtype.bits)
        return wrapped - (1 << dtype.bits) if wrapped > dtype.limits[1] else wrapped
    try:
        return float(value) ** count
    except OverflowError:
        return float("inf") if value > 0 or count % 2 == 0 else float("-inf")


def _combine(values: list[Any], op: str) -> Any:
    from .functions import call

    if not values:
        if op not in _EMPTY:
            raise ValueError(f"{op}(): the smallest or largest of nothing does not exist")
        return _EMPTY[op]
    total = values[0]
    for v in values[1:]:
        if op in ("min", "max"):
            total = call(ROWS["f" + op if _is_float(v) else op], total, v)
        elif isinstance(total, bool):
            total = total and v if op == "and" else total or v
        else:
            total = _COMBINE[op](total, v)
    return total


def _is_float(v: Any) -> bool:
    return isinstance(v, float) or (isinstance(v, ArrayBase) and v.dtype.is_float)


_EMPTY = {"add": 0, "mul": 1, "and": True, "or": False}
_OPERATIONS = ("add", "mul", "min", "max", "and", "or")


def operation(op: Any) -> str:
    """Return the name of a reduction given as such or as a ReduceOp; raises ValueError for an unknown one."""
    name = str(op if isinstance(op, str) else getattr(op, "name", op)).lower()
    if name not in _OPERATIONS:
        raise ValueError(f"unknown reduction '{op}'; use {', '.join(_OPERATIONS)}")
    return name


def reduce(op: Any, x: Any, axis: Any = _DEFAULT, mode: Any = None, keepdims: bool = False) -> Any:
    """Return the reduction `op` (a ReduceOp, or "add", "mul", "min", "max", "and", "or") of `x` over `axis`.

    Flat arrays give size-1 arrays, nested ones are combined over their components (axis 0), tensors reduce everything
    unless an axis is given; `axis=None` reduces everything to a size-1 array. `keepdims` (tensors) leaves dimensions
    of length 1 in place of those reduced.
    """
    op = operation(op)
    if isinstance(x, (str, bytes)) or x is None:
        raise TypeError(f"a reduction needs an array, a number or a sequence of them, found {type(x).__name__}")
    if isinstance(x, Flat):
        if axis not in (_DEFAULT, 0, None, -1, (0,)):
            raise RuntimeError(f"reduce(): axis {axis} is out of range for a one-dimensional array")
        return _flat(x, op, type(x))
    if isinstance(x, Nested):
        return _nested(op, x, axis)
    if isinstance(x, ArrayBase):
        from .tensor import reduce_tensor

        return reduce_tensor(op, x, None if axis is _DEFAULT else axis, keepdims)
    if isinstance(x, (list, tuple)):
        return _combine(list(x), op)
    return x


def _nested(op: str, x: Any, axis: Any) -> Any:
    if axis is None:
        total = _combine(list(x._c), op)
        return reduce(op, total, None) if isinstance(total, ArrayBase) else total
    axes = (0,) if axis is _DEFAULT else (axis,) if isinstance(axis, int) else tuple(axis)
    axes = tuple(sorted(a % x.depth if -x.depth <= a < x.depth else -1 for a in axes))
    if builtins.any(a < 0 for a in axes):
        raise RuntimeError(f"reduce(): axis {axis} is out of range for a {type(x).__name__}")
    rest = tuple(a - 1 for a in axes if a > 0)
    parts = [reduce(op, c, rest) if rest and isinstance(c, ArrayBase) else c for c in x._c]
    if 0 in axes:
        return _combine(parts, op)
    return type(x).of(parts) if type(parts[0]) is x.value_t else x.ns.nested((len(parts),), x.dtype).of(parts)


def sum(x: Any, axis: Any = _DEFAULT, mode: Any = None, keepdims: bool = False) -> Any:
    """Return the sum; of flat arrays accumulated in double precision. Raises TypeError for masks (use count)."""
    _no_masks("sum", x)
    return reduce("add", x, axis, mode, keepdims)


def prod(x: Any, axis: Any = _DEFAULT, mode: Any = None, keepdims: bool = False) -> Any:
    """Return the product."""
    _no_masks("prod", x)
    return reduce("mul", x, axis, mode, keepdims)


def _no_masks(name: str, x: Any) -> None:
    if isinstance(x, ArrayBase) and x.dtype is Bool:
        raise TypeError(f"{name}(): not defined for masks; use count()")


def min(x: Any, axis: Any = _DEFAULT, mode: Any = None, keepdims: bool = False) -> Any:
    """Return the least element (NaN is passed over; +inf if there is none)."""
    return reduce("min", x, axis, mode, keepdims)


def max(x: Any, axis: Any = _DEFAULT, mode: Any = None, keepdims: bool = False) -> Any:
    """Return the greatest element (NaN is passed over; -inf if there is none).

    A float or an array as second argument asks for the elementwise maximum instead.
    """
    if isinstance(axis, (float, ArrayBase)):
        from .functions import call

        return call(ROWS["max"], x, axis)
    return reduce("max", x, axis, mode, keepdims)


def all(x: Any, axis: Any = _DEFAULT, mode: Any = None, keepdims: bool = False) -> Any:
    """Return whether every mask is set: over components, or elements of a flat mask."""
    return reduce("and", _masks("all", x), axis, mode, keepdims)


def any(x: Any, axis: Any = _DEFAULT, mode: Any = None, keepdims: bool = False) -> Any:
    """Return whether some mask is set."""
    return reduce("or", _masks("any", x), axis, mode, keepdims)


def none(x: Any, axis: Any = _DEFAULT, mode: Any = None, keepdims: bool = False) -> Any:
    """Return whether no mask is set."""
    found = reduce("or", _masks("none", x), axis, mode, keepdims)
    return not found if isinstance(found, bool) else ~found


def _masks(name: str, x: Any) -> Any:
    if isinstance(x, ArrayBase) and x.dtype is not Bool:
        raise TypeError(f"{name}(): a mask is needed, found {type(x).__name__}")
    return x


def count(x: Any, axis: Any = _DEFAULT, mode: Any = None, keepdims: bool = False) -> Any:
    """Return the number of masks that are set (UInt32)."""
    if isinstance(x, Flat):
        _masks("count", x)
        return _flat(x, "count", x.ns.flat(UInt32))
    if isinstance(x, Nested):
        from .functions import select

        kind = x.ns.flat(UInt32)
        ones = [select(c, kind(1), kind(0)) if isinstance(c, ArrayBase) else int(c) for c in x._c]
        return _combine(ones, "add")
    if isinstance(x, ArrayBase):
        from .functions import select

        return reduce("add", x.ns.tensor(UInt32)(select(_masks("count", x), 1, 0)), axis, mode, keepdims)
    return int(x) if isinstance(x, bool) else len([v for v in x if v])


def mean(x: Any, axis: Any = _DEFAULT, mode: Any = None, keepdims: bool = False) -> Any:
    """Return the mean; raises TypeError for integers. An empty array gives NaN."""
    if isinstance(x, ArrayBase) and not x.dtype.is_float:
        raise TypeError(f"mean(): floating-point values are needed, found {type(x).__name__}")
    total = reduce("add", x, axis, mode, keepdims)
    count = _elements(x)
    number = count / builtins.max(1, _elements(total)) if count else 0
    if number == 0:
        return total * float("nan")
    return total * (1.0 / number) if isinstance(total, ArrayBase) else total / number


def _elements(x: Any) -> int:
    if isinstance(x, Flat):
        return x._n.size if hooks.elements is None else hooks.elements(x)
    if isinstance(x, Nested):
        total = 0
        from .nested import width

        for c in x._c:
            total += _elements(c) if isinstance(c, Nested) else (width(x) if isinstance(c, ArrayBase) else 1)
        return total
    if isinstance(x, ArrayBase):
        return int(x.array._n.size)
    return len(x) if isinstance(x, (list, tuple)) else 1


def dot(a: Any, b: Any) -> Any:
    """Return the sum of products of components (nested) or elements (flat: size 1)."""
    if isinstance(a, Nested) and isinstance(b, Nested):
        if len(a._c) != len(b._c):
            raise RuntimeError(f"Incompatible arguments: dot() of {type(a).__name__} and {type(b).__name__}")
        from .functions import call

        total = a._c[0] * b._c[0]
        for x, y in zip(a._c[1:], b._c[1:], strict=True):
            total = call(ROWS["fma"], x, y, total)
        return total
    return sum(a * b)
