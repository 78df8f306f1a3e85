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
        "index", "cls", "value", "grad", "rule", "parents", "args", "data", "children", "scope", "__weakref__",
    )  # fmt: skip

    index: int
    cls: Any  # array type
    value: trace.Node  # the value itself, for rules that need the result
    grad: Any  # array of type `cls`, detached, or None
    rule: Rule | None  # None: a leaf
    parents: tuple[ADNode | None, ...]
    args: tuple[Any, ...]  # what the rule reads: arrays, for rows the trace's nodes (`data`: their derivative nodes)
    data: Any
    children: Any  # weak references to later nodes: None, one, or a list
    scope: trace.Scope | None  # the recorded loop or branch it belongs to

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return self.value.size

    def result(self) -> Any:
        """Return the value as an array with this derivative node."""
        return self.cls.wrap(self.value, self)

    def __repr__(self) -> str:
        kind = "leaf" if self.rule is None else self.rule.name
        return f"<derivative node a{self.index} ({kind}, size {self.size})>"


class Rule:
    """How gradients pass one operation: `backward` hands contributions to parents, `forward` returns the tangent."""

    name = "rule"
    nested = False  # whether `backward` may run traversals of its own

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


class State:
    """Derivative state of one thread."""

    __slots__ = ("scopes", "boundary", "recorded", "captures", "postponed", "frozen")

    def __init__(self) -> None:
        self.scopes: tuple[ScopeState, ...] = ()
        self.boundary = 0  # traversals stop at nodes older than this (isolate_grad)
        self.recorded = 0  # nodes made so far
        self.frozen = 0  # while a frozen function is recorded: its first node; older ones are leaves to it
        # Per loop being probed: its first node, older ones it reads.
        self.captures: tuple[tuple[int, dict[int, ADNode]], ...] = ()
        self.postponed: dict[int, ADNode] | None = None  # nodes beyond the boundary that received gradients


class _Local(threading.local):
    def __init__(self) -> None:
        self.state = State()


_local = _Local()


def here() -> State:
    """Return the derivative state of this thread."""
    return _local.state


def enabled(node: ADNode | None) -> bool:
    """Return whether a value with this derivative node counts as differentiable here."""
    if node is None:
        return False
    scopes = _local.state.scopes
    return not scopes or scopes[-1].allows(node)


def active() -> bool:
    """Return whether anything at all can be recorded here."""
    scopes = _local.state.scopes
    return not scopes or scopes[-1].enabled or bool(scopes[-1].exceptions)


def leaf(array: Any) -> ADNode:
    """Return a new node without parents for an array."""
    _local.state.recorded += 1
    return _make(array, None, (), (), None)


def _make(
    array: Any, rule: Rule | None, parents: tuple[ADNode | None, ...], args: tuple[Any, ...], data: Any
) -> ADNode:
    node = _new(ADNode)
    node.index = new_index()
    node.cls = array.__class__
    node.value = array._n
    node.grad = node.children = None
    node.rule, node.parents, node.args, node.data = rule, parents, args, data
    node.scope = trace.state.inner if trace.recording.scopes else None
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
    now = _local.state
    now.recorded += 1
    reference = weakref.ref(node)
    for p in parents:
        if p is not None:
            if p.children is None:
                p.children = reference
            else:
                add_child(p, reference)
            if now.captures:
                note_capture(now, p)
    return node


def add_child(parent: ADNode, reference: weakref.ref[ADNode]) -> None:
    """Enter a further dependent of a node."""
    children = parent.children
    if children.__class__ is not list:
        parent.children = [children, reference]
        return
    children.append(reference)
    # A leaf that lives through an optimisation loop would collect dead references; drop them when the list doubles.
    count = len(children)
    if not count & 31 and count & (count - 1) == 0:
        parent.children = [c for c in children if c() is not None]


def note_capture(now: State, parent: ADNode) -> None:
    """Note that loops being probed read a node from outside of them."""
    for first, captured in now.captures:
        if parent.index < first:
            captured[parent.index] = parent


def dependents(node: ADNode) -> list[ADNode]:
    """Return the live nodes that were computed from this one."""
    children = node.children
    if children.__class__ is not list:
        children = () if children is None else (children,)
    return [c for c in (r() for r in children) if c is not None]


def install(record: Callable[..., Any], custom: Callable[..., Any]) -> None:
    """Let array operations report to the derivative graph."""
    hooks.record, hooks.custom = record, custom
