"""The structure below a function's roots at one moment, and what a call has changed in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .surroundings import Step, is_library
from .walk import (
    CLASS,
    CONTENT,
    FLAT,
    FUNCTION,
    MAPPING,
    METHOD,
    NESTED,
    NUMBER,
    OBJECT,
    SEQUENCE,
    STRUCT,
    TENSOR,
    VALUE,
    atom,
    children,
    kind_of,
)

Path = tuple[Step, ...]


@dataclass
class Snap:
    """One value: its kind, the object itself, what the key holds of it, and what is below. `node` and `ad` are what a
    flat array held at that moment. `again` marks an object met before, whose content is listed there."""

    kind: int
    value: Any
    atom: Any
    below: list[tuple[Step, Snap]] = field(default_factory=list)
    node: Any = None
    ad: Any = None
    again: bool = False


def snapshot(value: Any, seen: dict[int, Any]) -> Snap:
    """Return the structure below a value; `seen` keeps the objects met so far."""
    kind = kind_of(type(value))
    if kind == FLAT:
        return Snap(kind, value, None, node=value._n, ad=value._ad)
    looped = kind in (MAPPING, STRUCT, OBJECT, FUNCTION, METHOD, CLASS)
    if looped or (kind == SEQUENCE and not isinstance(value, tuple)):
        if id(value) in seen:
            return Snap(kind, value, None, again=True)
        seen[id(value)] = value
    if kind == FUNCTION and is_library(value):
        return Snap(kind, value, value.__code__)
    whole = value.shape if kind == TENSOR else atom(kind, value)
    return Snap(kind, value, whole, [(step, snapshot(c, seen)) for step, c in children(kind, value)])


def leaves(snap: Snap) -> Iterator[Snap]:
    """Yield the flat arrays of a snapshot in order."""
    if snap.kind == FLAT:
        yield snap
    for _, child in snap.below:
        yield from leaves(child)


@dataclass
class Change:
    """One thing to do after a replay, at the end of a path of steps from the roots: "assign" an array to the array
    object there, "set" what a further step leads to, "remove" it, or "fill" the list or set there anew."""

    how: str
    path: Path
    snap: Snap | None
    leaf: int = -1  # for "assign": the number of the array among all leaves
    step: Step = ("", None)  # for "set" and "remove"


class Index:
    """The objects of a snapshot by identity: their content, where they are first met, arrays with their number."""

    def __init__(self, root: Snap) -> None:
        self.snaps: dict[int, Snap] = {}
        self.paths: dict[int, Path] = {}
        self.leaves: dict[int, int] = {}
        self.values: set[int] = set()  # everything, also what is not looked into
        self._count = 0
        self._enter(root, ())

    def _enter(self, snap: Snap, path: Path) -> None:
        key = id(snap.value)
        self.values.add(key)
        if not snap.again and key not in self.snaps and _has_identity(snap):
            self.snaps[key], self.paths[key] = snap, path
            if snap.kind == FLAT:
                self.leaves[key] = self._count
        if snap.kind == FLAT:
            self._count += 1
        for step, child in snap.below:
            self._enter(child, (*path, step))


def _has_identity(snap: Snap) -> bool:
    """Return whether a value can change while it stays the same object."""
    if snap.kind == SEQUENCE:
        return not isinstance(snap.value, tuple)
    if snap.kind == CONTENT:
        return not isinstance(snap.value, (frozenset, memoryview))
    return snap.kind in (FLAT, NESTED, TENSOR, MAPPING, STRUCT, OBJECT, FUNCTION, METHOD, CLASS)


def differences(before: Snap, after: Snap, index: Index, loose: frozenset[int]) -> list[Change]:
    """Return what a call has changed in the objects that it could reach.

    Each object is compared with itself, wherever it is now. `before` and `after` are lists of roots, of which those in
    `loose` are made anew by each call: their arrays are assigned where they stand.
    """
    changes: list[Change] = []
    now = Index(after)
    for key, old in index.snaps.items():
        new = now.snaps.get(key)
        if new is not None and old.value is not before.value:
            _compare(old, new, index, changes)
    for k, ((_, a), (_, b)) in enumerate(zip(before.below, after.below, strict=True)):
        if k in loose:
            _assign(a, b, index, changes)
    return changes


def _compare(old: Snap, new: Snap, index: Index, changes: list[Change]) -> None:
    key = id(old.value)
    path = index.paths[key]
    if old.kind == FLAT:
        if new.node is not old.node or new.ad is not old.ad:
            changes.append(Change("assign", path, new, index.leaves[key]))
        return
    if old.kind == CONTENT or old.kind == SEQUENCE:
        same = old.atom == new.atom and len(old.below) == len(new.below)
        if not same or any(not _same(a, b) for (_, a), (_, b) in zip(old.below, new.below, strict=True)):
            changes.append(Change("fill", path, new))
        return
    if old.kind == TENSOR and old.atom != new.atom:
        changes.append(Change("shape", path, new))
    after = dict(new.below)
    for step, child in old.below:
        if step not in after:
            changes.append(Change("remove", path, None, step=step))
        elif not _same(child, after[step]):
            changes.append(Change("set", path, after[step], step=step))
    known = {step for step, _ in old.below}
    changes += [Change("set", path, child, step=step) for step, child in new.below if step not in known]


def _same(old: Snap, new: Snap) -> bool:
    """Return whether a slot holds what it held: the same object, or an equal value."""
    if old.kind != new.kind or type(old.value) is not type(new.value):
        return False
    if old.value is new.value:
        return True
    if old.kind in (NUMBER, VALUE):
        return bool(old.atom == new.atom)
    if old.kind == METHOD or (old.kind == SEQUENCE and isinstance(old.value, tuple)):
        pairs = zip(old.below, new.below, strict=False)
        return len(old.below) == len(new.below) and all(_same(a, b) for (_, a), (_, b) in pairs)
    return False


def _assign(old: Snap, new: Snap, index: Index, changes: list[Change]) -> None:
    """Let arrays that have been replaced below a loose root take the new values where they stood."""
    if old.kind == FLAT:
        if new.kind == FLAT and new.value is not old.value and type(new.value) is type(old.value):
            number = index.leaves[id(old.value)]
            if all(c.how != "assign" or c.leaf != number for c in changes):
                changes.append(Change("assign", index.paths[id(old.value)], new, number))
        return
    after = dict(new.below)
    for step, child in old.below:
        if step in after:
            _assign(child, after[step], index, changes)


__all__ = ["Change", "Index", "Path", "Snap", "differences", "leaves", "snapshot"]
