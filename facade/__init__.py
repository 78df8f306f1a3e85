"""luxgrad: a differentiable renderer and the tracing array compiler beneath it.

`import luxgrad as dr` gives the functions of the array compiler, under Dr.Jit's names; array types are in
`luxgrad.llvm`, `luxgrad.scalar` and `luxgrad.auto` (each with a submodule `ad` of differentiable ones); the renderer
is `luxgrad.mi`. Everything is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from luxgrad.names import NAMES, SUBMODULES

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in NAMES:
        module, own = NAMES[name]
        value = getattr(importlib.import_module(module), own)
        globals()[name] = value  # found without this function from now on
        return value
    if name in SUBMODULES:
        return importlib.import_module(f"luxgrad.{name}")
    message = f"module 'luxgrad' has no attribute '{name}'"
    if not name.startswith("_"):
        from difflib import get_close_matches

        near = get_close_matches(name, [*NAMES, *SUBMODULES], 1)
        message += f"; did you mean '{near[0]}'?" if near else ""
    raise AttributeError(message)


def __dir__() -> list[str]:
    return [*NAMES, *SUBMODULES, "__version__"]
