"""Change of resolution with a separable filter."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...jit.errors import SceneError

__all__ = ["FILTERS", "resample"]

Array = npt.NDArray[Any]


def _box(x: Array) -> Array:
    return np.where(x <= 0.5, 1.0, 0.0)


def _tent(x: Array) -> Array:
    return np.maximum(0.0, 1.0 - x)


def _gaussian(x: Array) -> Array:
    """Standard deviation 1/2, shifted so that it reaches 0 at radius 2."""
    return np.maximum(0.0, np.exp(-2.0 * x * x) - math.exp(-8.0))


def _cubic(b: float, c: float) -> Callable[[Array], Array]:
    """The cubic family of Mitchell and Netravali 1988, Eq. 8."""

    def weight(x: Array) -> Array:
        near = (12 - 9 * b - 6 * c) * x**3 + (-18 + 12 * b + 6 * c) * x**2 + (6 - 2 * b)
        far = (-b - 6 * c) * x**3 + (6 * b + 30 * c) * x**2 + (-12 * b - 48 * c) * x + (8 * b + 24 * c)
        return np.where(x < 1, near, np.where(x < 2, far, 0.0)) / 6

    return weight


def _lanczos(x: Array) -> Array:
    """Two lobes, as in Mitsuba's resampling (its film filter of this name has three)."""
    return np.where(x < 2, np.sinc(x) * np.sinc(x / 2), 0.0)


# Name -> (radius in pixels, weight of a distance in pixels).
FILTERS: dict[str, tuple[float, Callable[[Array], Array]]] = {
    "box": (0.5, _box),
    "tent": (1.0, _tent),
    "gaussian": (2.0, _gaussian),
    "mitchell": (2.0, _cubic(1 / 3, 1 / 3)),
    "catmullrom": (2.0, _cubic(0.0, 0.5)),
    "lanczos": (2.0, _lanczos),
}


def _weights(source: int, target: int, name: str) -> tuple[Array, Array]:
    """Return for each target position the source positions (target, taps), clamped to the edge, and their weights."""
    radius, weight = FILTERS[name]
    # A smaller target means a wider filter, so that every source pixel is heard.
    stretch = max(1.0, source / target)
    centre = (np.arange(target) + 0.5) * (source / target)
    taps = int(math.ceil(2 * radius * stretch)) + 1
    first = np.floor(centre - radius * stretch).astype(np.int64)
    index = first[:, None] + np.arange(taps)
    values = weight(np.abs(index + 0.5 - centre[:, None]) / stretch)
    return np.clip(index, 0, source - 1), values / values.sum(axis=1, keepdims=True)


def _along(array: Array, axis: int, target: int, name: str) -> Array:
    """Return the array with one axis resampled; the loop runs over the taps of the filter, a few per pixel."""
    index, weights = _weights(array.shape[axis], target, name)
    shape = [1, 1, 1]
    shape[axis] = target
    total = np.zeros([*array.shape[:axis], target, *array.shape[axis + 1 :]], dtype=array.dtype)
    for tap in range(index.shape[1]):
        total += np.take(array, index[:, tap], axis=axis) * weights[:, tap].reshape(shape).astype(array.dtype)
    return total


def resample(array: Array, width: int, height: int, rfilter: str = "lanczos") -> Array:
    """Return float pixels (height, width, channels) at another size; edges repeat their last pixel.

    Raises SceneError for an empty size or an unknown filter.
    """
    if rfilter not in FILTERS:
        raise SceneError(f"unknown filter {rfilter!r}; the known ones are {', '.join(FILTERS)}")
    if width < 1 or height < 1:
        raise SceneError(f"an image cannot be resampled to {width} x {height} pixels")
    return _along(_along(array, 1, width, rfilter), 0, height, rfilter)
