"""The film for high dynamic range images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...jit.arrays.create import arange, zeros
from ...jit.arrays.memops import scatter
from ...jit.errors import SceneError
from ..interfaces.film import Film
from ..interfaces.object import ParamFlags, TraversalCallback
from ..registry import Parameter, register
from .block import Block

CHANNELS = {"luminance": 1, "luminance_alpha": 2, "rgb": 3, "rgba": 4, "xyz": 3, "xyza": 4}
_COMPONENTS = ("float16", "float32", "uint32")
# Linear sRGB to CIE XYZ (IEC 61966-2-1).
_XYZ = ((0.412453, 0.357580, 0.180423), (0.212671, 0.715160, 0.072169), (0.019334, 0.119193, 0.950227))


@register("film", "hdrfilm")
class HDRFilm(Film):
    """Develops to arrays of shape (height, width, channels) by `pixel_format`, linear."""

    parameters = (
        Parameter("width", "int", 768, "pixels"),
        Parameter("height", "int", 576, "pixels"),
        Parameter("crop_offset_x", "int", 0, "first rendered column"),
        Parameter("crop_offset_y", "int", 0, "first rendered row"),
        Parameter("crop_width", "int", None, "rendered columns (all if absent)"),
        Parameter("crop_height", "int", None, "rendered rows (all if absent)"),
        Parameter("pixel_format", "string", "rgb", "channels", choices=tuple(CHANNELS)),
        Parameter("component_format", "string", "float16", "of written files", choices=_COMPONENTS),
        Parameter("file_format", "string", "openexr", "of written files", choices=("openexr", "rgbe", "pfm", "exr")),
        Parameter("sample_border", "bool", False, "also sample just outside, so that edge pixels are complete"),
        Parameter("rfilter", "rfilter", None, "reconstruction filter (gaussian if absent)"),
    )
    ignored = ("banner", "compensate")

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self._size = [props["width"], props["height"]]
        self._offset = [props["crop_offset_x"], props["crop_offset_y"]]
        width, height = props["crop_width"], props["crop_height"]
        self._crop = [
            self._size[0] - self._offset[0] if width is None else width,
            self._size[1] - self._offset[1] if height is None else height,
        ]
        self.pixel_format: str = props["pixel_format"]
        self.component_format: str = props["component_format"]
        self.sample_border: bool = props["sample_border"]
        self.rfilter = props["rfilter"]
        if self.rfilter is None:
            from ..slots import create

            self.rfilter = create("rfilter", "gaussian", {}, props, "rfilter")
        self._check()
        self._expose()

    def _check(self) -> None:
        axes = zip(self._offset, self._crop, self._size, strict=True)
        if not all(0 <= o and c >= 1 and o + c <= s for o, c, s in axes):
            raise SceneError(f"hdrfilm: crop {self._crop} at {self._offset} does not lie in a film of {self._size}")

    def _expose(self) -> None:
        types = self.types
        self._size_array = types.Vector2u(*self._size)
        self._crop_array, self._offset_array = types.Vector2u(*self._crop), types.Point2u(*self._offset)

    def size(self) -> list[int]:
        """Return [width, height] of the whole film."""
        return list(self._size)

    def crop_size(self) -> list[int]:
        """Return [width, height] of the rendered part."""
        return list(self._crop)

    def crop_offset(self) -> list[int]:
        """Return [x, y] of the first rendered pixel."""
        return list(self._offset)

    def set_size(self, size: Sequence[int]) -> None:
        """Set size and crop to the whole of a new size."""
        self._size, self._crop, self._offset = [int(v) for v in size], [int(v) for v in size], [0, 0]
        self._check()
        self._expose()

    @property
    def has_alpha(self) -> bool:
        """Return whether images have an alpha channel."""
        return self.pixel_format in ("rgba", "luminance_alpha", "xyza")

    def traverse(self, callback: TraversalCallback) -> None:
        """Report the sizes."""
        fixed = ParamFlags.NonDifferentiable
        callback.put("size", self._size_array, fixed)
        callback.put("crop_size", self._crop_array, fixed)
        callback.put("crop_offset", self._offset_array, fixed)

    def parameters_changed(self, keys: Sequence[str] = ()) -> None:
        """Take over changed sizes; a new size without a new crop is rendered whole."""

        def read(array: Any) -> list[int]:
            return [int(c.item()) for c in array]

        size = read(self._size_array)
        if size != self._size and "crop_size" not in keys:
            self._crop_array.assign(self.types.Vector2u(*size))
            self._offset_array.assign(self.types.Point2u(0, 0))
        self._size, self._crop, self._offset = size, read(self._crop_array), read(self._offset_array)
        self._check()

    def base_channels(self) -> list[str]:
        """Return the names of the channels."""
        names = {"l": "Y", "r": "RGB", "x": "XYZ"}[self.pixel_format[0]]
        return list(names) + (["A"] if self.has_alpha else [])

    def block(self, extra: int = 0, base: bool = True) -> Block:
        """Return an empty block for RGB, alpha if the format has it (`base`), and `extra` channels."""
        crop = (self._crop[0], self._crop[1])
        channels = (3 + self.has_alpha if base else 0) + extra
        return Block(self.types, crop, channels, self.rfilter, self.margin)

    @property
    def margin(self) -> int:
        """Return the reach of the filter if the border is to be sampled, else 0."""
        return self.rfilter.border if self.sample_border else 0

    def convert(self, channels: list[Any]) -> list[Any]:
        """Return the channels of the pixel format from R, G, B, [A], extra ones."""
        r, g, b, *rest = channels
        if self.pixel_format.startswith("luminance"):
            return [r * _XYZ[1][0] + g * _XYZ[1][1] + b * _XYZ[1][2], *rest]
        if self.pixel_format.startswith("xyz"):
            return [*(r * m[0] + g * m[1] + b * m[2] for m in _XYZ), *rest]
        return channels

    def convert_adjoint(self, gradients: list[Any]) -> list[Any]:
        """Return gradients of R, G, B, [A], extra from those of the pixel format's channels."""
        if self.pixel_format.startswith("luminance"):
            y, *rest = gradients
            return [*(y * w for w in _XYZ[1]), *rest]
        if self.pixel_format.startswith("xyz"):
            x, y, z, *rest = gradients
            return [*(x * _XYZ[0][k] + y * _XYZ[1][k] + z * _XYZ[2][k] for k in range(3)), *rest]
        return gradients

    def tensor(self, channels: list[Any]) -> Any:
        """Return a tensor (height, width, channels) of flat channels."""
        types = self.types
        count, n = self._crop[0] * self._crop[1], len(channels)
        flat = zeros(types.Float, count * n)
        pixel = arange(types.UInt32, count) * n
        for c, values in enumerate(channels):
            scatter(flat, values, pixel + c, mode="permute")
        return types.TensorXf(flat, (self._crop[1], self._crop[0], n))

    def develop(self, block: Block) -> Any:
        """Return the image of a block, (height, width, channels)."""
        return self.tensor(self.convert(block.channels_of_image()))

    def write(self, path: str | Path, image: Any) -> None:
        """Write an image to a file; EXR in `component_format`."""
        from ..image.bitmap import Bitmap

        bitmap = Bitmap(image.numpy())
        if str(path).lower().endswith(".exr") and self.component_format == "float16":
            import numpy as np

            bitmap = bitmap.convert(component_format=np.float16)
        bitmap.write(path)
