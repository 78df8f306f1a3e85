"""Names whose meaning depends on the current variant."""

from __future__ import annotations

import functools
from typing import Any

from luxgrad.jit.errors import LuxgradError
from luxgrad.mi import records, transform
from luxgrad.mi.names import CURRENT, RECORDS
from luxgrad.mi.state import current_types
from luxgrad.render.variants import Types, types

__all__ = ["lookup"]

# Names that are other names of a type, as found in the namespace of array types.
_IN_NAMESPACE = {"Point3u": "Array3u", "Point3i": "Array3i"}


def lookup(name: str) -> Any:
    """Return the type called `name` of the current variant; NoVariantError if none is set."""
    current = current_types(f"mi.{name}")
    if name in CURRENT:
        return getattr(current, name) if hasattr(current, name) else current.ns.get(_IN_NAMESPACE.get(name, name))
    return _record(name, current) if name in RECORDS else _scalar(name, current)


def _record(name: str, current: Types) -> Any:
    if current.ns.backend == "scalar":
        if "Transform" in name:
            from luxgrad.render.transform import ScalarTransform3f, ScalarTransform4f

            return ScalarTransform4f if "4f" in name else ScalarTransform3f
        raise LuxgradError(f"mi.{name}: the variant {current.variant} has array types only; use llvm_ad_rgb")
    return _made(name, current)


@functools.cache
def _made(name: str, current: Types) -> Any:
    return transform.make(name, current) if "Transform" in name else records.make(name, current)


def _scalar(name: str, current: Types) -> Any:
    plain = {"ScalarBool": bool, "ScalarFloat": float}
    if name in plain:
        return plain[name]
    scalar = types("scalar_rgb_double" if current.is_double else "scalar_rgb")
    rest = name.removeprefix("Scalar")
    return getattr(scalar, rest) if hasattr(scalar, rest) else {"Int64": int}[rest]
