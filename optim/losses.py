"""Losses: how far an image, or any array, is from its target. Each returns a size-1 value to differentiate."""

from __future__ import annotations

from typing import Any

from ..ad import api as ad
from ..jit.arrays import functions as f
from ..jit.arrays import reduce
from ..jit.arrays.base import ArrayBase

__all__ = ["l1", "l2", "log_l2", "mape", "mse", "relative_l2", "smooth_l1"]


def _pair(image: Any, target: Any, name: str) -> tuple[Any, Any]:
    """Return image and target as one type; the target carries no gradient. Raises ValueError if shapes differ."""
    if not isinstance(image, ArrayBase) or not image.dtype.is_float:
        raise TypeError(f"{name}(): a floating-point array or tensor is needed, found {type(image).__name__}")
    if not isinstance(target, (int, float)):
        if not isinstance(target, type(image)):
            kind: Any = type(image)
            target = kind(target)
        a, b = tuple(getattr(image, "shape", ())), tuple(target.shape)
        if a != b and b not in ((), (1,)):
            raise ValueError(f"{name}(): the image has shape {a}, its target {b}")
        target = ad.detach(target)
    return image, target


def _mean(x: Any) -> Any:
    return reduce.mean(x, axis=None)


def l1(image: Any, target: Any) -> Any:
    """Return the mean of |image - target|."""
    a, b = _pair(image, target, "l1")
    return _mean(f.abs(a - b))


def l2(image: Any, target: Any) -> Any:
    """Return the mean of (image - target)^2."""
    a, b = _pair(image, target, "l2")
    return _mean(f.square(a - b))


mse = l2


def relative_l2(image: Any, target: Any, epsilon: float = 1e-2) -> Any:
    """Return the mean of (image - target)^2 / (target^2 + epsilon): dark and bright parts count alike."""
    a, b = _pair(image, target, "relative_l2")
    return _mean(f.square(a - b) / (f.square(b) + epsilon))


def mape(image: Any, target: Any, epsilon: float = 1e-2) -> Any:
    """Return the mean of |image - target| / (|target| + epsilon), an error in parts of the target."""
    a, b = _pair(image, target, "mape")
    return _mean(f.abs(a - b) / (f.abs(b) + epsilon))


def smooth_l1(image: Any, target: Any, beta: float = 1.0) -> Any:
    """Return the mean of d^2 / (2 beta) where |d| < beta, else |d| - beta / 2, with d = image - target (Huber)."""
    if not beta > 0.0:
        raise ValueError(f"smooth_l1(): beta must be above 0, found {beta}")
    a, b = _pair(image, target, "smooth_l1")
    d = f.abs(a - b)
    return _mean(f.select(d < beta, f.square(d) * (0.5 / beta), d - 0.5 * beta))


def log_l2(image: Any, target: Any) -> Any:
    """Return the mean of (log(1 + image) - log(1 + target))^2 for pictures of high dynamic range; below 0 counts as 0.
    """
    a, b = _pair(image, target, "log_l2")
    return _mean(f.square(f.log(1.0 + f.max(a, 0.0)) - f.log(1.0 + f.max(b, 0.0))))
