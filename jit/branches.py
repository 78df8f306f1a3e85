"""Branches and calls: recorded with one scope per side (symbolic), or all sides computed and merged (evaluated)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .agreement import check_results
from .arrays import tree
from .arrays.base import hooks
from .arrays.flat import Flat, convert
from .arrays.functions import select
from .captures import Watch
from .dtypes import Bool, UInt32
from .flags import JitFlag, flag
from .recording import copied, finish_effects, recording, refuse_reads, undo
from .trace import BRANCH, LITERAL, OUT, BranchBody, Scope, literal, node, state, value_of


def if_stmt(
    args: Sequence[Any],
    cond: Any,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    arg_labels: Sequence[str] = (),
    rv_labels: Sequence[str] = (),
    label: str | None = None,
    mode: str | None = None,
    strict: bool = True,
) -> Any:
    """Return true_fn(*args) in lanes where `cond` is set and false_fn(*args) in the others.

    Modes "symbolic" (default: packets skip a side that no lane takes), "evaluated" (both sides, merged) and "scalar"
    (a Python `if`, chosen by itself for a Python bool).

    >>> import luxgrad as dr
    >>> from luxgrad.llvm import Float
    >>> x = Float([-4, 9])
    >>> print(dr.if_stmt((x,), x < 0, lambda x: -x, lambda x: dr.sqrt(x)))
    [4, 3]
    """
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"if_stmt(): the arguments must be a tuple or list, found {type(args).__name__}")
    return branch_of(tuple(args), cond, true_fn, false_fn, mode, list(rv_labels))


def branch_of(
    args: tuple[Any, ...],
    cond: Any,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    mode: str | None,
    names: list[str],
    originals: Sequence[Callable[..., Any]] = (),
    named: Sequence[tuple[str, Any]] = (),
    assigned: Sequence[str] = (),
) -> Any:
    """Return what `if_stmt` does; the last three say what the sides must not change (see `captures.Watch`)."""
    if mode not in (None, "symbolic", "evaluated", "scalar"):
        raise ValueError(f"if_stmt(): unknown mode {mode!r}; use 'symbolic', 'evaluated' or 'scalar'")
    for name, fn in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(fn):
            raise TypeError(f"if_stmt(): {name} must be a function, found {type(fn).__name__}")
    if isinstance(cond, bool) or mode == "scalar":
        return true_fn(*args) if cond else false_fn(*args)
    if not (isinstance(cond, Flat) and cond.dtype is Bool):
        raise TypeError(f"if_stmt(): the condition must be a mask, found {type(cond).__name__}")
    if cond._n.op is LITERAL:
        return true_fn(*args) if value_of(cond._n) else false_fn(*args)
    return watched([cond, ~cond], [true_fn, false_fn], args, mode, names, originals, named, assigned)


def switch(
    index: Any, targets: Any, *args: Any, mode: str | None = None, label: str | None = None, **named: Any
) -> Any:
    """Return targets[index](*args) per lane; lanes with an index out of range, or masked by `active=`, get zeros.

    `index` is a UInt32 array or a Python int; `targets` a list or dict of functions that return the same types.

    >>> import luxgrad as dr
    >>> from luxgrad.llvm import Float, UInt32
    >>> print(dr.switch(UInt32([0, 1, 1]), [lambda x: x + 1, lambda x: x * 10], Float([1, 2, 3])))
    [2, 20, 30]
    """
    if not isinstance(targets, (dict, list, tuple)) or not all(
        callable(f) for f in (targets.values() if isinstance(targets, dict) else targets)
    ):
        raise TypeError(f"switch(): the targets must be a list or dict of functions, found {type(targets).__name__}")
    keys = list(targets) if isinstance(targets, dict) else list(range(len(targets)))
    functions = [targets[k] for k in keys]
    active = named.pop("active", True)
    if isinstance(index, int):
        if index not in keys:
            raise IndexError(f"switch(): there is no target {index}; there are {len(keys)}: {keys[:10]}")
        return targets[index](*args, **named)
    if not isinstance(index, Flat) or index.dtype is not UInt32:
        raise TypeError(f"switch(): the index must be a UInt32 array, found {type(index).__name__}")
    mask = convert(index.ns.flat(Bool), active)
    calls = [lambda *a, fn=fn: fn(*a, **named) for fn in functions] if named else functions
    return watched([(index == k) & mask for k in keys], calls, args, mode, [], functions)


def watched(
    masks: list[Any],
    functions: Sequence[Callable[..., Any]],
    args: tuple[Any, ...],
    mode: str | None,
    names: list[str],
    originals: Sequence[Callable[..., Any]] = (),
    named: Sequence[tuple[str, Any]] = (),
    assigned: Sequence[str] = (),
) -> Any:
    """Return what `choose` does; raises SymbolicError if a function changes what it captures (see `captures.Watch`)."""
    watch = Watch(originals or functions, named, assigned)
    result = choose(masks, functions, args, mode, names)
    watch.check("a side of a branch")
    return result


def choose(
    masks: list[Any], functions: Sequence[Callable[..., Any]], args: tuple[Any, ...], mode: str | None, names: list[str]
) -> Any:
    """Return per lane the result of the function whose mask is set (masks exclude each other; zeros where none is)."""
    if not functions:
        raise RuntimeError("a call needs at least one target")
    if mode == "evaluated" or (mode is None and not flag(JitFlag.SymbolicConditionals)):
        return _merged(masks, functions, args, names)
    if hooks.custom is not None and hooks.custom("differentiates", args):
        return _merged(masks, functions, args, names)
    result = _record_branch(masks, functions, args, names)
    return _merged(masks, functions, args, names) if result is _RETRY else result


_RETRY = object()


def _merged(masks: list[Any], functions: Sequence[Callable[..., Any]], args: tuple[Any, ...], names: list[str]) -> Any:
    """All functions for all lanes, merged by select: what derivatives pass through as through any operation."""
    results = []
    outer = state.mask
    for mask, fn in zip(masks, functions, strict=True):
        state.mask = mask if outer is None else mask & outer
        try:
            results.append(fn(*[copied(a) for a in args]))
        finally:
            state.mask = outer
    leaves = [list(tree.arrays(r)) for r in results]
    check_results(results, leaves, names)
    columns = iter(zip(*leaves, strict=True))

    def combine(x: Any) -> Any:
        column = next(columns)
        total = select(masks[0], column[0], type(x)(0) if x.dtype is not Bool else type(x)(False))
        for mask, value in zip(masks[1:], column[1:], strict=True):
            total = select(mask, value, total)
        return total

    return tree.map_arrays(combine, results[0])


def _refuse_sizes(tests: list[Any], leaves: list[list[Any]], names: list[str]) -> None:
    masks = ", ".join(str(n) for n in sorted({t.size for t in tests}))
    results = ", ".join(str(n) for n in sorted({x._n.size for values in leaves for x in values}))
    raise RuntimeError(
        f"operands have incompatible sizes! The masks of the sides have size {masks}, their results size {results or 1}"
        f"{' (' + ', '.join(names) + ')' if names else ''}. Sizes must be equal, or 1 to broadcast."
    )


def _record_branch(
    masks: list[Any], functions: Sequence[Callable[..., Any]], args: tuple[Any, ...], names: list[str]
) -> Any:
    outer_mask = state.mask
    probe = hooks.custom("probe") if hooks.custom is not None else None
    scopes, results = [], []
    for fn in functions:
        scope = Scope("arm", state.scope)
        with recording(scope):
            results.append(fn(*[copied(a) for a in args]))
        scopes.append(scope)
    if probe is not None and hooks.custom("probed", probe):  # type: ignore[misc]
        # A side reads something with a gradient: its operations must be recorded where the derivatives are.
        for scope in reversed(scopes):
            undo(scope)
        return _RETRY
    leaves = [list(tree.arrays(r)) for r in results]
    check_results(results, leaves, names)
    tests = [m._n if outer_mask is None else (m & outer_mask)._n for m in masks]
    nodes = [*tests, *(x._n for values in leaves for x in values), *(e for s in scopes for e in s.effects)]
    size = max(n.size for n in nodes)
    if any(n.size not in (1, size) for n in nodes):
        for scope in reversed(scopes):
            undo(scope)
        _refuse_sizes(tests, leaves, names)
    body = BranchBody()
    body.scopes = tuple(scopes)
    body.outs = tuple(tuple(x._n for x in values) for values in leaves)
    body.effects = tuple(tuple(s.effects) for s in scopes)
    body.defaults = tuple(literal(x.dtype, 0 if x.dtype is not Bool else False) for x in leaves[0])
    refuse_reads([n for outs in body.outs for n in outs] + [n for e in body.effects for n in e], scopes)
    structure = node(BRANCH, Bool, size, tuple(tests), body)
    finish_effects(structure, scopes)
    position = iter(range(len(leaves[0])))

    def output(x: Any) -> Any:
        return type(x).wrap(node(OUT, x._n.dtype, size, (structure,), next(position)))

    return tree.map_arrays(output, results[0])
