"""An image of the surroundings as light."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ad.api import detach
from ...jit.arrays import functions as f
from ...jit.arrays import reduce
from ...jit.arrays.create import arange
from ...jit.arrays.flat import convert
from ...jit.arrays.memops import gather
from ...jit.dtypes import Float64
from ...jit.errors import SceneError
from ..cached import Value, from_file, remembered
from ..distributions import Bilinear2D, bilinear_tables
from ..image.bitmap import Bitmap
from ..interfaces.emitter import Emitter, EmitterFlags
from ..interfaces.object import ParamFlags, TraversalCallback
from ..interfaces.records import DirectionSample, SurfaceInteraction
from ..registry import Parameter, register
from ..shapes.common import matrix_of, transform_vector
from ..transform import ScalarTransform4f
from ..warp import sincos
from .common import Surroundings


@register("emitter", "envmap")
class EnvironmentMap(Emitter, Surroundings):
    """Latitude-longitude image: columns go round (centred texels, periodic), rows from the pole +y to -y.

    `data` is (H, W, 3), linear; (H, W + 2, 3) with a repeated column on both sides is accepted when written.
    Directions are sampled by the image's luminance. Differentiable in `data` and `scale`.
    """

    parameters = (
        Parameter("filename", "string", None, "image file"),
        Parameter("bitmap", "any", None, "a Bitmap instead of a file"),
        Parameter("scale", "float", 1.0, "factor on the radiance"),
        Parameter("to_world", "transform", ScalarTransform4f(), "orientation"),
        Parameter("mis_compensation", "bool", False, "sample only what is brighter than the mean"),
        Parameter("sampling_weight", "float", 1.0, "share of light samples"),
    )

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        pixels, key = _pixels(props)
        # A copy of its own: what the cache holds must not change with the light.
        self.data = self.types.TensorXf(np.array(pixels, self.types.dtype.numpy, order="C"))
        self.scale = self.types.Float(props["scale"])
        self.to_world = matrix_of(self.types, props["to_world"])
        self.inverse = matrix_of(self.types, props["to_world"].inverse())
        self.mis_compensation: bool = props["mis_compensation"]
        self.sampling_weight = props["sampling_weight"]
        self._update(key)

    def flags(self) -> EmitterFlags:
        """Return: at infinity."""
        return EmitterFlags.Infinite | EmitterFlags.SpatiallyVarying

    def set_scene(self, scene: Any) -> None:
        """Learn the extent of the scene."""
        self.set_bounds(self.types, scene)

    def traverse(self, callback: TraversalCallback) -> None:
        """Report `data`, `scale`, `to_world`."""
        callback.put("data", self.data, ParamFlags.Differentiable | ParamFlags.Discontinuous)
        callback.put("scale", self.scale, ParamFlags.Differentiable)
        callback.put("to_world", self.to_world, ParamFlags.NonDifferentiable)

    def accept_parameter(self, name: str, value: Any) -> Any:
        """Return what is stored for a written parameter: images without repeated columns."""
        if name != "data":
            return value
        shape = tuple(int(s) for s in value.shape)
        if len(shape) != 3 or shape[2] != 3 or shape[0] < 2 or shape[1] < 2:
            raise SceneError(f"envmap: data must be (H, W, 3), found {shape}")
        height, width = self.data.shape[:2]
        if shape[:2] == (height, width + 2):
            return value[:, 1:-1]
        return value

    def parameters_changed(self, keys: Sequence[str] = ()) -> None:
        """Make the sampling tables again."""
        if not keys or "to_world" in keys:
            from ..shapes.common import numpy_matrix

            self.inverse.assign(matrix_of(self.types, ScalarTransform4f(numpy_matrix(self.to_world)).inverse()))
        if not keys or "data" in keys:
            self._measure()
            self.distribution = self._density()

    def _measure(self) -> None:
        shape = self.data.shape
        if len(shape) != 3 or shape[2] != 3:
            raise SceneError(f"envmap: data must be (H, W, 3), found {shape}")
        self.height, self.width = shape[:2]

    def _density(self) -> Bilinear2D:
        """Return the density of directions, as `_tables` makes it, of an image that stays where it is."""
        types, height, width = self.types, self.height, self.width
        kind = types.Float.ns.flat(Float64)
        data = convert(kind, detach(self.data.array))
        # The cells go round: the first column once more at the end.
        place = arange(types.UInt32, height * (width + 1))
        row, column = place // (width + 1), place % (width + 1)
        texel = arange(types.UInt32, height * width) * 3
        red, green, blue = (gather(kind, data, texel + c) for c in range(3))
        bright = f.max(red * 0.212671 + green * 0.715160 + blue * 0.072169, 0.0)
        if self.mis_compensation:
            mean = reduce.mean(bright)
            spread = mean - reduce.min(bright) > 0.05 * mean
            bright = f.select(spread, f.max(bright - mean, 0.0), bright)
        sine = f.sin(kind(row) * (math.pi / (height - 1)))
        grid = gather(kind, bright, row * width + f.select(column < width, column, 0)) * sine
        inner = reduce.sum(f.select((row > 0) & (row < height - 1) & (column < width), grid, 0.0))
        return Bilinear2D.of_array(types, f.select(inner > 0.0, grid, sine), height, width + 1)

    def _update(self, key: tuple[Any, ...] | None = None) -> None:
        """Build the density of directions; `key` stands for the file whose pixels `data` holds unchanged."""
        self._measure()
        image = self.data.numpy()

        def make() -> Value:
            return _tables(image, self.mis_compensation)

        # Images that change at every step of a fit would fill the cache.
        whole = ("envmap", *key, self.mis_compensation, image.dtype.str) if key is not None else None
        tables = remembered("table", whole, make) if whole is not None else make()
        self.distribution = Bilinear2D(self.types, tables=tables)

    def _texel(self, u: Any, v: Any, active: Any) -> Any:
        """Return the bilinear colour at (u, v)."""
        types = self.types
        x, y = u * self.width - 0.5, v * (self.height - 1)
        fx, fy = f.floor(x), f.min(f.floor(y), float(self.height - 2))
        wx, wy = x - fx, y - fy
        column = types.Int32(fx)
        x0 = types.UInt32(f.select(column < 0, column + self.width, column))
        x0 = f.select(x0 >= self.width, x0 - self.width, x0)
        x1 = f.select(x0 + 1 >= self.width, types.UInt32(0), x0 + 1)
        y0 = types.UInt32(f.max(fy, 0.0))
        top, bottom = y0 * self.width, (y0 + 1) * self.width
        texels = (top + x0, top + x1, bottom + x0, bottom + x1)
        a, b, c, d = (gather(types.Color3f, self.data.array, i, active) for i in texels)
        upper = a + (b - a) * wx
        lower = c + (d - c) * wx
        return types.Color3f((upper + (lower - upper) * wy) * self.scale)

    def _coordinates(self, local: Any) -> tuple[Any, Any]:
        """Return (u, v) of a direction in the light's own frame."""
        u = f.atan2(local.x, -local.z) * (0.5 / math.pi)
        v = f.acos(f.clip(local.y, -1.0, 1.0)) * (1.0 / math.pi)
        return u - f.floor(u), v

    def _radiance(self, d: Any, active: Any) -> Any:
        u, v = self._coordinates(self.types.Vector3f(transform_vector(self.inverse, d)))
        return self._texel(u, v, active)

    def eval(self, si: SurfaceInteraction, active: Any = True) -> Any:
        """Return the radiance from where the ray went."""
        return self._radiance(self.types.Vector3f(-si.wi), active)

    def sample_direction(self, ref: Any, sample: Any, active: Any = True) -> tuple[DirectionSample, Any]:
        """Return a direction by the brightness of the image."""
        types = self.types
        uv, pdf = self.distribution.sample(sample, active)
        u, v = uv.x + 0.5 / self.width, uv.y
        sin_theta, cos_theta = sincos(v * math.pi)
        sin_phi, cos_phi = sincos(u * (2.0 * math.pi))
        local = types.Vector3f(sin_phi * sin_theta, cos_theta, -cos_phi * sin_theta)
        d = types.Vector3f(transform_vector(self.to_world, local))
        valid = pdf > 0.0
        pdf = f.select(valid, pdf * self._density_of_directions(local), 0.0)
        ds = self.beyond(types, ref, d, pdf)
        weight = self._texel(f.select(u >= 1.0, u - 1.0, u), v, active) / f.select(valid, pdf, 1.0)
        return ds, types.Color3f(f.select(valid, weight, 0.0))

    @staticmethod
    def _density_of_directions(local: Any) -> Any:
        """Return the area of the unit square per solid angle."""
        sin_2 = local.x * local.x + local.z * local.z
        return f.rsqrt(f.max(sin_2, 2.0**-48)) * (0.5 / (math.pi * math.pi))

    def pdf_direction(self, ref: Any, ds: DirectionSample, active: Any = True) -> Any:
        """Return the density of a direction."""
        local = self.types.Vector3f(transform_vector(self.inverse, ds.d))
        u, v = self._coordinates(local)
        u = u - 0.5 / self.width
        point = self.types.Point2f(f.select(u < 0.0, u + 1.0, u), v)
        return self.distribution.pdf(point, active) * self._density_of_directions(local)

    def eval_direction(self, ref: Any, ds: DirectionSample, active: Any = True) -> Any:
        """Return the radiance from a direction, with gradients."""
        return self._radiance(ds.d, active)


def _tables(image: np.ndarray, mis_compensation: bool) -> Value:
    """Return the sampling tables of luminance times the sine of the polar angle, bilinear between texels."""
    bright = np.maximum(np.asarray(image, np.float64) @ np.array([0.212671, 0.715160, 0.072169]), 0.0)
    sine = np.sin(np.arange(len(image)) * (math.pi / (len(image) - 1)))[:, None]
    if mis_compensation:
        bright = _brighter_than_mean(bright)
    table = bright * sine
    if not table[1:-1].sum() > 0:
        table = np.repeat(sine, image.shape[1], axis=1)
    # The cells go round: the first column once more at the end.
    return bilinear_tables(np.concatenate([table, table[:, :1]], axis=1), image.dtype)


def _brighter_than_mean(bright: np.ndarray) -> np.ndarray:
    """Return what exceeds the mean texel (Karlik et al. 2019, "MIS compensation"); nearly constant images stay."""
    mean = float(bright.mean())
    return np.maximum(bright - mean, 0.0) if mean - bright.min() > 0.05 * mean else bright


def _pixels(props: Any) -> tuple[np.ndarray, tuple[Any, ...] | None]:
    """Return the image (H, W, 3), and what stands for it in the cache if it comes from a file: then it is shared."""
    if (props["filename"] is None) == (props["bitmap"] is None):
        raise SceneError("envmap: give either filename or bitmap")
    if props["bitmap"] is not None:
        return _colours(props["bitmap"] if isinstance(props["bitmap"], Bitmap) else Bitmap(props["bitmap"])), None
    path = props.resolve(props["filename"])

    def decoded(data: bytes) -> Value:
        return {"image": np.ascontiguousarray(_colours(Bitmap.decode(path, data)))}

    value, key = from_file("environment", path, (), decoded, "image file")
    return value["image"], key


def _colours(bitmap: Bitmap) -> np.ndarray:
    """Return the linear pixels (H, W, 3) of a bitmap."""
    image = bitmap.convert(component_format=np.float32, srgb_gamma=False).array
    if image.shape[2] in (1, 2):
        image = np.repeat(image[:, :, :1], 3, axis=2)
    image = image[:, :, :3]
    height, width = image.shape[:2]
    if height < 2 or width < 2:
        raise SceneError(f"envmap: the image must have at least 2 x 2 pixels, found {width} x {height}")
    if not np.isfinite(image).all():
        raise SceneError("envmap: the image holds NaN or infinite values")
    return image
