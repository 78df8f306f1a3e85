"""Writing meshes as binary PLY files that `read_ply` and other programs read back."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from ..file_access import atomic_write
from .mesh_data import MeshData

__all__ = ["write_ply"]


def write_ply(path: str | os.PathLike[str], mesh: MeshData) -> None:
    """Write a mesh as little-endian PLY with float32 values; attribute `vertex_name` becomes `name_0`, `name_1` ...

    The file appears whole or not at all. Raises MissingFileError when the folder does not exist.
    """
    vertex: list[tuple[str, npt.NDArray[Any]]] = _columns(("x", "y", "z"), mesh.vertices)
    if mesh.normals is not None:
        vertex += _columns(("nx", "ny", "nz"), mesh.normals)
    if mesh.texcoords is not None:
        vertex += _columns(("s", "t"), mesh.texcoords)
    face: list[tuple[str, npt.NDArray[Any]]] = []
    for name, values in mesh.attributes.items():
        target, bare = (face, name[5:]) if name.startswith("face_") else (vertex, name.removeprefix("vertex_"))
        flat = np.asarray(values).reshape(len(values), -1)
        target += _columns(tuple(f"{bare}_{i}" for i in range(flat.shape[1])), flat)
    vertices = np.empty(len(mesh.vertices), dtype=[(name, "<f4") for name, _ in vertex])
    for name, column in vertex:
        vertices[name] = column
    faces = np.empty(len(mesh.faces), dtype=[("n", "u1"), ("i", "<i4", (3,)), *((name, "<f4") for name, _ in face)])
    faces["n"] = 3
    faces["i"] = mesh.faces
    for name, column in face:
        faces[name] = column
    header = [
        "ply", "format binary_little_endian 1.0",
        f"element vertex {len(vertices)}", *(f"property float {name}" for name, _ in vertex),
        f"element face {len(faces)}", "property list uchar int vertex_indices",
        *(f"property float {name}" for name, _ in face), "end_header\n",
    ]  # fmt: skip
    data = "\n".join(header).encode("latin-1", "replace") + vertices.tobytes() + faces.tobytes()
    atomic_write(path, lambda file: file.write_bytes(data))


def _columns(names: tuple[str, ...], values: npt.NDArray[Any]) -> list[tuple[str, npt.NDArray[Any]]]:
    return [(name, np.asarray(values)[:, i]) for i, name in enumerate(names)]
