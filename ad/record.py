"""What array operations call when an argument has gradients: see `jit/arrays/base.py`, `Hooks`."""

from __future__ import annotations

from typing import Any
from weakref import ref

from ..jit import trace
from ..jit.ops.row import Row
from . import graph, rules
from .graph import ADNode, _local, add_child, attach, connect, enabled, here, new_index, note_capture
from .rules import RULES

_new = object.__new__


def record(
    row: Row, result: Any, nodes: tuple[trace.Node, ...], ads: tuple[ADNode | None, ...]
) -> ADNode | None:
    """Return the derivative node of an elementwise result, None where no gradient passes."""
    rule = RULES.get(row)
    if rule is None:
        return None
    value = result._n
    now = _local.state
    if rule.everywhere and value.args is nodes and not now.scopes:
        # What `connect` does, here because it runs per operation.
        node = _new(ADNode)
        node.index = new_index()
        node.cls = result.__class__
        node.value = value
        node.grad = node.children = None
        node.rule = rule
        node.parents = node.data = ads
        node.args = nodes
        node.scope = value.scope
        now.recorded += 1
        reference = ref(node)
        for p in ads:
            if p is not None:
                if p.children is None:
                    p.children = reference
                else:
                    add_child(p, reference)
                if now.captures:
                    note_capture(now, p)
        return node
    return _record_some(rule, result, nodes, ads)


def _record_some(
    rule: rules.RowRule, result: Any, nodes: tuple[trace.Node, ...], ads: tuple[ADNode | None, ...]
) -> ADNode | None:
    """Return the node where some arguments may pass no gradient, or the operation was folded."""
    parents = tuple([a if w is not None and enabled(a) else None for a, w in zip(ads, rule.weights, strict=True)])
    missing = parents.count(None)
    if missing == len(parents) or not result.dtype.is_float:
        return None
    if missing == len(parents) - 1:
        for n, parent in zip(nodes, parents, strict=True):
            if parent is not None and n is result._n:
                return parent  # the operation was folded away: x + 0 is x
    return connect(result, rule, parents, nodes, ads)


def _gather(result: Any, source: Any, index: Any, mask: Any) -> ADNode | None:
    return attach(result, rules.GATHER, (source.__copy__(),), (index, mask))


def _scatter(target: Any, before: Any, value: Any, index: Any, mask: Any, op: str) -> ADNode | None:
    if trace.state.scope is not None and (enabled(before._ad) or enabled(value._ad)):
        raise RuntimeError(
            "scatter(): a differentiable scatter inside a recorded loop or branch has no derivative; detach the "
            "value, or record the loop with mode='evaluated'"
        )
    node = attach(target, rules.SCATTER, (before, value), (index, mask, op))
    if node is not None and op not in ("min", "max"):
        node.value = before._n  # not the target itself: see `memops.scatter_flat`
    return node


def _reduce(result: Any, x: Any, op: str) -> ADNode | None:
    if op not in ("add", "mul", "min", "max"):
        return None
    return attach(result, rules.REDUCE, (x.__copy__(),), op)


def _cast(result: Any, x: Any) -> ADNode | None:
    return attach(result, rules.CAST, (x.__copy__(),))


def _concat(result: Any, parts: list[Any], offsets: list[int]) -> ADNode | None:
    return attach(result, rules.CONCAT, tuple(p.__copy__() for p in parts), offsets)


def _prefix(result: Any, x: Any, exclusive: bool) -> ADNode | None:
    return attach(result, rules.PREFIX, (x.__copy__(),), exclusive)


def _differentiates(args: Any) -> bool:
    from ..jit.arrays import tree

    return any(enabled(x._ad) for x in tree.arrays(args))


def custom(kind: str, *args: Any) -> Any:
    """Answer what array code asks by name; see the calls in `jit/`."""
    return _ANSWERS[kind](*args)  # type: ignore[operator]


def _loop(*args: Any) -> Any:
    from .loops import differentiable_loop

    return differentiable_loop(*args)


def _grad(x: Any) -> Any:
    from .api import grad

    return grad(x)


def _set_grad(x: Any, value: Any) -> None:
    from .api import set_grad

    set_grad(x, value)


_ANSWERS = {
    "gather": _gather,
    "scatter": _scatter,
    "reduce": _reduce,
    "cast": _cast,
    "concat": _concat,
    "prefix_sum": _prefix,
    "differentiates": _differentiates,
    "probe": lambda: here().recorded,
    "probed": lambda before: here().recorded != before,
    "loop": _loop,
    "grad": _grad,
    "set_grad": _set_grad,
}

graph.install(record, custom)
