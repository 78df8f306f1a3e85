"""Types of single values: Python's numbers, and vectors and matrices of them."""

from __future__ import annotations

from typing import Any

from luxgrad.jit.arrays.namespace import namespace

_types = namespace("scalar", False)
__all__ = _types.names()


def __getattr__(name: str) -> Any:
    value = _types.get(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return _types.names()
