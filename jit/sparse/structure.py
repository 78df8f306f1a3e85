"""Where the entries of sparse matrices are: checks and orderings of their indices, on NumPy arrays."""

from __future__ import annotations

from typing import Any

from ..arrays.base import ArrayBase
from ..arrays.create import SIZE_LIMIT


def whole(name: str, values: Any) -> Any:
    """Return indices as a one-dimensional int64 array; raises TypeError or ValueError naming them."""
    import numpy as np

    found = values.array.numpy() if isinstance(values, ArrayBase) else np.asarray(values)
    if found.ndim != 1:
        raise ValueError(f"CSRMatrix: {name} must have one dimension, found the shape {found.shape}")
    if found.size and found.dtype.kind not in "iu":
        raise TypeError(f"CSRMatrix: {name} must be integers, found {found.dtype}")
    return found.astype(np.int64)


def checked_shape(shape: Any) -> tuple[int, int]:
    """Return (rows, columns) as ints; raises TypeError or ValueError for what is no shape of a matrix."""
    dims = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if len(dims) != 2 or not all(hasattr(d, "__index__") and not isinstance(d, bool) for d in dims):
        raise TypeError(f"CSRMatrix: the shape must be (rows, columns), found {shape!r}")
    rows, columns = (int(d) for d in dims)
    if not (0 <= rows < SIZE_LIMIT and 0 <= columns < SIZE_LIMIT):
        raise ValueError(f"CSRMatrix: rows and columns must be 0 to 2^32 - 2, found the shape {(rows, columns)}")
    return rows, columns


def check_range(name: str, indices: Any, limit: int, what: str) -> None:
    """Raise ValueError naming the first index outside of 0 .. limit - 1."""
    wrong = (indices < 0) | (indices >= limit)
    if wrong.any():
        k = int(wrong.argmax())
        raise ValueError(f"CSRMatrix: {name}[{k}] is {indices[k]}, but the matrix has {limit} {what} (counted from 0)")


def check_offsets(offsets: Any, rows: int, entries: int) -> None:
    """Raise ValueError if row offsets do not start at 0, fall, or do not end at the number of entries."""
    if len(offsets) != rows + 1:
        raise ValueError(f"CSRMatrix: {rows} rows need {rows + 1} row_offsets, found {len(offsets)}")
    if offsets[0] != 0:
        raise ValueError(f"CSRMatrix: row_offsets[0] must be 0, found {offsets[0]}")
    falls = offsets[1:] < offsets[:-1]
    if falls.any():
        k = int(falls.argmax()) + 1
        raise ValueError(f"CSRMatrix: row_offsets[{k}] is {offsets[k]}, less than {offsets[k - 1]} before it")
    if offsets[-1] != entries:
        raise ValueError(f"CSRMatrix: row_offsets[{rows}] is {offsets[-1]}, but there are {entries} values")


def offsets_of(rows: Any, count: int) -> Any:
    """Return where the entries of each of `count` rows start, and the number of all, for the row of each entry."""
    import numpy as np

    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count)[:count])]).astype(np.int64)


def merged(rows: Any, columns: Any) -> tuple[Any, Any]:
    """Return the order of entries by row and then column (equal ones as they came), and which begin a new place."""
    import numpy as np

    order = np.lexsort((columns, rows))
    r, c = rows[order], columns[order]
    first = np.ones(len(order), bool)
    first[1:] = (r[1:] != r[:-1]) | (c[1:] != c[:-1])
    return order, first
