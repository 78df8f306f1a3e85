"""The differentiable array types of the backend in use, see `luxgrad.auto`."""

from __future__ import annotations

import importlib
from typing import Any

from luxgrad.auto import backend


def __getattr__(name: str) -> Any:
    return getattr(importlib.import_module(f"luxgrad.{backend()}.ad"), name)


def __dir__() -> list[str]:
    return dir(importlib.import_module(f"luxgrad.{backend()}.ad"))
