"""The surfaces of a scene as tables: from what the accelerator found to a full surface interaction.

All triangles of all shapes lie in common tables, one record per triangle, so that one piece of code serves every mesh;
spheres and disks compute theirs. Tables are built by traced operations: gradients reach vertices and transforms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..jit.arrays import functions as f
from ..jit.arrays import tree
from ..jit.arrays.create import arange, zeros
from ..jit.arrays.linear import cross, dot, normalize
from ..jit.arrays.memops import gather
from ..jit.arrays.shape import concat, ravel
from ..jit.control import outside
from ..jit.errors import SceneError
from ..jit.instances import NONE, InstanceSet
from .accel.geometry import Triangles
from .interfaces.records import Frame, Preliminary, Ray, SurfaceInteraction, coordinate_system
from .shapes.common import TriangleData

RECORD = 16  # words per triangle: corner 0-2, edges 3-5 and 6-8, normal 9-11, dp_du 12-14


class Surfaces:
    """Tables of all shapes of a scene (a snapshot: built again when geometry changes)."""

    def __init__(self, shapes: list[Any], types: Any) -> None:
        self.types, self.shapes = types, shapes
        self._attributes: dict[str, tuple[Any, int]] = {}
        self.identities = _identities(shapes)
        self.has_normals = any(s.is_triangles and s.triangles().normals is not None for s in shapes)
        self.has_texcoords = False
        self.face_offset, counts = self._offsets()
        self.geometry: list[Any] = []
        records, texcoords, normals = [], [], []
        for shape in shapes:
            if shape.is_triangles:
                record, uv, normal, triangles = self._records(shape.triangles())
                records.append(record)
                texcoords.append(uv)
                normals.append(normal)
                self.geometry.append(triangles)
            else:
                self.geometry.append(shape.geometry())
        self.triangles = any(counts)
        if self.triangles:
            self.records = concat(records)
            self.texcoords = concat(texcoords)
            self.normals = concat([n for n in normals if n is not None]) if self.has_normals else None
        others = [s for s in shapes if not s.is_triangles]
        self.others = InstanceSet(others, types.ns) if others else None
        self.other_of = self._other_index() if others else None

    def is_current(self) -> bool:
        """Return whether the tables hold the shapes' present geometry, and no gradients."""
        tables = [*self.arrays(), *(t for t, _ in self._attributes.values())]
        if any(t._ad is not None for t in tables) or (self.others is not None and not self.others.is_current()):
            return False
        return self.identities == _identities(self.shapes)

    def arrays(self) -> list[Any]:
        """Return the tables of triangles."""
        return (
            [self.records, self.texcoords, *([self.normals] if self.normals is not None else [])]
            if self.triangles
            else []
        )

    def _offsets(self) -> tuple[Any, list[int]]:
        counts = []
        for shape in self.shapes:
            faces = shape.triangles().faces if shape.is_triangles else np.zeros((0, 3), np.uint32)
            counts.append(len(faces) if isinstance(faces, np.ndarray) else len(faces) // 3)
        offsets = np.concatenate([[0], np.cumsum(counts)[:-1]]) if counts else np.zeros(1)
        return self.types.UInt32([int(o) for o in offsets]), counts

    def _other_index(self) -> Any:
        index, number = [], 0
        for shape in self.shapes:
            index.append(NONE if shape.is_triangles else number)
            number += not shape.is_triangles
        return self.types.UInt32(index)

    def _records(self, data: TriangleData) -> tuple[Any, Any, Any, Triangles]:
        types = self.types
        count = len(data.faces) if isinstance(data.faces, np.ndarray) else len(data.faces) // 3
        faces = data.faces if not isinstance(data.faces, np.ndarray) else types.UInt32(data.faces.ravel())
        positions = ravel_points(data.positions)
        every = arange(types.UInt32, count)
        index = gather(types.Vector3u, faces, every)
        a, b, c = (gather(types.Point3f, positions, i) for i in index)
        e1, e2 = b - a, c - a
        sign = -1.0 if data.flip_normals else 1.0
        n = normalize(cross(e1, e2)) * sign
        uv = self._texcoords(data, index, count)
        dp_du = self._tangent(e1, e2, uv)
        pad = types.Float(0.0)
        record = _interleave([*a, *e1, *e2, *n, *dp_du, pad], count)
        normals = None
        if self.has_normals:
            corners = [n, n, n]
            if data.normals is not None:
                corners = [gather(types.Vector3f, data.normals, i) * sign for i in index]
            normals = _interleave([x for corner in corners for x in corner], count)
        vertices = positions.numpy().reshape(-1, 3).astype(np.float32)
        return (
            record,
            _interleave([x for corner in uv for x in corner], count),
            normals,
            Triangles(vertices, faces.numpy().reshape(-1, 3)),
        )

    def _texcoords(self, data: TriangleData, index: Any, count: int) -> list[Any]:
        types = self.types
        if data.texcoords is None:
            return [types.Point2f(x, y) for x, y in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))]
        self.has_texcoords = True
        flat = (
            data.texcoords
            if not isinstance(data.texcoords, np.ndarray)
            else types.Float(np.ascontiguousarray(data.texcoords, types.dtype.numpy).ravel())
        )
        return [gather(types.Point2f, flat, i) for i in index]

    def _tangent(self, e1: Any, e2: Any, uv: list[Any]) -> Any:
        """Return dp/du of every triangle; e1 where the texture coordinates are degenerate."""
        d1, d2 = uv[1] - uv[0], uv[2] - uv[0]
        determinant = d1.x * d2.y - d1.y * d2.x
        valid = determinant != 0.0
        inverse = f.select(valid, 1.0 / f.select(valid, determinant, 1.0), 0.0)
        return f.select(valid, (e1 * d2.y - e2 * d1.y) * inverse, e1)

    def interaction(self, ray: Ray, pi: Preliminary, exact: bool) -> SurfaceInteraction:
        """Return the surface point that a ray hit; `exact` computes the hit again (gradients, double precision)."""
        types = self.types
        if not self.shapes:
            parts = self._nowhere()
        elif self.others is None:
            parts = self._triangle_point(ray, pi, pi.valid, exact)
        elif not self.triangles:
            parts = self._other_point(ray, pi, pi.valid)
        else:
            parts = self._mixed_point(ray, pi, exact)
        t, p, n, uv, dp_du, sh_n, barycentric = parts
        s = normalize(dp_du - sh_n * dot(sh_n, dp_du))
        degenerate = ~(dot(s, s) > 0.0)
        other_s, _ = coordinate_system(sh_n)
        s = f.select(degenerate, types.Vector3f(other_s), types.Vector3f(s))
        frame = Frame(s, types.Vector3f(cross(sh_n, s)), types.Normal3f(sh_n))
        wi = f.select(pi.valid, frame.to_local(-ray.d), -ray.d)
        t = f.select(pi.valid, t, float("inf"))
        return SurfaceInteraction(
            t,
            types.Point3f(p),
            types.Normal3f(n),
            uv,
            dp_du,
            frame,
            types.Vector3f(wi),
            pi.prim,
            pi.shape,
            pi.valid,
            barycentric,
            self,
        )

    def _nowhere(self) -> tuple[Any, ...]:
        """Return what stands for a hit in a scene without shapes."""
        types = self.types
        n = types.Vector3f(0.0, 0.0, 1.0)
        uv = types.Point2f(0.0)
        return types.Float(0.0), types.Vector3f(0.0), n, uv, types.Vector3f(1.0, 0.0, 0.0), n, uv

    def _mixed_point(self, ray: Ray, pi: Preliminary, exact: bool) -> Any:
        from ..jit.control import choose

        other = gather(self.types.UInt32, self.other_of, pi.shape, pi.valid)
        is_other = pi.valid & (other != NONE)
        masks = [pi.valid & ~is_other, is_other]
        calls = [lambda: self._triangle_point(ray, pi, masks[0], exact), lambda: self._other_point(ray, pi, masks[1])]
        return choose(masks, calls, (), None, [])

    def tangent_v(self, si: SurfaceInteraction) -> Any:
        """Return dp/dv at surface points."""
        types = self.types
        if self.others is None:
            return self._triangle_tangent_v(si, si.valid)
        other = gather(types.UInt32, self.other_of, si.shape, si.valid)
        others = self.others.call(other, lambda shape, mask: shape.tangent_v(si.uv, mask), active=si.valid)
        if not self.triangles:
            return others
        mine = si.valid & (other == NONE)
        return types.Vector3f(f.select(mine, self._triangle_tangent_v(si, mine), others))

    def _triangle_tangent_v(self, si: SurfaceInteraction, active: Any) -> Any:
        types = self.types
        face = si.prim + gather(types.UInt32, self.face_offset, si.shape, active)
        base, uv_base = face * RECORD, face * 6

        def numbers(table: Any, at: Any, count: int) -> list[Any]:
            return [gather(types.Float, table, at + k, active) for k in range(count)]

        e1, e2 = (types.Vector3f(*numbers(self.records, base + at, 3)) for at in (3, 6))
        uv = [types.Point2f(*numbers(self.texcoords, uv_base + 2 * c, 2)) for c in range(3)]
        d1, d2 = uv[1] - uv[0], uv[2] - uv[0]
        determinant = d1.x * d2.y - d1.y * d2.x
        valid = determinant != 0.0
        inverse = 1.0 / f.select(valid, determinant, 1.0)
        return types.Vector3f(f.select(valid, (e2 * d1.x - e1 * d2.x) * inverse, e2))

    def _other_point(self, ray: Ray, pi: Preliminary, active: Any) -> Any:
        types, others = self.types, self.others
        assert others is not None
        other = gather(types.UInt32, self.other_of, pi.shape, active)
        parts = others.call(other, lambda shape, mask: shape.surface_point(ray, pi, mask), active=active)
        return (*parts, types.Point2f(0.0))

    def attribute(self, name: str) -> tuple[Any, int]:
        """Return the table of a mesh attribute, one record of three corners per triangle, and its number of channels.

        Meshes without the attribute have zeros. Raises SceneError if no mesh has it, or if their channels differ.
        """
        if name not in self._attributes:
            with outside():
                self._attributes[name] = self._attribute_table(name)
        return self._attributes[name]

    def _attribute_table(self, name: str) -> tuple[Any, int]:
        types = self.types
        meshes = [s for s in self.shapes if s.is_triangles]
        found = {self._channels(s, name) for s in meshes if name in getattr(s, "attributes", {})}
        if len(found) != 1:
            raise SceneError(
                f"mesh attribute '{name}': "
                + ("no mesh has it" if not found else f"meshes disagree on its channels: {sorted(found)}")
            )
        channels = found.pop()
        records = []
        for shape in meshes:
            data = shape.triangles()
            count = len(data.faces) if isinstance(data.faces, np.ndarray) else len(data.faces) // 3
            if name not in getattr(shape, "attributes", {}):
                records.append(zeros(types.Float, count * 3 * channels))
                continue
            values, every = shape.attributes[name], arange(types.UInt32, count)
            corners = [every] * 3 if name.startswith("face_") else list(gather(types.Vector3u, data.faces, every))
            columns = [gather(types.Float, values, c * channels + k) for c in corners for k in range(channels)]
            records.append(_interleave(columns, count))
        return concat(records), channels

    @staticmethod
    def _channels(shape: Any, name: str) -> int:
        elements = shape.face_count() if name.startswith("face_") else shape.vertex_count()
        return len(shape.attributes[name]) // max(1, elements)

    def _triangle_point(self, ray: Ray, pi: Preliminary, active: Any, exact: bool) -> Any:
        types = self.types
        offset = gather(types.UInt32, self.face_offset, pi.shape, active)
        face = pi.prim + offset
        base = face * RECORD

        def vector(at: int) -> Any:
            return types.Vector3f(*[gather(types.Float, self.records, base + (at + k), active) for k in range(3)])

        corner, e1, e2, n, dp_du = (vector(at) for at in (0, 3, 6, 9, 12))
        t, b1, b2 = types.Float(pi.t), types.Float(pi.u), types.Float(pi.v)
        if exact:
            t, b1, b2 = _intersect(ray, corner, e1, e2, types)
        p = corner + e1 * b1 + e2 * b2
        uv_base = face * 6
        uv0, uv1, uv2 = (
            types.Point2f(*[gather(types.Float, self.texcoords, uv_base + (2 * c + k), active) for k in range(2)])
            for c in range(3)
        )
        b0 = 1.0 - b1 - b2
        uv = uv0 * b0 + uv1 * b1 + uv2 * b2
        sh_n = n
        if self.normals is not None:
            nb = face * 9
            corners = [
                types.Vector3f(*[gather(types.Float, self.normals, nb + (3 * c + k), active) for k in range(3)])
                for c in range(3)
            ]
            sh_n = normalize(corners[0] * b0 + corners[1] * b1 + corners[2] * b2)
        return t, p, n, uv, dp_du, sh_n, types.Point2f(b1, b2)


_GEOMETRY = ("to_world", "vertex_positions", "faces", "vertex_normals", "vertex_texcoords", "attributes")


def _identities(shapes: list[Any]) -> list[tuple[int, int]]:
    """Return what changes when an array that geometry depends on is rebound or gets a gradient."""
    arrays = [getattr(shape, name, None) for shape in shapes for name in _GEOMETRY]
    return [(x._n.index, x.index_ad) for x in tree.arrays(arrays)]


def _intersect(ray: Ray, corner: Any, e1: Any, e2: Any, types: Any) -> tuple[Any, Any, Any]:
    """Return distance and barycentric coordinates of a hit (Moeller and Trumbore 1997)."""
    p = cross(ray.d, e2)
    inverse = f.rcp(dot(e1, p))
    offset = types.Vector3f(ray.o) - corner
    b1 = dot(offset, p) * inverse
    q = cross(offset, e1)
    return dot(e2, q) * inverse, b1, dot(ray.d, q) * inverse


def ravel_points(points: Any) -> Any:
    """Return a flat array x0 y0 z0 x1 ... of points given as such or as a list."""
    if isinstance(points, list):
        return concat([x for p in points for x in p])
    return points


def _interleave(columns: list[Any], count: int) -> Any:
    """Return a flat array of `count` records with these columns."""
    kind = type(columns[0])
    wide = kind.ns.nested((len(columns),), kind.dtype)
    filled = [c if len(c) == count else c + kind.wrap(_zeros(kind, count)) for c in columns]
    return ravel(wide.of(filled))


def _zeros(kind: Any, count: int) -> Any:
    from ..jit.trace import literal

    return literal(kind.dtype, 0.0, count)
