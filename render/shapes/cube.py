"""The cube [-1, 1]^3 as a mesh of 12 triangles with 24 vertices, moved by `to_world`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..registry import register
from .common import COMMON
from .mesh import Mesh
from .mesh_data import MeshData

# Per side: normal, and the directions in which u and v grow; v x u is the normal. The order of sides, corners and
# triangles is Mitsuba's, so that vertex parameters and sampled frames are the same.
_SIDES = (
    ((0, -1, 0), (0, 0, 1), (1, 0, 0)),
    ((0, 1, 0), (-1, 0, 0), (0, 0, -1)),
    ((1, 0, 0), (0, 1, 0), (0, 0, -1)),
    ((0, 0, 1), (0, 1, 0), (1, 0, 0)),
    ((-1, 0, 0), (0, 1, 0), (0, 0, 1)),
    ((0, 0, -1), (0, -1, 0), (1, 0, 0)),
)


def cube_data() -> MeshData:
    """Return the cube with flat normals and uv in [0, 1] on every side."""
    vertices: list[Any] = []
    normals: list[Any] = []
    uvs: list[Any] = []
    faces: list[Any] = []
    for n, u, v in np.array(_SIDES, float):
        base = len(vertices)
        for x, y in ((0, 1), (1, 1), (1, 0), (0, 0)):
            vertices.append(n + (2 * x - 1) * u + (2 * y - 1) * v)
            normals.append(n)
            uvs.append((x, y))
        faces += [(base, base + 1, base + 2), (base + 3, base, base + 2)]
    return MeshData(
        name="cube", vertices=np.array(vertices, np.float32), faces=np.array(faces, np.uint32),
        normals=np.array(normals, np.float32), texcoords=np.array(uvs, np.float32), attributes={},
    )  # fmt: skip


@register("shape", "cube")
class Cube(Mesh):
    """A cube."""

    parameters = COMMON

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self.load(cube_data(), props["to_world"], face_normals=False)
