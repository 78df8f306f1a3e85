"""Sparse grids to and from dense tensors and lists of active voxels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..arrays.base import ArrayBase
from ..arrays.create import SIZE_LIMIT, arange, full
from ..arrays.flat import Flat, cast, convert
from ..arrays.functions import abs as absolute
from ..arrays.functions import select
from ..arrays.memops import gather
from ..arrays.namespace import namespace
from ..arrays.shape import widen
from ..dtypes import BY_NUMPY, Bool, Float32
from .grid import SparseGrid
from .table import _array

Indices = list[Any]


@dataclass(frozen=True, eq=False)
class IndexList:
    """The active voxels of a sparse grid as NumPy arrays, in the order of the bricks' numbers.

    A voxel is active where a channel differs from `default`, bit by bit.
    """

    shape: tuple[int, ...]  # voxels along each axis
    brick: int  # voxels along an edge of a brick
    default: float
    origins: Any  # (bricks, axes) int32: the index of each brick's first voxel
    masks: Any  # (bricks, bytes) uint8: a bit per voxel of the brick in row-major order, the lowest bit first
    values: Any  # (active voxels, channels): brick by brick, in the order of the bits

    def active(self) -> Any:
        """Return the masks as booleans, of shape (bricks, brick, brick, ...)."""
        import numpy as np

        axes = len(self.shape)
        bits = np.unpackbits(self.masks, axis=1, count=self.brick**axes, bitorder="little")
        return bits.astype(bool).reshape((len(self.origins),) + (self.brick,) * axes)

    def coordinates(self) -> Any:
        """Return the indices of all active voxels, (active voxels, axes) int32, in the order of `values`."""
        import numpy as np

        where = np.argwhere(self.active())
        found: Any = (self.origins[where[:, 0]] + where[:, 1:]).astype(np.int32)
        return found


def to_dense(grid: SparseGrid) -> Any:
    """Return the tensor of a grid."""
    total = math.prod(grid.shape)
    if total > SIZE_LIMIT:
        raise ValueError(
            f"SparseGrid.to_dense(): {grid.shape} are {total} values, more than the 2^32 - 1 of an array; use "
            "to_index_list() or lookup()"
        )
    number = arange(grid._index_type(), total)
    voxel, channel = _divided(number, grid.channels)
    key, local = grid._split(unravel(voxel, grid.shape[:-1]))
    kind = type(grid._values)
    flat = full(kind, grid.default, total)
    if grid.active_bricks:
        slot = grid._table.find([key], grid._mask(True))[0]
        place = (((slot - 1) << grid._bits * grid.ndim) | local) * grid.channels + channel
        flat = gather(kind, grid._values, place, slot != 0)
        if grid.default != 0.0:
            flat = select(convert(kind.ns.flat(Bool), slot != 0), flat, grid.default)
    return kind.ns.tensor(kind.dtype)(flat, grid.shape)


def from_dense(
    array: Any, threshold: float, brick: int, dtype: Any, default: float, options: dict[str, Any]
) -> SparseGrid:
    """Return the grid of a tensor."""
    shape, flat = _dense(array, dtype)
    if not 2 <= len(shape) <= 4 or 0 in shape:
        raise ValueError(
            "SparseGrid.from_dense(): a tensor of one to three axes and one of channels is needed, none of length 0; "
            f"found the shape {shape}"
        )
    kind = type(flat)
    grid = SparseGrid(shape[:-1], shape[-1], brick, kind, default, **options)
    near = absolute(kind.wrap(flat._n) - grid.default) <= threshold
    number = arange(grid._index_type(), flat._n.size)
    key, _ = grid._split(unravel(_divided(number, grid.channels)[0], shape[:-1]))
    # Written this way round, NaN counts as different.
    grid._store([widen(key, number._n.size)], ~widen(convert(grid._mask_type(), near), number._n.size))
    if grid.active_bricks:
        grid._values = _brick_values(grid, flat)
    return grid


def _dense(array: Any, dtype: Any) -> tuple[tuple[int, ...], Any]:
    """Return the shape of a tensor or NumPy array, and its elements as a flat array."""
    if isinstance(array, ArrayBase):
        flat = array.array if array.is_tensor else array
        if not isinstance(flat, Flat):
            raise TypeError(f"SparseGrid.from_dense(): a tensor or NumPy array is needed, found {type(array).__name__}")
        return tuple(array.shape), flat if dtype is None else convert(dtype, flat)
    import numpy as np

    array = np.asarray(array)
    if dtype is None:
        found = BY_NUMPY.get(str(array.dtype), Float32)
        dtype = namespace("llvm", True).flat(found if found.is_float else Float32)
    return array.shape, dtype(np.ascontiguousarray(array, dtype.dtype.numpy).reshape(-1).copy())


def _brick_values(grid: SparseGrid, flat: Any) -> Any:
    """Return the stored values of a grid, read from all elements of the tensor that it stands for."""
    size, kind = grid._brick_size(), type(flat)
    place, channel = _divided(arange(grid._index_type(), grid.active_bricks * size), grid.channels)
    slot, local = place >> grid._bits * grid.ndim, place & (size // grid.channels - 1)
    key = gather(type(grid._table.keys), grid._table.keys, slot)
    inside, voxel = grid._mask(True), cast(grid._index_type(), full(type(key), 0))
    bricks = unravel(key, grid._brick_shape())
    edges = unravel(local, (grid.brick,) * grid.ndim)
    for b, e, n in zip(bricks, edges, grid.shape[:-1], strict=True):
        i = (cast(grid._index_type(), b) << grid._bits) | cast(grid._index_type(), e)
        inside, voxel = inside & (i < n), voxel * n + i
    value = gather(kind, flat, voxel * grid.channels + channel, inside)
    return value if grid.default == 0.0 else select(convert(kind.ns.flat(Bool), inside), value, grid.default)


def _divided(number: Any, count: int) -> tuple[Any, Any]:
    return (number, 0) if count == 1 else (number // count, number % count)


def unravel(number: Any, shape: tuple[int, ...]) -> Indices:
    """Return the index along each axis of elements numbered in row-major order."""
    found = []
    for n in shape[:0:-1]:
        found.append(number % n)
        number = number // n
    return [number, *found[::-1]]


def to_index_list(grid: SparseGrid) -> IndexList:
    """Return the active voxels of a grid."""
    import numpy as np

    keys = grid._table.keys.numpy()
    order = np.argsort(keys, kind="stable")
    cells = grid.brick**grid.ndim
    values = grid._values.numpy().reshape(len(keys), cells, grid.channels)[order]
    bits = values.view(f"u{values.itemsize}")
    plain = np.asarray(grid.default, values.dtype).view(bits.dtype)
    active = (bits != plain).any(axis=2)
    active &= _inside(keys[order], grid)
    origins = np.stack(np.unravel_index(keys[order].astype(np.int64), grid._brick_shape()), 1) << grid._bits
    return IndexList(
        shape=grid.shape[:-1],
        brick=grid.brick,
        default=grid.default,
        origins=origins.astype(np.int32),
        masks=np.packbits(active, axis=1, bitorder="little"),
        values=values[active],
    )


def _inside(keys: Any, grid: SparseGrid) -> Any:
    """Return which voxels of bricks belong to the grid, (bricks, voxels): its last bricks may reach beyond it."""
    import numpy as np

    inside = np.ones((len(keys),) + (grid.brick,) * grid.ndim, bool)
    for axis, index in enumerate(np.unravel_index(keys.astype(np.int64), grid._brick_shape())):
        along = (index[:, None] << grid._bits) + np.arange(grid.brick) < grid.shape[axis]
        inside &= along.reshape((len(keys),) + tuple(grid.brick if a == axis else 1 for a in range(grid.ndim)))
    return inside.reshape(len(keys), grid.brick**grid.ndim)


def from_index_list(index_list: Any, dtype: Any, options: dict[str, Any]) -> SparseGrid:
    """Return the grid of an IndexList."""
    import numpy as np

    values = np.asarray(index_list.values)
    if values.ndim != 2:
        raise ValueError(f"SparseGrid.from_index_list(): values must be (voxels, channels), found {values.shape}")
    if dtype is None:
        dtype = namespace("llvm", True).flat(BY_NUMPY[str(values.dtype)])
    grid = SparseGrid(index_list.shape, values.shape[1], index_list.brick, dtype, index_list.default, **options)
    origins, active = np.asarray(index_list.origins), index_list.active()
    _check(grid, origins, int(active.sum()), len(values))
    if len(origins):
        keys = np.ravel_multi_index(tuple((origins >> grid._bits).T), grid._brick_shape())
        grid._append(_array(type(grid._table.keys), keys.astype(grid._table.keys.dtype.numpy)))
        stored = np.full((*active.shape, grid.channels), grid.default, dtype.dtype.numpy)
        stored[active] = values
        grid._values = _array(dtype, stored.reshape(-1))
    return grid


def _check(grid: SparseGrid, origins: Any, active: int, count: int) -> None:
    import numpy as np

    where = "SparseGrid.from_index_list()"
    if active != count:
        raise ValueError(f"{where}: the masks have {active} bits set, found {count} values for them")
    if origins.shape != (len(origins), grid.ndim):
        raise ValueError(f"{where}: origins must be of shape (bricks, {grid.ndim}), found {origins.shape}")
    wrong = ((origins < 0) | (origins >= np.array(grid.shape[:-1])) | (origins & (grid.brick - 1) != 0)).any(axis=1)
    if wrong.any():
        k = int(wrong.argmax())
        raise ValueError(
            f"{where}: origins[{k}] is {origins[k].tolist()}, which is no corner of a brick of {grid.brick} voxels "
            f"along each edge inside of {grid.shape[:-1]}"
        )
    _, first, times = np.unique(origins, axis=0, return_index=True, return_counts=True)
    if (times > 1).any():
        k = int(first[times.argmax()])
        raise ValueError(f"{where}: the origin {origins[k].tolist()} is there {times.max()} times, first at {k}")


__all__ = ["IndexList", "SparseGrid"]
