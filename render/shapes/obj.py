"""Meshes from OBJ files."""

from __future__ import annotations

from typing import Any

from ..registry import Parameter, register
from .common import COMMON
from .mesh import Mesh
from .obj_reader import parse_obj


@register("shape", "obj")
class OBJ(Mesh):
    """A mesh read from a OBJ file. Without normals in the file smooth ones are computed, unless `face_normals`."""

    parameters = (
        *COMMON,
        Parameter("filename", "string", doc="path of the file"),
        Parameter("face_normals", "bool", False, "shade every triangle flat"),
        Parameter("flip_tex_coords", "bool", True, "v becomes 1 - v"),
    )

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        path = props.resolve(props["filename"])
        self.load_file(path, parse_obj, props["flip_tex_coords"], props["to_world"], props["face_normals"])
