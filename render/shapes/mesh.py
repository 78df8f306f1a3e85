"""Triangle meshes: what `obj`, `ply` and `cube` load into, and what Python code can build."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...ad.api import detach, grad_enabled, suspend_grad
from ...ad.traverse import is_cut
from ...jit.arrays import functions as f
from ...jit.arrays.create import arange, opaque
from ...jit.arrays.linear import cross, norm, normalize
from ...jit.arrays.memops import gather
from ...jit.arrays.scan import prefix_sum
from ...jit.control import outside
from ...jit.errors import SceneError
from ..accel.geometry import Triangles
from ..cached import Unkept, Value, file_digest, from_file, remembered
from ..interfaces.object import ParamFlags, TraversalCallback
from ..interfaces.shape import Shape
from ..transform import ScalarTransform4f
from ..warp import square_to_uniform_triangle
from .common import TriangleData
from .mesh_data import MeshData, compute_vertex_normals, warn_of_repairs


class Mesh(Shape):
    """A triangle mesh in world space.

    Parameters: `faces` [3F], `vertex_positions` [3V], `vertex_normals` [3V], `vertex_texcoords` [2V], attributes;
    differentiable in all but the faces. Moved vertices get new normals if the mesh had any.
    """

    is_triangles = True

    def load_file(
        self, path: Path, parse: Callable[[bytes, str, bool], MeshData], flip_tex_coords: bool,
        to_world: ScalarTransform4f, face_normals: bool,
    ) -> None:  # fmt: skip
        """Take over the mesh of a file, moved to world space; what was computed for it before comes from the cache."""
        shown, dtype = os.fspath(path), self.types.dtype.numpy
        digest = file_digest(path, "mesh file")
        fresh: list[MeshData] = []  # has warned already

        def parsed(data: bytes) -> Value:
            fresh.append(parse(data, shown, flip_tex_coords))
            return _packed(fresh[0])

        def make() -> Value:
            # Once per file in memory, since files are often placed several times.
            packed, (found, *_) = from_file("mesh", path, reading, parsed, "mesh file", on_disk=False)
            result = _placed(_unpacked(packed), to_world, face_normals, dtype)
            if found != digest:  # written meanwhile
                raise Unkept(result)
            return result

        reading = (parse.__name__, flip_tex_coords)
        matrix = np.asarray(to_world.matrix, np.float64).tobytes().hex()
        placed = remembered("placed", (digest, *reading, matrix, face_normals, np.dtype(dtype).str), make)
        if placed["repaired"] and not fresh:
            warn_of_repairs(placed["repaired"], len(placed["vertices"]), shown)
        # Copies of its own: what the cache holds must not change with the mesh.
        arrays = {name: np.array(v) if isinstance(v, np.ndarray) else v for name, v in placed.items()}
        mesh = _unpacked(arrays)
        self.set_arrays(mesh.vertices, mesh.faces, mesh.normals, mesh.texcoords, mesh.attributes)

    def load(self, data: MeshData, to_world: ScalarTransform4f, face_normals: bool) -> None:
        """Take over a mesh, moved to world space."""
        mesh = _unpacked(_placed(data, to_world, face_normals, self.types.dtype.numpy))
        self.set_arrays(mesh.vertices, mesh.faces, mesh.normals, mesh.texcoords, mesh.attributes)

    def set_arrays(self, vertices: Any, faces: Any, normals: Any, texcoords: Any, attributes: Any = None) -> None:
        """Set the mesh from NumPy arrays: (V, 3), (F, 3), (V, 3) or None, (V, 2) or None."""
        types = self.types
        dtype = types.dtype.numpy

        def flat(x: Any) -> Any:
            return types.Float(np.ascontiguousarray(x, dtype).ravel())

        self.vertex_positions = flat(vertices)
        self.faces = types.UInt32(np.ascontiguousarray(faces, np.uint32).ravel())
        self.has_normals = normals is not None
        self.has_texcoords = texcoords is not None
        self.vertex_normals = flat(normals) if normals is not None else types.Float()
        self.vertex_texcoords = flat(texcoords) if texcoords is not None else types.Float()
        self.attributes = {name: flat(values) for name, values in (attributes or {}).items()}
        self._table: Any = None
        self._derived: Any = None  # which normals were computed from the vertices here

    def traverse(self, callback: TraversalCallback) -> None:
        """Report the arrays besides material and light."""
        super().traverse(callback)
        moving = ParamFlags.Differentiable | ParamFlags.Discontinuous
        callback.put("faces", self.faces, ParamFlags.NonDifferentiable)
        callback.put("vertex_positions", self.vertex_positions, moving)
        callback.put("vertex_normals", self.vertex_normals, moving)
        callback.put("vertex_texcoords", self.vertex_texcoords, ParamFlags.Differentiable)
        for name, values in self.attributes.items():
            callback.put(name, values, ParamFlags.Differentiable)

    def parameters_changed(self, keys: Sequence[str] = ()) -> None:
        """Move the mesh; normals follow unless they were set too."""
        super().parameters_changed(keys)
        if len(self.vertex_positions) % 3 or len(self.faces) % 3:
            raise SceneError(
                f'mesh "{self._id}": vertex_positions needs 3 numbers per vertex and faces 3 per triangle, found '
                f"{len(self.vertex_positions)} and {len(self.faces)}"
            )
        self._check_arrays()
        if not keys or "vertex_positions" in keys or "faces" in keys:
            self._table = None
            derived = self._derived is not None and self._derived == _identity(self.vertex_normals)
            if self.has_normals and (derived or "vertex_normals" not in keys):
                self.recompute_vertex_normals()

    def _check_arrays(self) -> None:
        """Raise SceneError if faces name vertices that are not there, or an array has another number of vertices."""
        count = self.vertex_count()
        faces = self.faces.numpy()
        if faces.size and faces.max() >= count:
            raise SceneError(
                f'mesh "{self._id}": faces name the vertex {faces.max()}, there are {count}; set vertex_positions and '
                "faces together"
            )
        for name, present, width in (
            ("vertex_normals", self.has_normals, 3),
            ("vertex_texcoords", self.has_texcoords, 2),
        ):
            found = len(getattr(self, name))
            stale = name == "vertex_normals" and self._derived is not None  # made again from the positions
            if present and found != width * count and not stale:
                raise SceneError(
                    f'mesh "{self._id}": {name} needs {width} numbers for each of {count} vertices, found {found}'
                )

    def renew_derivatives(self) -> None:
        """Derive the normals from the vertices once more if a backward pass has cut what connected them."""
        if self._derived is not None and self._derived == _identity(self.vertex_normals):
            if is_cut(self.vertex_normals._ad) and self.vertex_positions._ad is not None:
                self.recompute_vertex_normals()

    def recompute_vertex_normals(self) -> None:
        """Set smooth normals, weighted by the angles at each vertex (Thuermer and Wuethrich 1998)."""
        from ...jit.arrays.create import arange, zeros
        from ...jit.arrays.memops import scatter_add
        from ...jit.arrays.shape import ravel

        types = self.types
        index = gather(types.Vector3u, self.faces, arange(types.UInt32, self.face_count()))
        corners = [gather(types.Point3f, self.vertex_positions, i) for i in index]
        n = cross(corners[1] - corners[0], corners[2] - corners[0])
        length = norm(n)
        n = f.select(length > 0.0, n / f.select(length > 0.0, length, 1.0), 0.0)
        total = zeros(types.Vector3f, self.vertex_count())
        for k in range(3):
            a = normalize(corners[(k + 1) % 3] - corners[k])
            b = normalize(corners[(k + 2) % 3] - corners[k])
            angle = f.acos(f.clip(a.x * b.x + a.y * b.y + a.z * b.z, -1.0, 1.0))
            angle = f.select(length > 0.0, angle, 0.0)
            scatter_add(total, n * angle, index[k])
        size = norm(total)
        unit = f.select(size > 0.0, total / f.select(size > 0.0, size, 1.0), types.Vector3f(1.0, 0.0, 0.0))
        self.vertex_normals.assign(ravel(unit))
        self._derived = _identity(self.vertex_normals)

    def vertex_count(self) -> int:
        """Return the number of vertices."""
        return len(self.vertex_positions) // 3

    def face_count(self) -> int:
        """Return the number of triangles."""
        return len(self.faces) // 3

    def has_vertex_normals(self) -> bool:
        """Return whether shading normals are interpolated."""
        return self.has_normals

    def has_vertex_texcoords(self) -> bool:
        """Return whether the mesh has uv coordinates."""
        return self.has_texcoords

    def triangles(self) -> TriangleData:
        """Return the mesh's triangles."""
        return TriangleData(
            self.vertex_positions, self.faces, self.vertex_normals if self.has_normals else None,
            self.vertex_texcoords if self.has_texcoords else None, self.flip_normals,
        )  # fmt: skip

    def geometry(self) -> Triangles:
        """Return vertices and faces for the accelerator."""
        return Triangles(self.vertex_positions.numpy().reshape(-1, 3), self.faces.numpy().reshape(-1, 3))

    def bbox(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the box around the vertices."""
        v = self.vertex_positions.numpy().reshape(-1, 3)
        if not len(v):
            return np.full(3, np.inf), np.full(3, -np.inf)
        return v.min(0), v.max(0)

    def _areas(self) -> tuple[Any, Any]:
        """Return the cumulative areas of the triangles and one over their total, both without gradients."""
        if self._table is None:
            # May be asked for first within a recorded loop, but depends on nothing in it.
            with outside(), suspend_grad():
                types = self.types
                index = gather(types.Vector3u, self.faces, arange(types.UInt32, self.face_count()))
                a, b, c = (gather(types.Point3f, self.vertex_positions, i) for i in index)
                cumulative = prefix_sum(0.5 * norm(cross(b - a, c - a)), False)
                total = gather(types.Float, cumulative, types.UInt32(self.face_count() - 1))
                self._table = (cumulative, opaque(f.rcp(total)))
        return self._table  # type: ignore[no-any-return]

    def surface_area(self) -> Any:
        """Return the sum of the triangles' areas."""
        return f.rcp(self._areas()[1])

    def sample_position(self, sample: Any, active: Any = True) -> tuple[Any, Any, Any, Any]:
        """Return a point uniform over the area: the triangle by sample.y, the point by the rest of it.

        The choice of the triangle is held fixed under differentiation; the density within it follows its area.
        """
        types = self.types
        cumulative, inv_total = self._areas()
        target = sample.y * f.rcp(inv_total)
        face = _search(cumulative, target, self.face_count(), types, active)
        before = f.select(face > 0, gather(types.Float, cumulative, f.max(face, 1) - 1, active), 0.0)
        width = gather(types.Float, cumulative, face, active) - before
        rest = types.Point2f(sample.x, f.clip((target - before) / f.max(width, 1e-30), 0.0, 1.0))
        b1, b2 = square_to_uniform_triangle(rest)
        index = gather(types.Vector3u, self.faces, face, active)
        a, b, c = (gather(types.Point3f, self.vertex_positions, i, active) for i in index)
        e1, e2 = b - a, c - a
        p = a + e1 * b1 + e2 * b2
        across = cross(e1, e2)
        # As in Mitsuba: one radiance everywhere leaves about the shading normal, a texture about the triangle's.
        painted = self.emitter is not None and self.emitter.radiance.is_spatially_varying()
        smooth = self.has_normals and not painted
        n = types.Normal3f(self._normal(index, b1, b2, active) if smooth else normalize(across))
        uv = types.Point2f(b1, b2)
        if self.has_texcoords:
            t = [gather(types.Point2f, self.vertex_texcoords, i, active) for i in index]
            uv = t[0] * (1.0 - b1 - b2) + t[1] * b1 + t[2] * b2
        area = norm(across)
        pdf = inv_total if not grad_enabled(area) else inv_total * (detach(area) / area)
        return p, -n if self.flip_normals else n, uv, pdf

    def _normal(self, index: Any, b1: Any, b2: Any, active: Any) -> Any:
        """Return the interpolated shading normal, which is what decides the side that shines."""
        corners = [gather(self.types.Vector3f, self.vertex_normals, i, active) for i in index]
        return normalize(corners[0] * (1.0 - b1 - b2) + corners[1] * b1 + corners[2] * b2)

    def pdf_position(self, active: Any = True) -> Any:
        """Return 1 / area."""
        return self._areas()[1]


def _placed(data: MeshData, to_world: ScalarTransform4f, face_normals: bool, dtype: Any) -> dict[str, Any]:
    """Return the arrays of a mesh in world space, floats of type `dtype`; without normals smooth ones are computed."""
    vertices: Any = np.asarray(to_world.transform_affine(data.vertices.astype(np.float64)))
    normals: Any = None
    if not face_normals and data.normals is not None:
        normals = np.asarray(to_world.transform_normal(data.normals.astype(np.float64)))
        length = np.linalg.norm(normals, axis=1, keepdims=True)
        normals = normals / np.where(length > 0, length, 1)
    elif not face_normals:
        normals = compute_vertex_normals(vertices, data.faces)
    return {
        name: value.astype(dtype) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value
        for name, value in _packed(replace(data, vertices=vertices, normals=normals)).items()
    }


def _packed(data: MeshData) -> dict[str, Any]:
    """Return a mesh as the cache keeps it: arrays by name."""
    return {
        "vertices": data.vertices, "faces": data.faces, "normals": data.normals, "texcoords": data.texcoords,
        "repaired": data.repaired, **{f"attribute:{name}": values for name, values in data.attributes.items()},
    }  # fmt: skip


def _unpacked(packed: Mapping[str, Any]) -> MeshData:
    attributes = {name.partition(":")[2]: v for name, v in packed.items() if name.startswith("attribute:")}
    return MeshData(
        "", packed["vertices"], packed["faces"], packed["normals"], packed["texcoords"], attributes, packed["repaired"]
    )


def _identity(x: Any) -> tuple[int, int]:
    return x._n.index, x.index_ad


def _search(cumulative: Any, target: Any, count: int, types: Any, active: Any) -> Any:
    """Return the first index whose cumulative value exceeds the target (binary search, unrolled)."""
    low, high = types.UInt32(0), types.UInt32(count - 1)
    for _ in range(max(1, (count - 1).bit_length())):
        middle = (low + high) // 2
        right = gather(types.Float, cumulative, middle, active) <= target
        low, high = f.select(right, f.min(middle + 1, high), low), f.select(right, high, middle)
    return low
