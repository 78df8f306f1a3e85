"""Property values that are more than a number: colours, spectra, and how values are named in messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .transform import ScalarTransform3f, ScalarTransform4f

__all__ = ["Rgb", "SpectrumValue", "describe", "object_kind", "type_name"]


@dataclass(frozen=True, slots=True)
class Rgb:
    """A colour in linear Rec. 709 primaries."""

    r: float
    g: float
    b: float

    @property
    def array(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The three components, shape (3,)."""
        return np.array([self.r, self.g, self.b], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class SpectrumValue:
    """A spectrum: one constant `value`, or `pairs` of (wavelength in nm, value), or the `filename` of such pairs."""

    value: float | None = None
    pairs: tuple[tuple[float, float], ...] | None = None
    filename: str | None = None


def object_kind(value: Any) -> str | None:
    """Return the plugin kind of an object ("bsdf", "shape" ...), or None for values and foreign objects."""
    kind = getattr(type(value), "plugin_kind", None) or getattr(value, "__dict__", {}).get("plugin_kind")
    return kind if isinstance(kind, str) else None


def type_name(value: Any) -> str:
    """Return the name of a value's type as used in messages."""
    if isinstance(value, (bool, np.bool_)):
        return "boolean"
    if isinstance(value, (int, np.integer)):
        return "integer"
    if isinstance(value, (float, np.floating)):
        return "float"
    if isinstance(value, str):
        return "string"
    if isinstance(value, Rgb):
        return "color"
    if isinstance(value, SpectrumValue):
        return "spectrum"
    if isinstance(value, (ScalarTransform3f, ScalarTransform4f)):
        return "transform"
    if isinstance(value, np.ndarray) and value.shape == (3,):
        return "vector"
    return object_kind(value) or type(value).__name__


def describe(value: Any) -> str:
    """Return a short text of a value for messages, at most 60 characters."""
    if isinstance(value, str):
        text = f'"{value}"'
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, Rgb):
        text = f"[{value.r:g}, {value.g:g}, {value.b:g}]"
    elif isinstance(value, float):
        text = f"{value:g}"
    elif object_kind(value) is not None:
        text = type(value).__name__
    else:
        text = " ".join(str(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
