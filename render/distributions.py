"""Tables that uniform numbers are warped by: discrete and bilinear densities over the unit square."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..jit.arrays import functions as f
from ..jit.arrays.create import arange
from ..jit.arrays.memops import gather
from ..jit.arrays.reduce import sum as total
from ..jit.arrays.scan import block_sum
from ..jit.runtime.evaluate import evaluate
from .warp import square_to_bilinear, square_to_bilinear_pdf

__all__ = ["Bilinear2D", "Discrete2D", "bilinear_tables", "discrete_tables"]

Array = np.ndarray[Any, Any]
Tables = Mapping[str, Any]


def bilinear_tables(values: Array | None, dtype: Any) -> dict[str, Any]:
    """Return what `Bilinear2D` looks up, as arrays of type `dtype`: "values" (H, W), "level0" and so on."""
    grid = np.asarray(values, np.float64)
    cells = 0.25 * (grid[:-1, :-1] + grid[:-1, 1:] + grid[1:, :-1] + grid[1:, 1:])
    scale = cells.size / cells.sum()
    tables: dict[str, Any] = {"values": (grid * scale).astype(dtype)}
    level = cells * scale
    while max(level.shape) > 1:
        even = np.pad(level, [(0, level.shape[0] & 1), (0, level.shape[1] & 1)])
        blocks = even.reshape(even.shape[0] // 2, 2, even.shape[1] // 2, 2).transpose(0, 2, 1, 3)
        tables[f"level{len(tables) - 1}"] = np.ascontiguousarray(blocks, dtype)
        level = blocks.sum((2, 3))
    return tables


def discrete_tables(values: Array | None, dtype: Any) -> dict[str, Any]:
    """Return what `Discrete2D` looks up: "columns", "probabilities" (H, W), "rows" (H,) of type `dtype`, "total"."""
    grid = np.asarray(values, np.float64)
    total = float(grid.sum())
    return {
        "columns": np.cumsum(grid, 1).astype(dtype), "rows": np.cumsum(grid.sum(1)).astype(dtype),
        "probabilities": (grid / total).astype(dtype), "total": total,
    }  # fmt: skip


class Bilinear2D:
    """A density over the unit square, bilinear between values at the corners of a grid of equal cells.

    Points are drawn by descending a pyramid of sums, halving the square per level (Clarberg et al. 2005, "Wavelet
    importance sampling"), and then within the cell. `values` (H, W) must be >= 0 and not all 0; H, W >= 2. Tables that
    exist already may be given instead.
    """

    def __init__(self, types: Any, values: Array | None = None, tables: Tables | None = None) -> None:
        self.types = types
        tables = bilinear_tables(values, types.dtype.numpy) if tables is None else tables
        self.height, self.width = tables["values"].shape
        self.values = _flat(types, tables["values"])
        # (blocks of 2 x 2 sums, blocks per row), the finest first
        levels = [tables[f"level{k}"] for k in range(len(tables) - 1)]
        self.levels: list[tuple[Any, int]] = [(_flat(types, blocks), blocks.shape[1]) for blocks in levels]

    @classmethod
    def of_array(cls, types: Any, grid: Any, height: int, width: int) -> Bilinear2D:
        """Return the density of values in an array (Float64, row by row), as of NumPy's, made without reading it."""
        made = object.__new__(cls)
        made.types, made.height, made.width = types, height, width
        made.levels = []
        rows, columns = height - 1, width - 1
        cell = arange(types.UInt32, rows * columns)
        corner = cell // columns * width + cell % columns
        a, b, c, d = (gather(type(grid), grid, corner + k) for k in (0, 1, width, width + 1))
        level = 0.25 * (a + b + c + d)
        scale = rows * columns / total(level)
        made.values = types.Float(grid * scale)
        level = level * scale
        while max(rows, columns) > 1:
            across = (columns + 1) // 2
            k = arange(types.UInt32, (rows + 1) // 2 * across * 4)
            y, x = k // 4 // across * 2 + k // 2 % 2, k // 4 % across * 2 + k % 2
            blocks = gather(type(grid), level, y * columns + x, (y < rows) & (x < columns))
            made.levels.append((types.Float(blocks), across))
            level, rows, columns = block_sum(blocks, 4), (rows + 1) // 2, across
        evaluate([made.values._n, *(table._n for table, _ in made.levels)])
        return made

    def _corners(self, x: Any, y: Any, active: Any) -> tuple[Any, Any, Any, Any]:
        base = y * self.width + x
        corners = [gather(self.types.Float, self.values, base + i, active) for i in (0, 1, self.width, self.width + 1)]
        return corners[0], corners[1], corners[2], corners[3]

    def sample(self, u: Any, active: Any = True) -> tuple[Any, Any]:
        """Return a point of the unit square and its density."""
        types = self.types
        column, row = types.UInt32(0), types.UInt32(0)
        last = 1.0 - (2.0**-53 if types.is_double else 2.0**-24)
        x, y = f.clip(u.x, 0.0, last), f.clip(u.y, 0.0, last)
        for table, stride in reversed(self.levels):
            base = (row * stride + column) * 4
            a, b, c, d = (gather(types.Float, table, base + k, active) for k in range(4))
            # Rounding may have pushed them out.
            x, y = f.clip(x, 0.0, 1.0), f.clip(y, 0.0, 1.0)
            top, bottom = a + b, c + d
            y = y * (top + bottom)
            # A half without any mass is never entered, not even by the number 0.
            lower = (y > top) | ~(top > 0.0)
            y = f.select(lower, y - top, y) / f.select(lower, bottom, top)
            left, right = f.select(lower, c, a), f.select(lower, d, b)
            x = x * (left + right)
            beyond = (x > left) | ~(left > 0.0)
            x = f.select(beyond, x - left, x) / f.select(beyond, right, left)
            row = row * 2 + f.select(lower, types.UInt32(1), 0)
            column = column * 2 + f.select(beyond, types.UInt32(1), 0)
        x, y, pdf = square_to_bilinear(*self._corners(column, row, active), x, y)
        point = types.Point2f(
            (types.Float(column) + x) * (1.0 / (self.width - 1)), (types.Float(row) + y) * (1.0 / (self.height - 1))
        )
        return point, pdf

    def pdf(self, p: Any, active: Any = True) -> Any:
        """Return the density at a point of the unit square."""
        types = self.types
        x, y = f.clip(p.x, 0.0, 1.0) * float(self.width - 1), f.clip(p.y, 0.0, 1.0) * float(self.height - 1)
        column, row = f.min(types.UInt32(x), self.width - 2), f.min(types.UInt32(y), self.height - 2)
        corners = self._corners(column, row, active)
        return square_to_bilinear_pdf(*corners, x - types.Float(column), y - types.Float(row))


class Discrete2D:
    """Probabilities of the cells of a grid: the row is drawn first, then the column.

    `values` (H, W) >= 0, not all 0, or `tables` made of them.
    """

    def __init__(self, types: Any, values: Array | None = None, tables: Tables | None = None) -> None:
        self.types = types
        tables = discrete_tables(values, types.dtype.numpy) if tables is None else tables
        self.height, self.width = tables["columns"].shape
        self.columns = _flat(types, tables["columns"])
        self.rows = _flat(types, tables["rows"])
        self.total: float = tables["total"]
        self.probabilities = _flat(types, tables["probabilities"])

    def sample(self, u: Any, active: Any = True) -> tuple[Any, Any, Any, Any]:
        """Return column and row of a cell (UInt32), its probability, and the numbers to use again (Point2f)."""
        types = self.types
        y = u.y * self.total
        row = _search(self.rows, types.UInt32(0), self.height, y, types, active)
        base = row * self.width
        low_y, high_y = self._bounds(self.rows, types.UInt32(0), row, active)
        x = u.x * gather(types.Float, self.columns, base + (self.width - 1), active)
        column = _search(self.columns, base, self.width, x, types, active)
        low_x, high_x = self._bounds(self.columns, base, column, active)
        rest = types.Point2f(_within(x, low_x, high_x), _within(y, low_y, high_y))
        return column, row, (high_x - low_x) * (1.0 / self.total), rest

    def _bounds(self, table: Any, base: Any, cell: Any, active: Any) -> tuple[Any, Any]:
        types = self.types
        low = f.select(cell > 0, gather(types.Float, table, base + f.max(cell, 1) - 1, active), 0.0)
        return low, gather(types.Float, table, base + cell, active)

    def pdf(self, column: Any, row: Any, active: Any = True) -> Any:
        """Return the probability of a cell."""
        return gather(self.types.Float, self.probabilities, row * self.width + column, active)


def _within(x: Any, low: Any, high: Any) -> Any:
    wide = high > low
    return f.clip((x - low) / f.select(wide, high - low, 1.0), 0.0, 1.0)


def _search(table: Any, base: Any, count: int, target: Any, types: Any, active: Any) -> Any:
    """Return the first cell whose cumulative value reaches the target (binary search, unrolled)."""
    low, high = types.UInt32(0), types.UInt32(count - 1)
    for _ in range((count - 1).bit_length()):
        middle = (low + high) // 2
        right = gather(types.Float, table, base + middle, active) <= target
        low, high = f.select(right, f.min(middle + 1, high), low), f.select(right, high, middle)
    return low


def _flat(types: Any, values: np.ndarray[Any, Any]) -> Any:
    return types.Float(np.ascontiguousarray(values, types.dtype.numpy).ravel())
