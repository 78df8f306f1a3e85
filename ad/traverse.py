"""Forward and reverse traversal of the derivative graph, by node number, without recursion."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from typing import Any

from ..jit import trace
from ..jit.arrays import reduce
from ..jit.arrays.create import arange, full
from ..jit.arrays.memops import scatter_add
from ..jit.control import outside
from ..jit.dtypes import UInt32
from ..jit.errors import FreezeError
from .graph import ADNode, ScopeState, dependents, here
from .widen import widened


class ADFlag(enum.IntFlag):
    """What a traversal forgets as it goes."""

    ClearNone = 0
    ClearEdges = 1
    ClearInput = 2
    ClearInterior = 4
    ClearVertices = 6
    AllowNoGrad = 8
    Default = 7


@contextmanager
def recording_off() -> Iterator[None]:
    """Record no derivatives within the block: rules compute with plain values."""
    before = here().scopes
    here().scopes = (*before, ScopeState(False))
    try:
        yield
    finally:
        here().scopes = before


def beyond(node: ADNode) -> bool:
    """Return whether a node lies outside what is traversed now: older than the isolated part, or of an outer scope."""
    return node.index < here().boundary or node.scope is not trace.state.scope


def accumulate(node: ADNode, contribution: Any, lanes: int) -> None:
    """Add a contribution of a value with `lanes` elements to a node's gradient.

    A size-1 value used by many elements receives their sum. Inside a recorded loop or branch every value belongs to a
    lane; what leaves it is added up by a scatter.
    """
    if trace.state.scope is not None:
        if node.scope is not trace.state.scope:
            _leave_scope(node, contribution)
            return
    elif node.size == 1 and lanes > 1:
        contribution = contribution * float(lanes) if contribution._n.size == 1 else reduce.sum(contribution)
    elif node.size == 1 and contribution._n.size > 1:
        contribution = reduce.sum(contribution)
    # A copy: gathers add into gradients in place, and one contribution may go to several nodes.
    node.grad = contribution.__copy__() if node.grad is None else node.grad + contribution


def _leave_scope(node: ADNode, contribution: Any) -> None:
    prepare_sum(node)
    kind = node.cls.ns.flat(UInt32)
    index = kind(0) if node.size == 1 else arange(kind, node.size)
    scatter_add(node.grad, contribution, index)


def prepare_sum(node: ADNode) -> None:
    """Give a node a gradient of its own size, so that contributions can be added at an index."""
    if node.grad is None:
        node.grad = full(node.cls, 0, node.size)
    elif node.grad._n.size != node.size:
        # Made outside of any loop being recorded: it stands for what was there before it.
        with outside():
            node.grad = widened(node.grad, node.size)


def backward_pass(roots: Iterable[ADNode], flags: ADFlag) -> None:
    """Send the gradients of `roots` to everything they depend on, newest nodes first."""
    heap: list[int] = []  # negative indices
    nodes: dict[int, ADNode | None] = {}  # queued by index, None once they are done
    state = here()
    outer, boundary, scope = state.postponed, state.boundary, trace.state.scope
    grad: Any = None
    size = 0

    def push(node: ADNode) -> None:
        index = node.index
        if index in nodes:
            return
        if index < boundary or node.scope is not scope:  # as `beyond`
            nodes[index] = None
            if outer is not None:
                outer[index] = node
            return
        nodes[index] = node
        heappush(heap, -index)

    def give(parent: ADNode, contribution: Any, lanes: int | None = None) -> None:
        if contribution is not None:
            known = parent.grad
            count = size if lanes is None else lanes
            if scope is None and (parent.value.size > 1 or count == 1 == contribution._n.size):
                if known is not None:
                    parent.grad = known + contribution
                else:
                    # A copy of what belongs to this node: gathers add into gradients in place.
                    parent.grad = contribution if contribution is not grad else contribution.__copy__()
            else:
                accumulate(parent, contribution, count)
        if parent.index not in nodes:
            push(parent)

    roots = list(roots)
    sources = {n.index for n in roots}
    for node in roots:
        push(node)
    clear_edges, clear_input, clear_interior = (
        bool(flags & which) for which in (ADFlag.ClearEdges, ADFlag.ClearInput, ADFlag.ClearInterior)
    )
    with recording_off():
        while heap:
            index = -heappop(heap)
            node = nodes[index]  # type: ignore[assignment]
            nodes[index] = None
            rule = node.rule
            if rule is None:
                continue
            if index < state.frozen:
                raise FreezeError(_OUTSIDE.format(kind="gradient"))
            grad = node.grad
            if grad is not None:
                size = node.value.size
                if rule.nested:
                    with inner_boundary() as found:
                        rule.backward(node, grad, give)
                    for reached in found.values():
                        push(reached)
                else:
                    rule.backward(node, grad, give)
            if clear_input if index in sources else clear_interior:
                node.grad = None
            if clear_edges:
                node.rule, node.parents, node.args, node.data = _CUT, (), (), None


@contextmanager
def inner_boundary() -> Iterator[dict[int, ADNode]]:
    """Yield what will hold the nodes that traversals within the block reach beyond a boundary of their own."""
    before = here().postponed
    found: dict[int, ADNode] = {}
    here().postponed = found
    try:
        yield found
    finally:
        here().postponed = before


_OUTSIDE = (
    "a {kind} crosses the border of a frozen function: what it reached was computed from differentiable arrays before "
    "the call, and replays would not go there. Pass the differentiable arrays themselves and compute with them inside, "
    "or detach() what you pass"
)


class _Cut:
    """The rule of a node whose edges a traversal has removed."""

    name = "cut"
    nested = False

    def backward(self, node: ADNode, grad: Any, give: Any) -> None:
        """Hand nothing on."""

    def forward(self, node: ADNode) -> Any:
        """Return no tangent."""
        return None


_CUT: Any = _Cut()


def is_cut(node: ADNode | None) -> bool:
    """Return whether a traversal has removed the edges of a node: gradients would end there without a word."""
    return node is not None and node.rule is _CUT


def forward_pass(roots: Iterable[ADNode], flags: ADFlag) -> None:
    """Send the tangents of `roots` to everything that depends on them."""
    heap: list[tuple[int, ADNode]] = []
    queued: set[int] = set()
    sources = {n.index for n in roots}

    def push(node: ADNode) -> None:
        if node.index not in queued and not beyond(node):
            queued.add(node.index)
            heappush(heap, (node.index, node))

    for node in roots:
        queued.add(node.index)
        heappush(heap, (node.index, node))
    _run_forward(heap, sources, flags, push)


def forward_into(targets: Iterable[ADNode], flags: ADFlag, keep: bool = False) -> list[ADNode]:
    """Compute the tangents of `targets` from those of everything they depend on; return the nodes that got one.

    With `keep` a tangent that is there already counts as computed; otherwise more is added to it.
    """
    order: dict[int, ADNode] = {}
    stack = list(targets)
    while stack:
        node = stack.pop()
        if node.index in order or (keep and node.grad is not None):
            continue
        order[node.index] = node
        if not beyond(node):
            stack.extend(p for p in node.parents if p is not None)
    wanted = {n.index for n in targets}
    computed: list[ADNode] = []
    with recording_off():
        for index in sorted(order):
            node = order[index]
            if node.rule is None or beyond(node):
                continue
            _pull(node)
            computed.append(node)
        for index, node in order.items():
            if index not in wanted and node.rule is not None and not beyond(node) and flags & ADFlag.ClearInterior:
                node.grad = None
            if node.rule is not None and not beyond(node) and flags & ADFlag.ClearEdges:
                node.rule, node.parents, node.args, node.data = _CUT, (), (), None
    return computed


def _pull(node: ADNode) -> None:
    if node.index < here().frozen:
        raise FreezeError(_OUTSIDE.format(kind="tangent"))
    tangent = node.rule.forward(node)  # type: ignore[union-attr]
    if tangent is not None:
        node.grad = tangent.__copy__() if node.grad is None else node.grad + tangent


def _run_forward(heap: list[tuple[int, ADNode]], sources: set[int], flags: ADFlag, push: Any) -> None:
    with recording_off():
        done = []
        while heap:
            node = heappop(heap)[1]
            if node.rule is not None and node.index not in sources:
                _pull(node)
            done.append(node)
            if node.grad is not None:
                for child in dependents(node):
                    push(child)
        for node in done:
            outputs = dependents(node)
            if node.index in sources:
                if flags & ADFlag.ClearInput:
                    node.grad = None
            elif outputs and flags & ADFlag.ClearInterior:
                node.grad = None
            if flags & ADFlag.ClearEdges and node.rule is not None:
                node.rule, node.parents, node.args, node.data = _CUT, (), (), None


__all__ = ["ADFlag", "accumulate", "backward_pass", "forward_into", "forward_pass", "is_cut"]
