"""What all array types share, and how operations on them reach the trace and the derivative graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..dtypes import ALL, Bool, DType
from ..ops.row import ROWS, Row
from ..trace import LITERAL, Node, next_index, recording, scalar, state, user_line
from .fold import fold, folding_operands

_new = object.__new__


class Hooks:
    """How the derivative package listens in: functions that it sets when it is loaded."""

    # (row, result array, the arguments' nodes, their derivative nodes) -> derivative node
    record: Callable[..., Any] | None = None
    custom: Callable[..., Any] | None = None  # (rule name, result, inputs, data) -> derivative node
    suspended: bool = False
    # While a function is streamed, chunk by chunk (see `jit/stream/context.py`):
    # (reduction, array, result type) -> the result over all chunks, None for arrays that are no chunk
    reduce: Callable[[str, Any, Any], Any] | None = None
    elements: Callable[[Any], int] | None = None  # array just reduced -> its elements in all chunks
    scatter: Callable[..., bool] | None = None  # arguments of `scatter_flat` -> whether it is done already


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


def apply(row: Row, args: tuple[Any, ...]) -> Any:
    """Return row(*args) for flat arrays of one type (a mask first where the row takes one)."""
    cls = args[1].__class__ if row.mask_first else args[0].__class__
    dtype = cls.dtype
    if dtype.kind not in row.kinds:
        raise TypeError(f"{row.name}(): not defined for {cls.__name__} arrays")
    nodes = tuple([a._n for a in args])
    size = 1
    constants = False
    for n in nodes:
        if n.op is LITERAL:
            constants = True
        s = n.size
        if s != size and s != 1:
            if size != 1:
                raise incompatible(args)
            size = s
    result_cls = cls if row.result != "bool" else cls.mask
    found = fold(row, nodes, size) if constants else None
    if found is None:
        found = _new(Node)
        found.op, found.dtype, found.size, found.args = row, result_cls.dtype, size, nodes
        found.attr = found.buf = None
        found.scope = state.inner if recording.scopes else None
        found.index = next_index()
        found.where = user_line() if recording.lines else None
    r = _new(result_cls)
    r._n = found
    r._ad = None
    for a in args:
        if a._ad is not None:
            r._ad = hooks.record(row, r, nodes, tuple([a._ad for a in args]))  # type: ignore[misc]
            break
    return r


def make_node(op: Any, dtype: DType, size: int, args: tuple[Node, ...], attr: Any = None) -> Node:
    """Return a new node in the current scope (as `trace.node`, kept here so that the hot path has one call)."""
    n = _new(Node)
    n.op, n.dtype, n.size, n.args, n.attr, n.buf = op, dtype, size, args, attr, None
    n.scope = state.inner if recording.scopes else None
    n.index = next_index()
    n.where = user_line() if recording.lines else None
    return n


def make_binary(name: str, swap: bool = False) -> Callable[[Any, Any], Any]:
    """Return the operator method of a two-argument row; `swap` for its reflected form.

    What takes part in most programs is recorded right here: two arrays of one type and size, or one and a Python
    number that nothing is folded with. The rest goes through `promote` and `apply`.
    """
    row = ROWS[name]
    to_mask = row.result == "bool"
    allowed = frozenset(d for d in ALL if d.kind in row.kinds)
    neutral = folding_operands(row)

    def method(self: Any, other: Any) -> Any:
        cls = self.__class__
        kind = other.__class__
        a = self._n
        dtype = a.dtype
        if kind is cls:
            b = other._n
            if a.size != b.size or a.op is LITERAL or b.op is LITERAL or dtype not in allowed:
                return apply(row, (self, other))
            other_ad = other._ad
            nodes = (a, b)
        else:
            fast = a.op is not LITERAL and (dtype.kind == "f" if kind is float else kind is int and dtype.kind != "b")
            if not fast or dtype not in allowed:
                return general(self, other)
            b = scalar(dtype, other)
            if b.attr in neutral[dtype]:
                return general(self, other)
            other_ad = None
            nodes = (b, a) if swap else (a, b)
        n = _new(Node)
        n.op = row
        n.dtype = Bool if to_mask else dtype
        n.size = a.size
        n.args = nodes
        n.attr = n.buf = None
        n.scope = state.inner if recording.scopes else None
        n.index = next_index()
        n.where = user_line() if recording.lines else None
        r = _new(cls.mask if to_mask else cls)
        r._n = n
        ad = self._ad
        if ad is None and other_ad is None:
            r._ad = None
        else:
            r._ad = hooks.record(row, r, nodes, (other_ad, ad) if swap else (ad, other_ad))  # type: ignore[misc]
        return r

    def general(self: Any, other: Any) -> Any:
        pair = self.__class__.promote(self, other)
        if pair is NotImplemented:
            return NotImplemented
        a, b = pair
        return apply(row, (b, a) if swap else (a, b))

    return method


def make_unary(name: str) -> Callable[[Any], Any]:
    """Return the operator method of a one-argument row."""
    row = ROWS[name]

    def method(self: Any) -> Any:
        return apply(row, (self,))

    return method
