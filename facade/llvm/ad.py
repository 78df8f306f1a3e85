"""Differentiable array types on this machine's processor."""

from __future__ import annotations

from typing import Any

import luxgrad.ad.record  # noqa: F401  (array operations report to the derivative graph from now on)
from luxgrad.jit.arrays.namespace import namespace

_types = namespace("llvm", True)
__all__ = _types.names()


def __getattr__(name: str) -> Any:
    value = _types.get(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return _types.names()
