"""`t[...]` of tensors, as NumPy indexes: what is read is a view or a copy, what is written a scatter."""

from __future__ import annotations

import math
from typing import Any

from ..dtypes import Bool, UInt32
from .base import ArrayBase
from .flat import convert
from .functions import select
from .memops import gather, part, scatter
from .shape import widen
from .strides import broadcast, broadcast_shape, contiguous, positions, strided


class Selection:
    """What a key selects: the shape of the result, and the storage index of each element (None: all, in order).

    `start` is where they begin if they are neighbours in order, else None.
    """

    def __init__(self, shape: tuple[int, ...], index: Any, start: int | None = None) -> None:
        self.shape, self.index, self.start = shape, index, start


def _expanded(x: Any, key: Any) -> list[Any]:
    """Return one entry per dimension of the tensor, with None for new ones in between."""
    keys = list(key) if isinstance(key, tuple) else [key]
    dots = [k for k, entry in enumerate(keys) if entry is Ellipsis]
    used = sum(entry is not None and entry is not Ellipsis for entry in keys)
    rank = len(x.shape)
    if len(dots) > 1:
        raise IndexError("an index can only have one ellipsis ('...')")
    if used > rank:
        raise IndexError(f"too many indices: the tensor has {rank} dimensions, found {used} indices")
    missing = [slice(None)] * (rank - used)
    return keys[: dots[0]] + missing + keys[dots[0] + 1 :] if dots else keys + missing


def _bounded(entry: int, size: int, axis: int) -> int:
    if not -size <= entry < size:
        raise IndexError(f"index {entry} is out of bounds for axis {axis} with size {size}")
    return entry + size if entry < 0 else entry


def _index_tensor(x: Any, entry: Any, size: int) -> Any:
    """Return an index array as a UInt32 tensor; negative ones count from the end."""
    if not isinstance(entry, ArrayBase):
        import numpy as np

        values = np.asarray(entry)
        if values.dtype.kind not in "iu":
            raise IndexError(f"an index is an integer, slice, integer array, None or '...', found {entry!r}")
        entry = x.ns.tensor(UInt32)(np.where(values < 0, values + size, values))
    elif not entry.dtype.is_integer:
        raise IndexError(f"index arrays must hold integers, found {type(entry).__name__}")
    elif entry.dtype.is_signed:
        entry = select(entry < 0, entry + size, entry)
    return x.ns.tensor(UInt32)(entry)


def resolve(x: Any, key: Any) -> Selection:
    """Return what `key` selects of a tensor; raises IndexError."""
    steps = contiguous(x.shape)
    dims: list[tuple[int, int]] = []
    arrays: list[tuple[Any, int, int]] = []  # (indices, step, length of the dimension)
    places: list[int] = []
    offset = axis = 0
    for entry in _expanded(x, key):
        if entry is None:
            dims.append((1, 0))
            continue
        size, step = x.shape[axis], steps[axis]
        if isinstance(entry, int) and not isinstance(entry, bool):
            offset += _bounded(entry, size, axis) * step
            places.append(len(dims))  # beside index arrays a number counts as one of them
        elif isinstance(entry, slice):
            start, stop, stride = entry.indices(size)
            dims.append((len(range(start, stop, stride)), stride * step))
            offset += start * step
        else:
            arrays.append((_index_tensor(x, entry, size), step, size))
            places.append(len(dims))
        axis += 1
    if arrays:
        return _with_arrays(x, dims, offset, arrays, places)
    shape = tuple(count for count, _ in dims)
    in_order = list(zip(shape, contiguous(shape), strict=True)) == _cleaned(dims)
    if offset == 0 and in_order and math.prod(shape) == math.prod(x.shape):
        return Selection(shape, None)
    return Selection(shape, positions(x.array.ns, dims, offset), offset if in_order else None)


def _cleaned(dims: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the dimensions with the step of those of length 1, which is of no account, as in contiguous storage."""
    steps = contiguous([count for count, _ in dims])
    return [(count, steps[k] if count == 1 else step) for k, (count, step) in enumerate(dims)]


def _with_arrays(
    x: Any, dims: list[tuple[int, int]], offset: int, arrays: list[tuple[Any, int, int]], places: list[int]
) -> Selection:
    """Index arrays are broadcast together; their dimensions stand at the first one, or in front if slices part them."""
    inner = broadcast_shape([a.shape for a, *_ in arrays])
    total: Any = None
    inside: Any = True
    for a, step, size in arrays:
        part_of = broadcast(a.array, a.shape, inner)
        term = part_of * step
        total = term if total is None else total + term
        inside = (part_of < size) & inside
    # What is outside along its own dimension must not end up in the next row.
    nowhere = (1 << total.dtype.bits) - 1
    count = math.prod(inner)
    place = places[0] if places[-1] == places[0] else 0
    base = positions(x.array.ns, [*dims[:place], (count, 0), *dims[place:]], offset)
    chosen = [*((c, 0) for c, _ in dims[:place]), (count, 1), *((c, 0) for c, _ in dims[place:])]
    total = convert(type(base), widen(total, count))
    inside = widen(inside, count)
    shape = (*(c for c, _ in dims[:place]), *inner, *(c for c, _ in dims[place:]))
    index = base + strided(total, chosen)
    return Selection(shape, select(strided(inside, chosen), index, type(index)(nowhere)))


def _is_mask(key: Any) -> bool:
    return isinstance(key, ArrayBase) and key.dtype is Bool


def get_tensor(x: Any, key: Any) -> Any:
    """Return x[key]; a mask gives all of `x`, so that `t[mask] += 1` is a masked update.

    Neighbours in order, such as slices of the first dimension, share the memory of `x`; nothing writes to it while both
    exist. Others are copies.
    """
    if _is_mask(key):
        return x.__copy__()
    found = resolve(x, key)
    flat = x.array
    if found.index is None:
        return type(x)(flat, found.shape)
    if found.start is not None and math.prod(found.shape) > 1:
        return type(x)(part(flat, found.start, math.prod(found.shape), found.index), found.shape)
    return type(x)(gather(type(flat), flat, found.index), found.shape)


def set_tensor(x: Any, key: Any, value: Any) -> None:
    """Set x[key] = value: a mask selects, others scatter; the value is broadcast."""
    if _is_mask(key):
        chosen = select(key, value, x)
        if chosen.shape != x.shape:
            raise RuntimeError(f"t[mask] = value: shapes broadcast to {chosen.shape}, but the tensor has {x.shape}")
        x.assign(type(x)(chosen))
        return
    found = resolve(x, key)
    value = type(x)(value)
    if broadcast_shape([value.shape, found.shape]) != found.shape:
        raise RuntimeError(f"t[...] = value: a value of shape {value.shape} does not fit into {found.shape}")
    flat = broadcast(value.array, value.shape, found.shape)
    if found.index is None:
        x.assign(type(x)(flat, x.shape))
        return
    target = x.array.__copy__()
    scatter(target, flat, found.index)
    x.assign(type(x)(target, x.shape))
