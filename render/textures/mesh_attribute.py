"""Colours and numbers stored with the vertices or faces of meshes."""

from __future__ import annotations

from typing import Any

from ...jit.arrays.memops import gather
from ...jit.errors import SceneError
from ..interfaces.records import SurfaceInteraction
from ..interfaces.texture import Texture, luminance
from ..registry import Parameter, register


@register("texture", "mesh_attribute")
class MeshAttribute(Texture):
    """The attribute `name` of the mesh that was hit: interpolated ("vertex_...") or constant per face ("face_...").

    Differentiable in the attribute, which is a parameter of the mesh.
    """

    parameters = (
        Parameter("name", "string", doc="name of the attribute, such as vertex_color"),
        Parameter("scale", "float", 1.0, "factor"),
    )

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self.name: str = props["name"]
        self.scale: float = props["scale"]
        if not self.name.startswith(("vertex_", "face_")):
            raise SceneError(f"mesh_attribute: a name must start with vertex_ or face_, found '{self.name}'")

    def _values(self, si: SurfaceInteraction, active: Any) -> list[Any]:
        types = self.types
        if si.surfaces is None:
            raise SceneError(f"mesh_attribute '{self.name}': it has values on meshes only")
        table, channels = si.surfaces.attribute(self.name)
        face = si.prim + gather(types.UInt32, si.surfaces.face_offset, si.shape, active)
        b1, b2 = si.barycentric.x, si.barycentric.y
        weights = (1.0 - b1 - b2, b1, b2)
        values = []
        for k in range(channels):
            base = face * (3 * channels) + k
            corners = [gather(types.Float, table, base + c * channels, active) for c in range(3)]
            values.append(sum((w * v for w, v in zip(weights, corners, strict=True)), types.Float(0.0)) * self.scale)
        return values

    def eval(self, si: SurfaceInteraction, active: Any = True) -> Any:
        """Return the colour at the hit; a single number as grey."""
        values = self._values(si, active)
        if len(values) not in (1, 3):
            raise SceneError(f"mesh_attribute '{self.name}': a colour needs 1 or 3 channels, found {len(values)}")
        return self.types.Color3f(*values) if len(values) == 3 else self.types.Color3f(values[0])

    def eval_1(self, si: SurfaceInteraction, active: Any = True) -> Any:
        """Return the number at the hit; of colours the luminance."""
        values = self._values(si, active)
        return values[0] if len(values) == 1 else luminance(self.types.Color3f(*values[:3]))
