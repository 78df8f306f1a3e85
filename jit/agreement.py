"""Checks that loop bodies and the sides of branches return what they must, with names in the messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .arrays import tree
from .arrays.base import ArrayBase


def labels_of(labels: Sequence[str], count: int, prefix: str = "arg") -> list[str]:
    """Return a name per state variable for error messages."""
    return [labels[k] if k < len(labels) else f"{prefix}{k}" for k in range(count)]


def leaf_names(values: Sequence[Any], labels: list[str]) -> list[str]:
    """Return a name per flat array of the state variables."""
    names = []
    for value, label in zip(values, labels, strict=True):
        names += [label for _ in tree.arrays(value)]
    return names


def check_state(before: Sequence[Any], after: Any, labels: list[str]) -> tuple[Any, ...]:
    """Return the body's result as a tuple; raises RuntimeError naming a state variable whose type changed."""
    if len(before) == 1 and not (type(after) in (tuple, list) and len(after) == 1):
        after = (after,)
    if type(after) not in (tuple, list) or len(after) != len(before):
        found = f"{len(after)} values" if type(after) in (tuple, list) else type(after).__name__
        raise RuntimeError(f"the body must return {len(before)} state variables, found {found}")
    for old, new, name in zip(before, after, labels, strict=True):
        _check_variable(old, new, name)
    return tuple(after)


def _type_name(value: Any) -> str:
    cls = type(value)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"


def _check_variable(old: Any, new: Any, name: str) -> None:
    if new is None and old is not None:
        raise RuntimeError(f"state variable '{name}' is uninitialized: the body gives it no value")
    if type(old) is not type(new):
        raise RuntimeError(
            f"the type of state variable '{name}' changed from '{_type_name(old)}' to '{_type_name(new)}' in the body; "
            "convert it there, or initialise it with that type"
        )
    if isinstance(old, ArrayBase):
        return
    if type(old) in (list, tuple):
        if len(old) != len(new):
            raise RuntimeError(f"state variable '{name}' changed its length from {len(old)} to {len(new)}")
        for k, (a, b) in enumerate(zip(old, new, strict=True)):
            _check_variable(a, b, f"{name}[{k}]")
    elif type(old) is dict:
        if old.keys() != new.keys():
            raise RuntimeError(f"state variable '{name}' changed its keys from {list(old)} to {list(new)}")
        for k in old:
            _check_variable(old[k], new[k], f"{name}['{k}']")
    else:
        members = tree.fields(old)
        if members is not None:
            for field, a in members.items():
                _check_variable(a, getattr(new, field), f"{name}.{field}")
            _check_other_attributes(old, new, members, f"state variable '{name}'")
        elif isinstance(old, (int, float, bool, str)) and old != new:
            raise RuntimeError(
                f"the non-array state variable '{name}' of type '{type(old).__name__}' changed from '{old}' to '{new}' "
                "in a loop that is recorded once; make it an array, such as Int or Float"
            )


def _check_other_attributes(old: Any, new: Any, members: dict[str, Any], what: str) -> None:
    """Raise RuntimeError if attributes that are no fields differ: they do not take part in what is recorded."""
    before, after = getattr(old, "__dict__", {}), getattr(new, "__dict__", {})
    for key, value in before.items():
        other = after.get(key, value)
        if key not in members and other is not value:
            if isinstance(value, (bool, int, float, str)) and type(other) is type(value) and other == value:
                continue
            raise RuntimeError(
                f"the attribute '{key}' of {what} is assigned, but is no field of {_type_name(old)}: the change would "
                "be lost. Name it in DRJIT_STRUCT, or declare it in the dataclass."
            )


def check_results(results: list[Any], leaves: list[list[Any]], names: list[str]) -> None:
    """Raise RuntimeError unless all sides return the same structure, types and Python values."""
    first = results[0]
    named = type(first) in (tuple, list) and len(first) == len(names)
    labels = leaf_names(first, names) if named else names
    for other, values in zip(results[1:], leaves[1:], strict=True):
        if named and type(other) is type(first) and len(other) == len(first):
            for a, b, name in zip(first, other, names, strict=True):
                _check_side(a, b, name)
        else:
            _check_side(first, other, names[0] if names else "result")
        for k, (a, b) in enumerate(zip(leaves[0], values, strict=True)):
            if type(a) is not type(b):
                raise RuntimeError(
                    f"the sides of a branch give '{labels[k] if k < len(labels) else 'result'}' different types: "
                    f"'{_type_name(a)}' and '{_type_name(b)}'"
                )


def _check_side(a: Any, b: Any, name: str) -> None:
    if isinstance(a, ArrayBase) and isinstance(b, ArrayBase):
        if type(a) is not type(b):
            raise RuntimeError(
                f"the sides of a branch give '{name}' different types: '{_type_name(a)}' and '{_type_name(b)}'"
            )
        return
    if (
        type(a) is not type(b)
        or type(a) in (list, tuple)
        and len(a) != len(b)
        or type(a) is dict
        and a.keys() != b.keys()
    ):
        raise RuntimeError(
            f"the sides of a branch return different structures for '{name}': '{_type_name(a)}' and '{_type_name(b)}'"
        )
    if type(a) in (list, tuple):
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            _check_side(x, y, f"{name}[{k}]")
    elif type(a) is dict:
        for k in a:
            _check_side(a[k], b[k], f"{name}['{k}']")
    elif isinstance(a, (bool, int, float, str)):
        if a != b:
            raise RuntimeError(
                f"the sides of a branch return different Python values for '{name}': {a!r} and {b!r}; make it an array"
            )
    else:
        members = tree.fields(a) or {}
        for field, x in members.items():
            _check_side(x, getattr(b, field), f"{name}.{field}")
        if members:
            _check_other_attributes(a, b, members, f"'{name}'")
