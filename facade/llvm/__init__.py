"""Array types on this machine's processor: `luxgrad.llvm.Float`, `Array3f`, `TensorXf`, ... (`.ad`: with gradients)."""

from __future__ import annotations

import importlib
from typing import Any

from luxgrad.jit.arrays.namespace import namespace

_types = namespace("llvm", False)
__all__ = _types.names()


def __getattr__(name: str) -> Any:
    if name == "ad":
        return importlib.import_module("luxgrad.llvm.ad")
    value = _types.get(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*_types.names(), "ad"]
