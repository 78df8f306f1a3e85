"""Sums over the entries of rows, and the small conversions that sparse matrices need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..arrays.base import ArrayBase
from ..arrays.create import arange, full
from ..arrays.flat import Flat, convert
from ..arrays.functions import fma
from ..arrays.memops import gather, scatter_add
from ..arrays.namespace import namespace
from ..dtypes import BY_NUMPY, Float16, Float32, UInt32
from ..loops import while_loop
from .table import _array


def summed(kind: Any, offsets: Any, row: Any, term: Callable[[Any], tuple[Any, Any]]) -> Any:
    """Return per lane the sum of the products of both parts of `term(k)`, for all entries k of `row`, in their order.

    Half-precision numbers are added up in single precision.
    """
    wide = kind.ns.flat(Float32) if kind.dtype is Float16 else kind
    start, stop = gather(type(offsets), offsets, row), gather(type(offsets), offsets, row + 1)

    def body(k: Any, total: Any) -> tuple[Any, Any]:
        a, b = term(k)
        return k + 1, fma(convert(wide, a), convert(wide, b), total)

    _, total = while_loop((start, wide(0)), lambda k, total: k < stop, body, ("k", "total"))
    return convert(kind, total)


def merge(flat: Any, order: Any, first: Any) -> Any:
    """Return values in another order, those up to the next of `first` added up."""
    import numpy as np

    if first.all():
        return taken(flat, order)
    kind, index = type(flat), flat.ns.detached.flat(UInt32)
    place, one = np.cumsum(first) - 1, plain(flat)
    offsets, entries = indices(index, np.append(np.flatnonzero(first), len(first))), indices(index, order)

    def term(k: Any) -> tuple[Any, Any]:
        return gather(type(one), one, gather(index, entries, k)), type(one)(1)

    result = kind.wrap(summed(type(one), offsets, arange(index, int(first.sum())), term)._n)
    if flat._ad is not None:
        again = full(kind, 0, result._n.size)
        scatter_add(again, gather(kind, flat, entries), indices(index, place))
        result._ad = again._ad
    return result


def taken(flat: Any, place: Any) -> Any:
    """Return the elements at the places of a NumPy array."""
    return read(flat, indices(flat.ns.detached.flat(UInt32), place))


def read(flat: Any, place: Any) -> Any:
    """Return the elements at the places of an integer array."""
    return gather(type(flat), flat, place) if place._n.size else full(type(flat), 0, 0)


def indices(kind: Any, values: Any) -> Any:
    """Return a NumPy array of indices as an array of an integer type."""
    import numpy as np

    return _array(kind, np.asarray(values).astype(np.uint32))


def plain(x: Any) -> Any:
    """Return the values of an array in a type without gradients."""
    return convert(x.ns.detached.flat(x.dtype), x)


def floats(values: Any, dtype: Any) -> Any:
    """Return values as a flat array of floats."""
    if isinstance(values, ArrayBase):
        flat = values if isinstance(values, Flat) else values.array if values.is_tensor else None
        if flat is None:
            raise TypeError(f"CSRMatrix: values must be a flat array, found {type(values).__name__}")
        if dtype is not None:
            flat = convert(dtype, flat)
    else:
        if dtype is None:
            found = BY_NUMPY.get(str(getattr(values, "dtype", "")))
            dtype = namespace("llvm", True).flat(found if found is not None and found.is_float else Float32)
        flat = dtype(values)
    if not flat.dtype.is_float:
        raise TypeError(f"CSRMatrix: values must be floats, found {type(flat).__name__}; convert them, or pass dtype=")
    return flat


def given(x: Any, kind: Any) -> Any:
    """Return a NumPy array or sequence as an array of a flat type, or a tensor."""
    import numpy as np

    x = np.asarray(x)
    return kind(x) if x.ndim == 1 else kind.ns.tensor(kind.dtype)(x)
