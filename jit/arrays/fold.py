"""Constants folded while tracing: operations on literals, and operations that change nothing."""

from __future__ import annotations

import operator
from typing import Any

from ..dtypes import ALL, Bool, pack
from ..ops.row import Row
from ..trace import LITERAL, Node, literal, resized, value_of

_ZERO = {d: pack(d, 0) for d in ALL}
_ONE = {d: pack(d, 1) for d in ALL}
_NEGATIVE_ZERO = {d: pack(d, -0.0) for d in ALL if d.is_float}

# What comparing an unsigned number with 0 gives.
_BELOW_ZERO: dict[str, Any] = {"lt": False, "ge": True, "min": 0}
# Python's own operations give the rounded result for these (a double holds the exact one of two singles).
_PYTHON: dict[str, Any] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg, "lt": operator.lt,
    "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "neq": operator.ne,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor,
}  # fmt: skip


# Rows that a single constant among the arguments can simplify.
_PARTIAL = frozenset(("add", "sub", "mul", "div", "idiv", "and", "or", "select", "fma", *_BELOW_ZERO))


def folding_operands(row: Row) -> dict[Any, frozenset[bytes]]:
    """Return per element type the constant operands of a two-argument row for which `fold` must be asked."""
    table = {}
    for d in ALL:
        found: set[bytes] = set()
        if row.name in ("add", "sub") or (d.kind == "u" and row.name in _BELOW_ZERO):
            found = {_ZERO[d], _NEGATIVE_ZERO.get(d, _ZERO[d])}
        elif row.name in ("mul", "div", "idiv"):
            found = {_ONE[d]}
        elif row.name in ("and", "or"):
            found = {_ONE[d], _ZERO[d]}
        table[d] = frozenset(found)
    return table


def fold(row: Row, args: tuple[Node, ...], size: int) -> Node | None:
    """Return a node that replaces `row(*args)`, or None; at least one argument is a literal."""
    for a in args:
        if a.op is not LITERAL:
            break
    else:
        return _evaluate(row, args, size)
    name = row.name
    if name not in _PARTIAL:
        return None
    if name == "select":
        mask, x, y = args
        if mask.op is LITERAL:
            chosen = x if value_of(mask) else y
            return _sized(chosen, size)
        return None
    if len(args) == 2:
        if args[0].dtype.kind == "u" and args[1].op is LITERAL and _is_zero(args[1]) and name in _BELOW_ZERO:
            # Not only cheaper: LLVM 22 ends the process on umin(fptoui(x), 0).
            value = _BELOW_ZERO[name]
            return literal(Bool, value, size) if isinstance(value, bool) else literal(args[0].dtype, 0, size)
        replaced = _identity(name, *args)
        return None if replaced is None else _sized(replaced, size)
    if name == "fma":
        x, y, z = args
        zero = _ZERO[x.dtype]
        if (x.op is LITERAL and x.attr == zero) or (y.op is LITERAL and y.attr == zero):
            return _sized(z, size)
    return None


def _sized(n: Node, size: int) -> Node | None:
    if n.size == size:
        return n
    return resized(n, size) if n.op is LITERAL else None


def _identity(name: str, x: Node, y: Node) -> Node | None:
    dtype = x.dtype
    if name == "add":
        if x.op is LITERAL and _is_zero(x):
            return y
        return x if y.op is LITERAL and _is_zero(y) else None
    if name == "sub":
        return x if y.op is LITERAL and _is_zero(y) else None
    if name == "mul":
        if x.op is LITERAL and x.attr == _ONE[dtype]:
            return y
        return x if y.op is LITERAL and y.attr == _ONE[dtype] else None
    if name == "div" or name == "idiv":
        return x if y.op is LITERAL and y.attr == _ONE[dtype] else None
    if dtype is Bool and name in ("and", "or"):
        neutral = _ONE[Bool] if name == "and" else _ZERO[Bool]
        if x.op is LITERAL:
            return y if x.attr == neutral else x
        return x if y.attr == neutral else y
    return None


def _is_zero(n: Node) -> bool:
    return bool(n.attr == _ZERO[n.dtype] or n.attr == _NEGATIVE_ZERO.get(n.dtype))


def _evaluate(row: Row, args: tuple[Node, ...], size: int) -> Node:
    dtype = args[1].dtype if row.mask_first else args[0].dtype
    result = Bool if row.result == "bool" else dtype
    values = [value_of(a) for a in args]
    if row.name == "select":
        return literal(result, values[1] if values[0] else values[2], size)
    python = _PYTHON.get(row.name)
    if python is not None:
        value = python(*values)
        if dtype.is_integer and result is dtype:
            value = _wrap(value, dtype)
        return literal(result, value, size)
    import numpy as np

    with np.errstate(all="ignore"):
        arrays = [np.array([v], a.dtype.numpy) for v, a in zip(values, args, strict=True)]
        value = row.reference(np, *arrays)[0].item()
    return literal(result, value, size)


def _wrap(value: int, dtype: Any) -> int:
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.kind == "i" and value >> dtype.bits - 1 else value
