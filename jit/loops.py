"""Loops: recorded once as part of the program (symbolic), or run step by step (evaluated)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import trace
from .agreement import check_state, labels_of
from .arrays import tree
from .arrays.base import hooks
from .arrays.flat import Flat
from .arrays.reduce import any as any_of
from .captures import Watch
from .dtypes import Bool
from .flags import JitFlag, flag
from .recording import copied, finish_effects, merge, recording, refuse_reads, undo
from .trace import ALIAS, LOOP, OUT, PHI, LoopBody, Node, Scope, next_index, node


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

    >>> import luxgrad as dr
    >>> from luxgrad.llvm import Float, UInt32
    >>> i, power = dr.while_loop(
    ...     (UInt32(0), Float([1, 2, 3])), lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), labels=("i", "x"))
    >>> print(power)
    [8, 16, 24]
    """
    if not isinstance(state, (tuple, list)):
        raise TypeError(f"while_loop(): the state must be a tuple or list of variables, found {type(state).__name__}")
    for name, fn in (("cond", cond), ("body", body)):
        if not callable(fn):
            raise TypeError(f"while_loop(): {name} must be a function of the state, found {type(fn).__name__}")
    if isinstance(labels, str) or not isinstance(labels, Sequence):
        raise TypeError(f"while_loop(): labels must be a list of names, found {type(labels).__name__}")
    return run_loop(tuple(state), cond, body, labels, mode, max_iterations, (), ())


def run_loop(
    values: tuple[Any, ...],
    cond: Callable[..., Any],
    body: Callable[..., Any],
    labels: Sequence[str],
    mode: str | None,
    max_iterations: int | None,
    named: Sequence[tuple[str, Any]],
    assigned: Sequence[str],
    functions: Sequence[Callable[..., Any]] = (),
) -> tuple[Any, ...]:
    """Return the state after a loop; `named`, `assigned` and `functions` (if not the two) say what must not change."""
    if max_iterations is not None and (
        not isinstance(max_iterations, int) or max_iterations < -1 or max_iterations == 0
    ):
        raise ValueError(f"while_loop(): max_iterations must be positive, -1 (a sum) or None, found {max_iterations!r}")
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
    watch = Watch(functions or (cond, body), named, assigned)
    result: tuple[Any, ...] | None = None
    if hooks.custom is not None and any(x.is_diff for x in flat):
        result = hooks.custom("loop", values, cond, body, names, max_iterations)
    if result is None:
        result = symbolic_loop(values, cond, body, names)
    watch.check("the code of a loop")
    return result


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
        before, globals_mask = values, trace.state.mask
        trace.state.mask = active if globals_mask is None else active & globals_mask
        try:
            after = check_state(before, body(*[copied(v) for v in before]), names)
        finally:
            trace.state.mask = globals_mask
        values = tuple(merge(active, new, old) for new, old in zip(after, before, strict=True))


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
    outer_mask = trace.state.mask
    scope_cond = Scope("loop", trace.state.scope)
    scope_body = Scope("loop", scope_cond)
    inits: list[Node] = []
    phis: list[Node] = []

    def placeholder(x: Any) -> Any:
        phi = Node()
        phi.op, phi.dtype, phi.size, phi.args, phi.attr, phi.buf = PHI, x._n.dtype, size, (), len(phis), None
        phi.scope, phi.where = scope_cond, None
        phi.index = next_index()
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
                after = check_state(inside, body(*[copied(v) for v in inside]), names)
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


def _drop_invariant(phis: list[Node], inits: list[Node], outs: list[Node]) -> None:
    """Turn state that the body hands on unchanged into a name of its initial value."""
    for k, (phi, init) in enumerate(zip(phis, inits, strict=True)):
        if outs[k] is phi:
            phi.op, phi.args, phi.attr, phi.scope = ALIAS, (init,), None, init.scope
            outs[k] = init
