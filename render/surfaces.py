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
from ..jit.arrays.shape import concat
from ..jit.control import outside
from ..jit.errors import SceneError
from ..jit.instances import NONE, InstanceSet
from .interfaces.records import Frame, Preliminary, Ray, SurfaceInteraction, coordinate_system
from .triangles import RECORD, TriangleTables, interleave


class Surfaces:
    """Tables of all shapes of a scene (a snapshot: built again when geometry changes)."""

    frozen_skip = ("identities",)

    def __init__(self, shapes: list[Any], types: Any) -> None:
        self.types, self.shapes = types, shapes
        self._attributes: dict[str, tuple[Any, int]] = {}
        self.identities = _identities(shapes)
        flat = [shape for shape in shapes if shape.is_triangles]
        self.tables = TriangleTables(flat, types)
        self.triangles = self.tables.count > 0
        numbers, geometry = iter(self.tables.first), iter(self.tables.geometry)
        first = [int(next(numbers)) if shape.is_triangles else 0 for shape in shapes]
        self.face_offset = types.UInt32(first or [0])
        self.geometry: list[Any] = [next(geometry) if s.is_triangles else s.geometry() for s in shapes]
        others = [s for s in shapes if not s.is_triangles]
        self.others = InstanceSet(others, types.ns) if others else None
        self.other_of = self._other_index() if others else None

    def is_current(self) -> bool:
        """Return whether the tables hold the shapes' present geometry, and no gradients."""
        tables = [*self.arrays(), *(t for t, _ in self._attributes.values())]
        if any(t._ad is not None for t in tables) or (self.others is not None and not self.others.is_current()):
            return False
        return self.identities == _identities(self.shapes)

    frozen_token = is_current

    def frozen_restore(self) -> None:
        """Count as out of date: what the tables were made of is not known any more."""
        self.identities = []

    def sets(self) -> list[InstanceSet]:
        """Return the shapes that are no triangles, as sets to call."""
        return [] if self.others is None else [self.others]

    def arrays(self) -> list[Any]:
        """Return the tables of triangles."""
        return self.tables.arrays()

    def _other_index(self) -> Any:
        index, number = [], 0
        for shape in self.shapes:
            index.append(NONE if shape.is_triangles else number)
            number += not shape.is_triangles
        return self.types.UInt32(index)

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

        e1, e2 = (types.Vector3f(*numbers(self.tables.records, base + at, 3)) for at in (3, 6))
        uv = [types.Point2f(*numbers(self.tables.texcoords, uv_base + 2 * c, 2)) for c in range(3)]
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
            records.append(interleave(columns, 3 * channels, count))
        return concat(records), channels

    @staticmethod
    def _channels(shape: Any, name: str) -> int:
        elements = shape.face_count() if name.startswith("face_") else shape.vertex_count()
        return len(shape.attributes[name]) // max(1, int(elements))

    def _triangle_point(self, ray: Ray, pi: Preliminary, active: Any, exact: bool) -> Any:
        types = self.types
        offset = gather(types.UInt32, self.face_offset, pi.shape, active)
        face = pi.prim + offset
        base = face * RECORD

        def vector(at: int) -> Any:
            return types.Vector3f(
                *[gather(types.Float, self.tables.records, base + (at + k), active) for k in range(3)]
            )

        corner, e1, e2, n, dp_du = (vector(at) for at in (0, 3, 6, 9, 12))
        t, b1, b2 = types.Float(pi.t), types.Float(pi.u), types.Float(pi.v)
        if exact:
            t, b1, b2 = _intersect(ray, corner, e1, e2, types)
        p = corner + e1 * b1 + e2 * b2
        uv_base = face * 6
        uv0, uv1, uv2 = (
            types.Point2f(
                *[gather(types.Float, self.tables.texcoords, uv_base + (2 * c + k), active) for k in range(2)]
            )
            for c in range(3)
        )
        b0 = 1.0 - b1 - b2
        uv = uv0 * b0 + uv1 * b1 + uv2 * b2
        sh_n = n
        if self.tables.has_normals:
            nb = face * 9
            corners = [
                types.Vector3f(*[gather(types.Float, self.tables.normals, nb + (3 * c + k), active) for k in range(3)])
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
