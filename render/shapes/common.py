"""What shapes share: common parameters, transforms as arrays, and the triangles they hand to the scene."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..registry import Parameter
from ..transform import ScalarTransform4f

COMMON = (
    Parameter("to_world", "transform", ScalarTransform4f(), "local to world space"),
    Parameter("flip_normals", "bool", False, "turn the normals inside out"),
    Parameter("bsdf", "bsdf", None, "material (diffuse 0.5 if absent)"),
    Parameter("emitter", "emitter", None, "area light"),
    Parameter("silhouette_sampling_weight", "float", 1.0, "share of silhouette samples for visibility gradients"),
)


@dataclass
class TriangleData:
    """Triangles of one shape in world space.

    `positions`: a list of points (small shapes) or a flat array x0 y0 z0 x1 ...; `faces` NumPy (F, 3) or a flat UInt32
    array; `normals` per vertex likewise or None; `texcoords` NumPy (V, 2), a flat array, or None.
    """

    positions: Any
    faces: Any
    normals: Any
    texcoords: Any
    flip_normals: bool


def matrix_of(types: Any, transform: ScalarTransform4f) -> Any:
    """Return a transform's matrix as a 4 x 4 array of the variant."""
    m = transform.matrix
    return types.Matrix4f([[float(m[i][j]) for j in range(4)] for i in range(4)])


def transform_point(m: Any, p: Any) -> Any:
    """Return the point M p (affine)."""
    return type(p)(*[m[i][0] * p.x + m[i][1] * p.y + m[i][2] * p.z + m[i][3] for i in range(3)])


def transform_vector(m: Any, v: Any) -> Any:
    """Return the vector M v."""
    return type(v)(*[m[i][0] * v.x + m[i][1] * v.y + m[i][2] * v.z for i in range(3)])


def numpy_matrix(m: Any) -> np.ndarray:
    """Return a 4 x 4 array of size 1 as a NumPy matrix."""
    return np.array([[float(m[i][j].item()) for j in range(4)] for i in range(4)], np.float64)


def is_mirrored(m: Any) -> bool:
    """Return whether a 4 x 4 array of size 1 turns left into right."""
    return bool(np.linalg.det(numpy_matrix(m)[:3, :3]) < 0)
