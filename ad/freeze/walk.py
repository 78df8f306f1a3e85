"""What a function can reach: arrays, numbers and containers below its arguments, as a key and a list of arrays.

The key decides whether a recording fits: types, structure, Python values, which arrays are the same, which are
constants, which have gradients. Sizes are kept apart from it.

A class can say more about its objects: `frozen_skip` names attributes that do not count (numbers of nodes, caches),
`frozen_token(self)` returns what stands for them in the key, `frozen_restore(self)` makes them for an object that a
replay makes, `frozen_prepare(self)` runs before a recording; with `frozen_whole` true objects are told apart by
identity and not looked into.
"""

from __future__ import annotations

import array
import dataclasses
import enum
import functools
import types
from collections import deque
from typing import Any

from ...jit.arrays.base import ArrayBase
from ...jit.arrays.flat import Flat
from ...jit.arrays.nested import Nested
from .surroundings import PACKAGE, Step, captured, class_members, is_library, users

FLAT, NESTED, TENSOR, NUMBER, VALUE, SEQUENCE, MAPPING, STRUCT, OBJECT, FUNCTION, METHOD, CLASS = range(12)
NUMPY, CONTENT, SAME = 12, 13, 14

_OWN = PACKAGE + "."
_HEAPTYPE = 1 << 9  # of classes written in Python
_KEYS = (str, int, tuple, float, bool)
_ATOMS = (str, bytes, type(None), type(Ellipsis), range, slice, complex)
_BYTES = (bytearray, memoryview, array.array)
_kinds: dict[type, int] = {
    int: NUMBER, bool: NUMBER, float: NUMBER, list: SEQUENCE, tuple: SEQUENCE, dict: MAPPING, deque: SEQUENCE,
    set: CONTENT, frozenset: CONTENT, bytearray: CONTENT, memoryview: CONTENT, array.array: CONTENT,
    types.FunctionType: FUNCTION, types.MethodType: METHOD, types.BuiltinFunctionType: METHOD,
    types.MappingProxyType: MAPPING, type(functools.lru_cache(id)): METHOD, types.SimpleNamespace: OBJECT,
    functools.partial: METHOD,
}  # fmt: skip


class Same:
    """A key that equals only the very same object, which it keeps alive."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def kind_of(cls: type) -> int:
    """Return how values of a class are walked."""
    kind = _kinds.get(cls)
    if kind is None:
        kind = _kinds[cls] = _classify(cls)
    return kind


def _classify(cls: type) -> int:
    if issubclass(cls, Flat):
        return FLAT
    if issubclass(cls, Nested):
        return NESTED
    if issubclass(cls, ArrayBase):
        return TENSOR
    if issubclass(cls, (*_ATOMS, enum.Enum, int, float)):
        return VALUE
    if cls.__module__ == "numpy":
        return NUMPY
    if issubclass(cls, type):
        return CLASS
    if issubclass(cls, (types.ModuleType, types.BuiltinFunctionType, types.CodeType)):
        return SAME
    if isinstance(getattr(cls, "DRJIT_STRUCT", None), dict) or dataclasses.is_dataclass(cls):
        return STRUCT
    if issubclass(cls, (list, tuple)):
        return SEQUENCE
    if issubclass(cls, dict):
        return MAPPING
    if issubclass(cls, (set, frozenset)):
        return CONTENT
    if getattr(cls, "frozen_whole", False) or not _walkable(cls):
        return SAME
    return OBJECT


def _walkable(cls: type) -> bool:
    """Return whether objects of a class are looked into: those of this package and of the user's own modules."""
    own = cls.__module__.split(".")[0] in (PACKAGE, "collections")
    return (own or users(cls.__module__)) and (cls.__flags__ & _HEAPTYPE != 0)


def _slots(cls: type) -> list[str]:
    found: list[str] = []
    for base in cls.__mro__:
        names = base.__dict__.get("__slots__", ())
        for name in [names] if isinstance(names, str) else names:
            private = name.startswith("__") and not name.endswith("__")
            found.append(f"_{base.__name__.lstrip('_')}{name}" if private else name)
    return [name for name in found if name not in ("__weakref__", "__dict__")]


def members(value: Any) -> list[tuple[str, Any]]:
    """Return the attributes of an object, without those its class names in `frozen_skip`."""
    skip = getattr(type(value), "frozen_skip", ())
    own = getattr(value, "__dict__", None)
    found = list(own.items()) if own.__class__ is dict else []
    missing = object()
    for name in _slots(type(value)):
        member = getattr(value, name, missing)
        if member is not missing:
            found.append((name, member))
    return [(k, v) for k, v in found if k not in skip] if skip else found


def fields_of(value: Any) -> list[tuple[str, Any]]:
    """Return the fields of a dataclass or DRJIT_STRUCT object, and what else it has for attributes."""
    struct = getattr(type(value), "DRJIT_STRUCT", None)
    names = struct if isinstance(struct, dict) else [f.name for f in dataclasses.fields(value)]
    found = {name: getattr(value, name) for name in names if hasattr(value, name)}
    return list({**found, **getattr(value, "__dict__", {})}.items())


def children(kind: int, value: Any) -> list[tuple[Step, Any]]:
    """Return what a container holds, with the step to each."""
    if kind == NESTED:
        return [(("component", k), c) for k, c in enumerate(value._c)]
    if kind == TENSOR:
        return [(("array", None), value.array)]
    if kind == SEQUENCE or kind == MAPPING:
        pairs = enumerate(value) if kind == SEQUENCE else value.items()
        inside: list[tuple[Step, Any]] = [(("item", k), v) for k, v in pairs]
        more = getattr(value, "__dict__", None)
        return inside + [(("attr", k), v) for k, v in more.items()] if more else inside
    if kind == STRUCT or kind == OBJECT:
        found = fields_of(value) if kind == STRUCT else members(value)
        below: list[tuple[Step, Any]] = [(("attr", k), v) for k, v in found]
        if users(type(value).__module__):
            below.append((("type", None), type(value)))
        return below
    if kind == CLASS:
        return class_members(value) if users(value.__module__) else []
    if kind == FUNCTION:
        return list(captured(value))
    if kind == METHOD:
        names = ("func", "args", "keywords", "__self__", "__func__", "__wrapped__")
        held = [(("attr", name), getattr(value, name)) for name in names if hasattr(value, name)]
        return [(step, v) for step, v in held if not isinstance(v, types.ModuleType)]
    return []


def atom(kind: int, value: Any) -> Any:
    """Return the part of the key that stands for a value without its children."""
    if kind == NUMBER:
        return value.hex() if value.__class__ is float else value  # NaN equals itself, -0.0 is not 0.0
    if kind == VALUE:
        return repr(value) if value.__class__ in (slice, complex) else value
    if kind == NUMPY:
        return _numpy_key(value)
    if kind == TENSOR:
        # The first dimension follows from the size, unless there is nothing.
        return value.shape if 0 in value.shape else (value.shape[1:], len(value.shape))
    if kind == MAPPING:
        return tuple((type(k), k) if type(k) in _KEYS or isinstance(k, enum.Enum) else Same(k) for k in value)
    if kind == FUNCTION:
        return value.__code__
    if kind == SAME or kind == CLASS or (kind == METHOD and isinstance(value, types.BuiltinFunctionType)):
        return getattr(value, "__name__", "") if kind == METHOD else Same(value)
    if kind == CONTENT:
        if isinstance(value, _BYTES):
            return bytes(value)
        return frozenset(k if type(k) in _KEYS or isinstance(k, enum.Enum) else Same(k) for k in value)
    if kind == OBJECT:
        token = getattr(type(value), "frozen_token", None)
        return None if token is None else token(value)
    return None


def _numpy_key(value: Any) -> Any:
    if hasattr(value, "tobytes") and hasattr(value, "dtype"):
        import hashlib

        data = value.tobytes() if value.dtype != object else repr(value).encode()
        return value.dtype.str, getattr(value, "shape", ()), hashlib.blake2b(data, digest_size=16).digest()
    return Same(value)


class Walk:
    """One visit of everything below some roots: `tokens` for the key, `leaves` (flat arrays) in order."""

    __slots__ = ("tokens", "leaves", "_seen")

    def __init__(self) -> None:
        self.tokens: list[Any] = []
        self.leaves: list[Any] = []
        self._seen: dict[int, int] = {}

    def visit(self, value: Any, own: bool = False) -> None:
        """Add a value and everything below it. `own`: it belongs to an object of this package, which never changes its
        NumPy arrays in place; others are compared by what they hold."""
        cls = value.__class__
        kind = _kinds.get(cls)
        if kind is None:
            kind = kind_of(cls)
        tokens = self.tokens
        if kind == FLAT:
            count = len(self._seen)
            known = self._seen.setdefault(id(value), count)
            tokens.append(cls if known == count else known)  # the same object again changes with the first
            self.leaves.append(value)
            return
        if kind == NESTED:
            tokens.append(cls)
            for c in value._c:
                self.visit(c)
            return
        if own and kind == NUMPY:
            tokens.append(Same(value))
            return
        if kind == NUMBER:
            tokens.append(cls)
            tokens.append(value.hex() if cls is float else value)
            return
        if kind >= MAPPING and kind <= CLASS or cls is list:
            met = self._seen.get(id(value))
            if met is not None:
                tokens.append(("again", met))
                return
            self._seen[id(value)] = len(self._seen)
        tokens.append(cls)
        if kind == FUNCTION and is_library(value):
            tokens.append(value.__code__)
            for cell in value.__closure__ or ():
                self.visit(cell.cell_contents)
            return
        tokens.append(atom(kind, value))
        below = children(kind, value)
        own = own or (kind == OBJECT and cls.__module__.startswith(_OWN) and not hasattr(cls, "frozen_open"))
        tokens.append(len(below))
        for step, child in below:
            if kind >= STRUCT:
                tokens.append(step[1])
            self.visit(child, own)


def get(value: Any, step: Step) -> Any:
    """Return what a step leads to."""
    how, key = step
    if how == "item":
        return value[key]
    if how == "attr":
        return getattr(value, key)
    if how == "component":
        return value._c[key]
    if how == "array":
        return value.array
    if how == "cell":
        return value.__closure__[key].cell_contents
    if how == "type":
        return type(value)
    if how == "wrapped":
        member = vars(value)[key]
        return member.fget if isinstance(member, property) else member.__func__
    if how == "cell module":
        return value.__closure__[key[0]].cell_contents.__dict__[key[1]]
    if how == "module":
        return value.__globals__[key[0]].__dict__[key[1]]
    return value.__globals__[key]


def put(value: Any, step: Step, new: Any) -> None:
    """Set what a step leads to."""
    how, key = step
    if how == "item":
        value[key] = new
    elif how == "attr":
        (type.__setattr__ if isinstance(value, type) else object.__setattr__)(value, key, new)
    elif how == "cell module":
        value.__closure__[key[0]].cell_contents.__dict__[key[1]] = new
    elif how == "module":
        value.__globals__[key[0]].__dict__[key[1]] = new
    elif how == "component":
        value._c[key] = new
    elif how == "array":
        value._array = new
    elif how == "cell":
        value.__closure__[key].cell_contents = new
    else:
        value.__globals__[key] = new


def remove(value: Any, step: Step) -> None:
    """Take away what a step leads to."""
    how, key = step
    if how == "item":
        del value[key]
    elif how == "attr":
        delattr(value, key)
    else:
        del value.__globals__[key]


__all__ = ["Same", "Step", "Walk", "atom", "children", "get", "kind_of", "put", "remove"]
