"""Reading and writing by index: gather, scatter and its reducing forms, on any PyTree of flat or nested arrays."""

from __future__ import annotations

import sys
import weakref
from typing import Any

from ..dtypes import Bool, UInt32
from ..errors import SymbolicError
from ..memory.pool import view
from ..references import LOCAL
from ..runtime.evaluate import evaluate, materialise
from ..trace import AFTER, GATHER, LITERAL, SCATTER, Node, active_mask, data, literal, resized, state, value_of
from .base import ArrayBase, hooks, incompatible, make_node
from .flat import Flat, convert
from .functions import select
from .nested import Nested

_new = object.__new__


class ScatterInfo:
    """What a SCATTER node does to which target (held weakly: a scatter nobody reads is not run)."""

    __slots__ = ("op", "_after")

    def __init__(self, op: str, after: Node) -> None:
        self.op, self._after = op, weakref.ref(after)

    def after(self) -> Node | None:
        """Return the target's node, None when nobody can read it any more."""
        return self._after()

    def commutes(self) -> bool:
        """Return whether all scatters to the target in this pass are reductions of one kind."""
        after = self._after()
        return after is not None and after.attr.op == self.op


class AfterInfo:
    """The scatters that an AFTER node waits for, and over how many elements they run."""

    __slots__ = ("effects", "size", "op", "scope")

    def __init__(self, effects: list[Node], size: int, op: str, scope: Any) -> None:
        self.effects, self.size, self.op, self.scope = effects, size, op, scope


def _indices(ns: Any, given: Any) -> Any:
    """Return Python or NumPy integers as an index array; raises TypeError for other numbers."""
    index = ns.flat(UInt32)(given)
    exact = isinstance(given, int) if not hasattr(given, "__len__") else True
    kind = getattr(getattr(given, "dtype", None), "kind", "i")
    if not exact or kind not in "iu" or (isinstance(given, (list, tuple)) and any(isinstance(i, float) for i in given)):
        raise TypeError(f"an index must be an integer or an integer array, found {given!r}")
    return index


def index_mask(index: Any, active: Any) -> tuple[Any, Any, int]:
    """Return index and mask as flat arrays with the scope's own mask included, and their common size."""
    ns = index.ns
    boolean = ns.flat(Bool)
    mask = convert(boolean, active)
    if not index.dtype.is_integer:
        raise TypeError(f"an index must be an integer array, found {type(index).__name__}")
    if state.mask is not None:
        mask = mask & state.mask
    size = _common_size(index, mask)
    if state.scope is not None or index._n.size > 1 or mask._n.size > 1:
        where = boolean.wrap(active_mask(state.scope, size))
        mask = mask & where if not (mask._n.op is LITERAL and mask._n.attr == b"\x01") else where
    return index, mask, size


def _common_size(*arrays: Any) -> int:
    size = 1
    for a in arrays:
        s = a._n.size
        if s != size and s != 1:
            if size != 1:
                raise incompatible(arrays)
            size = s
    return 0 if any(a._n.size == 0 for a in arrays) else size


def gather(dtype: Any, source: Any, index: Any, active: Any = True, mode: Any = None, shape: Any = None) -> Any:
    """Return the elements of `source` at `index` as type `dtype`; lanes where `active` is false get 0.

    `source` is flat (then a nested `dtype` reads index * k .. index * k + k - 1 as one element) or a PyTree of the
    same structure as `dtype`. Nothing is read where `active` is false or the index is outside of the source: such lanes
    get 0, and under the Debug flag BoundsError names index, length and line. Differentiable in `source`.

    >>> import luxgrad as dr
    >>> from luxgrad.llvm import Array2f, Float, UInt32
    >>> print(dr.gather(Float, Float([10, 11, 12, 13]), UInt32([3, 0])))
    [13, 10]
    >>> print(dr.gather(Array2f, Float([10, 11, 12, 13]), UInt32([1, 0])))
    [[12, 13],
     [10, 11]]
    """
    if isinstance(source, Nested):
        parts = [gather(c.__class__, c, index, active) for c in source._c]
        return dtype.of(parts) if isinstance(dtype, type) and issubclass(dtype, Nested) else type(source).of(parts)
    if isinstance(source, (list, tuple)):
        return type(source)([gather(type(s), s, index, active) for s in source])
    if isinstance(source, dict):
        return {k: gather(type(s), s, index, active) for k, s in source.items()}
    if not isinstance(source, Flat):
        if hasattr(source, "array"):
            source = source.array
        else:
            raise TypeError(f"gather(): the source must be a flat array, found {type(source).__name__}")
    if not isinstance(index, ArrayBase):
        index = _indices(source.ns, index)
    if isinstance(dtype, type) and issubclass(dtype, Nested):
        return _gather_nested(dtype, source, index, active)
    result = _gather_flat(source, index, active)
    return convert(dtype, result) if isinstance(dtype, type) and issubclass(dtype, Flat) else result


def _gather_nested(dtype: Any, source: Any, index: Any, active: Any) -> Any:
    n = dtype.static_shape[0]
    if isinstance(index, Nested):
        return dtype.of([gather(dtype.value_t, source, i, active) for i in index._c])
    first = first_component(index, n, source._n.size)
    return dtype.of([gather(dtype.value_t, source, first + k, active) for k in range(n)])


def first_component(index: Any, n: int, size: int) -> Any:
    """Return where elements of n numbers begin in an array of `size` numbers; indices outside stay outside, though the
    product of a large one wraps to a small number."""
    if not index.dtype.is_integer:
        raise TypeError(f"an index must be an integer array, found {type(index).__name__}")
    limit = -(-size // n)
    if limit > index.dtype.limits[1]:
        return index * n
    inside = index < limit
    if index.dtype.is_signed:
        inside = inside & (index >= 0)
    return select(inside, index * n, type(index)(index.dtype.limits[1] - n))


def evaluated(n: Node, what: str) -> Node:
    """Return `n` in memory; raises SymbolicError naming `what` if its value does not exist yet."""
    if n.buf is not None:
        return n
    try:
        return materialise(n)
    except SymbolicError as error:
        raise SymbolicError(f"{what} must be in memory: {error}") from error


def _gather_flat(source: Any, index: Any, active: Any) -> Any:
    if index.ns.is_diff != source.ns.is_diff or index.ns is not source.ns:
        index = convert(source.ns.flat(index.dtype), index)
    index, mask, size = index_mask(index, active)
    cls = type(source)
    r = _new(cls)
    r._ad = None
    if source._n.op is LITERAL and source._n.size >= 1 and mask._n.op is LITERAL and _known_inside(index, source):
        r._n = resized(source._n, size)
    else:
        if source._n.size == 0 and size > 0 and not (mask._n.op is LITERAL and mask._n.attr == b"\x00"):
            if mask._n.op is LITERAL or state.scope is None and not isinstance(active, ArrayBase):
                raise IndexError("gather(): the source is empty")
        base = evaluated(source._n, "the source of a gather")
        if base is not source._n and source._ad is None:
            source._n = base
        r._n = make_node(GATHER, cls.dtype, size, (base, index._n, mask._n))
    if source._ad is not None:
        r._ad = hooks.custom("gather", r, source, index, mask)  # type: ignore[misc]
    return r


def part(source: Any, start: int, size: int, index: Any) -> Any:
    """Return neighbouring elements of a flat array without copying them; `index` lists them, for derivatives."""
    base = evaluated(source._n, "the source of a slice")
    if base.op is LITERAL:
        return gather(type(source), source, index)
    item = base.dtype.itemsize
    n = data(base.dtype, size, view(base.buf, start * item, size * item))
    r = type(source).wrap(n)
    if source._ad is not None:
        index, mask, _ = index_mask(convert(source.ns.flat(index.dtype), index), True)
        r._ad = hooks.custom("gather", r, source, index, mask)  # type: ignore[misc]
    return r


def _known_inside(index: Any, source: Any) -> bool:
    return index._n.op is LITERAL and 0 <= value_of(index._n) < source._n.size


def scatter(target: Any, value: Any, index: Any, active: Any = True, mode: Any = None) -> None:
    """Write `value` into `target` at `index` where `active` is set; rebinds `target`, other holders keep the old array.

    Lanes whose index is outside of the target write nothing (BoundsError under the Debug flag). Scatters to one target
    act in program order; of lanes that write the same element within one scatter one wins.
    `mode` "permute" promises that all scatters to the target since it was last read write different elements: they then
    share a pass. Differentiable in `value` and `target`.
    """
    name = mode if isinstance(mode, str) else getattr(mode, "name", "")
    _scatter_tree("permute" if str(name).lower() == "permute" else "", target, value, index, active)


def scatter_reduce(op: Any, target: Any, value: Any, index: Any, active: Any = True, mode: Any = None) -> None:
    """Combine `value` into `target` at `index`; `op` is a ReduceOp or its name ("add", "min", "max", "and", "or")."""
    name = op if isinstance(op, str) else getattr(op, "name", None)
    if not isinstance(name, str):
        raise TypeError(f"scatter_reduce(): the operation is a ReduceOp or its name, found {op!r}")
    _scatter_tree({"identity": ""}.get(name.lower(), name.lower()), target, value, index, active)


def scatter_add(target: Any, value: Any, index: Any, active: Any = True, mode: Any = None) -> None:
    """Add `value` to the elements of `target` at `index`. Differentiable in `value` and `target`.

    >>> import luxgrad as dr
    >>> from luxgrad.llvm import Float, UInt32
    >>> counts = dr.zeros(Float, 3)
    >>> dr.scatter_add(counts, 1.0, UInt32([0, 2, 2]))
    >>> print(counts)
    [1, 0, 2]
    """
    _scatter_tree("add", target, value, index, active)


def _scatter_tree(op: str, target: Any, value: Any, index: Any, active: Any) -> None:
    if isinstance(target, Nested):
        value = type(target)(value) if not isinstance(value, Nested) else value
        for t, v in zip(target._c, value._c, strict=True):
            _scatter_tree(op, t, v, index, active)
        return
    if isinstance(target, (list, tuple)):
        for t, v in zip(target, value, strict=True):
            _scatter_tree(op, t, v, index, active)
        return
    if isinstance(target, dict):
        for k, t in target.items():
            _scatter_tree(op, t, value[k], index, active)
        return
    if not isinstance(target, ArrayBase):
        raise TypeError(f"scatter(): the target must be an array, found {type(target).__name__}")
    if not isinstance(target, Flat):
        _scatter_tree(op, target.array, value, index, active)
        return
    if not isinstance(index, ArrayBase):
        index = _indices(target.ns, index)
    if isinstance(value, Nested):
        n = value.static_shape[0]
        first = None if isinstance(index, Nested) else first_component(index, n, target._n.size)
        parts = index._c if first is None else [first + k for k in range(n)]
        for part, component in zip(parts, value._c, strict=True):
            _scatter_tree(op, target, component, part, active)
        return
    scatter_flat(op, target, convert(type(target), value), index, active)


def scatter_flat(op: str, target: Any, value: Any, index: Any, active: Any) -> None:
    """Scatter a flat array of the target's type."""
    if state.replaying or hooks.scatter is not None and hooks.scatter(op, target, value, index, active):
        return
    if op not in ("", "permute", "add", "min", "max", "and", "or"):
        raise RuntimeError(
            f"scatter_reduce(): '{op}' on {type(target).__name__} does not support the requested type of "
            "atomic reduction"
        )
    if op in ("and", "or") and target.dtype.is_float:
        raise TypeError(f"scatter_reduce(): '{op}' needs integers or masks, found {type(target).__name__}")
    index = convert(target.ns.flat(index.dtype), index)
    index, mask, size = index_mask(index, active)
    size = (
        size
        if size == value._n.size or value._n.size == 1
        else value._n.size
        if size == 1
        else _common_size(index, mask, value)
    )
    if mask._n.size == 1 and size > 1 and state.scope is None:
        boolean = target.ns.flat(Bool)
        mask = mask & boolean.wrap(active_mask(None, size))
    differentiable = hooks.custom is not None and (target._ad is not None or value._ad is not None)
    before = None
    if differentiable:
        # Only extremes need the old values again; a copy that holds them would keep later scatters out of this pass.
        before = target.__copy__() if op in ("min", "max") else type(target).wrap(
            literal(target.dtype, 0, target._n.size), target._ad
        )
    target._n = _effect(op, target, value._n, index._n, mask._n, size)
    if differentiable:
        plain = "" if op == "permute" else op
        target._ad = hooks.custom("scatter", target, before, value, index, mask, plain)  # type: ignore[misc]


def _effect(op: str, target: Any, value: Node, index: Node, mask: Node, size: int) -> Node:
    """Return the target's new node; the SCATTER node is entered in it or in the scope being recorded."""
    old = target._n
    scope = state.scope
    pending = old.op is AFTER and old.buf is None
    recording = pending and old.attr.scope is not None and not old.attr.scope.closed
    if scope is not None:
        # Within one pass over the elements scatters of one element act in the order recorded.
        after = old if recording else _start(op, target, size)
        if after.attr.op != op:
            after.attr.op = "mixed"
    else:
        # Reductions of one kind commute over all elements: they share a pass. Others wait for the pass before. Whoever
        # else holds the array keeps its present value. References: `old` and the array.
        joined = pending and old.attr.op == op != "" and old.attr.size == size and sys.getrefcount(old) <= LOCAL + 1
        after = old if joined else _start(op, target, size)
    kind = "" if op == "permute" else op
    node = make_node(SCATTER, old.dtype, size, (value, index, mask), ScatterInfo(kind, after))
    if scope is None:
        after.attr.effects.append(node)
    else:
        if after is not old:
            scope.afters.append(after)
            scope.rebound.append((target, old, target._ad))
        scope.effects.append(node)
    return after


def _start(op: str, target: Any, size: int) -> Node:
    old = target._n
    if old.op is not LITERAL:
        evaluated(old, "the target of a scatter")
    after = make_node(AFTER, old.dtype, old.size, (old,), None)
    after.attr = AfterInfo([], size, op, state.scope)
    after.scope = None
    return after


def scatter_inc(target: Any, index: Any, active: Any = True) -> Any:
    """Return the value each lane found in `target` (UInt32) at `index` before adding one to it (stream compaction).

    Every active lane gets a distinct number below the final count; which lane gets which is fixed by lane order.
    """
    if not isinstance(target, Flat) or target.dtype is not UInt32:
        raise TypeError(f"scatter_inc(): the target must be a UInt32 array, found {type(target).__name__}")
    if state.scope is not None:
        raise SymbolicError("scatter_inc() cannot be recorded inside a loop or branch; use mode='evaluated'")
    import numpy as np

    cls = type(target)
    if not isinstance(index, ArrayBase):
        index = cls(index)
    boolean = target.ns.flat(Bool)
    mask = convert(boolean, active)
    size = _common_size(index, mask)
    where = np.broadcast_to(mask.numpy(), size)
    at = np.broadcast_to(index.numpy(), size).astype(np.int64)
    values = target.numpy().copy()
    result = np.zeros(size, np.uint32)
    chosen = at[where]
    order = np.argsort(chosen, kind="stable")
    ordered = chosen[order]
    first = np.searchsorted(ordered, ordered)
    rank = np.empty(len(chosen), np.uint32)
    rank[order] = np.arange(len(chosen)) - first
    result[where] = values[chosen] + rank
    np.add.at(values, chosen, 1)
    target.assign(cls(values))
    return cls(result)


def evaluate_all(arrays: list[Any]) -> bool:
    """Compute flat arrays and return whether there was work."""
    return evaluate([a._n for a in arrays])
