"""Errors in units of the last place, and samples of all bit patterns: for tests and for the table in docs/ulp.md."""

from __future__ import annotations

from typing import Any

import numpy as np

from .dtypes import DType, Float64
from .ops.row import Row

Array = np.ndarray[Any, Any]


def wider(dtype: DType) -> type[np.floating[Any]]:
    """Return the NumPy type that reference values of `dtype` are computed in."""
    return np.longdouble if dtype is Float64 else np.float64


def ulp_error(result: Array, exact: Array, dtype: DType) -> Array:
    """Return |result - exact| in units of the last place of `exact` rounded to `dtype`; shape as the arguments.

    Equal values, infinities of one sign, and NaN against NaN count 0; other comparisons with NaN or infinity count inf.
    """
    kind = np.dtype(dtype.numpy)
    info = np.finfo(kind)
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(exact), exact.dtype.type(info.smallest_normal))
        exponent = np.frexp(size)[1]
        unit = np.ldexp(exact.dtype.type(1), exponent - 1 - info.nmant)
        error = np.abs(result.astype(exact.dtype) - exact) / unit
        rounded = exact.astype(kind)
        same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
    error = np.where(same, 0, error)
    return np.where(np.isfinite(error), error, np.inf)


def exact_values(row: Row, dtype: DType, *args: Array) -> Array:
    """Return a floating-point row's values of `args` in the wider type."""
    with np.errstate(all="ignore"):
        return np.asarray(row.reference(np, *(a.astype(wider(dtype)) for a in args)))


def bit_patterns(dtype: DType, count: int, seed: int = 0) -> Array:
    """Return `count` random bit patterns read as `dtype`: all exponents, denormal numbers, infinities and NaN."""
    generator = np.random.default_rng(seed)
    words = generator.integers(0, 1 << dtype.bits, count, dtype=np.uint64)
    return words.astype(f"u{dtype.itemsize}").view(dtype.numpy)


def corner_values(dtype: DType) -> Array:
    """Return the values where rows have special cases: zeros, ones, limits, and for floats infinities and NaN."""
    if dtype.kind == "b":
        return np.array([False, True])
    if not dtype.is_float:
        low, high = dtype.limits
        return np.array(sorted({low, low + 1, max(low, -1), 0, 1, 2, 7, high - 1, high}), dtype.numpy)
    info = np.finfo(dtype.numpy)
    tiny, least, most = float(info.smallest_normal), float(info.smallest_subnormal), float(info.max)
    positive = [0.0, 1.0, 0.5, 1.5, 2.0, 3.0, 10.0, 100.0, 0.1, tiny, least, most, float("inf")]
    return np.array([*positive, *(-p for p in positive), float("nan")]).astype(dtype.numpy)
