"""What all array types share, and how operations on them reach the trace and the derivative graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..dtypes import Bool, DType
from ..ops.row import ROWS, Row
from ..trace import LITERAL, Node, next_index, state, user_line
from .fold import fold

_new = object.__new__


class Hooks:
    """How the derivative package listens in: functions that it sets when it is loaded."""

    record: Callable[..., Any] | None = None  # (row, result array, argument arrays) -> derivative node
    custom: Callable[..., Any] | None = None  # (rule name, result, inputs, data) -> derivative node
    suspended: bool = False


hooks = Hooks()


class ArrayBase:
    """Base of every array type, flat, nested and tensor."""

    __slots__ = ()
    ns: Any = None  # the namespace of types this one belongs to
    is_matrix = False
    is_tensor = False
    dtype: DType
    depth: int = 1

    if TYPE_CHECKING:  # what all kinds of arrays have, each with a definition of its own

        @property
        def shape(self) -> tuple[int, ...]: ...
        @property
        def array(self) -> Any: ...

        _n: Any
        with_array: Any
        __init__: Any
        __copy__: Any
        __getitem__: Any
        __add__: Any
        __mul__: Any
        __matmul__: Any
        __rmul__: Any
        __neg__: Any
        __lt__: Any
        __gt__: Any
        __eq__: Any

    def __hash__(self) -> int:
        return id(self)


def incompatible(args: tuple[Any, ...]) -> RuntimeError:
    """Return the error for arrays whose sizes do not broadcast."""
    sizes = ", ".join(str(a._n.size) for a in args)
    where = user_line()
    return RuntimeError(
        f"operands have incompatible sizes! (sizes: {sizes}). Sizes must be equal, or 1 to broadcast."
        + (f" At {where}." if where else "")
    )


def result_size(args: tuple[Any, ...]) -> int:
    """Return the size of an elementwise result; raises RuntimeError if sizes do not broadcast."""
    size = 1
    for a in args:
        s = a._n.size
        if s != size and s != 1:
            if size != 1:
                raise incompatible(args)
            size = s
    if size != 0 and any(a._n.size == 0 for a in args):
        raise incompatible(args)
    return size


def apply(row: Row, args: tuple[Any, ...]) -> Any:
    """Return row(*args) for flat arrays of one type (a mask first where the row takes one)."""
    cls = args[1].__class__ if row.mask_first else args[0].__class__
    dtype = cls.dtype
    if dtype.kind not in row.kinds:
        raise TypeError(f"{row.name}(): not defined for {cls.__name__} arrays")
    size = result_size(args)
    nodes = tuple([a._n for a in args])
    result_cls = cls.mask if row.result == "bool" else cls
    n = None
    for m in nodes:
        if m.op is LITERAL:
            n = fold(row, nodes, size)
            break
    if n is None:
        n = make_node(row, result_cls.dtype, size, nodes)
    r = _new(result_cls)
    r._n = n
    r._ad = None
    for a in args:
        if a._ad is not None:
            r._ad = hooks.record(row, r, args)  # type: ignore[misc]
            break
    return r


def make_node(op: Any, dtype: DType, size: int, args: tuple[Node, ...], attr: Any = None) -> Node:
    """Return a new node in the current scope (as `trace.node`, kept here so that the hot path has one call)."""
    n = _new(Node)
    n.op, n.dtype, n.size, n.args, n.attr, n.buf = op, dtype, size, args, attr, None
    n.scope = state.scope
    n.index = next_index()
    n.where = user_line() if state.record_lines else None
    return n


def make_binary(name: str, swap: bool = False) -> Callable[[Any, Any], Any]:
    """Return the operator method of a two-argument row; `swap` for its reflected form."""
    row = ROWS[name]
    kinds = row.kinds
    to_mask = row.result == "bool"

    def method(self: Any, other: Any) -> Any:
        cls = self.__class__
        if other.__class__ is not cls:
            pair = cls.promote(self, other)
            if pair is NotImplemented:
                return NotImplemented
            a, b = pair
            return apply(row, (b, a) if swap else (a, b))
        a, b = self._n, other._n
        if a.size != b.size or a.op is LITERAL or b.op is LITERAL or cls.dtype.kind not in kinds:
            return apply(row, (self, other))
        n = _new(Node)
        n.op, n.dtype, n.size, n.args, n.attr, n.buf = row, Bool if to_mask else a.dtype, a.size, (a, b), None, None
        n.scope = state.scope
        n.index = next_index()
        n.where = user_line() if state.record_lines else None
        r = _new(cls.mask if to_mask else cls)
        r._n = n
        r._ad = None if self._ad is None and other._ad is None else hooks.record(row, r, (self, other))  # type: ignore[misc]
        return r

    return method


def make_unary(name: str) -> Callable[[Any], Any]:
    """Return the operator method of a one-argument row."""
    row = ROWS[name]

    def method(self: Any) -> Any:
        return apply(row, (self,))

    return method
