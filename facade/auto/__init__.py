"""The array types of the best backend of this machine, or of the one chosen by `set_backend`."""

from __future__ import annotations

import importlib
from typing import Any

_BACKENDS = ("llvm",)
_chosen = "llvm"


def backend() -> str:
    """Return the name of the backend in use."""
    return _chosen


def set_backend(which: Any) -> None:
    """Take the types from this backend from now on: a name ("llvm") or a JitBackend. Raises ValueError for others."""
    global _chosen
    name = which.lower() if isinstance(which, str) else which.name.lower()
    if name not in _BACKENDS:
        raise ValueError(f"set_backend(): backend '{name}' is not available here; there is: {', '.join(_BACKENDS)}")
    _chosen = name


def __getattr__(name: str) -> Any:
    if name == "ad":
        return importlib.import_module("luxgrad.auto.ad")
    return getattr(importlib.import_module(f"luxgrad.{_chosen}"), name)


def __dir__() -> list[str]:
    return [*dir(importlib.import_module(f"luxgrad.{_chosen}")), "backend", "set_backend"]
