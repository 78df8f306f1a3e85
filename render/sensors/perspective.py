"""The pinhole camera."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...jit.arrays import functions as f
from ...jit.arrays.create import opaque
from ...jit.arrays.linear import normalize
from ...jit.errors import SceneError
from ..interfaces.object import ParamFlags, TraversalCallback
from ..interfaces.records import Ray
from ..interfaces.sensor import Sensor
from ..registry import Parameter, register
from ..shapes.common import matrix_of, transform_vector
from ..transform import ScalarTransform4f

SENSOR = (
    Parameter("to_world", "transform", ScalarTransform4f(), "camera to world space: looks along +z, +x is left, +y up"),
    Parameter("near_clip", "float", 0.01, "distance of the plane where rays start"),
    Parameter("far_clip", "float", 10000.0, "distance of the plane where rays end"),
    Parameter("shutter_open", "float", 0.0, "time"),
    Parameter("shutter_close", "float", 0.0, "time"),
    Parameter("film", "film", None, "film (hdrfilm 768 x 576 if absent)"),
    Parameter("sampler", "sampler", None, "sampler (independent, 4 samples if absent)"),
)
_AXES = ("x", "y", "diagonal", "smaller", "larger")


@register("sensor", "perspective")
class Perspective(Sensor):
    """A perspective camera; `fov` degrees along `fov_axis` of the whole film, or a focal length for 35 mm film."""

    parameters = (
        *SENSOR,
        Parameter("fov", "float", None, "field of view in degrees, between 0 and 180"),
        Parameter("fov_axis", "string", "x", "axis of the field of view", choices=_AXES),
        Parameter("focal_length", "string", "50mm", "instead of fov"),
        Parameter("principal_point_offset_x", "float", 0.0, "shift of the image centre, in film widths"),
        Parameter("principal_point_offset_y", "float", 0.0, "shift of the image centre, in film heights"),
    )
    ignored = ("focus_distance",)

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        if props["fov"] is not None and "focal_length" in props:
            raise SceneError("perspective: give either fov or focal_length, not both")
        self.fov, self.fov_axis, self.focal_length = props["fov"], props["fov_axis"], props["focal_length"]
        self.near_clip, self.far_clip = props["near_clip"], props["far_clip"]
        self.offset = (props["principal_point_offset_x"], props["principal_point_offset_y"])
        transform = props["to_world"]
        if transform.has_scale():
            raise SceneError("perspective: to_world may not scale")
        if not 0.0 < self.near_clip < self.far_clip:
            found = f"{self.near_clip} and {self.far_clip}"
            raise SceneError(f"perspective: 0 < near_clip < far_clip is needed, found {found}")
        self.to_world = matrix_of(self.types, transform)
        self.x_fov = self.types.Float(self._x_fov())
        self._update()

    def _x_fov(self) -> float:
        width, height = self._film.size()
        aspect = width / height
        if self.fov is None:
            text = self.focal_length.removesuffix("mm")
            try:
                focal = float(text)
            except ValueError:
                raise SceneError(
                    f"perspective: focal_length must be like '50mm', found '{self.focal_length}'"
                ) from None
            diagonal = 2.0 * math.degrees(math.atan(math.sqrt(36.0**2 + 24.0**2) / (2.0 * focal)))
            return _along_x(diagonal, "diagonal", aspect)
        if not 0.0 < self.fov < 180.0:
            raise SceneError(f"perspective: fov must lie between 0 and 180 degrees, found {self.fov}")
        return _along_x(self.fov, self.fov_axis, aspect)

    def _update(self) -> None:
        """Compute the point of the near plane for film positions: corner + x across + y down, camera space."""
        types = self.types
        size, crop, offset = self._film.size(), self._film.crop_size(), self._film.crop_offset()
        self._film_state = (tuple(size), tuple(crop), tuple(offset))
        half = math.tan(math.radians(float(self.x_fov.item())) * 0.5) * self.near_clip
        aspect = size[0] / size[1]
        # (0, 0) is the top left of the whole film: +x, +y in camera space.
        left, top = half * (1.0 - 2.0 * self.offset[0]), half / aspect * (1.0 - 2.0 * self.offset[1])
        across, down = -2.0 * half, -2.0 * half / aspect
        x0, y0 = offset[0] / size[0], offset[1] / size[1]
        self.corner = opaque(types.Vector3f(left + across * x0, top + down * y0, self.near_clip))
        self.step = opaque(types.Point2f(across * crop[0] / size[0], down * crop[1] / size[1]))

    def traverse(self, callback: TraversalCallback) -> None:
        """Report `x_fov`, `to_world` and the film."""
        fixed = ParamFlags.NonDifferentiable
        callback.put("near_clip", self.near_clip, fixed)
        callback.put("far_clip", self.far_clip, fixed)
        callback.put("shutter_open", self.shutter_open, fixed)
        callback.put("x_fov", self.x_fov, fixed | ParamFlags.Discontinuous)
        callback.put("to_world", self.to_world, fixed | ParamFlags.Discontinuous)
        callback.put("film", self._film, fixed)

    def parameters_changed(self, keys: Sequence[str] = ()) -> None:
        """Take over a changed field of view or film."""
        size = tuple(self._film.size())
        if size != self._film_state[0] and "x_fov" not in keys:
            self.x_fov.assign(self.types.Float(self._x_fov()))
        fov = float(self.x_fov.item())
        if not 0.0 < fov < 180.0:
            raise SceneError(f"perspective: x_fov must lie between 0 and 180 degrees, found {fov}")
        if not 0.0 < self.near_clip < self.far_clip:
            raise SceneError(
                f"perspective: 0 < near_clip < far_clip is needed, found {self.near_clip} and {self.far_clip}"
            )
        self._update()

    def sample_ray(self, time: Any, position: Any, aperture: Any, active: Any = True) -> Ray:
        """Return the ray through a film position, from the near plane on."""
        types, m = self.types, self.to_world
        near = types.Vector3f(
            f.fma(position.x, self.step.x, self.corner.x), f.fma(position.y, self.step.y, self.corner.y), self.corner.z
        )
        d = normalize(near)
        inverse = f.rcp(d.z)
        start = inverse * self.near_clip
        world = types.Vector3f(transform_vector(m, d))
        origin = types.Point3f(*[m[i][3] + world[i] * start for i in range(3)])
        return Ray(origin, world, inverse * self.far_clip - start, time)


def _along_x(fov: float, axis: str, aspect: float) -> float:
    """Return the horizontal field of view, in degrees, of one given along another axis."""
    if axis == "x" or (axis == "smaller" and aspect <= 1.0) or (axis == "larger" and aspect > 1.0):
        return fov
    tangent = math.tan(math.radians(fov) * 0.5)
    if axis == "diagonal":
        diagonal = 2.0 * tangent
        width = diagonal / math.sqrt(1.0 + 1.0 / (aspect * aspect))
        return math.degrees(2.0 * math.atan(width * 0.5))
    return math.degrees(2.0 * math.atan(tangent * aspect))


__all__ = ["SENSOR", "Perspective"]
