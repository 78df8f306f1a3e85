"""What functions and classes see outside of themselves: closures, globals, modules, attributes of classes."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from typing import Any

Step = tuple[str, Any]  # how to get from a container to what it holds: ("item", key), ("attr", name) and so on

PACKAGE = __name__.split(".")[0]
_LIBRARIES = (PACKAGE, "numpy", "builtins")
_PLUMBING = frozenset((
    "__module__", "__dict__", "__weakref__", "__doc__", "__annotations__", "__slots__", "__qualname__", "__hash__",
    "__firstlineno__", "__static_attributes__", "__dataclass_fields__", "__dataclass_params__", "__match_args__",
    "__abstractmethods__", "__parameters__", "__orig_bases__", "__annotate__", "__annotations_cache__", "_abc_impl",
))  # fmt: skip
_names_of: dict[Any, tuple[str, ...]] = {}


@functools.cache
def users(module: str) -> bool:
    """Return whether a module is the user's: not of this package, not of Python's library, not installed."""
    root = module.split(".")[0]
    origin = getattr(sys.modules.get(module), "__file__", None) or ""
    return root != PACKAGE and root not in sys.stdlib_module_names - {"__main__"} and "site-packages" not in origin


def is_library(fn: Any) -> bool:
    """Return whether a function belongs to this package or NumPy, whose globals do not change."""
    scope = getattr(fn, "__globals__", None)
    module = getattr(fn, "__module__", None) if scope is None else scope.get("__name__")
    return (module or "").split(".")[0] in _LIBRARIES


def global_names(code: types.CodeType) -> tuple[str, ...]:
    """Return the names that a function's code, and code nested in it, may look up outside."""
    known = _names_of.get(code)
    if known is None:
        names = dict.fromkeys(code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                names.update(dict.fromkeys(global_names(constant)))
        known = _names_of[code] = tuple(names)
    return known


def captured(fn: types.FunctionType) -> Iterator[tuple[Step, Any]]:
    """Yield what a function sees: closure variables, defaults, its attributes, globals by name, and what it names in
    modules of the user."""
    names = global_names(fn.__code__)
    for k, cell in enumerate(fn.__closure__ or ()):
        try:
            value = cell.cell_contents
        except ValueError:
            continue  # not assigned yet
        yield ("cell", k), value
        for attribute, member in _named(value, names):
            yield ("cell module", (k, attribute)), member
    if fn.__defaults__:
        yield ("attr", "__defaults__"), fn.__defaults__
    if fn.__kwdefaults__:
        yield ("attr", "__kwdefaults__"), fn.__kwdefaults__
    if is_library(fn):
        return
    for name, value in fn.__dict__.items():
        yield ("attr", name), value
    outside = fn.__globals__
    for name in names:
        if name in outside:
            value = outside[name]
            yield ("global", name), value
            for attribute, member in _named(value, names):
                yield ("module", (name, attribute)), member


def _named(value: Any, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield what a module of the user holds under these names; nothing of other values."""
    if value.__class__ is types.ModuleType and users(value.__name__):
        inside = value.__dict__
        for name in names:
            if name in inside:
                yield name, inside[name]


def class_members(cls: type) -> list[tuple[Step, Any]]:
    """Return the attributes of a class of the user and of those above it: data, and the functions of methods."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if users(base.__module__):
            found |= {k: v for k, v in vars(base).items() if k not in _PLUMBING}
    out: list[tuple[Step, Any]] = []
    for name, value in found.items():
        if isinstance(value, (staticmethod, classmethod)):
            out.append((("wrapped", name), value.__func__))
        elif isinstance(value, property):
            out += [(("wrapped", name), f) for f in (value.fget,) if f is not None]
        elif not isinstance(value, (types.MemberDescriptorType, types.GetSetDescriptorType)):
            out.append((("attr", name), value))
    return out


__all__ = ["PACKAGE", "Step", "captured", "class_members", "global_names", "is_library", "users"]
