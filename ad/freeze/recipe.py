"""How results and changes are made from the buffers of a replay."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable
from typing import Any

from ...jit.arrays.base import ArrayBase
from ...jit.errors import FreezeError
from ...jit.freeze.recorder import Recorder
from ...jit.memory.pool import Buffer, allocate, view
from ...jit.runtime.utilities import copy as copy_bytes
from ...jit.trace import LITERAL, Node, data
from ..graph import ADNode, Rule, connect, leaf
from .snapshot import Change, Path, Snap
from .walk import (
    CLASS,
    CONTENT,
    FLAT,
    FUNCTION,
    MAPPING,
    METHOD,
    NESTED,
    NUMPY,
    OBJECT,
    SAME,
    SEQUENCE,
    STRUCT,
    TENSOR,
    get,
    put,
    remove,
)

_new = object.__new__


class Lost(Rule):
    """The derivative of what a frozen function computed from differentiable arrays: it exists only inside of it."""

    name = "frozen"

    def __init__(self, function: str) -> None:
        self.function = function

    def _refuse(self) -> FreezeError:
        return FreezeError(
            f"derivatives cannot pass frozen function '{self.function}' from outside: its operations are not recorded "
            "when it is replayed. Call backward() or forward() inside of the function, or detach() what it returns"
        )

    def backward(self, node: ADNode, grad: Any, give: Callable[..., None]) -> None:
        """Raise FreezeError."""
        raise self._refuse()

    def forward(self, node: ADNode) -> Any:
        """Raise FreezeError."""
        raise self._refuse()


class Entry:
    """What a call begins with: its arrays, their distinct nodes in memory, and their distinct derivative nodes."""

    __slots__ = ("roots", "leaves", "buffers", "nodes", "ads")

    def __init__(self, roots: list[Any], leaves: list[Any]) -> None:
        self.roots, self.leaves = roots, leaves
        self.nodes: list[Node] = []
        self.buffers: list[Buffer] = []
        self.ads: list[ADNode] = []


class Recipe:
    """The results and changes of one recorded call, in terms of its inputs and of the launches' results."""

    def __init__(self, name: str, recorder: Recorder, entry: Entry, existed: set[int]) -> None:
        self.name, self.recorder, self.existed = name, recorder, existed
        self.results: list[int] = []  # slots that launches make and that get memory of their own
        self.made: list[tuple[Any, int, int]] = []  # (type, elements, number among results) of distinct nodes
        self.groups = 0  # distinct derivative nodes to make
        self._inputs = {id(n): k for k, n in enumerate(entry.nodes)}
        self._ads = {id(a): k for k, a in enumerate(entry.ads)}
        self._nodes: dict[int, tuple[str, Any]] = {}
        self._grouped: dict[int, tuple[str, int, Any]] = {}
        self._objects: dict[int, int] = {}
        self._kept: list[Any] = []  # what ids stand for

    def finish(self) -> None:
        """Forget what was needed while the recipe was made, above all the arrays of the recorded call."""
        self._inputs, self._ads, self._nodes, self._grouped, self._objects = {}, {}, {}, {}, {}
        self._kept = []

    # Making a recipe -----------------------------------------------------------------------------------------------

    def node(self, n: Node) -> tuple[str, Any]:
        """Return how to get a node: an input, a result, or the node itself where it is the same in every replay."""
        known = self._nodes.get(id(n))
        if known is not None:
            return known
        self._kept.append(n)
        if id(n) in self._inputs:
            found: tuple[str, Any] = "input", self._inputs[id(n)]
        elif n.op is LITERAL or n.buf is None:
            found = "literal", n
        elif n.buf.owner.__class__ is Buffer and self.recorder.number(n.buf) is None:
            parent, offset = self.recorder.nearest(n.buf)
            found = "view", (n.dtype, n.size, self.node(data(n.dtype, n.size, parent)), offset)
        else:
            slot = self.recorder.number(n.buf)
            slot = self.recorder.constant(n.buf) if slot is None else slot
            kind = self.recorder.slots[slot].kind
            if kind == "made":
                self.made.append((n.dtype, n.size, self.result(n.buf)))
                found = "made", len(self.made) - 1
            elif kind == "input":
                found = "alias", (n.dtype, n.size, slot)
            else:
                # The caller of the recorded call gets the original, and may write to it through NumPy.
                kept = self.recorder.slots[slot].buffer = _copied(n)
                found = "constant", data(n.dtype, n.size, kept)
        self._nodes[id(n)] = found
        return found

    def result(self, buffer: Buffer) -> int:
        """Return the number among the results of a buffer that launches make."""
        slot = self.recorder.number(buffer)
        assert slot is not None
        if slot not in self.results:
            self.results.append(slot)
        return self.results.index(slot)

    def derivative(self, a: ADNode | None) -> Any:
        """Return how to get a derivative node: that of an input, a new leaf with its gradient, or one that is lost."""
        if a is None:
            return None
        if id(a) in self._ads:
            return "kept", self._ads[id(a)], None
        known = self._grouped.get(id(a))
        if known is None:
            self._kept.append(a)
            if a.rule is None:
                known = "leaf", self.groups, None if a.grad is None else self.array(a.grad)
            else:
                known = "lost", self.groups, None
            self.groups += 1
            self._grouped[id(a)] = known
        return known

    def array(self, x: Any) -> tuple[Any, Any, Any]:
        """Return how to make a flat array."""
        return type(x), self.node(x._n), self.derivative(x._ad)

    def value(self, snap: Snap, places: dict[int, Path]) -> tuple[str, Any]:
        """Return how to make a value; `places` tells where objects were that existed before the call."""
        kind, value = snap.kind, snap.value
        if id(value) in places and type(value) is not tuple:
            return "place", places[id(value)]
        if id(value) in self._objects:
            return "again", self._objects[id(value)]
        if kind == FLAT:
            how = (type(value), self.node(snap.node), self.derivative(snap.ad))
            return "flat", (*how, self._enter(value))
        if kind in (NESTED, TENSOR, SEQUENCE, MAPPING, STRUCT, OBJECT):
            below = [(step, self.value(child, places)) for step, child in snap.below if step[0] != "type"]
            keys = list(value) if kind == MAPPING else None
            return "build", (kind, type(value), snap.atom, below, keys, self._enter(value))
        if id(value) in self.existed or kind == CLASS:
            return "is", value
        hidden = kind == CONTENT and any(isinstance(x, ArrayBase) for x in value)
        if kind in (FUNCTION, METHOD, SAME) or (kind == NUMPY and getattr(value, "ndim", 0) > 0) or hidden:
            raise FreezeError(
                f"frozen function '{self.name}': a {type(value).__name__} made inside of it cannot be replayed; return "
                "arrays, numbers, and tuples, lists, dictionaries or dataclasses of them"
            )
        if kind == CONTENT:
            return "copy", copy.copy(value)
        return "is", value


    def content(self, change: Change, places: dict[int, Path]) -> Any:
        """Return how to make what a change puts in place, None if it takes something away."""
        snap = change.snap
        if snap is None:
            return None
        if change.how == "assign":
            return "flat", (type(snap.value), self.node(snap.node), self.derivative(snap.ad), -1)
        if change.how == "fill" and snap.kind == CONTENT:
            return "copy", copy.copy(snap.value)
        if change.how in ("fill", "shape"):
            below = [(step, self.value(child, places)) for step, child in snap.below]
            kind = list if change.how == "fill" else type(snap.value)
            return "build", (snap.kind, kind, snap.atom, below, None, -1)
        return self.value(snap, places)

    def _enter(self, value: Any) -> int:
        """Return the number of an object that replays make."""
        self._kept.append(value)
        self._objects[id(value)] = len(self._objects)
        return self._objects[id(value)]


class Kitchen:
    """One replay's buffers, made into nodes and arrays as recipes ask for them."""

    def __init__(self, recipe: Recipe, entry: Entry, results: list[Buffer]) -> None:
        self.recipe, self.entry, self.results = recipe, entry, results
        self.nodes = [data(dtype, size, results[k]) for dtype, size, k in recipe.made]
        self.groups: list[Any] = [None] * recipe.groups
        self.objects: dict[int, Any] = {}

    def node(self, how: tuple[str, Any]) -> Node:
        """Return a node."""
        kind, what = how
        node: Node
        if kind == "made":
            node = self.nodes[what]
            return node
        if kind == "input":
            node = self.entry.nodes[what]
            return node
        if kind == "view":
            dtype, size, parent, offset = what
            return data(dtype, size, view(self.node(parent).buf, offset, size * dtype.itemsize))
        if kind == "constant":
            return data(what.dtype, what.size, _copied(what))
        if kind == "alias":
            dtype, size, slot = what
            return data(dtype, size, self.entry.buffers[slot])
        node = what
        return node

    def flat(self, how: tuple[Any, ...]) -> Any:
        """Return a flat array."""
        cls, node, derivative = how[:3]
        x = _new(cls)
        x._n, x._ad = self.node(node), None
        if derivative is not None:
            x._ad = self.derivative(derivative, x)
        return x

    def derivative(self, how: tuple[str, int, Any], x: Any) -> Any:
        """Return the derivative node of an array."""
        kind, number, gradient = how
        if kind == "kept":
            return self.entry.ads[number]
        known = self.groups[number]
        if known is None:
            if kind == "leaf":
                known = leaf(x)
                known.grad = None if gradient is None else self.flat(gradient)
            else:
                known = lost(self.recipe.name, x, self.entry.ads)
            self.groups[number] = known
        return known

    def value(self, how: tuple[str, Any]) -> Any:
        """Return a value."""
        kind, what = how
        if kind == "flat":
            x = self.objects[what[3]] = self.flat(what)
            return x
        if kind == "again":
            return self.objects[what]
        if kind == "is":
            return what
        if kind == "copy":
            return copy.copy(what)
        if kind == "place":
            return follow(self.entry.roots, what)
        x = self.objects[what[5]] = self._build(*what[:5])
        return x

    def _build(self, kind: int, cls: Any, whole: Any, below: list[Any], keys: Any) -> Any:
        made = [self.value(child) for _, child in below]
        if kind == NESTED:
            return cls.of(made)
        if kind == TENSOR:
            return cls(made[0], whole)
        if kind == MAPPING:
            return cls(zip(keys, made, strict=True))
        if kind == SEQUENCE:
            return cls(*made) if hasattr(cls, "_fields") else cls(made)
        new = _new(cls)
        for (step, _), value in zip(below, made, strict=True):
            put(new, step, value)
        restore = getattr(cls, "frozen_restore", None)
        if restore is not None:
            restore(new)
        return new


def _copied(n: Node) -> Buffer:
    """Return memory with the elements of an evaluated node."""
    buffer = allocate(n.dtype, n.size)
    copy_bytes(buffer, n.buf, n.size * n.dtype.itemsize)
    return buffer


def lost(name: str, x: Any, inputs: list[ADNode]) -> ADNode:
    """Return a derivative node for a result of a frozen function that depends on differentiable inputs."""
    return connect(x, Lost(name), tuple(inputs), (), None)


def follow(roots: Any, path: Path) -> Any:
    """Return what a path leads to."""
    value = roots
    for step in path:
        value = get(value, step)
    return value


def apply(change: Change, target: Any, value: Any, entry: Entry) -> None:
    """Carry out a change on an object with the value made for it."""
    if change.how == "assign":
        target = entry.leaves[change.leaf]
        target._n, target._ad = value._n, value._ad
    elif change.how == "set":
        put(target, change.step, value)
    elif change.how == "shape":
        target._array, target._shape = value._array, value._shape
    elif change.how == "remove":
        remove(target, change.step)
    elif isinstance(target, (set, deque)):
        target.clear()
        (target.update if isinstance(target, set) else target.extend)(value)
    else:
        target[:] = value


__all__ = ["Entry", "Kitchen", "Lost", "Recipe", "apply", "follow", "lost"]
