"""Transforms whose entries are arrays: as many matrices as there are lanes, with gradients."""

from __future__ import annotations

import math
from typing import Any

from luxgrad.jit.arrays import functions as f
from luxgrad.jit.arrays import linear
from luxgrad.jit.arrays.base import ArrayBase
from luxgrad.render.interfaces import records
from luxgrad.render.variants import Types

__all__ = ["ArrayTransform", "make"]


def make(name: str, types: Types) -> Any:
    """Return the transform type of a variant for space ("...4f") or the plane ("...3f")."""
    size = 4 if name.endswith("4f") else 3
    matrix = types.Matrix4f if size == 4 else types.Matrix3f
    members = {"types": types, "size": size, "matrix_type": matrix, "__module__": "luxgrad.mi", "__slots__": ()}
    kind = f"Transform{size}f"
    return type(kind, (_Space if size == 4 else _Plane,), members | {"__doc__": ArrayTransform.__doc__})


class ArrayTransform:
    """A transform made of arrays; chained calls multiply from the right: the last one acts first.

    `t @ p` moves points (Point3f), vectors (without translation), normals (by the inverse transpose) and rays.
    Differentiable in everything it was made from.
    """

    __slots__ = ("matrix", "projective")
    types: Types
    size: int
    matrix_type: Any

    def __init__(self, matrix: Any = None) -> None:
        source = getattr(matrix, "matrix", matrix)
        self.projective = bool(getattr(matrix, "projective", False))
        if source is None:
            self.matrix = linear.identity(self.matrix_type)
        elif isinstance(source, ArrayBase):
            self.matrix = self.matrix_type(source)
        else:
            import numpy as np

            array = np.asarray(source, np.float64)
            rows = array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array
            if rows.ndim == 2 and rows.shape == (self.size, self.size):
                self.projective = bool(np.any(rows[-1, :-1] != 0) or rows[-1, -1] != 1)
            self.matrix = self.matrix_type(rows if rows.ndim == 3 else rows.tolist())

    @classmethod
    def _of(cls, matrix: Any, projective: bool) -> Any:
        made = cls()
        made.matrix, made.projective = matrix, projective
        return made

    def _then(self, linear_part: list[list[Any]], offset: list[Any] | None = None, projective: bool = False) -> Any:
        n = self.size - 1
        rows = [[*linear_part[i], offset[i] if offset else 0.0] for i in range(n)]
        matrix = self.matrix_type([*rows, [0.0] * n + [1.0]])
        return self._of(self.matrix @ matrix, self.projective or projective)

    def _components(self, value: Any, what: str) -> list[Any]:
        n = self.size - 1
        if isinstance(value, (int, float)) or (isinstance(value, ArrayBase) and value.depth == 1 and len(value) == 1):
            return [value] * n
        parts = list(value)
        if len(parts) != n:
            raise ValueError(f"{what}: expected {n} components, found {len(parts)}")
        return parts

    def translate(self, offset: Any) -> Any:
        """Return self @ translation by `offset`."""
        n = self.size - 1
        unit = [[float(i == j) for j in range(n)] for i in range(n)]
        return self._then(unit, self._components(offset, "translate"))

    def scale(self, factor: Any) -> Any:
        """Return self @ scaling by one factor or one per axis."""
        factors = self._components(factor, "scale")
        return self._then([[k if i == j else 0.0 for j in range(self.size - 1)] for i, k in enumerate(factors)])

    def inverse(self) -> Any:
        """Return the inverse."""
        return self._of(linear.inverse(self.matrix), self.projective)

    @property
    def inverse_transpose(self) -> Any:
        """The transpose of the inverse matrix."""
        return linear.transpose(linear.inverse(self.matrix))

    def translation(self) -> Any:
        """Return the last column without its homogeneous part."""
        n = self.size - 1
        kind = self.types.Vector3f if n == 3 else self.types.Vector2f
        return kind(*(self.matrix[i][n] for i in range(n)))

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, ArrayTransform) or hasattr(other, "matrix"):
            other = other if isinstance(other, ArrayTransform) else type(self)(other)
            return self._of(self.matrix @ other.matrix, self.projective or other.projective)
        if isinstance(other, records.Ray):
            kind = type(other)
            return kind(self @ self.types.Point3f(other.o), self @ self.types.Vector3f(other.d), other.maxt, other.time)
        if not isinstance(other, ArrayBase):
            other = (self.types.Point3f if self.size == 4 else self.types.Point2f)(other)
        kind_name = type(other).__name__
        if kind_name.startswith("Normal"):
            return type(other)(*self._rows(linear.transpose(linear.inverse(self.matrix)), other, 0.0))
        if kind_name.startswith("Vector"):
            return type(other)(*self._rows(self.matrix, other, 0.0))
        moved = self._rows(self.matrix, other, 1.0)
        if self.projective:
            last = self.matrix[self.size - 1]
            weight = self._row(last, other, 1.0)
            moved = [x / weight for x in moved]
        return type(other)(*moved)

    def transform_affine(self, other: Any) -> Any:
        """Return self @ other, points without the homogeneous division."""
        return self._of(self.matrix, False) @ other

    def _rows(self, matrix: Any, value: Any, weight: float) -> list[Any]:
        return [self._row(matrix[i], value, weight) for i in range(self.size - 1)]

    def _row(self, row: Any, value: Any, weight: float) -> Any:
        n = self.size - 1
        total = row[0] * value[0]
        for j in range(1, n):
            total = f.fma(row[j], value[j], total)
        return total + row[n] if weight else total

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.matrix!r})"


class _Plane(ArrayTransform):
    """Transforms of the plane."""

    __slots__ = ()

    def rotate(self, angle: Any) -> Any:
        """Return self @ rotation by `angle` degrees, counterclockwise."""
        s, c = _sincos_degrees(angle, self.types)
        return self._then([[c, -s], [s, c]])


class _Space(ArrayTransform):
    """Transforms of space."""

    __slots__ = ()

    def rotate(self, axis: Any, angle: Any) -> Any:
        """Return self @ rotation about `axis` by `angle` degrees, right-handed."""
        axis = linear.normalize(self.types.Vector3f(axis))
        x, y, z = axis.x, axis.y, axis.z
        s, c = _sincos_degrees(angle, self.types)
        k = 1.0 - c
        return self._then([
            [c + x * x * k, x * y * k - z * s, x * z * k + y * s],
            [y * x * k + z * s, c + y * y * k, y * z * k - x * s],
            [z * x * k - y * s, z * y * k + x * s, c + z * z * k],
        ])  # fmt: skip

    def look_at(self, origin: Any, target: Any, up: Any) -> Any:
        """Return self @ frame at `origin` with +z towards `target` and +x to the left of the picture."""
        point = self.types.Vector3f
        o, direction = point(origin), linear.normalize(point(target) - point(origin))
        left = linear.normalize(linear.cross(point(up), direction))
        above = linear.cross(direction, left)
        return self._then([[left[i], above[i], direction[i]] for i in range(3)], [o.x, o.y, o.z])

    def perspective(self, fov: Any, near: float, far: float) -> Any:
        """Return self @ projection along +z with a full opening of `fov` degrees; depth maps to [0, 1]."""
        s, c = _sincos_degrees(fov * 0.5 if isinstance(fov, ArrayBase) else float(fov) * 0.5, self.types)
        cot, depth = c / s, 1.0 / (far - near)
        rows = [[cot, 0, 0, 0], [0, cot, 0, 0], [0, 0, far * depth, -near * far * depth], [0, 0, 1, 0]]
        return self._of(self.matrix @ self.matrix_type(rows), True)

    def orthographic(self, near: float, far: float) -> Any:
        """Return self @ parallel projection along +z; depth maps to [0, 1]."""
        return self.scale([1.0, 1.0, 1.0 / (far - near)]).translate([0.0, 0.0, -near])

    def to_frame(self, frame: Any) -> Any:
        """Return self @ change from world coordinates to a frame."""
        return self._then([[v[i] for i in range(3)] for v in (frame.s, frame.t, frame.n)])

    def from_frame(self, frame: Any) -> Any:
        """Return self @ change from a frame to world coordinates."""
        return self._then([[v[i] for v in (frame.s, frame.t, frame.n)] for i in range(3)])

    def extract(self) -> Any:
        """Return the transform of the xy plane: the third row and column are dropped."""
        plane = make("Transform3f", self.types)
        keep = (0, 1, 3)
        return plane._of(plane.matrix_type([[self.matrix[i][j] for j in keep] for i in keep]), self.projective)


def _sincos_degrees(angle: Any, types: Types) -> tuple[Any, Any]:
    if isinstance(angle, ArrayBase):
        radians = types.Float(angle) * (math.pi / 180.0)
        return f.sin(radians), f.cos(radians)
    return math.sin(math.radians(angle)), math.cos(math.radians(angle))
