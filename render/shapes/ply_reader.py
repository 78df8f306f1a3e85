"""PLY meshes: text and binary of either byte order, polygons, normals, texture coordinates and attributes."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from ...jit.errors import FileFormatError
from ..file_access import read_bytes
from ..image.conversion import srgb_to_linear
from .mesh_data import MeshData, complete_normals, fan_triangles
from .ply_header import parse_header
from .ply_values import Columns, read_binary, read_text

__all__ = ["parse_ply", "read_ply"]

_INDEX_NAMES = ("vertex_indices", "vertex_index", "vertex_id")
_TEXCOORD_NAMES = (("u", "v"), ("s", "t"), ("texture_u", "texture_v"), ("texture_s", "texture_t"))
_COLOUR_NAMES = (("r", "g", "b"), ("red", "green", "blue"), ("diffuse_red", "diffuse_green", "diffuse_blue"))
_NOT_ATTRIBUTES = {"x", "y", "z", "nx", "ny", "nz", "a", "alpha", "diffuse_alpha"}


def read_ply(path: str | os.PathLike[str], flip_tex_coords: bool = False) -> MeshData:
    """Return the mesh of a PLY file.

    Polygons are cut into fans. Read are x y z, nx ny nz, texture coordinates (u v, s t, texture_u texture_v) and, as
    attributes, everything else: `r g b` or `red green blue` become `vertex_color` or `face_color`, where integers are
    taken as sRGB-encoded and become linear values in [0, 1], floats stay; properties `name_0 name_1` or `name_x name_y`
    become `vertex_name` or `face_name`. Normals of length 0 are computed from the faces. `flip_tex_coords` stores 1 - v
    instead of v.

    Raises MissingFileError, and FileFormatError naming file, element and row for damaged files, positions that are not
    finite and indices beyond the vertices.
    """
    return parse_ply(read_bytes(path, "mesh file"), os.fspath(path), flip_tex_coords)


def parse_ply(data: bytes, shown: str, flip_tex_coords: bool = False) -> MeshData:
    """Return the mesh that the contents of a PLY file describe, as `read_ply`; `shown` is the path for messages."""
    header = parse_header(data, shown)
    tables = read_text(data, header, shown) if header.ascii else read_binary(data, header, shown)
    vertex, face = tables.get("vertex"), tables.get("face")
    if vertex is None or not {"x", "y", "z"} <= set(vertex.columns):
        raise FileFormatError(f"{shown}: the file holds no vertices with x, y and z")
    index_name = next((name for name in _INDEX_NAMES if face and name in face.lists), None)
    if face is None or index_name is None:
        raise FileFormatError(f"{shown}: the file holds no faces with a list named {' or '.join(_INDEX_NAMES)}")
    position = _stack(vertex.columns, ("x", "y", "z"))
    finite = np.isfinite(position).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise FileFormatError(
            f"{shown}: element vertex, row {row}: the position is {position[row].tolist()}, not finite"
        )
    sizes, corners = face.lists[index_name]
    triangles = _triangles(sizes, corners, len(position), shown)
    mesh = MeshData(os.path.splitext(os.path.basename(shown))[0], position, triangles)
    used = _fill_vertex_data(mesh, vertex.columns, flip_tex_coords, shown)
    mesh.attributes |= _attributes(vertex.columns, "vertex_", used)
    per_triangle = np.repeat(np.arange(len(sizes)), np.maximum(sizes - 2, 0))
    mesh.attributes |= {name: v[per_triangle] for name, v in _attributes(face.columns, "face_", set()).items()}
    return mesh


def _triangles(
    sizes: npt.NDArray[np.int64], corners: npt.NDArray[Any], vertex_count: int, shown: str
) -> npt.NDArray[np.uint32]:
    """Return the faces (F, 3) of polygons given by sizes and the indices of all corners, checked."""
    bad = (corners < 0) | (corners >= vertex_count) | (corners != np.floor(corners))
    if bad.any() or (len(sizes) and sizes.min() < 3):
        first = int(np.argmax(bad)) if bad.any() else int(sizes[: np.argmin(sizes)].sum())
        row = int(np.searchsorted(np.cumsum(sizes), first, side="right"))
        found = f"vertex {corners[first]} of {vertex_count}" if bad.any() else f"only {sizes.min()} corners"
        raise FileFormatError(f"{shown}: element face, row {row} refers to {found}")
    return corners[fan_triangles(sizes)].astype(np.uint32)


def _stack(columns: Columns, names: tuple[str, ...]) -> npt.NDArray[np.float32]:
    return np.stack([columns[name] for name in names], axis=1).astype(np.float32)


def _fill_vertex_data(mesh: MeshData, columns: Columns, flip_tex_coords: bool, shown: str) -> set[str]:
    """Set normals and texture coordinates of the mesh; return the names of the latter."""
    used: set[str] = set()
    if {"nx", "ny", "nz"} <= set(columns):
        normals = np.nan_to_num(_stack(columns, ("nx", "ny", "nz")), posinf=0, neginf=0)
        mesh.normals = complete_normals(normals, mesh, shown)
    for names in _TEXCOORD_NAMES:
        if set(names) <= set(columns):
            mesh.texcoords = _stack(columns, names)
            used = set(names)
            break
    if mesh.texcoords is not None and flip_tex_coords:
        mesh.texcoords[:, 1] = 1 - mesh.texcoords[:, 1]
    return used


def _attributes(columns: Columns, prefix: str, used: set[str]) -> dict[str, npt.NDArray[np.float32]]:
    """Return the attributes made of the columns that nothing else took, grouped by name."""
    result: dict[str, npt.NDArray[np.float32]] = {}
    taken = used | _NOT_ATTRIBUTES
    for names in _COLOUR_NAMES:
        if set(names) <= set(columns):
            if f"{prefix}color" not in result:
                result[f"{prefix}color"] = np.stack([_colour(columns[name]) for name in names], axis=1)
            taken |= set(names)
    groups: dict[str, list[str]] = {}
    for name in columns:
        if name not in taken:
            bare = name.removeprefix(prefix)
            component = re.fullmatch(r"(.+)_(\d+|[xyzwrgbauvst])", bare)
            groups.setdefault(prefix + (component[1] if component else bare), []).append(name)
    for name, members in groups.items():
        result.setdefault(name, _stack(columns, tuple(members)))
    return result


def _colour(column: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return linear values: integers are sRGB-encoded fractions of their largest value, floats are linear already."""
    if column.dtype.kind == "f":
        return column.astype(np.float32)
    return srgb_to_linear(column / np.float64(np.iinfo(column.dtype).max)).astype(np.float32)
