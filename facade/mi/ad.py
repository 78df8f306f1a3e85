"""`mi.ad`: optimisers and large steps, under the names they have there."""

from __future__ import annotations

import importlib
from typing import Any

_NAMES = {
    "Adam": ("luxgrad.optim.adam", "Adam"),
    "AdamW": ("luxgrad.optim.adam", "AdamW"),
    "LargeSteps": ("luxgrad.optim.large_steps", "LargeSteps"),
    "Optimizer": ("luxgrad.optim.base", "Optimizer"),
    "RMSProp": ("luxgrad.optim.rmsprop", "RMSProp"),
    "SGD": ("luxgrad.optim.sgd", "SGD"),
}
__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'luxgrad.mi.ad' has no attribute '{name}'; it has {', '.join(__all__)}")
    module, attribute = _NAMES[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return list(__all__)
