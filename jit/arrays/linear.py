"""Vectors and matrices: products, norms, transpose, determinant, inverse."""

from __future__ import annotations

import math
from typing import Any

from ..ops.row import ROWS
from . import tree
from .base import ArrayBase
from .create import full
from .functions import call, select
from .nested import Nested
from .reduce import dot

_fma = ROWS["fma"]


def madd(a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c: rounded once for arrays, plain Python for numbers."""
    if isinstance(a, ArrayBase) or isinstance(b, ArrayBase) or isinstance(c, ArrayBase):
        return call(_fma, a, b, c)
    return a * b + c


def squared_norm(x: Any) -> Any:
    """Return the sum of squares of the components (nested) or elements (flat: size 1)."""
    return dot(x, x)


def abs_dot(a: Any, b: Any) -> Any:
    """Return the absolute value of the dot product."""
    return abs(dot(a, b))


def norm(x: Any) -> Any:
    """Return the Euclidean length; its derivative at the zero vector is 0."""
    n2 = squared_norm(x)
    if not isinstance(n2, ArrayBase):
        return math.sqrt(n2)
    root = call(ROWS["sqrt"], n2)
    if any(c._ad is not None for c in tree.arrays(x)):
        return select(n2 == 0, 0.0, root)
    return root


def normalize(x: Any) -> Any:
    """Return x divided by its Euclidean length."""
    n2 = squared_norm(x)
    return x * (call(ROWS["rsqrt"], n2) if isinstance(n2, ArrayBase) else 1.0 / math.sqrt(n2))


def cross(a: Any, b: Any) -> Any:
    """Return the cross product of two vectors of three components."""
    if not (isinstance(a, Nested) and isinstance(b, Nested) and len(a._c) == len(b._c) == 3):
        raise TypeError(
            f"cross(): two arrays of three components are needed, found {type(a).__name__} and {type(b).__name__}"
        )
    (ax, ay, az), (bx, by, bz) = a._c, b._c
    parts = [madd(ay, bz, -(az * by)), madd(az, bx, -(ax * bz)), madd(ax, by, -(ay * bx))]
    if type(parts[0]) is a.value_t:
        return type(a).of(parts)
    return (type(b) if type(parts[0]) is b.value_t else parts[0].ns.nested((3,), parts[0].dtype)).of(parts)


def matmul(a: Any, b: Any) -> Any:
    """Return the product of matrices, a matrix and a vector, or a vector and a matrix; of vectors the dot product."""
    if isinstance(a, ArrayBase) and a.is_tensor or isinstance(b, ArrayBase) and b.is_tensor:
        return a @ b
    if isinstance(a, Nested) and a.is_matrix or isinstance(b, Nested) and b.is_matrix:
        return a * b
    return dot(a, b)


def _square(name: str, m: Any) -> Any:
    if not (isinstance(m, Nested) and len(m.static_shape) == 2 and m.static_shape[0] == m.static_shape[1]):
        raise TypeError(f"{name}(): a square matrix is needed, found {type(m).__name__}")
    return m


def transpose(m: Any) -> Any:
    """Return the matrix with rows and columns exchanged."""
    _square("transpose", m)
    n = m.static_shape[0]
    return type(m).of([m.value_t.of([_copy(m._c[j]._c[i]) for j in range(n)]) for i in range(n)])


def diag(x: Any) -> Any:
    """Return the diagonal of a matrix as a vector, or the matrix with a vector as its diagonal."""
    if isinstance(x, Nested) and len(x.static_shape) == 2:
        return x.value_t.of([_copy(_square("diag", x)._c[k]._c[k]) for k in range(x.static_shape[0])])
    n = len(x._c)
    kind = x.ns.matrix(n, x.dtype)
    zero = kind.value_t.value_t(0)
    return kind.of([kind.value_t.of([_copy(x._c[i] if i == j else zero) for j in range(n)]) for i in range(n)])


def _copy(x: Any) -> Any:
    return x.__copy__() if isinstance(x, ArrayBase) else x


def trace(m: Any) -> Any:
    """Return the sum of a matrix's diagonal."""
    _square("trace", m)
    total = m._c[0]._c[0]
    for k in range(1, m.static_shape[0]):
        total = total + m._c[k]._c[k]
    return total


def frob(m: Any) -> Any:
    """Return the sum of squares of all entries of a matrix."""
    total = dot(m._c[0], m._c[0])
    for r in m._c[1:]:
        total = total + dot(r, r)
    return total


def _minor(a: Any, b: Any, i: int, j: int) -> Any:
    """Return the determinant of columns i and j of two rows."""
    return madd(a[i], b[j], -(a[j] * b[i]))


def det(m: Any) -> Any:
    """Return the determinant of a matrix of 1 to 4 rows."""
    n = _square("det", m).static_shape[0]
    r = [row._c for row in m._c]
    if n == 1:
        return r[0][0]
    if n == 2:
        return _minor(r[0], r[1], 0, 1)
    if n == 3:
        return madd(
            r[0][0],
            _minor(r[1], r[2], 1, 2),
            madd(r[0][1], _minor(r[1], r[2], 2, 0), r[0][2] * _minor(r[1], r[2], 0, 1)),
        )
    upper, lower = _pairs(r[0], r[1]), _pairs(r[2], r[3])
    return _laplace(upper, lower)


# The column pairs of a 4 x 4 matrix, and the sign and complement of each in the expansion over two rows.
_COLUMNS = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
_SIGNS = (1, -1, 1, 1, -1, 1)


def _pairs(a: Any, b: Any) -> list[Any]:
    return [_minor(a, b, i, j) for i, j in _COLUMNS]


def _laplace(upper: list[Any], lower: list[Any]) -> Any:
    total = upper[0] * lower[5]
    for k in range(1, 6):
        total = madd(upper[k] if _SIGNS[k] > 0 else -upper[k], lower[5 - k], total)
    return total


def inverse(m: Any) -> Any:
    """Return the inverse of a matrix of 1 to 4 rows, from its adjugate; infinite or NaN if it has none."""
    n = _square("inverse", m).static_shape[0]
    r = [row._c for row in m._c]
    if n == 1:
        return type(m).of([m.value_t.of([1.0 / r[0][0]])])
    if n == 2:
        scale = 1.0 / _minor(r[0], r[1], 0, 1)
        entries = [[r[1][1] * scale, -r[0][1] * scale], [-r[1][0] * scale, r[0][0] * scale]]
    elif n == 3:
        adjugate = [
            [_minor(r[(j + 1) % 3], r[(j + 2) % 3], (i + 1) % 3, (i + 2) % 3) for j in range(3)] for i in range(3)
        ]
        scale = 1.0 / madd(r[0][0], adjugate[0][0], madd(r[0][1], adjugate[1][0], r[0][2] * adjugate[2][0]))
        entries = [[a * scale for a in line] for line in adjugate]
    elif n == 4:
        entries = _inverse4(r)
    else:
        raise TypeError(f"inverse(): matrices of 1 to 4 rows are supported, found {type(m).__name__}")
    return type(m).of([m.value_t.of(line) for line in entries])


def _inverse4(r: list[Any]) -> list[list[Any]]:
    """Return the entries of a 4 x 4 inverse: cofactors made of the 2 x 2 minors of the upper and the lower two rows."""
    upper, lower = _pairs(r[0], r[1]), _pairs(r[2], r[3])
    scale = 1.0 / _laplace(upper, lower)
    minors = {(i, j): k for k, (i, j) in enumerate(_COLUMNS)}
    entries = [[scale] * 4 for _ in range(4)]
    for row in range(4):
        other = r[row ^ 1]  # the row beside it among the upper or lower two
        pairs = lower if row < 2 else upper
        for column in range(4):
            a, b, c = (k for k in range(4) if k != column)
            cofactor = other[a] * pairs[minors[b, c]]
            cofactor = madd(-other[b], pairs[minors[a, c]], cofactor)
            cofactor = madd(other[c], pairs[minors[a, b]], cofactor)
            entries[column][row] = (cofactor if (row + column) % 2 == 0 else -cofactor) * scale
    return entries


def identity(dtype: Any, size: int = 1) -> Any:
    """Return the identity matrix of a matrix type, or ones of another type, for `size` elements."""
    if not dtype.is_matrix:
        return full(dtype, 1, size)
    entry = full(dtype.value_t.value_t, 1, size)
    return dtype(entry)


__all__ = [
    "abs_dot", "cross", "det", "diag", "dot", "frob", "identity", "inverse", "matmul", "norm", "normalize",
    "squared_norm", "trace", "transpose",
]  # fmt: skip
