"""Further images of what is visible: positions, normals, albedo and others, besides what nested integrators render."""

from __future__ import annotations

from typing import Any

from ...jit.arrays import functions as f
from ...jit.errors import SceneError
from ..interfaces.integrator import SamplingIntegrator
from ..interfaces.records import Ray
from ..registry import Parameter, nearest, register

# Kinds of images and the names of their channels.
KINDS = {
    "albedo": "RGB", "depth": "T", "position": "XYZ", "uv": "UV", "geo_normal": "XYZ", "sh_normal": "XYZ",
    "dp_du": "XYZ", "prim_index": "I", "shape_index": "I",
}  # fmt: skip


@register("integrator", "aov")
class AOV(SamplingIntegrator):
    """Appends channels named "name.X" for each entry of `aovs`, written "name:kind, name:kind ..."."""

    parameters = (
        Parameter("aovs", "string", "", "images to add: name:kind, separated by commas"),
        Parameter("integrators", "integrator", doc="what renders the colour", many=True),
    )

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self.aovs = [self._entry(text.strip()) for text in props["aovs"].split(",") if text.strip()]
        self.nested = props["integrators"]
        if len(self.nested) > 1:
            raise SceneError(f"aov: one nested integrator at most, found {len(self.nested)}")

    @staticmethod
    def _entry(text: str) -> tuple[str, str]:
        name, separator, kind = text.partition(":")
        if not separator or kind not in KINDS:
            hint = nearest(kind, list(KINDS))
            raise SceneError(f"aov: '{text}' must be name:kind with one of {', '.join(KINDS)}" + (f"; {hint}" if hint else ""))
        return name, kind

    def aov_names(self) -> list[str]:
        """Return the names of the added channels."""
        inner = self.nested[0].aov_names() if self.nested else []
        return [*inner, *(f"{name}.{c}" for name, kind in self.aovs for c in KINDS[kind])]

    def sample(self, scene: Any, sampler: Any, ray: Ray, active: Any = True) -> tuple[Any, Any, list[Any]]:
        """Return the nested integrator's colour, alpha and channels, and the added ones."""
        types = self.types
        si = scene.ray_intersect(ray, True, active)
        color, alpha, extra = types.Color3f(0.0), si.is_valid(), []
        if self.nested:
            color, alpha, extra = self.nested[0].sample(scene, sampler, ray, active)
        channels = list(extra)
        for _, kind in self.aovs:
            channels += [f.select(si.is_valid(), types.Float(v), 0.0) for v in self._values(scene, si, kind)]
        return color, alpha, channels

    def _values(self, scene: Any, si: Any, kind: str) -> list[Any]:
        if kind == "albedo":
            index = scene.bsdf_index(si)
            return list(scene.bsdfs.call(index, lambda b, mask: b.eval_diffuse_reflectance(si, mask), active=si.is_valid()))
        return {
            "depth": lambda: [si.t],
            "position": lambda: list(si.p),
            "uv": lambda: list(si.uv),
            "geo_normal": lambda: list(si.n),
            "sh_normal": lambda: list(si.sh_frame.n),
            "dp_du": lambda: list(si.dp_du),
            "prim_index": lambda: [si.prim],
            "shape_index": lambda: [si.shape],
        }[kind]()
