"""Loops, branches and calls: recorded once as part of the program (symbolic), or run step by step (evaluated)."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .arrays import tree
from .arrays.base import ArrayBase, hooks
from .arrays.flat import Flat, convert
from .arrays.functions import select
from .arrays.reduce import any as any_of
from .dtypes import Bool, UInt32
from .errors import SymbolicError
from .flags import JitFlag, flag
from .passes.order import topological
from .trace import (
    AFTER,
    ALIAS,
    BRANCH,
    LITERAL,
    LOOP,
    OUT,
    PHI,
    BranchBody,
    LoopBody,
    Node,
    Scope,
    literal,
    node,
    state,
    value_of,
)


@contextmanager
def recording(scope: Scope) -> Iterator[None]:
    """Record into `scope` within the block; closes it, or undoes its scatters if the block fails."""
    before, mask = state.scope, state.mask
    state.scope, state.mask = scope, None
    try:
        yield
    except BaseException:
        undo(scope)
        raise
    finally:
        state.scope, state.mask = before, mask


@contextmanager
def outside() -> Iterator[None]:
    """Record at the top within the block, outside the loop or branch being recorded."""
    before, mask = state.scope, state.mask
    state.scope, state.mask = None, None
    try:
        yield
    finally:
        state.scope, state.mask = before, mask


def undo(scope: Scope) -> None:
    """Give arrays that were scattered to in `scope` their old value back."""
    for array, old, ad in reversed(scope.rebound):
        array._n, array._ad = old, ad
    scope.rebound.clear()
    scope.closed = True


def finish_effects(structure: Node, scopes: Sequence[Scope]) -> None:
    """Hand the scatters of closed scopes on: to the scope around, or (outermost) to the arrays they wrote."""
    parent = state.scope
    afters = [a for s in scopes for a in s.afters]
    for s in scopes:
        s.closed = True
        if parent is not None:
            parent.rebound += s.rebound
        s.afters, s.rebound, s.effects = [], [], []
    if parent is not None:
        if structure.attr.effects:
            parent.effects.append(structure)
        parent.afters += afters
        for a in afters:
            a.attr.scope = parent
        return
    for a in afters:
        a.attr.effects.append(structure)
        a.attr.scope = None
        a.attr.size = structure.size
        structure.attr.afters.append(weakref.ref(a))


def refuse_reads(roots: list[Node], scopes: Sequence[Scope]) -> None:
    """Raise SymbolicError if recorded code reads an array that the same code scatters to."""
    inside = {id(a) for s in scopes for a in s.afters}
    if inside and any(id(n) in inside for n in topological(roots) if n.op is AFTER):
        raise SymbolicError(
            "an array is read after a scatter to it inside the same loop or branch: its elements are not known there; "
            "use mode='evaluated', or separate arrays"
        )


def labels_of(labels: Sequence[str], count: int, prefix: str = "arg") -> list[str]:
    """Return a name per state variable for error messages."""
    return [labels[k] if k < len(labels) else f"{prefix}{k}" for k in range(count)]


def leaf_names(values: Sequence[Any], labels: list[str]) -> list[str]:
    """Return a name per flat array of the state variables."""
    names = []
    for value, label in zip(values, labels, strict=True):
        names += [label for _ in tree.arrays(value)]
    return names


def check_state(before: Sequence[Any], after: Any, labels: list[str]) -> tuple[Any, ...]:
    """Return the body's result as a tuple; raises RuntimeError naming a state variable whose type changed."""
    if len(before) == 1 and not (type(after) in (tuple, list) and len(after) == 1):
        after = (after,)
    if type(after) not in (tuple, list) or len(after) != len(before):
        found = f"{len(after)} values" if type(after) in (tuple, list) else type(after).__name__
        raise RuntimeError(f"the body must return {len(before)} state variables, found {found}")
    for old, new, name in zip(before, after, labels, strict=True):
        _check_variable(old, new, name)
    return tuple(after)


def _type_name(value: Any) -> str:
    cls = type(value)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"


def _check_variable(old: Any, new: Any, name: str) -> None:
    if new is None and old is not None:
        raise RuntimeError(f"state variable '{name}' is uninitialized: the body gives it no value")
    if type(old) is not type(new):
        raise RuntimeError(
            f"the type of state variable '{name}' changed from '{_type_name(old)}' to '{_type_name(new)}' in the body; "
            "convert it there, or initialise it with that type"
        )
    if isinstance(old, ArrayBase):
        return
    if type(old) in (list, tuple):
        if len(old) != len(new):
            raise RuntimeError(f"state variable '{name}' changed its length from {len(old)} to {len(new)}")
        for k, (a, b) in enumerate(zip(old, new, strict=True)):
            _check_variable(a, b, f"{name}[{k}]")
    elif type(old) is dict:
        if old.keys() != new.keys():
            raise RuntimeError(f"state variable '{name}' changed its keys from {list(old)} to {list(new)}")
        for k in old:
            _check_variable(old[k], new[k], f"{name}['{k}']")
    else:
        members = tree.fields(old)
        if members is not None:
            for field, a in members.items():
                _check_variable(a, getattr(new, field), f"{name}.{field}")
        elif isinstance(old, (int, float, bool, str)) and old != new:
            raise RuntimeError(
                f"the non-array state variable '{name}' of type '{type(old).__name__}' changed from '{old}' to '{new}' "
                "in a loop that is recorded once; make it an array, such as Int or Float"
            )


def while_loop(
    state: Any,
    cond: Callable[..., Any],
    body: Callable[..., Any],
    labels: Sequence[str] = (),
    label: str | None = None,
    mode: str | None = None,
    strict: bool = True,
    compress: bool | None = None,
    max_iterations: int | None = None,
) -> tuple[Any, ...]:
    """Return the state after `while cond(*state): state = body(*state)`, run per lane of the arrays.

    With mode "symbolic" (the default) condition and body are recorded once; "evaluated" runs them step by step;
    "scalar" is a Python loop (chosen by itself if the condition is a Python bool). `max_iterations` bounds the
    iterations for derivatives in reverse mode (-1: a plain sum). Raises RuntimeError naming the state variable if its
    type changes.
    """
    values = tuple(state)
    names = labels_of(labels, len(values))
    if mode not in (None, "symbolic", "evaluated", "scalar"):
        raise ValueError(f"while_loop(): unknown mode '{mode}'; use 'symbolic', 'evaluated' or 'scalar'")
    if mode is None and not flag(JitFlag.SymbolicLoops):
        mode = "evaluated"
    flat = [x for v in values for x in tree.arrays(v)]
    if mode == "scalar" or not flat:
        return _scalar_loop(values, cond, body)
    if mode == "evaluated":
        return _evaluated_loop(values, cond, body, names)
    if hooks.custom is not None and any(x.is_diff for x in flat):
        handled = hooks.custom("loop", values, cond, body, names, max_iterations)
        if handled is not None:
            return handled  # type: ignore[no-any-return]
    return symbolic_loop(values, cond, body, names)


def _scalar_loop(values: tuple[Any, ...], cond: Callable[..., Any], body: Callable[..., Any]) -> tuple[Any, ...]:
    while cond(*values):
        result = body(*values)
        values = tuple(result) if type(result) in (tuple, list) and len(values) != 1 else _as_tuple(result)
    return values


def _as_tuple(result: Any) -> tuple[Any, ...]:
    return tuple(result) if type(result) in (tuple, list) and len(result) == 1 else (result,)


def _evaluated_loop(
    values: tuple[Any, ...], cond: Callable[..., Any], body: Callable[..., Any], names: list[str]
) -> tuple[Any, ...]:
    from .runtime.evaluate import evaluate

    active: Any = None
    while True:
        test = cond(*values)
        active = test if active is None else active & test
        if isinstance(active, bool):
            if not active:
                return values
        else:
            evaluate([active._n, *(x._n for v in values for x in tree.arrays(v))])
            if not any_of(active).item():
                return values
        before, globals_mask = values, globals_state().mask
        globals_state().mask = active if globals_mask is None else active & globals_mask
        try:
            after = check_state(before, body(*[_copied(v) for v in before]), names)
        finally:
            globals_state().mask = globals_mask
        values = tuple(merge(active, new, old) for new, old in zip(after, before, strict=True))


def globals_state() -> Any:
    """Return this thread's recording state (`state` is an argument's name in the functions here)."""
    return state


def _copied(value: Any) -> Any:
    return tree.map_arrays(lambda x: x.__copy__(), value)


def merge(mask: Any, new: Any, old: Any) -> Any:
    """Return a PyTree with the arrays of `new` where the mask is set and those of `old` elsewhere."""
    others = iter(list(tree.arrays(old)))
    return tree.map_arrays(lambda x: select(mask, x, next(others)), new)


def symbolic_loop(
    values: tuple[Any, ...], cond: Callable[..., Any], body: Callable[..., Any], names: list[str]
) -> tuple[Any, ...]:
    """Record a loop and return the state after it (no derivatives)."""
    size = 1
    for v in values:
        for x in tree.arrays(v):
            if x._n.size != 1:
                if size not in (1, x._n.size):
                    _size_error(size, x._n.size, v, values, names)
                size = x._n.size
    while True:
        result = _record_loop(values, cond, body, names, size)
        if isinstance(result, tuple):
            return result
        if size not in (1, result):
            raise RuntimeError(
                f"this operation processes arrays of size {result}, while the state variables have an "
                f"incompatible size {size}"
            )
        size = result


def _size_error(size: int, other: int, value: Any, values: tuple[Any, ...], names: list[str]) -> None:
    name = next(n for n, v in zip(names, values, strict=True) if v is value)
    raise RuntimeError(
        f"this operation processes arrays of size {size}, while state variable '{name}' has an "
        f"incompatible size {other}"
    )


def _record_loop(
    values: tuple[Any, ...], cond: Callable[..., Any], body: Callable[..., Any], names: list[str], size: int
) -> Any:
    """Record once with `size` lanes; return the new state, or the greater size that the body turned out to have."""
    outer_mask = state.mask
    scope_cond = Scope("loop", state.scope)
    scope_body = Scope("loop", scope_cond)
    inits: list[Node] = []
    phis: list[Node] = []

    def placeholder(x: Any) -> Any:
        phi = Node()
        phi.op, phi.dtype, phi.size, phi.args, phi.attr, phi.buf = PHI, x._n.dtype, size, (), len(phis), None
        phi.scope, phi.where = scope_cond, None
        phi.index = node_index()
        inits.append(x._n)
        phis.append(phi)
        return type(x).wrap(phi)

    inside = tuple(tree.map_arrays(placeholder, v) for v in values)
    with recording(scope_cond):
        test = cond(*inside)
        if isinstance(test, bool):
            undo(scope_cond)
        elif not (isinstance(test, Flat) and test.dtype is Bool):
            raise TypeError(f"the condition of a loop must be a mask, found {type(test).__name__}")
        else:
            if outer_mask is not None:
                test = test & outer_mask
            with recording(scope_body):
                after = check_state(inside, body(*[_copied(v) for v in inside]), names)
    if isinstance(test, bool):
        return _scalar_loop(values, cond, body)
    outs = [x._n for v in after for x in tree.arrays(v)]
    if len(outs) != len(phis):
        raise RuntimeError(
            f"the body must keep the number of arrays in the state, found {len(outs)} instead of {len(phis)}"
        )
    effects = tuple(scope_cond.effects + scope_body.effects)
    greatest = max([test._n.size, size, *(n.size for n in (*outs, *effects))])
    if greatest != size:
        undo(scope_body)
        undo(scope_cond)
        return greatest
    loop_body = LoopBody(scope_cond, scope_body, tuple(phis))
    loop_body.cond = test._n
    refuse_reads([test._n, *outs, *effects], (scope_cond, scope_body))
    _drop_invariant(phis, inits, outs)
    loop_body.outs, loop_body.effects = tuple(outs), effects
    structure = node(LOOP, Bool, size, tuple(inits), loop_body)
    finish_effects(structure, (scope_cond, scope_body))
    position = iter(range(len(phis)))

    def output(x: Any) -> Any:
        k = next(position)
        if phis[k].op is ALIAS:
            return type(x).wrap(inits[k])
        return type(x).wrap(node(OUT, x._n.dtype, size, (structure,), k))

    return tuple(tree.map_arrays(output, v) for v in after)


def node_index() -> int:
    """Return the next node number."""
    from .trace import next_index

    return next_index()


def _drop_invariant(phis: list[Node], inits: list[Node], outs: list[Node]) -> None:
    """Turn state that the body hands on unchanged into a name of its initial value."""
    for k, (phi, init) in enumerate(zip(phis, inits, strict=True)):
        if outs[k] is phi:
            phi.op, phi.args, phi.attr, phi.scope = ALIAS, (init,), None, init.scope
            outs[k] = init


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
    """
    if isinstance(cond, bool) or mode == "scalar":
        return true_fn(*args) if cond else false_fn(*args)
    if not (isinstance(cond, Flat) and cond.dtype is Bool):
        raise TypeError(f"if_stmt(): the condition must be a mask, found {type(cond).__name__}")
    if cond._n.op is LITERAL:
        return true_fn(*args) if value_of(cond._n) else false_fn(*args)
    return choose([cond, ~cond], [true_fn, false_fn], tuple(args), mode, list(rv_labels))


def switch(
    index: Any, targets: Any, *args: Any, mode: str | None = None, label: str | None = None, **named: Any
) -> Any:
    """Return targets[index](*args) per lane; lanes with an index out of range, or masked by `active=`, get zeros.

    `index` is a UInt32 array or a Python int; `targets` a list or dict of functions that return the same types.
    """
    keys = list(targets) if isinstance(targets, dict) else list(range(len(targets)))
    functions = [targets[k] for k in keys]
    active = named.pop("active", True)
    if isinstance(index, int):
        return targets[index](*args, **named)
    if not isinstance(index, Flat) or index.dtype is not UInt32:
        raise TypeError(f"switch(): the index must be a UInt32 array, found {type(index).__name__}")
    mask = convert(index.ns.flat(Bool), active)
    calls = [lambda *a, fn=fn: fn(*a, **named) for fn in functions] if named else functions
    return choose([(index == k) & mask for k in keys], calls, args, mode, [])


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
            results.append(fn(*[_copied(a) for a in args]))
        finally:
            state.mask = outer
    leaves = [list(tree.arrays(r)) for r in results]
    _check_results(results, leaves, names)
    columns = iter(zip(*leaves, strict=True))

    def combine(x: Any) -> Any:
        column = next(columns)
        total = select(masks[0], column[0], type(x)(0) if x.dtype is not Bool else type(x)(False))
        for mask, value in zip(masks[1:], column[1:], strict=True):
            total = select(mask, value, total)
        return total

    return tree.map_arrays(combine, results[0])


def _check_results(results: list[Any], leaves: list[list[Any]], names: list[str]) -> None:
    """Raise RuntimeError unless all sides return the same structure, types and Python values."""
    first = results[0]
    named = type(first) in (tuple, list) and len(first) == len(names)
    labels = leaf_names(first, names) if named else names
    for other, values in zip(results[1:], leaves[1:], strict=True):
        if named and type(other) is type(first) and len(other) == len(first):
            for a, b, name in zip(first, other, names, strict=True):
                _check_side(a, b, name)
        else:
            _check_side(first, other, names[0] if names else "result")
        for k, (a, b) in enumerate(zip(leaves[0], values, strict=True)):
            if type(a) is not type(b):
                raise RuntimeError(
                    f"the sides of a branch give '{labels[k] if k < len(labels) else 'result'}' different types: "
                    f"'{_type_name(a)}' and '{_type_name(b)}'"
                )


def _check_side(a: Any, b: Any, name: str) -> None:
    if isinstance(a, ArrayBase) and isinstance(b, ArrayBase):
        if type(a) is not type(b):
            raise RuntimeError(
                f"the sides of a branch give '{name}' different types: '{_type_name(a)}' and '{_type_name(b)}'"
            )
        return
    if (
        type(a) is not type(b)
        or type(a) in (list, tuple)
        and len(a) != len(b)
        or type(a) is dict
        and a.keys() != b.keys()
    ):
        raise RuntimeError(
            f"the sides of a branch return different structures for '{name}': '{_type_name(a)}' and '{_type_name(b)}'"
        )
    if type(a) in (list, tuple):
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            _check_side(x, y, f"{name}[{k}]")
    elif type(a) is dict:
        for k in a:
            _check_side(a[k], b[k], f"{name}['{k}']")
    elif isinstance(a, (bool, int, float, str)):
        if a != b:
            raise RuntimeError(
                f"the sides of a branch return different Python values for '{name}': {a!r} and {b!r}; make it an array"
            )
    else:
        for field, x in (tree.fields(a) or {}).items():
            _check_side(x, getattr(b, field), f"{name}.{field}")


def _record_branch(
    masks: list[Any], functions: Sequence[Callable[..., Any]], args: tuple[Any, ...], names: list[str]
) -> Any:
    outer_mask = state.mask
    probe = hooks.custom("probe") if hooks.custom is not None else None
    scopes, results = [], []
    for fn in functions:
        scope = Scope("arm", state.scope)
        with recording(scope):
            results.append(fn(*[_copied(a) for a in args]))
        scopes.append(scope)
    if probe is not None and hooks.custom("probed", probe):  # type: ignore[misc]
        # A side reads something with a gradient: its operations must be recorded where the derivatives are.
        for scope in reversed(scopes):
            undo(scope)
        return _RETRY
    leaves = [list(tree.arrays(r)) for r in results]
    _check_results(results, leaves, names)
    tests = [m._n if outer_mask is None else (m & outer_mask)._n for m in masks]
    size = max([*(t.size for t in tests), *(x._n.size for values in leaves for x in values)])
    size = max([size, *(e.size for s in scopes for e in s.effects)])
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
