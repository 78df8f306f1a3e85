"""Grids that store only the bricks somebody wrote to: values at integer indices, read in between by interpolation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..arrays import tree
from ..arrays.create import SIZE_LIMIT, arange, full
from ..arrays.flat import Flat, convert
from ..arrays.functions import abs as absolute
from ..arrays.functions import lerp, select
from ..arrays.memops import gather
from ..arrays.memops import scatter as write
from ..arrays.memops import scatter_add as add
from ..arrays.namespace import namespace
from ..arrays.nested import Nested
from ..arrays.scan import block_reduce, compress
from ..arrays.shape import concat, width
from ..dtypes import Bool, Float32
from ..errors import SymbolicError
from ..modes import FilterMode, WrapMode
from ..trace import state
from .layout import Layout, checked_int, checked_shape, corners
from .table import DENSE_LIMIT, BrickTable


class SparseGrid(Layout):
    """A grid of one to three dimensions in bricks, which take memory once they are written to or touched.

    Shapes and indices are in the order of the array's axes, as in a tensor of shape (*shape, channels): `lookup(i, j,
    k)` belongs to `dense[i, j, k]`. Positions are those of textures: voxel i of n has its centre at (i + 0.5) / n, and
    the first component of a position goes along the last axis. Where nothing is stored the grid is `default`.

    `values` is the flat array of what is stored: differentiable, and what an optimiser takes. Its gradient lives on the
    same bricks. Growing the grid (`scatter`, `scatter_add`, `allocate`, `touch`) appends to it and keeps derivatives.

    >>> import luxgrad as dr
    >>> from luxgrad.llvm import Array3f, Float, UInt32
    >>> grid = dr.SparseGrid(1024, dtype=Float)
    >>> grid.scatter(Float([1, 3]), UInt32([7, 7]), UInt32([0, 0]), UInt32([4, 5]))
    >>> print(grid.eval(Array3f(5 / 1024, 0.5 / 1024, 7.5 / 1024))[0], grid.active_bricks)
    [2] 1
    """

    # All that a grid is: loops, frozen functions and other users of PyTrees find arrays and settings here.
    DRJIT_STRUCT = {
        "_values": Any, "_table": BrickTable, "_shape": tuple, "_channels": int, "_bits": int, "_default": float,
        "_filter": FilterMode, "_wrap": WrapMode,
    }  # fmt: skip

    def __init__(
        self,
        resolution: int | Sequence[int],
        channels: int = 1,
        brick: int = 8,
        dtype: Any = None,
        default: float = 0.0,
        filter_mode: FilterMode = FilterMode.Linear,
        wrap_mode: WrapMode = WrapMode.Clamp,
        index: str = "auto",
    ) -> None:
        """Make a grid without bricks: `resolution` voxels along each axis (one number: of a cube).

        Bricks have `brick` voxels along each axis, a power of two from 1 to 64. `dtype` is a flat array type of floats
        (luxgrad.llvm.ad.Float unless given). `index` is "table" (4 bytes per brick that could be), "hash" (36 to 104
        bytes per brick that is), or "auto": a table up to 2^21 bricks. Raises ValueError or TypeError naming what is
        wrong.
        """
        kind = namespace("llvm", True).flat(Float32) if dtype is None else dtype
        if not (isinstance(kind, type) and issubclass(kind, Flat) and kind.dtype.is_float):
            found = getattr(kind, "__name__", repr(kind))
            raise TypeError(
                f"SparseGrid: dtype must be a flat array type of floats, as luxgrad.llvm.Float; not {found}"
            )
        self._shape = checked_shape(resolution)
        self._channels = checked_int("channels", channels, 1, 1 << 16)
        self._bits = checked_int("brick", brick, 1, 64).bit_length() - 1
        if brick != 1 << self._bits:
            raise ValueError(f"SparseGrid: the edge of a brick must be a power of two from 1 to 64, found {brick}")
        if index not in ("auto", "table", "hash"):
            raise ValueError(f"SparseGrid: index must be 'auto', 'table' or 'hash', found {index!r}")
        bricks = math.prod(self._brick_shape())
        if bricks >= 1 << 63 or index == "table" and bricks > SIZE_LIMIT:
            raise ValueError(f"SparseGrid: {bricks} bricks are too many to number; use larger bricks than {brick}")
        self._default = float(default)
        self._filter, self._wrap = FilterMode(filter_mode), WrapMode(wrap_mode)
        hashed = index == "hash" or index == "auto" and bricks > DENSE_LIMIT
        self._values: Any = full(kind, 0, 0)
        self._table = BrickTable(kind.ns.detached, bricks, hashed)

    @property
    def values(self) -> Any:
        """Return what is stored, a flat array: brick by brick in the order of their slots, in each voxel by voxel in
        row-major order, channels fastest.
        """
        return self._values

    @values.setter
    def values(self, new: Any) -> None:
        new = convert(type(self._values), new)
        if new._n.size != self._values._n.size:
            raise RuntimeError(
                f"SparseGrid.values: {self.active_bricks} bricks hold {self._values._n.size} values, "
                f"found an array of {new._n.size}"
            )
        self._values = new.__copy__()

    @property
    def active_bricks(self) -> int:
        """Return the number of bricks stored."""
        return self._table.count

    @property
    def memory(self) -> int:
        """Return the bytes of values and index together."""
        return int(self._values._n.size * self._values.dtype.itemsize) + self._table.memory

    def __repr__(self) -> str:
        kind = type(self._values).__name__
        return (
            f"SparseGrid(shape={self.shape}, brick={self.brick}, dtype={kind}, active_bricks={self.active_bricks}, "
            f"memory={self.memory})"
        )

    def __copy__(self) -> SparseGrid:
        new: SparseGrid = tree.map_arrays(lambda x: x.__copy__(), self)
        return new

    copy = __copy__

    def lookup(self, *index: Any, active: Any = True) -> list[Any]:
        """Return the value of each channel at integer indices, one array per axis in the order of the axes.

        `default` where nothing is stored and outside of the grid, 0 where `active` is false. Differentiable in
        `values`.
        """
        indices, inside = self._indices(index, active)
        keys, local = self._split(indices)
        return self._read(self._table_find([keys], inside)[0], local, active)

    gather = lookup

    def eval(self, pos: Any, active: Any = True) -> list[Any]:
        """Return the value of each channel at `pos` in [0, 1], interpolated; 0 where `active` is false.

        The position's precision decides that of the interpolation. Differentiable in `values` and `pos`.
        """
        components = self._components(pos)
        kind = type(components[0])
        if self._filter is FilterMode.Nearest:
            low = self._nearest(components)
            weights: list[Any] = []
            cells = [self._corner(low, (0,) * self.ndim)]
        else:
            low, weights = self._cell(components)
            cells = [self._corner(low, steps) for steps in corners(self.ndim)]
        mask = self._mask(active)
        slots = self._table_find([key for key, _ in cells], mask)
        values = [
            [convert(kind, v) for v in self._read(slot, local, active)]
            for slot, (_, local) in zip(slots, cells, strict=True)
        ]
        # The first component is the fastest to change: each pass halves the number of corners.
        for w in weights:
            values = [
                [lerp(a, b, w) for a, b in zip(values[k], values[k + 1], strict=True)] for k in range(0, len(values), 2)
            ]
        return values[0]

    def scatter(self, value: Any, *index: Any, active: Any = True, allocate: bool = True) -> None:
        """Write `value` (one array, or one per channel) at integer indices, as `lookup` takes them.

        Bricks that are not stored yet are allocated first. With `allocate=False` nothing is written there: this is the
        form for recorded loops, after `allocate` or `touch`. Lanes outside of the grid write nothing. Differentiable.
        """
        self._write(write, "scatter", value, index, active, allocate)

    def scatter_add(self, value: Any, *index: Any, active: Any = True, allocate: bool = True) -> None:
        """Add `value` to the voxels at integer indices, otherwise as `scatter`. Differentiable."""
        self._write(add, "scatter_add", value, index, active, allocate)

    def allocate(self, *index: Any, active: Any = True) -> int:
        """Store the bricks at integer indices, filled with `default`; return how many are new.

        Raises SymbolicError inside a recorded loop or branch: which bricks are missing is not known before it runs.
        """
        self._refuse_recording("allocate")
        indices, inside = self._indices(index, active)
        return self._store([self._split(indices)[0]], inside)

    def touch(self, pos: Any, active: Any = True) -> int:
        """Store the bricks that `eval(pos)` reads; return how many are new. Raises SymbolicError as `allocate`."""
        self._refuse_recording("touch")
        components = self._components(tree.map_arrays(lambda x: type(x).wrap(x._n), pos))
        if self._filter is FilterMode.Nearest:
            low = self._nearest(components)
            steps = [(0,) * self.ndim]
        else:
            low, steps = self._cell(components)[0], corners(self.ndim)
        return self._store([self._corner(low, s)[0] for s in steps], self._mask(active))

    def prune(self, threshold: float = 0.0) -> int:
        """Drop the bricks whose values all differ from `default` by at most `threshold`; return how many these were.

        `values` gets shorter and keeps its derivatives; slots keep their order.
        """
        self._refuse_recording("prune")
        count, size = self.active_bricks, self._brick_size()
        if not count:
            return 0
        kind = type(self._values)
        change = absolute(kind.wrap(self._values._n) - self._default)
        # Written this way round, bricks with NaN stay.
        still = convert(self._mask_type(), change <= threshold)
        stays = block_reduce("or", select(still, self._index_type()(0), self._index_type()(1)), size) != 0
        kept = compress(stays)
        if len(kept) < count:
            place = arange(self._index_type(), len(kept) * size)
            if len(kept):
                slot = gather(type(kept), kept, place // size)
                self._values = gather(kind, self._values, slot * size + place % size)
                self._table = self._table.with_keys(gather(type(self._table.keys), self._table.keys, kept))
            else:
                self._values, self._table = full(kind, 0, 0), self._table.with_keys(full(type(self._table.keys), 0, 0))
        return count - len(kept)

    def to_dense(self) -> Any:
        """Return the whole grid as a tensor of shape (*shape, channels). Differentiable."""
        from .exchange import to_dense

        return to_dense(self)

    @classmethod
    def from_dense(
        cls, array: Any, threshold: float = 0.0, brick: int = 8, dtype: Any = None, default: float = 0.0, **options: Any
    ) -> SparseGrid:
        """Return a grid with the bricks of `array` in which a value differs from `default` by more than `threshold`.

        `array` is a tensor or NumPy array of shape (*shape, channels), of two to four dimensions; `options` are those
        of the constructor. Differentiable.
        """
        from .exchange import from_dense

        return from_dense(array, threshold, brick, dtype, default, options)

    def to_index_list(self) -> Any:
        """Return an IndexList of NumPy arrays: origins of bricks, which voxels differ from `default`, their values."""
        from .exchange import to_index_list

        return to_index_list(self)

    @classmethod
    def from_index_list(cls, index_list: Any, dtype: Any = None, **options: Any) -> SparseGrid:
        """Return the grid of an IndexList; `options` are those of the constructor."""
        from .exchange import from_index_list

        return from_index_list(index_list, dtype, options)

    def _refuse_recording(self, what: str) -> None:
        if state.scope is not None:
            raise SymbolicError(
                f"SparseGrid.{what}() inside of a recorded loop or branch: which bricks are missing is known only when "
                "it runs. Call allocate(i, j, k) or touch(points) before it, then scatter with allocate=False; or run "
                "the loop with mode='evaluated'"
            )

    def _table_find(self, keys: list[Any], active: Any) -> list[Any]:
        if not self._table.count:
            return [None] * len(keys)
        return self._table.find(keys, active)

    def _read(self, slot: Any, local: Any, active: Any) -> list[Any]:
        """Return the channels of a voxel; `slot` counts from 1."""
        kind, found = type(self._values), None
        if slot is None:
            missing = full(kind, self._default, width(local))
            return [self._masked(missing, active) for _ in range(self._channels)]
        found = slot != 0
        place = (((slot - 1) << self._bits * self.ndim) | local) * self._channels
        result = []
        for c in range(self._channels):
            value = gather(kind, self._values, place + c if c else place, found)
            if self._default != 0.0:
                value = self._masked(select(convert(kind.ns.flat(Bool), found), value, self._default), active)
            result.append(value)
        return result

    def _masked(self, value: Any, active: Any) -> Any:
        if active is True or self._default == 0.0:
            return value
        return select(convert(value.ns.flat(Bool), active), value, 0.0)

    # Writing.

    def _write(self, how: Any, name: str, value: Any, index: Sequence[Any], active: Any, allocate: bool) -> None:
        kind = type(self._values)
        parts = list(value._c) if isinstance(value, Nested) else value if isinstance(value, (list, tuple)) else None
        if parts is not None and self._channels == 1 and len(parts) != 1:
            parts = None  # a sequence of numbers for many lanes
        if parts is None:
            parts = [value] * self._channels
        if len(parts) != self._channels:
            raise ValueError(
                f"SparseGrid.{name}(): the grid has {self._channels} channels, found {len(parts)} values for them"
            )
        indices, inside = self._indices(index, active)
        key, local = self._split(indices)
        if allocate:
            self._refuse_recording(name)
            self._store([key], inside)
        slot = self._table_find([key], inside)[0]
        if slot is None:
            return
        place = (((slot - 1) << self._bits * self.ndim) | local) * self._channels
        for c, part in enumerate(parts):
            how(self._values, convert(kind, part), place + c if c else place, slot != 0)

    def _store(self, keys: list[Any], active: Any) -> int:
        """Append the missing ones of these bricks; return how many they are."""
        new = self._table.missing(keys, active)
        count = int(new._n.size)
        if count:
            self._append(new)
        return count

    def _append(self, keys: Any) -> None:
        """Append bricks that are not stored yet, in this order, filled with `default`."""
        added, total = keys._n.size * self._brick_size(), (self.active_bricks + keys._n.size) * self._brick_size()
        if total > SIZE_LIMIT:
            raise ValueError(
                f"SparseGrid: {self.active_bricks + keys._n.size} bricks of {self._brick_size()} values are more than "
                f"the 2^32 - 1 = {SIZE_LIMIT} elements of an array; use smaller bricks or several grids"
            )
        fresh = full(type(self._values), self._default, added)
        self._values = concat([self._values, fresh]) if self.active_bricks else fresh
        self._table = self._table.extended(keys)


__all__ = ["SparseGrid"]
