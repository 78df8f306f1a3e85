"""Public functions of differentiation: switch gradients on, send them through the graph, read them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..jit.arrays import tree
from ..jit.arrays.base import ArrayBase
from ..jit.arrays.create import full
from ..jit.arrays.flat import Flat, convert
from . import record as _record  # noqa: F401  (array operations report to the graph from now on)
from .graph import ADNode, ScopeState, enabled, here, leaf, new_index
from .traverse import ADFlag, backward_pass, forward_into, forward_pass
from .widen import widened


def _differentiable(value: Any) -> Iterator[Any]:
    for x in tree.arrays(value):
        if x.is_diff and x.dtype.is_float:
            yield x


def enable_grad(*args: Any) -> None:
    """Track gradients of all floating-point arrays in PyTrees from here on; integers are passed over.

    >>> import luxgrad as dr
    >>> from luxgrad.llvm.ad import Float
    >>> x = Float([1, 2])
    >>> dr.enable_grad(x)
    >>> dr.grad_enabled(x * 2), dr.grad_enabled(dr.detach(x))
    (True, False)
    """
    for x in _differentiable(args):
        if x._ad is None:
            x._ad = leaf(x)


def disable_grad(*args: Any) -> None:
    """Stop tracking gradients of all arrays in PyTrees."""
    for x in tree.arrays(args):
        x._ad = None


def set_grad_enabled(value: Any, on: bool) -> None:
    """Switch tracking on or off for all arrays in a PyTree."""
    (enable_grad if on else disable_grad)(value)


def grad_enabled(*args: Any) -> bool:
    """Return whether any array in PyTrees has its gradient tracked here (not inside `suspend_grad`)."""
    return any(enabled(x._ad) for x in tree.arrays(args))


def _gradient(x: Any) -> Any:
    cls = type(x)
    node = x._ad
    if node is None or node.grad is None or not enabled(node):
        return full(cls, 0, x._n.size)
    return widened(node.grad, x._n.size).__copy__()


def grad(value: Any, preserve_type: bool = True) -> Any:
    """Return the gradients of a PyTree's arrays, zeros where there are none, of the same types.

    `preserve_type=False` gives arrays of the non-differentiable namespace.
    """
    result = tree.map_arrays(_gradient, value)
    return result if preserve_type else detach(result, False)


def set_grad(value: Any, gradient: Any) -> None:
    """Replace the gradients of a PyTree's arrays; None clears them, a number stands for all elements."""
    if gradient is None:
        clear_grad(value)
        return
    clear_grad(value)
    accum_grad(value, gradient)


def accum_grad(value: Any, gradient: Any) -> None:
    """Add to the gradients of a PyTree's arrays; raises RuntimeError if sizes differ."""
    targets = list(tree.arrays(value))
    if isinstance(gradient, (int, float)):
        sources = [gradient] * len(targets)
    else:
        if isinstance(value, ArrayBase) and not isinstance(gradient, type(value)) and not isinstance(value, Flat):
            gradient = type(value)(gradient)
        sources = list(tree.arrays(gradient))
        if len(sources) == 1 and len(targets) > 1:
            sources = sources * len(targets)
    if len(sources) != len(targets):
        raise RuntimeError(f"accum_grad(): {len(targets)} arrays cannot take {len(sources)} gradients")
    for x, g in zip(targets, sources, strict=True):
        _accumulate(x, g)


def _accumulate(x: Any, g: Any) -> None:
    node: ADNode | None = x._ad
    if node is None:
        return
    g = convert(type(x), g)
    g = type(x).wrap(g._n)
    if g._n.size not in (1, node.size):
        raise RuntimeError(
            f"ad_accum_grad(): attempted to store a gradient of size {g._n.size} into AD variable a{node.index}, "
            f"which has size {node.size}!"
        )
    node.grad = g.__copy__() if node.grad is None else node.grad + g


def clear_grad(value: Any) -> None:
    """Forget the gradients of a PyTree's arrays."""
    for x in tree.arrays(value):
        if x._ad is not None:
            x._ad.grad = None


def detach(value: Any, preserve_type: bool = True) -> Any:
    """Return a PyTree whose arrays have the same values and no gradients."""
    if preserve_type:
        return tree.map_arrays(lambda x: type(x).wrap(x._n), value)
    return tree.map_arrays(lambda x: x.ns.detached.flat(x.dtype).wrap(x._n), value)


def replace_grad(value: Any, other: Any) -> Any:
    """Return the values of the first PyTree with the derivative nodes of the second."""
    found = list(tree.arrays(other))
    count = sum(1 for _ in tree.arrays(value))
    if len(found) != count:
        raise TypeError(f"replace_grad(): {count} arrays cannot take the derivatives of {len(found)}")
    others = iter(found)

    def combine(x: Any) -> Any:
        y = next(others)
        size = max(x._n.size, y._n.size)
        if not {x._n.size, y._n.size} <= {1, size}:
            raise RuntimeError(f"replace_grad(): sizes {x._n.size} and {y._n.size} must be equal, or 1 to broadcast")
        return type(x).wrap(widened(type(x).wrap(x._n), size)._n, y._ad)

    return tree.map_arrays(combine, value)


class Queue:
    """Nodes waiting for `traverse`, per thread."""

    forward: list[ADNode] = []
    backward: list[ADNode] = []


def _nodes(value: Any, allow_none: bool, what: str) -> list[ADNode]:
    nodes = [x._ad for x in tree.arrays(value) if enabled(x._ad)]
    if not nodes and not allow_none:
        raise RuntimeError(
            f"{what}(): the argument does not depend on the input variable(s) being differentiated. Call "
            "enable_grad() on an input before computing with it (outside suspend_grad), or pass "
            "flags=ADFlag.AllowNoGrad."
        )
    return nodes


def _allow(flags: ADFlag) -> bool:
    return bool(flags & ADFlag.AllowNoGrad)


def enqueue(mode: Any, *args: Any) -> None:
    """Put the arrays of PyTrees on the list that `traverse` of the same mode starts from."""
    queue = Queue.forward if _is_forward(mode) else Queue.backward
    queue.extend(_nodes(args, True, "enqueue"))


def _is_forward(mode: Any) -> bool:
    name = mode if isinstance(mode, str) else mode.name
    return str(name).lower() == "forward"


def traverse(mode: Any, flags: ADFlag = ADFlag.Default) -> None:
    """Send gradients (backward) or tangents (forward) from the enqueued arrays through the graph."""
    if _is_forward(mode):
        nodes, Queue.forward = Queue.forward, []
        forward_pass(nodes, flags)
    else:
        nodes, Queue.backward = Queue.backward, []
        backward_pass(nodes, flags)


def backward_from(value: Any, flags: ADFlag = ADFlag.Default) -> None:
    """Send the gradients that the arrays of `value` have now to everything they depend on."""
    backward_pass(_nodes(value, _allow(flags), "backward_from"), flags)


def backward(value: Any, flags: ADFlag = ADFlag.Default) -> None:
    """Set the gradients of `value` to 1 (for all elements: their sum is differentiated) and send them back.

    >>> import luxgrad as dr
    >>> from luxgrad.llvm.ad import Float
    >>> x = Float([1, 2, 3])
    >>> dr.enable_grad(x)
    >>> dr.backward(dr.sum(x * x))
    >>> print(dr.grad(x))
    [2, 4, 6]
    """
    nodes = _nodes(value, _allow(flags), "backward")
    for node in nodes:
        node.grad = node.cls(1)
    backward_pass(nodes, flags)


def backward_to(*args: Any, flags: ADFlag = ADFlag.Default) -> Any:
    """Send the gradients of everything enqueued that depends on `args` back, and return those of `args`."""
    traverse("backward", flags)
    return grad(args[0] if len(args) == 1 else args)


def forward_from(value: Any, flags: ADFlag = ADFlag.Default) -> None:
    """Send the tangents that the arrays of `value` have now to everything that depends on them."""
    forward_pass(_nodes(value, _allow(flags), "forward_from"), flags)


def forward(value: Any, flags: ADFlag = ADFlag.Default) -> None:
    """Set the tangents of `value` to 1 and send them forward.

    >>> import luxgrad as dr
    >>> from luxgrad.llvm.ad import Float
    >>> x = Float(3)
    >>> dr.enable_grad(x)
    >>> y = x * x
    >>> dr.forward(x)
    >>> print(dr.grad(y))
    [6]
    """
    nodes = _nodes(value, _allow(flags), "forward")
    for node in nodes:
        node.grad = node.cls(1)
    forward_pass(nodes, flags)


def forward_to(*args: Any, flags: ADFlag = ADFlag.Default) -> Any:
    """Return the tangents of `args`, computed from those of everything they depend on."""
    value = args[0] if len(args) == 1 else args
    forward_into(_nodes(value, _allow(flags), "forward_to"), flags)
    return grad(value)


def _indices(args: tuple[Any, ...]) -> frozenset[int]:
    return frozenset(x._ad.index for x in tree.arrays(args) if x._ad is not None)


@contextmanager
def _scope(new: ScopeState) -> Iterator[None]:
    before = here().scopes
    here().scopes = (*before, new)
    try:
        yield
    finally:
        here().scopes = before


@contextmanager
def suspend_grad(*args: Any, when: bool = True) -> Iterator[None]:
    """Within the block no gradients are tracked (or none of the given arrays')."""
    if not when:
        yield
        return
    if not args:
        with _scope(ScopeState(False)):
            yield
        return
    top = here().scopes[-1] if here().scopes else ScopeState(True)
    ids = _indices(args)
    exceptions = top.exceptions | ids if top.enabled else top.exceptions - ids
    with _scope(ScopeState(top.enabled, exceptions)):
        yield


@contextmanager
def resume_grad(*args: Any, when: bool = True) -> Iterator[None]:
    """Within the block gradients are tracked again (or those of the given arrays only)."""
    if not when:
        yield
        return
    if not args:
        with _scope(ScopeState(True)):
            yield
        return
    top = here().scopes[-1] if here().scopes else ScopeState(True)
    ids = _indices(args)
    exceptions = top.exceptions - ids if top.enabled else top.exceptions | ids
    with _scope(ScopeState(top.enabled, exceptions)):
        yield


@contextmanager
def isolate_grad(when: bool = True, flags: ADFlag = ADFlag.Default) -> Iterator[None]:
    """Within the block traversals stop at what was computed before it; they go on from there when it ends.

    `flags` are those of the traversal after the block.
    """
    if not when:
        yield
        return
    before, postponed = here().boundary, here().postponed
    here().boundary = new_index()
    waiting: dict[int, ADNode] = {}
    here().postponed = waiting
    try:
        yield
    finally:
        here().boundary, here().postponed = before, postponed
    if postponed is not None:
        for index, node in waiting.items():
            postponed[index] = node
    elif waiting:
        backward_pass(waiting.values(), flags)


__all__ = ["ADFlag", "backward", "forward", "enable_grad", "grad"]
