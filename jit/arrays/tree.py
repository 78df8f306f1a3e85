"""PyTrees: tuples, lists, dicts, dataclasses and classes with DRJIT_STRUCT that hold arrays, nested in any way."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

from .base import ArrayBase
from .flat import Flat
from .nested import Nested


def fields(value: Any) -> dict[str, Any] | None:
    """Return the fields of a dataclass or DRJIT_STRUCT object (or type, then their types); None for others."""
    struct = getattr(value, "DRJIT_STRUCT", None)
    if isinstance(struct, dict):
        return dict(struct) if isinstance(value, type) else {k: getattr(value, k) for k in struct}
    if dataclasses.is_dataclass(value):
        if isinstance(value, type):
            hints = get_type_hints(value)
            return {f.name: hints[f.name] for f in dataclasses.fields(value)}
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    return None


def arrays(value: Any) -> Iterator[Any]:
    """Yield all flat arrays in a PyTree, in order; other leaves are passed over."""
    if isinstance(value, Flat):
        yield value
    elif isinstance(value, Nested):
        for c in value._c:
            yield from arrays(c)
    elif isinstance(value, ArrayBase):
        yield from arrays(value.array)
    elif type(value) in (list, tuple):
        for v in value:
            yield from arrays(v)
    elif type(value) is dict:
        for v in value.values():
            yield from arrays(v)
    elif not isinstance(value, type):
        members = fields(value)
        if members is not None:
            for v in members.values():
                yield from arrays(v)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield path and array for all flat arrays in a PyTree, in order: ".x", "[2]", "['key']", ".field" and so on."""
    if isinstance(value, Flat):
        yield path, value
    elif isinstance(value, Nested):
        names = "xyzw" if len(value._c) <= 4 and not value.is_matrix else ""
        for k, c in enumerate(value._c):
            yield from leaves(c, f"{path}.{names[k]}" if names else f"{path}[{k}]")
    elif isinstance(value, ArrayBase):
        yield from leaves(value.array, path)
    elif type(value) in (list, tuple):
        for k, v in enumerate(value):
            yield from leaves(v, f"{path}[{k}]")
    elif type(value) is dict:
        for key, v in value.items():
            yield from leaves(v, f"{path}[{key!r}]")
    elif not isinstance(value, type):
        for name, v in (fields(value) or {}).items():
            yield from leaves(v, f"{path}.{name}")


def map_arrays(fn: Callable[[Any], Any], value: Any) -> Any:
    """Return a copy of a PyTree with `fn` applied to every flat array; other leaves stay as they are."""
    if isinstance(value, Flat):
        return fn(value)
    if isinstance(value, Nested):
        return _rebuild(value, [map_arrays(fn, c) for c in value._c])
    if isinstance(value, ArrayBase):
        return value.with_array(map_arrays(fn, value.array))
    if type(value) in (list, tuple):
        return type(value)(map_arrays(fn, v) for v in value)
    if type(value) is dict:
        return {k: map_arrays(fn, v) for k, v in value.items()}
    if not isinstance(value, type):
        members = fields(value)
        if members is not None:
            return rebuild_struct(value, {k: map_arrays(fn, v) for k, v in members.items()})
    return value


def _rebuild(value: Any, components: list[Any]) -> Any:
    first = next((c for c in components if isinstance(c, ArrayBase)), None)
    if first is None or type(first) is value.value_t:
        return type(value).of(components)
    shape = value.static_shape
    kind = first.ns.matrix(shape[0], first.dtype) if value.is_matrix else first.ns.nested(shape, first.dtype)
    return kind.of(components)


def rebuild_struct(value: Any, members: dict[str, Any]) -> Any:
    """Return a new object of the same class with these fields (made without calling its constructor)."""
    new = object.__new__(type(value))
    if hasattr(value, "__dict__"):
        new.__dict__.update(value.__dict__)
    for name, member in members.items():
        object.__setattr__(new, name, member)
    return new


def construct(kind: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return an instance of a PyTree type, `leaf` called with the types of its fields."""
    members = fields(kind)
    if members is None:
        raise TypeError(f"{getattr(kind, '__name__', kind)} is neither an array type nor a PyTree type")
    made = {name: leaf(sub) for name, sub in members.items()}
    new = object.__new__(kind)
    for name, member in made.items():
        object.__setattr__(new, name, member)
    return new


def assign(target: Any, source: Any) -> None:
    """Rebind every array of one PyTree to its counterpart of another of the same structure."""
    for t, s in zip(arrays(target), arrays(source), strict=True):
        t.assign(s)
