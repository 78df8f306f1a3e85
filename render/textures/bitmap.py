"""Textures from images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ad.api import suspend_grad
from ...jit.arrays import functions as f
from ...jit.arrays import reduce
from ...jit.arrays.memops import gather
from ...jit.control import outside
from ...jit.datacache import content_digest
from ...jit.errors import SceneError
from ..cached import Value, from_file, remembered
from ..distributions import Discrete2D, discrete_tables
from ..image.bitmap import Bitmap
from ..interfaces.object import ParamFlags, TraversalCallback
from ..interfaces.records import SurfaceInteraction
from ..interfaces.texture import Texture, luminance
from ..registry import Parameter, register
from ..transform import ScalarTransform3f
from ..warp import square_to_tent


@register("texture", "bitmap")
class BitmapTexture(Texture):
    """An image over uv, row 0 at v = 0; texel centres at (i + 0.5) / N.

    8-bit files hold sRGB values and are made linear unless `raw`; others are taken as they are. Stored as floats:
    `data` (H, W, C) is differentiable.
    """

    parameters = (
        Parameter("filename", "string", None, "image file"),
        Parameter("bitmap", "any", None, "a Bitmap instead of a file"),
        Parameter("data", "any", None, "a tensor (H, W, C) instead of a file"),
        Parameter("raw", "bool", False, "take the numbers as they are: no colours"),
        Parameter("filter_type", "string", "bilinear", "between texels", choices=("bilinear", "nearest")),
        Parameter("wrap_mode", "string", "repeat", "outside [0, 1]", choices=("repeat", "mirror", "clamp")),
        Parameter("format", "string", "auto", "accepted", choices=("auto", "variant", "float16", "fp16", "uint8")),
        Parameter("to_uv", "transform2", ScalarTransform3f(), "applied to uv"),
        Parameter("accel", "bool", True, "accepted"),
    )

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self.raw: bool = props["raw"]
        self.filter_type: str = props["filter_type"]
        self.wrap_mode: str = props["wrap_mode"]
        self.matrix = props["to_uv"].matrix
        # A copy of its own: what the cache holds must not change with the texture.
        self.data = self.types.TensorXf(np.array(_pixels(props, self.raw), self.types.dtype.numpy, order="C"))
        self._update()

    def _update(self) -> None:
        shape = tuple(self.data.shape)
        if len(shape) != 3 or shape[2] not in (1, 3) or min(shape[:2]) < 1:
            raise SceneError(f"bitmap: data must be (H, W, 1) or (H, W, 3), found {shape}")
        self.height, self.width, self.channels = shape
        self._distribution: Discrete2D | None = None

    def traverse(self, callback: TraversalCallback) -> None:
        """Report `data`."""
        callback.put("data", self.data, ParamFlags.Differentiable)

    def parameters_changed(self, keys: Sequence[str] = ()) -> None:
        """Take over an image of another size."""
        self._update()

    def _wrap(self, i: Any, size: int) -> Any:
        """Return texel numbers (Int32) brought into the image."""
        types = self.types
        if self.wrap_mode == "clamp":
            return types.UInt32(f.clip(i, 0, size - 1))
        period = size if self.wrap_mode == "repeat" else 2 * size
        r = i % period
        r = f.select(r < 0, r + period, r)
        if self.wrap_mode == "mirror":
            r = f.select(r >= size, (2 * size - 1) - r, r)
        return types.UInt32(r)

    def _fetch(self, x: Any, y: Any, active: Any) -> list[Any]:
        base = (self._wrap(y, self.height) * self.width + self._wrap(x, self.width)) * self.channels
        return [gather(self.types.Float, self.data.array, base + c, active) for c in range(self.channels)]

    def _lookup(self, si: SurfaceInteraction, active: Any) -> list[Any]:
        types, m = self.types, self.matrix
        u = si.uv.x * float(m[0, 0]) + si.uv.y * float(m[0, 1]) + float(m[0, 2])
        v = si.uv.x * float(m[1, 0]) + si.uv.y * float(m[1, 1]) + float(m[1, 2])
        if self.filter_type == "nearest":
            return self._fetch(types.Int32(f.floor(u * self.width)), types.Int32(f.floor(v * self.height)), active)
        x, y = f.fma(u, float(self.width), -0.5), f.fma(v, float(self.height), -0.5)
        fx, fy = f.floor(x), f.floor(y)
        wx, wy = x - fx, y - fy
        ix, iy = types.Int32(fx), types.Int32(fy)
        corners = [self._fetch(ix + i, iy + j, active) for j in (0, 1) for i in (0, 1)]
        out = []
        for a, b, c, d in zip(*corners, strict=True):
            top, bottom = f.fma(wx, b - a, a), f.fma(wx, d - c, c)
            out.append(f.fma(wy, bottom - top, top))
        return out

    def eval(self, si: SurfaceInteraction, active: Any = True) -> Any:
        """Return the colour at si.uv."""
        values = self._lookup(si, active)
        return self.types.Color3f(*values) if self.channels == 3 else self.types.Color3f(values[0])

    def eval_1(self, si: SurfaceInteraction, active: Any = True) -> Any:
        """Return the value, of colours the luminance."""
        values = self._lookup(si, active)
        return values[0] if self.channels == 1 else luminance(self.types.Color3f(*values))

    def mean(self) -> Any:
        """Return the mean of all texels and channels."""
        return reduce.mean(self.data.array)

    def is_sampled(self) -> bool:
        """Return whether positions can be drawn: not where `to_uv` moves the image on the surface."""
        return bool(np.array_equal(self.matrix, np.eye(3)))

    @property
    def distribution(self) -> Discrete2D:
        """Return the probabilities of the texels, by brightness."""
        if self._distribution is None:
            # May be asked for first within a recorded loop, but depends on nothing in it.
            with outside(), suspend_grad():
                image = self.data.numpy()
                tables = remembered("table", ("discrete", content_digest(image)), lambda: _tables(image))
                self._distribution = Discrete2D(self.types, tables=tables)
        return self._distribution

    def sample_position(self, sample: Any, active: Any = True) -> tuple[Any, Any]:
        """Return a uv drawn by brightness: a texel, then a place in the tent (bilinear) or square around its centre."""
        types = self.types
        column, row, pdf, rest = self.distribution.sample(sample, active)
        x, y = types.Float(column), types.Float(row)
        if self.filter_type == "nearest":
            uv = types.Point2f((x + rest.x) * (1.0 / self.width), (y + rest.y) * (1.0 / self.height))
            return uv, pdf * float(self.width * self.height)
        tent = square_to_tent(rest)
        u, v = (x + 0.5 + tent.x) * (1.0 / self.width), (y + 0.5 + tent.y) * (1.0 / self.height)
        if self.wrap_mode == "repeat":
            u, v = (f.select(t < 0.0, t + 1.0, f.select(t > 1.0, t - 1.0, t)) for t in (u, v))
        else:
            u, v = (f.select(t < 0.0, -t, f.select(t > 1.0, 2.0 - t, t)) for t in (u, v))
        uv = types.Point2f(u, v)
        return uv, self.pdf_position(uv, active)

    def pdf_position(self, uv: Any, active: Any = True) -> Any:
        """Return the density of `sample_position` over the unit square."""
        types, size = self.types, float(self.width * self.height)
        if self.filter_type == "nearest":
            x, y = (types.Int32(f.floor(t * n)) for t, n in ((uv.x, self.width), (uv.y, self.height)))
            return self.distribution.pdf(self._wrap(x, self.width), self._wrap(y, self.height), active) * size
        x, y = f.fma(uv.x, float(self.width), -0.5), f.fma(uv.y, float(self.height), -0.5)
        fx, fy = f.floor(x), f.floor(y)
        wx, wy = x - fx, y - fy
        columns = [self._wrap(types.Int32(fx) + i, self.width) for i in (0, 1)]
        rows = [self._wrap(types.Int32(fy) + i, self.height) for i in (0, 1)]
        (a, b), (c, d) = ([self.distribution.pdf(i, j, active) for i in columns] for j in rows)
        top, bottom = f.fma(wx, b - a, a), f.fma(wx, d - c, c)
        return f.fma(wy, bottom - top, top) * size


def _tables(image: np.ndarray) -> Value:
    """Return the sampling tables of an image (H, W, 1 or 3) by brightness; a black one is sampled evenly."""
    weights = np.array([1.0] if image.shape[2] == 1 else [0.212671, 0.715160, 0.072169])
    bright = np.maximum(np.asarray(image, np.float64) @ weights, 0.0)
    return discrete_tables(bright if bright.sum() > 0 else np.ones_like(bright), image.dtype)


def _pixels(props: Any, raw: bool) -> np.ndarray:
    """Return the image (H, W, 1 or 3) that the properties name, finite; shared and read-only if from a file."""
    given = [name for name in ("filename", "bitmap", "data") if props[name] is not None]
    if len(given) != 1:
        raise SceneError(f"bitmap: give one of filename, bitmap and data, found {given or 'none'}")
    if given[0] == "data":
        array = np.asarray(props["data"].numpy() if hasattr(props["data"], "numpy") else props["data"])
        return _finite(array[:, :, None] if array.ndim == 2 else array)
    if given[0] == "bitmap":
        return _colours(props["bitmap"] if isinstance(props["bitmap"], Bitmap) else Bitmap(props["bitmap"]), raw)
    path = props.resolve(props["filename"])

    def decoded(data: bytes) -> Value:
        return {"image": np.ascontiguousarray(_colours(Bitmap.decode(path, data), raw))}

    value, _ = from_file("texture", path, (raw,), decoded, "image file")
    image: np.ndarray = value["image"]
    return image


def _finite(image: np.ndarray) -> np.ndarray:
    if image.dtype.kind == "f" and not np.isfinite(image).all():
        raise SceneError("bitmap: the image holds NaN or infinite values")
    return image


def _colours(bitmap: Bitmap, raw: bool) -> np.ndarray:
    """Return the pixels of a bitmap as a texture has them: linear unless `raw`, one channel or three."""
    if raw:
        array = bitmap.array
        scale = {"u": float(np.iinfo(array.dtype).max) if array.dtype.kind == "u" else 1.0}.get(array.dtype.kind, 1.0)
        image = array.astype(np.float32) / np.float32(scale)
    else:
        image = bitmap.convert(component_format=np.float32, srgb_gamma=False).array
    channels = {1: 1, 2: 1}.get(image.shape[2], 3)
    return _finite(image[:, :, :channels])
