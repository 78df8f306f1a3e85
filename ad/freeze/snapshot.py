"""The structure below a function's roots at one moment, and what a call has changed in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .surroundings import Step, is_library
from .walk import (
    CLASS,
    FLAT,
    FUNCTION,
    MAPPING,
    METHOD,
    NESTED,
    NUMPY,
    OBJECT,
    STRUCT,
    TENSOR,
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
    if kind in (MAPPING, STRUCT, OBJECT, FUNCTION, METHOD, CLASS) or type(value) is list:
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
    object there, "set" what the last step leads to, or "remove" it."""

    how: str
    path: Path
    snap: Snap | None
    leaf: int = -1  # for "assign": the number of the array among all leaves


class Differ:
    """Compares snapshots of the roots before and after a call: lists of equal length, of which those in `loose` are
    made anew by each call, so that it is what they hold that counts."""

    def __init__(self, before: Snap, after: Snap, loose: frozenset[int]) -> None:
        self.changes: list[Change] = []
        self._leaf = -1
        for k, ((step, a), (_, b)) in enumerate(zip(before.below, after.below, strict=True)):
            self._compare(a, b, (step,), True, k in loose)

    def _compare(self, before: Snap, after: Snap, path: Path, fixed: bool, loose: bool) -> None:
        """Note what differs below `path`; `fixed`: its last step leads into something that cannot be changed."""
        if before.kind == FLAT:
            self._leaf += 1
            number = self._leaf
            if after.kind != FLAT or type(after.value) is not type(before.value):
                self._set(path, after)
            elif after.value is not before.value and not fixed:
                self._set(path, after)
            elif after.node is not before.node or after.ad is not before.ad:
                self.changes.append(Change("assign", path, after, number))
            return
        if before.again and after.again and before.value is after.value:
            return
        if not self._same_container(before, after, loose):
            self._skip(before)
            self._set(path, after)
            return
        new = dict(after.below)
        inner = type(before.value) is tuple or before.kind in (NESTED, TENSOR)
        for step, child in before.below:
            if step in new:
                self._compare(child, new.pop(step), (*path, step), inner or loose, loose and inner)
            else:
                self._skip(child)
                self.changes.append(Change("remove", (*path, step), None))
        for step, child in new.items():
            self._set((*path, step), child)

    def _same_container(self, before: Snap, after: Snap, loose: bool) -> bool:
        if before.kind != after.kind or type(before.value) is not type(after.value):
            return False
        if before.again or after.again:
            return False
        if before.kind == NESTED:
            return True
        if before.kind == TENSOR:
            return bool(before.atom == after.atom)
        if type(before.value) is tuple or loose and type(before.value) is list:
            return len(before.below) == len(after.below)
        if before.kind in (MAPPING, STRUCT, OBJECT, FUNCTION, METHOD, CLASS) or before.below:
            return before.value is after.value or loose and type(before.value) is dict
        # Plain values; NumPy arrays that were replaced by equal ones.
        return bool(before.atom == after.atom and (before.kind != NUMPY or before.value is after.value))

    def _skip(self, snap: Snap) -> None:
        self._leaf += sum(1 for _ in leaves(snap))

    def _set(self, path: Path, after: Snap) -> None:
        self.changes.append(Change("set", path, after))


__all__ = ["Change", "Differ", "Path", "Snap", "leaves", "snapshot"]
