"""Sparse matrices in compressed rows: products with vectors and dense matrices, differentiable in both."""

from __future__ import annotations

from typing import Any

from ..arrays.base import ArrayBase
from ..arrays.create import SIZE_LIMIT, arange, full
from ..arrays.flat import Flat, convert, promoted
from ..arrays.memops import gather, scatter_add
from ..dtypes import UInt32
from .structure import check_offsets, check_range, checked_shape, merged, offsets_of, whole
from .sums import floats, given, indices, merge, plain, read, summed, taken


class CSRMatrix:
    """A matrix that stores only some of its entries, row by row: the entries `row_offsets[r] .. row_offsets[r + 1] - 1`
    of `columns` and `values` belong to row r. Entries of one place count as their sum.

    `A @ x` sums the entries of a row one after the other, so that its bits depend on nothing else. Products are
    differentiable in `values` and in the vector, forward and backward, to any order.

    >>> import luxgrad as dr
    >>> from luxgrad.llvm import Float
    >>> A = dr.CSRMatrix([0, 2, 3], [0, 2, 1], Float([1, 2, 3]), shape=(2, 3))
    >>> print(A @ Float([10, 20, 30]))
    [70, 60]
    """

    # All that a matrix is: frozen functions and other users of PyTrees find arrays and settings here.
    DRJIT_STRUCT = {"_values": Any, "_columns": Any, "_offsets": Any, "_rows": Any, "_turned": Any, "_shape": tuple}
    __array_priority__ = 1003  # NumPy's operators leave mixed expressions to ours
    _values: Any
    _columns: Any  # per entry
    _offsets: Any
    _rows: Any  # per entry
    _turned: Any  # (row offsets, rows, numbers of entries) of the transposed matrix, once it was needed
    _shape: tuple[int, int]

    def __init__(self, row_offsets: Any, columns: Any, values: Any, shape: Any = None, dtype: Any = None) -> None:
        """Make a matrix of its three arrays; without `shape` the largest column is the last.

        `values` is a flat array, or what makes one of type `dtype` (luxgrad.llvm.ad.Float unless the type tells).
        Raises ValueError or TypeError naming the first wrong index and its value.
        """
        import numpy as np

        flat = floats(values, dtype)
        at, offsets = whole("columns", columns), whole("row_offsets", row_offsets)
        if shape is None:
            shape = (max(0, len(offsets) - 1), int(at.max()) + 1 if at.size else 0)
        rows, width = checked_shape(shape)
        if len(at) != flat._n.size:
            raise ValueError(f"CSRMatrix: {len(at)} columns do not belong to {flat._n.size} values")
        check_offsets(offsets, rows, flat._n.size)
        check_range("columns", at, width, "columns")
        self._set(flat, offsets, np.repeat(np.arange(rows), np.diff(offsets)), at, (rows, width))

    def _set(self, values: Any, offsets: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> None:
        kind = values.ns.detached.flat(UInt32)
        self._values, self._shape, self._turned = values.__copy__(), shape, None
        self._offsets, self._rows, self._columns = (indices(kind, x) for x in (offsets, rows, columns))

    @classmethod
    def _made(cls, values: Any, offsets: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> CSRMatrix:
        new = object.__new__(cls)
        new._set(values, offsets, rows, columns, shape)
        return new

    @classmethod
    def from_coo(cls, rows: Any, columns: Any, values: Any, shape: Any, dtype: Any = None) -> CSRMatrix:
        """Return the matrix with `values` at (rows, columns), in any order; those of one place are added up.

        Differentiable in `values`. Raises ValueError or TypeError as the constructor.
        """
        flat, (height, width) = floats(values, dtype), checked_shape(shape)
        r, c = whole("rows", rows), whole("columns", columns)
        if not len(r) == len(c) == flat._n.size:
            raise ValueError(f"CSRMatrix: {len(r)} rows, {len(c)} columns and {flat._n.size} values do not go together")
        check_range("rows", r, height, "rows")
        check_range("columns", c, width, "columns")
        order, first = merged(r, c)
        flat = merge(flat, order, first)
        r, c = r[order][first], c[order][first]
        return cls._made(flat, offsets_of(r, height), r, c, (height, width))

    @classmethod
    def from_dense(cls, array: Any, threshold: float = 0.0, dtype: Any = None) -> CSRMatrix:
        """Return the matrix of the entries of a tensor or NumPy array whose size is above `threshold`.

        Differentiable.
        """
        import numpy as np

        if not getattr(array, "is_tensor", False):
            array = np.asarray(array)
        if len(array.shape) != 2:
            raise ValueError(f"CSRMatrix.from_dense(): two dimensions are needed, found the shape {tuple(array.shape)}")
        shape = checked_shape(tuple(array.shape))
        flat = floats(array.array if isinstance(array, ArrayBase) else array.reshape(-1), dtype)
        # Written this way round, NaN stays.
        place = np.flatnonzero(~(np.abs(flat.numpy()) <= threshold))
        r, c = place // max(1, shape[1]), place % max(1, shape[1])
        return cls._made(taken(flat, place), offsets_of(r, shape[0]), r, c, shape)

    @classmethod
    def from_scipy(cls, matrix: Any, dtype: Any = None) -> CSRMatrix:
        """Return the matrix of a scipy.sparse array or matrix of any format."""
        if not hasattr(matrix, "tocsr"):
            raise TypeError(f"CSRMatrix.from_scipy(): a scipy.sparse object is needed, found {type(matrix).__name__}")
        rows = matrix.tocsr()
        return cls(rows.indptr, rows.indices, rows.data.copy(), rows.shape, dtype)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of rows and of columns."""
        return self._shape

    @property
    def nnz(self) -> int:
        """Return the number of entries stored."""
        return int(self._values._n.size)

    @property
    def columns(self) -> Any:
        """Return the column of each entry (UInt32)."""
        return self._columns

    @property
    def row_offsets(self) -> Any:
        """Return where the entries of each row start, and the number of all (UInt32)."""
        return self._offsets

    @property
    def values(self) -> Any:
        """Return the entries, a flat array: differentiable, and what an optimiser takes."""
        return self._values

    @values.setter
    def values(self, new: Any) -> None:
        new = convert(type(self._values), new)
        if new._n.size != self.nnz:
            raise RuntimeError(f"CSRMatrix.values: the matrix has {self.nnz} entries, found an array of {new._n.size}")
        self._values = new.__copy__()

    @property
    def T(self) -> CSRMatrix:
        """Return the transposed matrix."""
        return self.transpose()

    def __repr__(self) -> str:
        return f"CSRMatrix(shape={self._shape}, nnz={self.nnz}, dtype={type(self._values).__name__})"

    def with_values(self, values: Any) -> CSRMatrix:
        """Return a matrix with entries at the same places and other values, of any floating-point type."""
        values = floats(values, None if isinstance(values, Flat) else type(self._values))
        if values._n.size != self.nnz:
            raise ValueError(f"CSRMatrix.with_values(): {self.nnz} values are needed, found {values._n.size}")
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new._values = values.__copy__()
        return new

    def matvec(self, x: Any) -> Any:
        """Return the product with a vector (a flat array) or a dense matrix (a tensor of two dimensions)."""
        return self._times(x, False)

    def rmatvec(self, x: Any) -> Any:
        """Return the product of the transposed matrix with a vector or a dense matrix.

        The order of entries by columns is found at the first call, on the host: not inside of a frozen function. Call
        it or `prepare_transpose` once before.
        """
        return self._times(x, True)

    def __matmul__(self, x: Any) -> Any:
        return self._times(x, False)

    def __rmatmul__(self, x: Any) -> Any:
        x = x if isinstance(x, ArrayBase) else given(x, type(self._values))
        return self._times(x.T, True).T if len(x.shape) == 2 else self._times(x, True)

    def prepare_transpose(self) -> None:
        """Find the order of entries by columns, which `rmatvec` and `transpose` use."""
        if self._turned is None:
            import numpy as np

            kind = type(self._columns)
            columns = self._columns.numpy().astype(np.int64)
            order = np.argsort(columns, kind="stable")
            turned = offsets_of(columns, self._shape[1]), self._rows.numpy()[order], order
            self._turned = tuple(indices(kind, x) for x in turned)

    def transpose(self) -> CSRMatrix:
        """Return the transposed matrix. Differentiable."""
        self.prepare_transpose()
        offsets, rows, order = self._turned
        new = object.__new__(type(self))
        new._shape, new._offsets, new._columns, new._turned = self._shape[::-1], offsets, rows, None
        new._rows = read(self._columns, order)
        new._values = read(self._values, order)
        return new

    def diagonal(self) -> Any:
        """Return the entries whose row and column are equal, a flat array with zeros where none is stored.

        Differentiable.
        """
        result = full(type(self._values), 0, min(self._shape))
        if self.nnz and min(self._shape):
            scatter_add(result, self._values, self._rows, self._rows == self._columns)
        return result

    def to_dense(self) -> Any:
        """Return a tensor of the matrix's shape. Differentiable. Raises ValueError beyond 2^32 - 1 elements."""
        rows, width = self._shape
        if rows * width > SIZE_LIMIT:
            raise ValueError(f"CSRMatrix.to_dense(): {self._shape} are {rows * width} elements, more than 2^32 - 1")
        flat = full(type(self._values), 0, rows * width)
        if self.nnz:
            scatter_add(flat, self._values, self._rows * width + self._columns)
        return flat.ns.tensor(flat.dtype)(flat, self._shape)

    def to_scipy(self) -> Any:
        """Return a scipy.sparse.csr_array with copies of values (half precision as single) and indices.

        Raises ImportError where there is no SciPy.
        """
        try:
            from scipy.sparse import csr_array
        except ImportError as error:
            raise ImportError("CSRMatrix.to_scipy() needs SciPy: pip install scipy") from error
        values = self._values.numpy()  # SciPy has no half precision
        values = values.astype("float32") if values.dtype == "float16" else values.copy()
        return csr_array((values, self._columns.numpy().copy(), self._offsets.numpy().copy()), self._shape)

    def _times(self, x: Any, turned: bool) -> Any:
        """Return the product of the matrix, or of its transpose, with a flat array or tensor."""
        height, width = self._shape[::-1] if turned else self._shape
        if not isinstance(x, ArrayBase):
            x = given(x, type(self._values))
        shape, flat = tuple(x.shape), x.array if isinstance(x, Flat) or x.is_tensor else None
        if flat is None or len(shape) not in (1, 2):
            raise TypeError(
                "CSRMatrix: a product is taken with a flat array or a tensor of one or two dimensions, "
                f"found {type(x).__name__} of shape {shape}"
            )
        if shape[0] != width:
            name = f"{'transposed ' if turned else ''}matrix of shape {(height, width)}"
            raise ValueError(f"CSRMatrix: a {name} cannot be multiplied with a {type(x).__name__} of shape {shape}")
        count = shape[1] if len(shape) == 2 else 1
        if height * count > SIZE_LIMIT:
            raise ValueError(f"CSRMatrix: the product would have {height * count} elements, more than 2^32 - 1")
        kind = promoted(type(self._values), type(flat))
        if not kind.dtype.is_float:
            raise TypeError(f"CSRMatrix: floating-point numbers are needed, found {type(x).__name__}")
        result = self._product(convert(kind, self._values), convert(kind, flat), height, count, turned)
        return result if isinstance(x, Flat) else kind.ns.tensor(kind.dtype)(result, (height, *shape[1:]))

    def _product(self, values: Any, x: Any, height: int, count: int, turned: bool) -> Any:
        """Return the product as a flat array; `count` vectors lie beside each other in `x`."""
        kind = type(values)
        if not self.nnz or not height * count:
            return full(kind, 0, height * count)
        if turned:
            self.prepare_transpose()
            offsets, columns, order = self._turned
        else:
            offsets, columns, order = self._offsets, self._columns, None
        index = type(columns)
        lane = arange(index, height * count)
        row, beside = (lane, None) if count == 1 else (lane // count, lane % count)
        plain_values, plain_x = plain(values), plain(x)

        def term(k: Any) -> tuple[Any, Any]:
            column = gather(index, columns, k)
            place = column if beside is None else column * count + beside
            entry = k if order is None else gather(index, order, k)
            return gather(type(plain_values), plain_values, entry), gather(type(plain_x), plain_x, place)

        result = kind.wrap(summed(type(plain_values), offsets, row, term)._n)
        if values._ad is not None or x._ad is not None:
            result._ad = self._derivative(values, x, height, count, turned)
        return result

    def _derivative(self, values: Any, x: Any, height: int, count: int, turned: bool) -> Any:
        """Return the derivative node of the same product written as gathers and a scatter, which is not computed."""
        total = self.nnz * count
        if total > SIZE_LIMIT:
            raise ValueError(f"CSRMatrix: the derivative takes {total} products, more than 2^32 - 1")
        source, target = (self._rows, self._columns) if turned else (self._columns, self._rows)
        if count > 1:
            number = arange(type(source), total)
            entry, beside = number // count, number % count
            values = gather(type(values), values, entry)
            source, target = (gather(type(i), i, entry) * count + beside for i in (source, target))
        result = full(type(values), 0, height * count)
        scatter_add(result, values * gather(type(x), x, source), target)
        return result._ad


__all__ = ["CSRMatrix"]
