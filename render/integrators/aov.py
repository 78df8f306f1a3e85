"""Further images of what is visible: positions, normals, albedo and others, besides what nested integrators render."""

from __future__ import annotations

from typing import Any

from ...jit.arrays import functions as f
from ...jit.arrays.linear import dot
from ...jit.errors import SceneError
from ..interfaces.integrator import SamplingIntegrator
from ..interfaces.records import Ray
from ..registry import Parameter, nearest, register
from .common import PASSES

# Kinds of images and the names of their channels.
KINDS = {
    "albedo": "RGB", "depth": "T", "position": "XYZ", "uv": "UV", "geo_normal": "XYZ", "sh_normal": "XYZ",
    "dp_du": "XYZ", "dp_dv": "XYZ", "duv_dx": "UV", "duv_dy": "UV", "prim_index": "I", "shape_index": "I",
}  # fmt: skip


@register("integrator", "aov")
class AOV(SamplingIntegrator):
    """Appends channels named "name.X" for each entry of `aovs`, written "name:kind, name:kind ...".

    The images of nested integrators come first, one after the other; without any there are only the added channels.
    `shape_index` counts the scene's shapes from 1, 0 is none. `duv_dx` and `duv_dy` are what uv changes by over one
    pixel, divided by the root of the number of samples.
    """

    parameters = (
        Parameter("aovs", "string", "", "images to add: name:kind, separated by commas"),
        Parameter("integrators", "integrator", doc="what renders the colours", many=True),
        PASSES,
    )

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self.aovs = [self._entry(text.strip()) for text in props["aovs"].split(",") if text.strip()]
        self.nested = props["integrators"]
        if not self.aovs and not self.nested:
            raise SceneError("aov: neither aovs nor a nested integrator is given")
        for inner in self.nested:
            if not isinstance(inner, SamplingIntegrator):
                raise SceneError(f"aov: {inner} does not follow rays from the sensor and cannot be nested")
        self._beside: tuple[Ray, Ray] | None = None

    @staticmethod
    def _entry(text: str) -> tuple[str, str]:
        name, separator, kind = text.partition(":")
        if not separator or kind not in KINDS:
            hint = nearest(kind, list(KINDS))
            known = ", ".join(KINDS)
            raise SceneError(f"aov: '{text}' must be name:kind with one of {known}" + (f"; {hint}" if hint else ""))
        return name, kind

    def aov_names(self) -> list[str]:
        """Return the names of the added channels."""
        inner = self.nested[0].aov_names() if self.nested else []
        return [*inner, *(f"{name}.{c}" for name, kind in self.aovs for c in KINDS[kind])]

    def sample_rays(self, sensor: Any, sampler: Any, spp: int, lanes: int) -> tuple[Ray, Any]:
        """Return camera rays and film positions; rays through neighbouring pixels are kept if they are needed."""
        time, scaled, aperture, position = self.sample_film(sensor, sampler, spp, lanes)
        if any(kind in ("duv_dx", "duv_dy") for _, kind in self.aovs):
            width, height = sensor.film().crop_size()
            scale = sampler.sample_count**-0.5
            shift = self.types.Point2f(scale / width, scale / height)
            right = self.types.Point2f(scaled.x + shift.x, scaled.y)
            below = self.types.Point2f(scaled.x, scaled.y + shift.y)
            self._beside = (sensor.sample_ray(time, right, aperture), sensor.sample_ray(time, below, aperture))
        return sensor.sample_ray(time, scaled, aperture), position

    def sample(self, scene: Any, sampler: Any, ray: Ray, active: Any = True) -> tuple[Any, Any, list[Any]]:
        """Return the first nested integrator's colour, alpha and channels, then the others', then the added ones."""
        types = self.types
        si = scene.ray_intersect(ray, True, active)
        color, alpha, channels = types.Color3f(0.0), si.is_valid(), []
        for number, inner in enumerate(self.nested):
            c, a, extra = inner.sample(scene, sampler, ray, active)
            if number == 0:
                color, alpha = c, a
            else:
                channels += [c, a]
            channels += extra
        for _, kind in self.aovs:
            channels += [f.select(si.is_valid(), types.Float(v), 0.0) for v in self._values(scene, si, kind)]
        return color, alpha, channels

    def channels(self, film: Any, color: Any, alpha: Any, extra: list[Any]) -> list[Any]:
        """Return the film's channels of one sample; without a nested integrator only the added ones."""
        flat: list[Any] = []
        for value in extra:
            if isinstance(value, self.types.Color3f):
                flat += film.convert(list(value))
            elif isinstance(value, self.types.Bool):
                flat += [f.select(value, self.types.Float(1.0), 0.0)] if film.has_alpha else []
            else:
                flat.append(value)
        return super().channels(film, color, alpha, flat) if self.nested else flat

    def block(self, film: Any, channels: int) -> Any:
        """Return an empty block; without a nested integrator of the added channels only."""
        return super().block(film, channels) if self.nested else film.block(channels, False)

    def develop(self, film: Any, block: Any) -> Any:
        """Return the image of a block."""
        self._beside = None
        return film.develop(block) if self.nested else film.tensor(block.channels_of_image())

    def _values(self, scene: Any, si: Any, kind: str) -> list[Any]:
        if kind == "albedo":
            index = scene.bsdf_index(si)
            call = scene.bsdfs.call
            return list(call(index, lambda b, mask: b.eval_diffuse_reflectance(si, mask), active=si.is_valid()))
        return {
            "depth": lambda: [si.t],
            "position": lambda: list(si.p),
            "uv": lambda: list(si.uv),
            "geo_normal": lambda: list(si.n),
            "sh_normal": lambda: list(si.sh_frame.n),
            "dp_du": lambda: list(si.dp_du),
            "dp_dv": lambda: list(scene.surfaces.tangent_v(si)),
            "duv_dx": lambda: self._footprint(scene, si, 0),
            "duv_dy": lambda: self._footprint(scene, si, 1),
            "prim_index": lambda: [si.prim],
            "shape_index": lambda: [si.shape + 1],
        }[kind]()

    def _footprint(self, scene: Any, si: Any, axis: int) -> list[Any]:
        """Return the uv between the hit and where the ray of the neighbouring pixel meets its tangent plane."""
        types = self.types
        if self._beside is None:
            raise SceneError("aov: duv_dx and duv_dy need the sensor's rays and cannot be nested in an integrator")
        beside = self._beside[axis]
        n = types.Vector3f(si.n)
        t = dot(n, types.Vector3f(si.p - beside.o)) / dot(n, beside.d)
        dp = types.Vector3f(beside(t) - si.p)
        du, dv = types.Vector3f(si.dp_du), types.Vector3f(scene.surfaces.tangent_v(si))
        # Least squares: dp lies in the plane of du and dv.
        a00, a01, a11 = dot(du, du), dot(du, dv), dot(dv, dv)
        inverse = f.rcp(a00 * a11 - a01 * a01)
        inverse = f.select(f.isfinite(inverse), inverse, 0.0)
        b0, b1 = dot(du, dp), dot(dv, dp)
        return [(a11 * b0 - a01 * b1) * inverse, (a00 * b1 - a01 * b0) * inverse]
