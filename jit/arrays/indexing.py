"""`x[...]` of flat arrays: numbers, slices, index arrays and masks."""

from __future__ import annotations

from typing import Any

from ..dtypes import Bool, UInt32
from . import transfer
from .base import ArrayBase
from .flat import Flat, convert
from .memops import gather, scatter


def _position(x: Any, key: int) -> int:
    size = x._n.size
    if not -size <= key < size:
        raise IndexError(f"entry {key} is out of bounds (the array is of size {size}).")
    return key + size if key < 0 else key


def get_flat(x: Any, key: Any) -> Any:
    """Return x[key]: an int gives a Python number (a size-1 array if `x` has gradients), a slice or index array a
    gather; a mask gives a copy of `x`, so that `y[mask] = f(x[mask])` is a masked update."""
    if isinstance(key, int) and not isinstance(key, bool):
        position = _position(x, key)
        if x._ad is not None:
            return gather(type(x), x, x.ns.flat(UInt32)(position))
        return transfer.read(x._n, position)
    if isinstance(key, slice):
        return gather(type(x), x, _slice(x, key))
    if isinstance(key, Flat):
        if key.dtype is Bool:
            return x.__copy__()
        return gather(type(x), x, key)
    if key is Ellipsis:
        return x
    raise TypeError(f"{type(x).__name__} cannot be indexed by {type(key).__name__}")


def _slice(x: Any, key: slice) -> Any:
    from .create import arange

    start, stop, step = key.indices(x._n.size)
    count = max(0, -(-(stop - start) // step) if step > 0 else -(-(start - stop) // -step))
    index = arange(x.ns.flat(UInt32), count)
    if step < 0:
        return start - index * -step
    return index * step + start


def set_flat(x: Any, key: Any, value: Any) -> None:
    """Set x[key] = value: a mask selects (the value has the size of `x`, or 1), others scatter."""
    from .functions import select

    cls = type(x)
    if isinstance(key, Flat) and key.dtype is Bool:
        value = convert(cls, value)
        _check_mask(x, key, value)
        x.assign(select(key, value, x))
        return
    if isinstance(key, int) and not isinstance(key, bool):
        index = x.ns.flat(UInt32)(_position(x, key))
    elif isinstance(key, slice):
        index = _slice(x, key)
    elif isinstance(key, ArrayBase):
        index = key
    elif key is Ellipsis:
        x.assign(convert(cls, value))
        return
    else:
        raise TypeError(f"{cls.__name__} cannot be indexed by {type(key).__name__}")
    value = convert(cls, value)
    if value._n.size not in (1, index._n.size):
        raise RuntimeError(f"x[...] = value: {value._n.size} values do not fit into {index._n.size} elements")
    scatter(x, value, index)


def _check_mask(x: Any, mask: Any, value: Any) -> None:
    sizes = {a._n.size for a in (x, mask, value)} - {1}
    if len(sizes) > 1:
        found = f"{x._n.size}, {mask._n.size}, {value._n.size}"
        raise RuntimeError(
            f"operands have incompatible sizes! (sizes: {found}). In x[mask] = value "
            "the value has as many elements as x (it is not compacted to the lanes set in the mask)."
        )
