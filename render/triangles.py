"""All triangles of a scene in common tables: one record per triangle, made by one kernel for all shapes.

Differentiable in positions, normals and texture coordinates of every shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..jit.arrays import functions as f
from ..jit.arrays.create import arange, zeros
from ..jit.arrays.linear import cross, normalize
from ..jit.arrays.memops import gather, scatter
from ..jit.arrays.shape import concat
from ..jit.dtypes import UInt32 as _UINT32
from ..jit.runtime.evaluate import evaluate
from .accel.geometry import Triangles

RECORD = 16  # words per triangle: corner 0-2, edges 3-5 and 6-8, normal 9-11, dp_du 12-14


class TriangleTables:
    """Records, texture coordinates (6 words) and shading normals (9 words) of the triangles of `shapes`, in order.

    `first` is the number of each shape's first triangle; `geometry` what the accelerator needs.
    """

    def __init__(self, shapes: list[Any], types: Any) -> None:
        self.types = types
        data = [shape.triangles() for shape in shapes]
        self.positions = [ravel_points(d.positions) for d in data]
        faces = [host_faces(d.faces) for d in data]
        vertices = [len(p) // 3 for p in self.positions]
        counts = [len(x) for x in faces]
        self.first = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(int) if counts else np.zeros(0, int)
        self.count = sum(counts)
        self.geometry = [
            Triangles(p.numpy().reshape(-1, 3).astype(np.float32), x)
            for p, x in zip(self.positions, faces, strict=True)
        ]
        self.has_normals = any(d.normals is not None for d in data)
        self.has_texcoords = any(d.texcoords is not None for d in data)
        self.records = self.texcoords = self.normals = types.Float()
        if self.count:
            offsets = np.concatenate([[0], np.cumsum(vertices)[:-1]]).astype(np.uint32)
            joined = np.concatenate([x + o for x, o in zip(faces, offsets, strict=True)])
            self._build(data, vertices, counts, types.UInt32(joined.ravel().astype(np.uint32)))

    def arrays(self) -> list[Any]:
        """Return the tables."""
        return [self.records, self.texcoords, *([self.normals] if self.has_normals else [])] if self.count else []

    def _build(self, data: list[Any], vertices: list[int], counts: list[int], faces: Any) -> None:
        types = self.types
        every = arange(types.UInt32, self.count)
        index = gather(types.Vector3u, faces, every)
        positions = concat(self.positions)
        a, b, c = (gather(types.Point3f, positions, i) for i in index)
        e1, e2 = b - a, c - a
        n = normalize(cross(e1, e2))
        if any(d.flip_normals for d in data):
            n = n * self._per_face([-1.0 if d.flip_normals else 1.0 for d in data], counts, types.Float)
        uv = self._corners_uv(data, vertices, counts, index)
        self.records = interleave([*a, *e1, *e2, *n, *_tangent(e1, e2, uv)], RECORD, self.count)
        self.texcoords = interleave([x for corner in uv for x in corner], 6, self.count)
        if self.has_normals:
            corners = self._corner_normals(data, vertices, counts, index, n)
            self.normals = interleave([x for corner in corners for x in corner], 9, self.count)
        evaluate([table._n for table in self.arrays()])  # together: one kernel

    @staticmethod
    def _per_face(values: list[Any], counts: list[int], kind: Any) -> Any:
        """Return one value per shape, repeated for its triangles (a single value if all agree)."""
        if len(set(values)) == 1:
            return kind(values[0])
        return kind(np.repeat(np.array(values, kind.dtype.numpy), counts))

    def _joined(self, arrays: list[Any], width: int, vertices: list[int]) -> Any:
        """Return the shapes' arrays of `width` numbers per vertex one after the other, zeros for those without."""
        types, parts = self.types, []
        for values, count in zip(arrays, vertices, strict=True):
            if values is None:
                parts.append(zeros(types.Float, width * count))
            elif isinstance(values, np.ndarray):
                parts.append(types.Float(np.ascontiguousarray(values, types.dtype.numpy).ravel()))
            else:
                parts.append(values)
        return concat(parts)

    def _corners_uv(self, data: list[Any], vertices: list[int], counts: list[int], index: Any) -> list[Any]:
        """Return the texture coordinates of the corners; without any those of the barycentric coordinates."""
        types = self.types
        own = [types.Point2f(x, y) for x, y in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))]
        if not self.has_texcoords:
            return own
        flat = self._joined([d.texcoords for d in data], 2, vertices)
        given = [gather(types.Point2f, flat, i) for i in index]
        present = self._per_face([d.texcoords is not None for d in data], counts, types.Bool)
        return [f.select(present, g, o) for g, o in zip(given, own, strict=True)]

    def _corner_normals(self, data: list[Any], vertices: list[int], counts: list[int], index: Any, n: Any) -> list[Any]:
        """Return the shading normals of the corners; without any the triangle's own."""
        types = self.types
        flat = self._joined([d.normals for d in data], 3, vertices)
        given = [gather(types.Vector3f, flat, i) for i in index]
        if any(d.flip_normals for d in data):
            sign = self._per_face([-1.0 if d.flip_normals else 1.0 for d in data], counts, types.Float)
            given = [g * sign for g in given]
        present = self._per_face([d.normals is not None for d in data], counts, types.Bool)
        return [f.select(present, g, types.Vector3f(n)) for g in given]


def _tangent(e1: Any, e2: Any, uv: list[Any]) -> Any:
    """Return dp/du of every triangle; e1 where the texture coordinates are degenerate."""
    d1, d2 = uv[1] - uv[0], uv[2] - uv[0]
    determinant = d1.x * d2.y - d1.y * d2.x
    valid = determinant != 0.0
    inverse = f.select(valid, 1.0 / f.select(valid, determinant, 1.0), 0.0)
    return f.select(valid, (e1 * d2.y - e2 * d1.y) * inverse, e1)


def ravel_points(points: Any) -> Any:
    """Return a flat array x0 y0 z0 x1 ... of points given as such or as a list."""
    if isinstance(points, list):
        return concat([x for p in points for x in p])
    return points


def host_faces(faces: Any) -> np.ndarray:
    """Return triangles as a NumPy array (F, 3)."""
    return faces if isinstance(faces, np.ndarray) else faces.numpy().reshape(-1, 3)


def interleave(columns: list[Any], stride: int, count: int) -> Any:
    """Return a flat array of `count` records of `stride` words that start with these columns; one kernel."""
    kind = type(columns[0])
    target = zeros(kind, count * stride)
    base = arange(kind.ns.flat(_UINT32), count) * stride
    for k, column in enumerate(columns):
        scatter(target, column, base + k, mode="permute")
    return target
