"""Where voxels are: from indices and positions to bricks and numbers within them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from .. import texture
from ..arrays.base import ArrayBase
from ..arrays.flat import Flat, cast, convert
from ..arrays.functions import call, clip, select
from ..arrays.nested import Nested
from ..dtypes import Bool, Int32
from ..modes import FilterMode, WrapMode
from ..ops.row import ROWS
from .table import BrickTable

AXIS_LIMIT = 1 << 29  # voxels along an axis: twice as many must fit into an Int32


class Layout:
    """Shape, bricks and borders of a sparse grid. Indices and keys are in types without gradients."""

    _shape: tuple[int, ...]  # voxels along each axis
    _channels: int
    _bits: int  # the logarithm of a brick's edge
    _default: float
    _filter: FilterMode
    _wrap: WrapMode
    _values: Any
    _table: BrickTable

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of voxels along each axis, and of channels."""
        return (*self._shape, self._channels)

    @property
    def ndim(self) -> int:
        """Return the number of axes (without channels)."""
        return len(self._shape)

    @property
    def channels(self) -> int:
        """Return the number of values per voxel."""
        return self._channels

    @property
    def brick(self) -> int:
        """Return the number of voxels along an edge of a brick."""
        return 1 << self._bits

    @property
    def default(self) -> float:
        """Return the value where nothing is stored."""
        return self._default

    def _brick_shape(self) -> tuple[int, ...]:
        """Return the number of bricks along each axis."""
        return tuple((n + (1 << self._bits) - 1) >> self._bits for n in self._shape)

    def _brick_size(self) -> int:
        """Return the number of values in a brick."""
        return (1 << self._bits * self.ndim) * self._channels

    def _index_type(self) -> Any:
        return type(self._table.slots)

    def _mask_type(self) -> Any:
        return self._index_type().ns.flat(Bool)

    def _mask(self, active: Any) -> Any:
        return convert(self._mask_type(), active)

    def _indices(self, index: Sequence[Any], active: Any) -> tuple[list[Any], Any]:
        """Return one Int32 array per axis, and where they are inside of the grid."""
        if len(index) == 1 and isinstance(index[0], (tuple, list, Nested)):
            index = list(index[0]._c if isinstance(index[0], Nested) else index[0])
        if len(index) != self.ndim:
            raise TypeError(f"SparseGrid: one index per axis is needed, {self.ndim} of them; found {len(index)}")
        ns = self._index_type().ns
        inside, found = self._mask(active), []
        for i, n in zip(index, self._shape, strict=True):
            if not isinstance(i, Flat):
                i = ns.flat(Int32)(i)
            if not i.dtype.is_integer:
                raise TypeError(
                    f"SparseGrid: indices must be integers (see eval for positions), not {type(i).__name__}"
                )
            inside = inside & self._mask(i < n)
            if i.dtype.is_signed:
                inside = inside & self._mask(i >= 0)
            found.append(convert(ns.flat(Int32), i))
        return found, inside

    def _split(self, indices: list[Any]) -> tuple[Any, Any]:
        """Return the brick's key and the voxel's number within it for indices in the order of the axes."""
        key_type, local_type = type(self._table.keys), self._index_type()
        low = (1 << self._bits) - 1
        key: Any = None
        local: Any = None
        for i, n in zip(indices, self._brick_shape(), strict=True):
            part, rest = cast(key_type, i >> self._bits), cast(local_type, i & low)
            key = part if key is None else key * n + part
            local = rest if local is None else (local << self._bits) | rest
        return key, local

    def _components(self, pos: Any) -> list[Any]:
        found = list(pos._c) if isinstance(pos, Nested) else [pos] if isinstance(pos, ArrayBase) else list(pos)
        if len(found) != self.ndim:
            name = type(pos).__name__
            raise TypeError(f"SparseGrid: positions of {self.ndim} components are needed, found {name} of {len(found)}")
        ns = self._values.ns
        made = [p if isinstance(p, Flat) else ns.flat(self._values.dtype)(p) for p in found]
        for p in made:
            if not p.dtype.is_float:
                raise TypeError(
                    f"SparseGrid: positions must be floats (see lookup for indices), not {type(p).__name__}"
                )
        if ns.is_diff:  # else a position without gradients would cut those of the values
            made = [p if p.is_diff else convert(ns.flat(p.dtype), p) for p in made]
        return made

    def _nearest(self, components: list[Any]) -> list[Any]:
        """Return per component the voxel that holds the position."""
        return [_plain(texture._floor(p * n)) for p, n in zip(components, self._shape[::-1], strict=True)]

    def _cell(self, components: list[Any]) -> tuple[list[Any], list[Any]]:
        """Return per component the voxel at or before the position, and the fraction of the way to the next."""
        low, weights = [], []
        for p, n in zip(components, self._shape[::-1], strict=True):
            scaled = call(ROWS["fma"], p, float(n), -0.5)
            start = call(ROWS["floor"], scaled)
            low.append(_plain(texture._integer(start)))
            weights.append(scaled - start)
        return low, weights

    def _corner(self, low: list[Any], steps: Sequence[int]) -> tuple[Any, Any]:
        """Return key and local number of a corner; `low` and `steps` are in the order of a position's components."""
        sizes = self._shape[::-1]
        index = [_wrapped(i + s if s else i, n, self._wrap) for i, s, n in zip(low, steps, sizes, strict=True)]
        return self._split(index[::-1])


def _plain(i: Any) -> Any:
    """Return an index without gradients."""
    return convert(i.ns.detached.flat(Int32), i)


def _wrapped(i: Any, n: int, mode: WrapMode) -> Any:
    """Return a voxel number brought into 0 .. n - 1."""
    if mode is WrapMode.Repeat:
        i = texture._modulo(i, n)
    elif mode is WrapMode.Mirror:
        i = texture._modulo(i, 2 * n)
        i = select(i < n, i, 2 * n - 1 - i)
    return clip(i, 0, n - 1)


def corners(ndim: int) -> list[tuple[int, ...]]:
    """Return the steps to a cell's corners, the first component fastest."""
    return [steps[::-1] for steps in itertools.product((0, 1), repeat=ndim)]


def checked_int(name: str, value: Any, low: int, high: int) -> int:
    """Return an int of a setting; raises TypeError or ValueError naming it."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"SparseGrid: {name} must be an int, found {value!r} of type {type(value).__name__}")
    if not low <= value <= high:
        raise ValueError(f"SparseGrid: {name} must be {low} to {high}, found {value}")
    return value


def checked_shape(resolution: Any) -> tuple[int, ...]:
    """Return the number of voxels along each axis; one number stands for a cube."""
    dims = (resolution,) * 3 if isinstance(resolution, int) else tuple(resolution)
    if not 1 <= len(dims) <= 3:
        raise ValueError(f"SparseGrid: one to three axes are possible, found the shape {dims}")
    return tuple(checked_int(f"the resolution of axis {k}", n, 1, AXIS_LIMIT) for k, n in enumerate(dims))
