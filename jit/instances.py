"""Calls on objects chosen per lane: objects of one structure share code, with what differs read from a table.

An `InstanceSet` holds Python objects; lanes name one by its index. Objects whose class lists `merge_fields` and that
agree in everything but single array values are one group: their values are put into tables, and a call runs once per
group on a stand-in whose values are gathered by the lane's index. Groups are skipped by packets that need none of
them. Gradients reach each object's own values through the tables.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from .arrays import tree
from .arrays.base import ArrayBase
from .arrays.flat import Flat, convert
from .arrays.memops import gather
from .arrays.nested import Nested
from .arrays.shape import concat
from .control import choose
from .dtypes import Bool, UInt32
from .runtime.evaluate import evaluate

NONE = 0xFFFFFFFF  # index of no object: calls return zeros


def structure(value: Any) -> Any:
    """Return a key that two values share if they may share code: same structure, single array values may differ."""
    if isinstance(value, Flat):
        return ("array", type(value)) if value._n.size == 1 else ("same", id(value))
    if isinstance(value, Nested):
        return (type(value), tuple(structure(c) for c in value._c))
    if isinstance(value, ArrayBase):
        return ("same", id(value))
    if value is None or isinstance(value, (bool, int, float, str)):
        return ("constant", type(value), value)
    if isinstance(value, (list, tuple)):
        return (type(value), tuple(structure(v) for v in value))
    fields = getattr(type(value), "merge_fields", None)
    if fields is None:
        return ("same", id(value))
    return (type(value), tuple(structure(getattr(value, name)) for name in fields))


def leaves(value: Any) -> list[Any]:
    """Return the single array values of an object, in order."""
    if isinstance(value, Flat):
        return [value] if value._n.size == 1 else []
    if isinstance(value, Nested):
        return [leaf for c in value._c for leaf in leaves(c)]
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in leaves(v)]
    fields = getattr(type(value), "merge_fields", None)
    if fields is None or isinstance(value, ArrayBase):
        return []
    return [leaf for name in fields for leaf in leaves(getattr(value, name))]


def replaced(value: Any, values: Any) -> Any:
    """Return a copy of an object with its single array values taken from the iterator `values`."""
    if isinstance(value, Flat):
        return next(values) if value._n.size == 1 else value
    if isinstance(value, Nested):
        return type(value).of([replaced(c, values) for c in value._c])
    if isinstance(value, (list, tuple)):
        return type(value)(replaced(v, values) for v in value)
    fields = getattr(type(value), "merge_fields", None)
    if fields is None or isinstance(value, ArrayBase):
        return value
    new = copy.copy(value)
    for name in fields:
        setattr(new, name, replaced(getattr(value, name), values))
    return new


def identities(objects: Sequence[Any]) -> list[tuple[int, int]]:
    """Return what changes when a value of an object is rebound or gets a gradient."""
    return [(x._n.index, x.index_ad) for o in objects for x in leaves(o)]


class Group:
    """Objects that share code: the first of them, and a table per array value that differs."""

    def __init__(self, objects: list[Any]) -> None:
        self.first = objects[0]
        self.count = len(objects)
        self.tables: list[Any] = []
        if self.count > 1:
            columns = zip(*(leaves(o) for o in objects), strict=True)
            self.tables = [_table(column) for column in columns]

    def stand_in(self, slot: Any, active: Any) -> Any:
        """Return an object whose values are those of the object number `slot` of the group, per lane."""
        if self.count == 1:
            return self.first
        values = (t if t._n.size == 1 else gather(type(t), t, slot, active) for t in self.tables)
        return replaced(self.first, values)


def _table(column: Sequence[Any]) -> Any:
    first = column[0]
    if all(c._n is first._n and c._ad is first._ad for c in column):
        return first
    return concat(list(column))


class InstanceSet:
    """Objects that lanes choose from by index (UInt32); out of range means none."""

    frozen_skip = ("identities",)

    def __init__(self, objects: Sequence[Any], ns: Any) -> None:
        self.objects = list(objects)
        self.ns = ns
        self.identities = identities(self.objects)
        groups: dict[Any, list[int]] = {}
        for position, obj in enumerate(self.objects):
            groups.setdefault(structure(obj), []).append(position)
        self.groups = [Group([self.objects[k] for k in members]) for members in groups.values()]
        evaluate([t._n for g in self.groups for t in g.tables])  # together: one launch instead of one per table
        group_of, slot_of = [0] * len(self.objects), [0] * len(self.objects)
        for number, members in enumerate(groups.values()):
            for slot, position in enumerate(members):
                group_of[position], slot_of[position] = number, slot
        kind = ns.flat(UInt32)
        self.group_of = kind(group_of) if len(self.groups) > 1 else None
        self.identity = slot_of == list(range(len(self.objects)))
        self.slot_of = kind(slot_of) if slot_of and not self.identity else None

    def __len__(self) -> int:
        return len(self.objects)

    def is_current(self) -> bool:
        """Return whether the tables hold the objects' present values, without gradients a traversal may have cut."""
        return all(t._ad is None for g in self.groups for t in g.tables) and self.identities == identities(self.objects)

    frozen_token = is_current

    def frozen_restore(self) -> None:
        """Count as out of date: what the tables were made of is not known any more."""
        self.identities = []

    def call(self, index: Any, fn: Callable[..., Any], *args: Any, active: Any = True) -> Any:
        """Return fn(object, *args, active) per lane, for the object at `index`; zeros where there is none."""
        mask = convert(self.ns.flat(Bool), active) & (index < len(self.objects))
        slot = index if self.slot_of is None else gather(type(index), self.slot_of, index, mask)
        if not self.groups:
            raise RuntimeError("a call on an empty set of objects")
        if len(self.groups) == 1:
            result = fn(self.groups[0].stand_in(slot, mask), *args, mask)
            return masked(result, mask)
        assert self.group_of is not None
        group = gather(type(index), self.group_of, index, mask)
        masks = [mask & (group == k) for k in range(len(self.groups))]
        calls = [_Call(g, fn, slot, m) for g, m in zip(self.groups, masks, strict=True)]
        return choose(masks, calls, args, None, [])


class _Call:
    """One group's part of a call."""

    def __init__(self, group: Group, fn: Callable[..., Any], slot: Any, mask: Any) -> None:
        self.group, self.fn, self.slot, self.mask = group, fn, slot, mask

    def __call__(self, *args: Any) -> Any:
        return self.fn(self.group.stand_in(self.slot, self.mask), *args, self.mask)


def masked(value: Any, mask: Any) -> Any:
    """Return a PyTree with zeros where the mask is not set."""
    from .arrays.functions import select

    def zero(x: Any) -> Any:
        return x & mask if x.dtype is Bool else select(mask, x, type(x)(0))

    return tree.map_arrays(zero, value)


class InstanceArray:
    """Objects by lane: one Python object of a set per element, chosen by an index (0xffffffff: none)."""

    DRJIT_STRUCT = {"index": Any}

    def __init__(self, objects: InstanceSet, index: Any) -> None:
        self.objects, self.index = objects, index

    def __len__(self) -> int:
        return int(self.index._n.size)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("objects", "index"):
            raise AttributeError(name)
        if not hasattr(self.objects.objects[0] if self.objects.objects else None, name):
            raise AttributeError(f"the objects of this array have no method '{name}'")
        return lambda *args: dispatch(self, lambda instance, *rest: getattr(instance, name)(*rest[:-1]), *args)


def instances(objects: Sequence[Any], index: Any) -> InstanceArray:
    """Return an array of the Python objects at `index` (UInt32).

    >>> from luxgrad.jit.arrays.namespace import namespace
    >>> ns = namespace("llvm", False)
    >>> Float, UInt32 = ns.get("Float"), ns.get("UInt32")
    >>> class Scale:
    ...     merge_fields = ("factor",)
    ...     def __init__(self, factor):
    ...         self.factor = Float(factor)
    >>> chosen = instances([Scale(2), Scale(10)], UInt32([0, 1, 1]))
    >>> dispatch(chosen, lambda scale, x, active: scale.factor * x, Float([1, 2, 3]))
    [2, 20, 30]
    """
    return InstanceArray(InstanceSet(objects, index.ns), index)


def dispatch(inst: InstanceArray, fn: Callable[..., Any], *args: Any) -> Any:
    """Return fn(instance, *args, active) per lane of an instance array; zeros in lanes without instance.

    `active` is the mask of lanes that the call serves. Objects of one structure (see `InstanceSet`) share code.
    """
    if not isinstance(inst, InstanceArray):
        raise TypeError(f"dispatch(): an array of instances is needed (see `instances`), found {type(inst).__name__}")
    if not callable(fn):
        raise TypeError(f"dispatch(): a function is needed, found {type(fn).__name__}")
    return inst.objects.call(inst.index, fn, *args)
