"""Recording into scopes: what loops and branches share, and what AD does outside of them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .arrays import tree
from .arrays.functions import select
from .errors import SymbolicError
from .passes.order import topological
from .trace import AFTER, Node, Scope, state


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
    scope.kind, scope.closed = "discarded", True


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


def copied(value: Any) -> Any:
    """Return a PyTree with copies of its arrays, which share their memory until one of them changes."""
    return tree.map_arrays(lambda x: x.__copy__(), value)


def merge(mask: Any, new: Any, old: Any) -> Any:
    """Return a PyTree with the arrays of `new` where the mask is set and those of `old` elsewhere."""
    others = iter(list(tree.arrays(old)))
    return tree.map_arrays(lambda x: select(mask, x, next(others)), new)
