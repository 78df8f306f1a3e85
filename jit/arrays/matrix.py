"""Square matrices of 1 to 4 rows: `*` is the matrix product, a scalar stands for that multiple of the identity."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from . import linear
from .base import ArrayBase
from .flat import Flat
from .linear import madd
from .nested import Nested, elementwise


class Matrix(Nested):
    """A matrix whose rows are nested arrays; `numpy()` has the shape (rows, columns, elements)."""

    __slots__ = ()
    is_matrix = True
    __hash__ = ArrayBase.__hash__

    def __init__(self, *args: Any) -> None:
        n = self.static_shape[0]
        if len(args) == n * n and n > 1:
            super().__init__(*[self.value_t(*args[k * n : (k + 1) * n]) for k in range(n)])
        elif not args:
            self._c = self._diagonal(0)
        else:
            super().__init__(*args)

    def _from_one(self, value: Any) -> list[Any]:
        n = self.static_shape[0]
        if isinstance(value, Nested) and len(value.static_shape) == 2:
            if value.static_shape[0] == n:
                return [self.value_t(c) for c in value._c]
            return self._resized(value)
        if isinstance(value, (int, float, Flat)):
            return self._diagonal(value)
        if isinstance(value, Nested):
            found = type(value).__name__
            raise TypeError(f"{type(self).__name__}(): cannot convert a {found}; use diag() for a diagonal")
        if isinstance(value, (list, tuple)) and len(value) == 1:
            raise TypeError(f"{type(self).__name__}(): expected {n} rows, found 1")
        return super()._from_one(value)

    def _diagonal(self, value: Any) -> list[Any]:
        n = self.static_shape[0]
        scalar = self.value_t.value_t
        return [self.value_t.of([scalar(value if i == j else 0) for j in range(n)]) for i in range(n)]

    def _resized(self, value: Any) -> list[Any]:
        """Return the upper left part of a greater matrix, or a smaller one in the corner of the identity."""
        n, m = self.static_shape[0], value.static_shape[0]
        scalar = self.value_t.value_t
        entries = [[value._c[i]._c[j] if i < m and j < m else int(i == j) for j in range(n)] for i in range(n)]
        return [self.value_t.of([scalar(v) for v in line]) for line in entries]

    @property
    def rows(self) -> list[Any]:
        """Return the rows."""
        return self._c

    @property
    def T(self) -> Any:
        """Return the transpose."""
        return linear.transpose(self)

    @property
    def mT(self) -> Any:
        """Return the transpose."""
        return linear.transpose(self)

    def __add__(self, other: Any) -> Any:
        return self._elementwise(operator.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return self._elementwise(operator.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return self._elementwise(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._elementwise(operator.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Nested):
            if other.is_matrix:
                return self._times_matrix(other)
            if len(other.static_shape) == 1:
                return self._times_vector(other)
        elif _is_scalar(other):
            return self._scaled(other)
        return NotImplemented

    def __rmul__(self, other: Any) -> Any:
        if isinstance(other, Nested) and len(other.static_shape) == 1:
            return self.T._times_vector(other)
        return self._scaled(other) if _is_scalar(other) else NotImplemented

    __matmul__ = __mul__
    __rmatmul__ = __rmul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Matrix):
            return self * linear.inverse(other)
        return self._scaled(1.0 / other) if _is_scalar(other) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return linear.inverse(self)._scaled(other) if _is_scalar(other) else NotImplemented

    def __pow__(self, exponent: Any) -> Any:
        if not isinstance(exponent, int):
            raise TypeError(f"a matrix can only be raised to an integer, found {type(exponent).__name__}")
        base = linear.inverse(self) if exponent < 0 else self
        result = type(self)(1)
        for bit in bin(abs(exponent))[2:]:
            result = result * result
            if bit == "1":
                result = result * base
        return result

    def _elementwise(self, fn: Callable[..., Any], a: Any, b: Any) -> Any:
        other = b if a is self else a
        if _is_scalar(other):
            kind = _kind(self, other)
            a, b = (x if x is self else kind(x) for x in (a, b))
        elif not isinstance(other, Matrix):
            return NotImplemented
        elif other.static_shape != self.static_shape:
            raise RuntimeError(f"Incompatible arguments: {type(a).__name__} and {type(b).__name__}")
        return _of([elementwise(fn, x, y) for x, y in zip(a._c, b._c, strict=True)])

    def _scaled(self, factor: Any) -> Any:
        return _of([row * factor for row in self._c])

    def _times_matrix(self, other: Any) -> Any:
        n = self.static_shape[0]
        if other.static_shape[0] != n:
            raise RuntimeError(f"Incompatible arguments: {type(self).__name__} and {type(other).__name__}")
        result = []
        for row in self._c:
            total = other._c[0] * row._c[0]
            for k in range(1, n):
                total = madd(other._c[k], row._c[k], total)
            result.append(total)
        return _of(result)

    def _times_vector(self, vector: Any) -> Any:
        n = self.static_shape[0]
        if vector.static_shape[0] != n:
            raise RuntimeError(f"Incompatible arguments: {type(self).__name__} and {type(vector).__name__}")
        parts = []
        for row in self._c:
            total = row._c[0] * vector._c[0]
            for k in range(1, n):
                total = madd(row._c[k], vector._c[k], total)
            parts.append(total)
        if type(parts[0]) is vector.value_t:
            return type(vector).of(parts)
        first = parts[0]
        return first.ns.nested((n,), first.dtype).of(parts) if isinstance(first, ArrayBase) else self.value_t.of(parts)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (int, float, Flat)) or getattr(value, "shape", None) == ()


def _kind(matrix: Any, scalar: Any) -> Any:
    """Return the matrix type of an operation between a matrix and a scalar."""
    if not isinstance(scalar, Flat):
        return type(matrix)
    total = matrix._c[0]._c[0] + scalar
    return total.ns.matrix(matrix.static_shape[0], total.dtype)


def _of(rows: list[Any]) -> Any:
    """Return the matrix of these rows, of the type that belongs to theirs."""
    first = rows[0]
    return first.ns.matrix(len(rows), first.dtype).of(rows)


def _inplace(fn: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        result = fn(self, other)
        return self.assign(result) if type(result) is type(self) else result

    return method


for _name in ("add", "sub", "mul", "truediv", "matmul"):
    setattr(Matrix, f"__i{_name}__", _inplace(getattr(operator, _name)))
