"""Triangle meshes as plain arrays: what the mesh readers return and the writer takes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["MeshData", "complete_normals", "compute_vertex_normals", "fan_triangles", "warn_of_repairs"]

FloatArray = npt.NDArray[np.floating[Any]]
IndexArray = npt.NDArray[np.integer[Any]]


@dataclass
class MeshData:
    """A triangle mesh in its own frame.

    `vertices` (V, 3) float32, `faces` (F, 3) uint32 with counter-clockwise corners, `normals` (V, 3) float32 of unit
    length or None, `texcoords` (V, 2) float32 or None. `attributes` maps names that start with `vertex_` or `face_` to
    (V, k) or (F, k) float32 arrays.
    """

    name: str
    vertices: npt.NDArray[np.float32]
    faces: npt.NDArray[np.uint32]
    normals: npt.NDArray[np.float32] | None = None
    texcoords: npt.NDArray[np.float32] | None = None
    attributes: dict[str, npt.NDArray[np.float32]] = field(default_factory=dict)
    repaired: int = 0  # vertices whose normal had no length


def compute_vertex_normals(vertices: FloatArray, faces: IndexArray) -> npt.NDArray[np.float32]:
    """Return unit vertex normals (V, 3), the face normals around a vertex weighted by their angle there.

    Source: Thürmer and Wüthrich 1998, "Computing vertex normals from polygonal facets". Computed in double precision.
    Faces without area take no part; a vertex of which nothing else is known gets (1, 0, 0).
    """
    corners = np.asarray(vertices, dtype=np.float64)[np.asarray(faces, dtype=np.int64).reshape(-1, 3)]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    normal /= np.where(length > 0, length, 1)
    total = np.zeros((len(vertices), 3))
    for corner in range(3):
        here = corners[:, corner]
        a = _unit(corners[:, (corner + 1) % 3] - here)
        b = _unit(corners[:, (corner + 2) % 3] - here)
        # The arc tangent of half the angle is accurate for angles near 0 and near a half turn, unlike the arc cosine.
        angle = 2 * np.arctan2(np.linalg.norm(a - b, axis=1), np.linalg.norm(a + b, axis=1))
        index = np.asarray(faces, dtype=np.int64).reshape(-1, 3)[:, corner]
        for axis in range(3):
            total[:, axis] += np.bincount(index, weights=normal[:, axis] * angle, minlength=len(vertices))
    # Opposite faces cancel to rounding noise, which has no direction.
    known = np.linalg.norm(total, axis=1) > 1e-12
    return np.where(known[:, None], _unit(total), [1.0, 0.0, 0.0]).astype(np.float32)


def complete_normals(normals: npt.NDArray[np.float32], mesh: MeshData, shown: str) -> npt.NDArray[np.float32]:
    """Return unit normals (V, 3); those of length 0 are computed from the faces, with a warning naming the file."""
    length = np.linalg.norm(normals.astype(np.float64), axis=1)
    zero = length == 0
    result = (normals / np.where(zero, 1, length)[:, None]).astype(np.float32)
    if zero.any():
        mesh.repaired = int(zero.sum())
        warn_of_repairs(mesh.repaired, len(zero), shown)
        result[zero] = compute_vertex_normals(mesh.vertices, mesh.faces)[zero]
    return result


def warn_of_repairs(count: int, total: int, shown: str) -> None:
    """Warn of vertices in a file whose normals had to be computed."""
    warnings.warn(
        f"{shown}: {count} of {total} vertices have no normal or one of length 0; "
        "theirs is computed from the faces around them",
        stacklevel=5,
    )


def _unit(vectors: FloatArray) -> FloatArray:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: FloatArray = vectors / np.where(length > 0, length, 1)
    return result


def fan_triangles(sizes: IndexArray) -> npt.NDArray[np.int64]:
    """Return (T, 3) positions in the list of all corners: each polygon of the given sizes cut from its first corner.

    Polygons of fewer than three corners give no triangle. Concave polygons may fold over.
    """
    sizes = np.asarray(sizes, dtype=np.int64)
    counts = np.maximum(sizes - 2, 0)
    first = np.repeat(np.cumsum(sizes) - sizes, counts)
    step = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.stack([first, first + step + 1, first + step + 2], axis=1)
