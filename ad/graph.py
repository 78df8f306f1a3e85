"""The derivative graph: one node per differentiable value, beside the trace.

A node knows how it was computed (a rule and the arrays it read) and which nodes those belong to. Rules are written in
traced operations on the arrays themselves, so that a traversal can be recorded again (second derivatives) and primal
and adjoint code fuse into one kernel. Nodes are freed with the arrays and later nodes that refer to them.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any

from ..jit import trace
from ..jit.arrays.base import hooks

new_index = itertools.count(1).__next__
_new = object.__new__


class ADNode:
    """A differentiable value: gradient (or tangent) so far, rule, and the nodes it depends on (`parents`)."""

    __slots__ = (
        "index", "cls", "size", "value", "grad", "rule", "parents", "args", "data", "children", "scope", "label",
        "__weakref__",
    )  # fmt: skip

    index: int
    cls: Any  # array type
    size: int
    value: trace.Node  # the value itself, for rules that need the result
    grad: Any  # array of type `cls`, detached, or None
    rule: Rule | None  # None: a leaf
    parents: tuple[ADNode | None, ...]
    args: tuple[Any, ...]
    data: Any
    children: list[weakref.ref[ADNode]]
    scope: trace.Scope | None  # the recorded loop or branch it belongs to
    label: str | None

    def result(self) -> Any:
        """Return the value as an array with this derivative node."""
        return self.cls.wrap(self.value, self)

    def __repr__(self) -> str:
        kind = "leaf" if self.rule is None else self.rule.name
        return f"<derivative node a{self.index} ({self.label or kind}, size {self.size})>"


class Rule:
    """How gradients pass one operation: `backward` hands contributions to parents, `forward` returns the tangent."""

    name = "rule"

    def backward(self, node: ADNode, grad: Any, give: Callable[..., None]) -> None:
        """Call give(parent, contribution, lanes) for every parent that takes part.

        `lanes` is how many elements a size-1 contribution stands for (those of the result, if left out).
        """
        raise NotImplementedError(f"rule '{self.name}' has no reverse mode")

    def forward(self, node: ADNode) -> Any:
        """Return the tangent of the result from the parents' `grad`; None if it is zero."""
        raise NotImplementedError(f"rule '{self.name}' has no forward mode")


class ScopeState:
    """Which gradients are switched off: all but, or none but, the listed nodes."""

    __slots__ = ("enabled", "exceptions")

    def __init__(self, enabled: bool, exceptions: frozenset[int] = frozenset()) -> None:
        self.enabled, self.exceptions = enabled, exceptions

    def allows(self, node: ADNode) -> bool:
        """Return whether operations on values with this derivative node are recorded."""
        return self.enabled != (node.index in self.exceptions)


class State(threading.local):
    """Derivative state of one thread."""

    scopes: tuple[ScopeState, ...] = ()
    boundary: int = 0  # traversals stop at nodes older than this (isolate_grad)
    recorded: int = 0  # nodes made so far
    captures: tuple[
        tuple[int, dict[int, ADNode]], ...
    ] = ()  # per loop being probed: its first node, older ones it reads
    postponed: dict[int, ADNode] | None = None  # nodes beyond the boundary that received gradients


state = State()


def enabled(node: ADNode | None) -> bool:
    """Return whether a value with this derivative node counts as differentiable here."""
    if node is None:
        return False
    scopes = state.scopes
    return not scopes or scopes[-1].allows(node)


def active() -> bool:
    """Return whether anything at all can be recorded here."""
    scopes = state.scopes
    return not scopes or scopes[-1].enabled or bool(scopes[-1].exceptions)


def leaf(array: Any) -> ADNode:
    """Return a new node without parents for an array."""
    return _make(array, None, (), (), None)


def _make(
    array: Any, rule: Rule | None, parents: tuple[ADNode | None, ...], args: tuple[Any, ...], data: Any
) -> ADNode:
    node = _new(ADNode)
    node.index = new_index()
    node.cls = array.__class__
    node.value = array._n
    node.size = array._n.size
    node.grad = None
    node.rule, node.parents, node.args, node.data = rule, parents, args, data
    node.children = []
    node.scope = trace.state.scope
    node.label = None
    state.recorded += 1
    return node


def attach(array: Any, rule: Rule, args: tuple[Any, ...], data: Any = None) -> ADNode | None:
    """Return a node for the result of an operation on `args` (flat arrays), or None if none of them is enabled."""
    parents = tuple([a._ad if a._ad is not None and enabled(a._ad) else None for a in args])
    if all(p is None for p in parents):
        return None
    return connect(array, rule, parents, args, data)


def connect(
    array: Any, rule: Rule, parents: tuple[ADNode | None, ...], args: tuple[Any, ...], data: Any = None
) -> ADNode:
    """Return a node with known parents, entered among their children."""
    node = _make(array, rule, parents, args, data)
    reference = weakref.ref(node)
    for p in parents:
        if p is not None:
            _add_child(p, reference)
            if state.captures:
                _note_capture(p)
    return node


def _add_child(parent: ADNode, reference: weakref.ref[ADNode]) -> None:
    children = parent.children
    # A leaf that lives through an optimisation loop would collect dead references; drop them when the list doubles.
    if len(children) >= 16 and len(children) & (len(children) - 1) == 0:
        parent.children = children = [c for c in children if c() is not None]
    children.append(reference)


def _note_capture(parent: ADNode) -> None:
    for first, captured in state.captures:
        if parent.index < first:
            captured[parent.index] = parent


def dependents(node: ADNode) -> list[ADNode]:
    """Return the live nodes that were computed from this one."""
    return [c for c in (r() for r in node.children) if c is not None]


def install(record: Callable[..., Any], custom: Callable[..., Any]) -> None:
    """Let array operations report to the derivative graph."""
    hooks.record, hooks.custom = record, custom
