"""Mitsuba's names: `import luxgrad.mi as mi`, then `mi.set_variant("llvm_ad_rgb")`.

Array types (`mi.Float`, `mi.Point3f` ...) are those of the current variant. Everything is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from luxgrad.mi.names import CURRENT, MODULES, OBJECTS, RECORDS, SCALARS

__all__ = sorted({*CURRENT, *MODULES, *OBJECTS, *RECORDS, *SCALARS})


def __getattr__(name: str) -> Any:
    if name in OBJECTS:
        module, attribute = OBJECTS[name]
        value = getattr(importlib.import_module(module), attribute)
        globals()[name] = value  # found without this function from now on
        return value
    if name in MODULES:
        return importlib.import_module(MODULES[name])
    if name in CURRENT or name in RECORDS or name in SCALARS:
        from luxgrad.mi.current import lookup

        return lookup(name)
    raise AttributeError(f"module 'luxgrad.mi' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__name__"]
