"""Affine and projective transforms of single points in double precision, for cameras and objects at load time."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["ScalarTransform3f", "ScalarTransform4f"]

Array = NDArray[np.float64]
S = TypeVar("S", bound="_Transform")


def _vector(value: ArrayLike, size: int, what: str) -> Array:
    """Return `value` as `size` doubles; one number is repeated."""
    try:
        array = np.asarray(value, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise TypeError(f"{what}: expected {size} numbers, found {type(value).__name__}") from None
    if value is None:
        raise TypeError(f"{what}: expected {size} numbers, found None")
    if array.size == 1:
        array = np.repeat(array, size)
    if array.size != size:
        raise ValueError(f"{what}: expected {size} numbers, got {array.size}")
    return array


class _Transform:
    """A square matrix acting on homogeneous column vectors; chained calls multiply from the right."""

    __slots__ = ("_matrix",)
    size = 0

    def __init__(self, matrix: Any = None) -> None:
        source = getattr(matrix, "matrix", matrix)
        if source is None:
            array: Array = np.eye(self.size)
        else:
            try:
                array = np.array(source, dtype=np.float64)
            except (TypeError, ValueError):
                raise TypeError(f"{type(self).__name__}: a matrix is needed, found {type(matrix).__name__}") from None
            if array.ndim == 3 and array.shape[2] == 1:
                array = array[:, :, 0]
        if array.shape != (self.size, self.size):
            expected = f"({self.size}, {self.size})"
            raise ValueError(f"{type(self).__name__}: expected a matrix of shape {expected}, got {array.shape}")
        array.setflags(write=False)
        self._matrix = array

    @property
    def matrix(self) -> Array:
        """The matrix, row major, read-only."""
        return self._matrix

    def inverse(self: S) -> S:
        """Return the inverse; a singular matrix raises ValueError."""
        try:
            return type(self)(np.linalg.inv(self._matrix))
        except np.linalg.LinAlgError:
            raise ValueError(f"{type(self).__name__}: the matrix has no inverse:\n{self._matrix}") from None

    def inverse_transpose(self: S) -> S:
        """Return the transpose of the inverse."""
        return type(self)(self.inverse().matrix.T)

    def translation(self) -> Array:
        """Return the last column without its homogeneous part."""
        return self._matrix[:-1, -1].copy()

    def has_scale(self) -> bool:
        """Return True unless the linear part keeps lengths and angles to 1e-3."""
        linear = self._matrix[:-1, :-1]
        return bool(np.any(np.abs(linear.T @ linear - np.eye(self.size - 1)) > 1e-3))

    def transform_point(self, point: ArrayLike) -> Array:
        """Return points (..., n) moved by the transform, divided by their homogeneous part."""
        p = self._rows(point, "transform_point")
        m = self._matrix
        moved = p @ m[:-1, :-1].T + m[:-1, -1]
        weight = p @ m[-1, :-1] + m[-1, -1]
        return np.asarray(moved / weight[..., None], dtype=np.float64)

    def transform_affine(self, point: ArrayLike) -> Array:
        """Return points (..., n) moved by the transform, without the homogeneous division."""
        return np.asarray(
            self._rows(point, "transform_affine") @ self._matrix[:-1, :-1].T + self._matrix[:-1, -1], dtype=np.float64
        )

    def transform_vector(self, vector: ArrayLike) -> Array:
        """Return directions (..., n) under the linear part."""
        return np.asarray(self._rows(vector, "transform_vector") @ self._matrix[:-1, :-1].T, dtype=np.float64)

    def transform_normal(self, normal: ArrayLike) -> Array:
        """Return normals (..., n) under the inverse transpose of the linear part, not normalised."""
        return np.asarray(self._rows(normal, "transform_normal") @ np.linalg.inv(self._matrix[:-1, :-1]))

    def _rows(self, value: ArrayLike, what: str) -> Array:
        array = np.asarray(value, dtype=np.float64)
        n = self.size - 1
        if array.ndim == 0 or array.shape[-1] != n:
            raise ValueError(f"{what}: the last axis must have length {n}, got shape {array.shape}")
        return array

    def __matmul__(self, other: Any) -> Any:
        """Return the product with another transform, or points (..., n) moved by this one."""
        if isinstance(other, type(self)):
            return type(self)(self._matrix @ other._matrix)
        if isinstance(other, _Transform):
            return NotImplemented
        return self.transform_point(other)

    def _then(self: S, matrix: Array) -> S:
        return type(self)(self._matrix @ matrix)

    def _embed(self, linear: Array, offset: Array | None = None) -> Array:
        matrix = np.eye(self.size)
        matrix[:-1, :-1] = linear
        if offset is not None:
            matrix[:-1, -1] = offset
        return matrix

    def translate(self: S, offset: ArrayLike) -> S:
        """Return self @ translation by `offset`."""
        n = self.size - 1
        return self._then(self._embed(np.eye(n), _vector(offset, n, "translate")))

    def scale(self: S, factor: ArrayLike) -> S:
        """Return self @ scaling by one factor or one per axis."""
        return self._then(self._embed(np.diag(_vector(factor, self.size - 1, "scale"))))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and bool(np.array_equal(self._matrix, other._matrix))

    def __hash__(self) -> int:
        return hash((type(self).__name__, (self._matrix + 0.0).tobytes()))

    def __repr__(self) -> str:
        rows = ",\n ".join("[" + ", ".join(f"{x:.6g}" for x in row) + "]" for row in self._matrix)
        return f"{type(self).__name__}([{rows}])"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (np.array(self._matrix),)


class ScalarTransform3f(_Transform):
    """A transform of the plane, for texture coordinates."""

    __slots__ = ()
    size = 3

    def rotate(self, angle: float) -> ScalarTransform3f:
        """Return self @ rotation by `angle` degrees, counterclockwise."""
        c, s = np.cos(np.radians(float(angle))), np.sin(np.radians(float(angle)))
        return self._then(self._embed(np.array([[c, -s], [s, c]])))


class ScalarTransform4f(_Transform):
    """A transform of space: `ScalarTransform4f().translate([0, 0, 1]).scale(2)` scales first, then moves."""

    __slots__ = ()
    size = 4

    def rotate(self, axis: ArrayLike, angle: float) -> ScalarTransform4f:
        """Return self @ rotation about `axis` (any length but 0) by `angle` degrees, right-handed."""
        a = _vector(axis, 3, "rotate")
        length = float(np.linalg.norm(a))
        if not length > 0.0:
            raise ValueError("rotate: the rotation axis cannot be zero")
        x, y, z = a / length
        cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        theta = np.radians(float(angle))
        # Rodrigues' formula.
        linear = np.eye(3) + np.sin(theta) * cross + (1.0 - np.cos(theta)) * (cross @ cross)
        return self._then(self._embed(linear))

    def look_at(self, origin: ArrayLike, target: ArrayLike, up: ArrayLike | None = None) -> ScalarTransform4f:
        """Return self @ frame at `origin` with +z towards `target` and +x to the left of the picture.

        Without `up`, or where it is zero or parallel to the direction, the frame about +z is arbitrary.
        """
        o, t = _vector(origin, 3, "look_at origin"), _vector(target, 3, "look_at target")
        direction = t - o
        length = float(np.linalg.norm(direction))
        if not length > 0.0:
            raise ValueError(f"look_at: origin and target are the same point {o.tolist()}")
        direction = direction / length
        guide = np.zeros(3) if up is None else _vector(up, 3, "look_at up")
        left = np.cross(guide, direction)
        if float(np.linalg.norm(left)) <= 1e-12 * max(float(np.linalg.norm(guide)), 1e-300):
            left = np.cross(_perpendicular(direction), direction)
        left = left / np.linalg.norm(left)
        above = np.cross(direction, left)
        return self._then(self._embed(np.stack([left, above, direction], axis=1), o))

    def perspective(self, fov: float, near: float, far: float) -> ScalarTransform4f:
        """Return self @ projection along +z with a full opening of `fov` degrees; depth maps to [0, 1]."""
        cot = 1.0 / np.tan(np.radians(float(fov)) / 2.0)
        depth = 1.0 / (far - near)
        matrix = np.diag([cot, cot, far * depth, 0.0])
        matrix[2, 3] = -near * far * depth
        matrix[3, 2] = 1.0
        return self._then(matrix)

    def orthographic(self, near: float, far: float) -> ScalarTransform4f:
        """Return self @ parallel projection along +z; depth maps to [0, 1]."""
        return self.scale([1.0, 1.0, 1.0 / (far - near)]).translate([0.0, 0.0, -near])

    def to_frame(self, s: ArrayLike, t: ArrayLike, n: ArrayLike) -> ScalarTransform4f:
        """Return self @ change from world coordinates to the orthonormal frame (s, t, n)."""
        rows = [_vector(v, 3, "to_frame") for v in (s, t, n)]
        return self._then(self._embed(np.stack(rows, axis=0)))

    def from_frame(self, s: ArrayLike, t: ArrayLike, n: ArrayLike) -> ScalarTransform4f:
        """Return self @ change from the frame (s, t, n) to world coordinates."""
        rows = [_vector(v, 3, "from_frame") for v in (s, t, n)]
        return self._then(self._embed(np.stack(rows, axis=1)))

    def extract(self) -> ScalarTransform3f:
        """Return the transform of the xy plane: the third row and column are dropped."""
        keep = [0, 1, 3]
        return ScalarTransform3f(self._matrix[np.ix_(keep, keep)])

    @classmethod
    def from_plane(cls, transform: ScalarTransform3f) -> ScalarTransform4f:
        """Return the transform of space that acts on xy like `transform` and keeps z."""
        matrix = np.eye(4)
        matrix[np.ix_([0, 1, 3], [0, 1, 3])] = transform.matrix
        return cls(matrix)


def _perpendicular(n: Array) -> Array:
    """Return a unit vector perpendicular to the unit vector `n` (Duff et al. 2017, the first of their two)."""
    sign = float(np.copysign(1.0, n[2]))
    a = -1.0 / (sign + n[2])
    return np.array([1.0 + sign * n[0] * n[0] * a, sign * n[0] * n[1] * a, -sign * n[0]])
