"""Meshes from PLY files."""

from __future__ import annotations

from typing import Any

from ..registry import Parameter, register
from .common import COMMON
from .mesh import Mesh
from .ply_reader import parse_ply


@register("shape", "ply")
class PLY(Mesh):
    """A mesh read from a PLY file. Without normals in the file smooth ones are computed, unless `face_normals`."""

    parameters = (
        *COMMON,
        Parameter("filename", "string", doc="path of the file"),
        Parameter("face_normals", "bool", False, "shade every triangle flat"),
        Parameter("flip_tex_coords", "bool", False, "v becomes 1 - v"),
    )

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        path = props.resolve(props["filename"])
        self.load_file(path, parse_ply, props["flip_tex_coords"], props["to_world"], props["face_normals"])
