"""An image of the surroundings as light."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...jit.arrays import functions as f
from ...jit.arrays.memops import gather
from ...jit.errors import SceneError
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
        pixels = _pixels(props)
        self.data = self.types.TensorXf(np.ascontiguousarray(pixels, self.types.dtype.numpy))
        self.scale = self.types.Float(props["scale"])
        self.to_world = matrix_of(self.types, props["to_world"])
        self.inverse = matrix_of(self.types, props["to_world"].inverse())
        self.mis_compensation: bool = props["mis_compensation"]
        self.sampling_weight = props["sampling_weight"]
        self._update()

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
            self._update()

    def _update(self) -> None:
        """Build the cumulative distribution of the cells between texels: rows, then columns within each row."""
        types = self.types
        image = np.asarray(self.data.numpy(), np.float64)
        if image.ndim != 3 or image.shape[2] != 3:
            raise SceneError(f"envmap: data must be (H, W, 3), found {image.shape}")
        height, width = image.shape[:2]
        self.height, self.width = height, width
        bright = image @ np.array([0.212671, 0.715160, 0.072169])
        bright = np.maximum(bright, 0.0)
        right = np.roll(bright, -1, axis=1)
        cells = 0.25 * (bright[:-1] + bright[1:] + right[:-1] + right[1:])
        if self.mis_compensation:
            reduced = np.maximum(cells - cells.mean(), 0.0)
            cells = reduced if reduced.sum() > 0 else cells
        theta = (np.arange(height - 1) + 0.5) / (height - 1) * math.pi
        cells = cells * np.sin(theta)[:, None]
        if not cells.sum() > 0:
            cells = np.repeat(np.sin(theta)[:, None], width, axis=1)
        rows = cells.sum(1)
        inside = np.cumsum(cells, 1) / np.where(rows > 0, rows, 1.0)[:, None]
        flat = lambda x: types.Float(np.ascontiguousarray(x, types.dtype.numpy).ravel())  # noqa: E731
        self.rows = flat(np.cumsum(rows) / rows.sum())
        self.columns = flat(inside)
        # Density in the unit square of (u, v).
        self.density = flat(cells / cells.sum() * cells.size)

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
        a, b, c, d = (gather(types.Color3f, self.data.array, i, active) for i in (top + x0, top + x1, bottom + x0, bottom + x1))
        upper = a + (b - a) * wx
        lower = c + (d - c) * wx
        return types.Color3f((upper + (lower - upper) * wy) * self.scale)

    def _coordinates(self, direction: Any) -> tuple[Any, Any, Any]:
        """Return (u, v, 1 / sin of the polar angle) of a world direction."""
        d = transform_vector(self.inverse, direction)
        u = f.atan2(d.x, -d.z) * (0.5 / math.pi)
        v = f.acos(f.clip(d.y, -1.0, 1.0)) * (1.0 / math.pi)
        sin_2 = f.max(d.x * d.x + d.z * d.z, 2.0**-40)
        return u - f.floor(u), v, f.rsqrt(sin_2)

    def eval(self, si: SurfaceInteraction, active: Any = True) -> Any:
        """Return the radiance from where the ray went."""
        u, v, _ = self._coordinates(self.types.Vector3f(-si.wi))
        return self._texel(u, v, active)

    def sample_direction(self, ref: Any, sample: Any, active: Any = True) -> tuple[DirectionSample, Any]:
        """Return a direction by the brightness of the image."""
        types = self.types
        row, y = self._choose(self.rows, types.UInt32(0), self.height - 1, sample.y, active)
        column, x = self._choose(self.columns, row * self.width, self.width, sample.x, active)
        u = (types.Float(column) + x + 0.5) * (1.0 / self.width)
        v = (types.Float(row) + y) * (1.0 / (self.height - 1))
        u = f.select(u >= 1.0, u - 1.0, u)
        sin_theta, cos_theta = sincos(v * math.pi)
        sin_phi, cos_phi = sincos(u * (2.0 * math.pi))
        local = types.Vector3f(sin_phi * sin_theta, cos_theta, -cos_phi * sin_theta)
        d = types.Vector3f(transform_vector(self.to_world, local))
        pdf = gather(types.Float, self.density, row * self.width + column, active)
        pdf = pdf / (2.0 * math.pi * math.pi * f.max(sin_theta, 2.0**-20))
        ds = self.beyond(types, ref, d, pdf)
        weight = self._texel(u, v, active) / f.select(pdf > 0.0, pdf, 1.0)
        return ds, types.Color3f(f.select(pdf > 0.0, weight, 0.0))

    def _choose(self, table: Any, base: Any, count: int, u: Any, active: Any) -> tuple[Any, Any]:
        """Return the cell whose part of the cumulative table holds `u`, and the position within it."""
        types = self.types
        low, high = types.UInt32(0), types.UInt32(count - 1)
        for _ in range(max(1, (count - 1).bit_length())):
            middle = (low + high) // 2
            right = gather(types.Float, table, base + middle, active) <= u
            low, high = f.select(right, f.min(middle + 1, high), low), f.select(right, high, middle)
        before = f.select(low > 0, gather(types.Float, table, base + f.max(low, 1) - 1, active), 0.0)
        width = gather(types.Float, table, base + low, active) - before
        return low, f.clip((u - before) / f.max(width, 1e-20), 0.0, 1.0)

    def pdf_direction(self, ref: Any, ds: DirectionSample, active: Any = True) -> Any:
        """Return the density of a direction."""
        types = self.types
        u, v, inverse_sin = self._coordinates(ds.d)
        x = u * self.width - 0.5
        column = types.Int32(f.floor(x))
        cell = types.UInt32(f.select(column < 0, column + self.width, column))
        cell = f.min(cell, self.width - 1)
        row = types.UInt32(f.clip(f.floor(v * (self.height - 1)), 0.0, float(self.height - 2)))
        return gather(types.Float, self.density, row * self.width + cell, active) * inverse_sin * (0.5 / (math.pi * math.pi))

    def eval_direction(self, ref: Any, ds: DirectionSample, active: Any = True) -> Any:
        """Return the radiance from a direction, with gradients."""
        u, v, _ = self._coordinates(ds.d)
        return self._texel(u, v, active)


def _pixels(props: Any) -> np.ndarray:
    if (props["filename"] is None) == (props["bitmap"] is None):
        raise SceneError("envmap: give either filename or bitmap")
    source = props["bitmap"] if props["bitmap"] is not None else Bitmap(props.resolve(props["filename"]))
    bitmap = source if isinstance(source, Bitmap) else Bitmap(source)
    image = bitmap.convert(component_format=np.float32, srgb_gamma=False).array
    if image.shape[2] in (1, 2):
        image = np.repeat(image[:, :, :1], 3, axis=2)
    image = image[:, :, :3]
    if image.shape[0] < 2 or image.shape[1] < 2:
        raise SceneError(f"envmap: the image must have at least 2 x 2 pixels, found {image.shape[1]} x {image.shape[0]}")
    if not np.isfinite(image).all():
        raise SceneError("envmap: the image holds NaN or infinite values")
    return image
