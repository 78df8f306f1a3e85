"""The class `Bitmap`: a picture in memory, made from files and arrays, converted, resampled and written."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...jit.errors import SceneError, WrongTypeError
from .conversion import convert
from .files import decode_image, read_image, write_image
from .pillow_files import write_png
from .pixel_format import FileFormat as _FileFormat
from .pixel_format import PixelFormat as _PixelFormat
from .pixel_format import Pixels, Struct, StructType, as_component_dtype, as_pixel_format, guess_pixel_format
from .resample import resample

__all__ = ["Bitmap"]

_BY_COUNT = {1: _PixelFormat.Y, 2: _PixelFormat.YA, 3: _PixelFormat.RGB, 4: _PixelFormat.RGBA}


@lru_cache(maxsize=1)
def _writer() -> ThreadPoolExecutor:
    """Return the thread of `write_async`; the interpreter waits for it before it exits."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="luxgrad-image")


class Bitmap:
    """A picture of `height` rows from the top and `width` columns, with channels of one number type.

    Made in one of four ways::

        Bitmap("picture.exr")                                                a file
        Bitmap(array, pixel_format=None, channel_names=())                   (h, w) or (h, w, channels), any strides
        Bitmap(bitmap)                                                       a copy
        Bitmap(Bitmap.PixelFormat.RGB, Struct.Type.Float32, (width, height)) zeros

    Arrays of 1, 2, 3 and 4 channels are Y, YA, RGB and RGBA, more are `MultiChannel`. Arrays of uint8 are taken to be
    sRGB-encoded, all others linear (`set_srgb_gamma` says otherwise); 8 and 16 bit files are sRGB-encoded, EXR, HDR
    and PFM linear. The array is copied. The interface is that of Mitsuba's class, where sizes and formats are methods;
    `component_format()` is a NumPy type, which compares equal to the `Struct.Type` of the same layout.
    """

    PixelFormat = _PixelFormat
    FileFormat = _FileFormat

    def __init__(
        self,
        source: Any,
        pixel_format: Any = None,
        channel_names: Sequence[Any] = (),
        channel_count: int = 0,
    ) -> None:
        self._pixels: Pixels
        if isinstance(source, Bitmap):
            self._pixels = convert(
                source._pixels, source.pixel_format(), source.component_format(), source.srgb_gamma()
            )
        elif isinstance(source, str | os.PathLike):
            self._pixels = read_image(source, pixel_format or _FileFormat.Auto)
        elif isinstance(source, _PixelFormat):
            width, height = (int(n) for n in channel_names)
            count = len(source.channels) or channel_count
            dtype = as_component_dtype(pixel_format)
            self._pixels = Pixels(np.zeros((height, width, count), dtype), source, dtype == np.uint8)
        else:
            self._pixels = _from_array(source, pixel_format, tuple(str(name) for name in channel_names))

    @classmethod
    def _wrap(cls, pixels: Pixels) -> Bitmap:
        bitmap = cls.__new__(cls)
        bitmap._pixels = pixels
        return bitmap

    @classmethod
    def decode(cls, path: str | os.PathLike[str], data: bytes) -> Bitmap:
        """Return the picture of an image file whose contents were read already."""
        return cls._wrap(decode_image(path, data))

    @property
    def array(self) -> npt.NDArray[Any]:
        """The pixels themselves, not a copy: (height, width, channels), row 0 on top."""
        return self._pixels.array

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return the pixels as (height, width, channels), or (height, width) if there is one channel."""
        array = self.array[..., 0] if self.channel_count() == 1 else self.array
        # Before NumPy 2 there was no copy=None; a copy is always right but where it is forbidden.
        return array if copy is False and dtype in (None, array.dtype) else np.array(array, dtype=dtype)

    def pixel_format(self) -> _PixelFormat:
        """Return what the channels mean."""
        return self._pixels.pixel_format

    def component_format(self) -> np.dtype[Any]:
        """Return the NumPy type of the components; it compares equal to the `Struct.Type` of the same layout."""
        return self._pixels.array.dtype

    def srgb_gamma(self) -> bool:
        """Return whether the numbers are sRGB-encoded rather than linear."""
        return self._pixels.srgb_gamma

    def set_srgb_gamma(self, value: bool) -> None:
        """Declare the numbers sRGB-encoded or linear without touching them."""
        self._pixels.srgb_gamma = bool(value)

    def width(self) -> int:
        """Return the number of columns."""
        return int(self.array.shape[1])

    def height(self) -> int:
        """Return the number of rows."""
        return int(self.array.shape[0])

    def size(self) -> tuple[int, int]:
        """Return (width, height)."""
        return self.width(), self.height()

    def channel_count(self) -> int:
        """Return the number of channels."""
        return int(self.array.shape[2])

    def pixel_count(self) -> int:
        """Return width times height."""
        return self.width() * self.height()

    def has_alpha(self) -> bool:
        """Return whether the last channel is an opacity."""
        return self.pixel_format().has_alpha

    def metadata(self) -> dict[str, Any]:
        """Return the notes stored with the picture, which may be changed; EXR keeps text and numbers, PNG text."""
        return self._pixels.metadata

    def struct_(self) -> list[Struct]:
        """Return name and type of each channel."""
        return [Struct(name, self.component_format()) for name in self._pixels.names]

    def convert(
        self,
        pixel_format: _PixelFormat | None = None,
        component_format: StructType | npt.DTypeLike | None = None,
        srgb_gamma: bool | None = None,
    ) -> Bitmap:
        """Return the picture in another form; what is None stays as it is, the tone curve too.

        Floats become integers by rounding, 1 and everything above (also infinity) the largest value, NaN and negative
        values 0. A new opacity is 1, a lost one is dropped; opacities never take part in the tone curve. Unlike in
        Mitsuba nothing is dithered. Raises SceneError between `MultiChannel` and other formats.
        """
        dtype = self.component_format() if component_format is None else as_component_dtype(component_format)
        target = self.pixel_format() if pixel_format is None else as_pixel_format(pixel_format)
        gamma = self.srgb_gamma() if srgb_gamma is None else bool(srgb_gamma)
        return Bitmap._wrap(convert(self._pixels, target, dtype, gamma))

    def resample(self, res: Sequence[int], rfilter: str = "lanczos") -> Bitmap:
        """Return the picture at the size `res` = (width, height); filtered in linear space, edges repeat.

        `rfilter` is box, tent, gaussian, mitchell, catmullrom or lanczos; the last three overshoot at edges.
        """
        try:
            width, height = (operator.index(n) for n in res)
        except (TypeError, ValueError):
            raise WrongTypeError(f"resample(): the size is (width, height), two ints; found {res!r}") from None
        wide = np.float64 if self.component_format() == np.float64 else np.float32
        linear = convert(self._pixels, self.pixel_format(), np.dtype(wide), False)
        linear.array = resample(linear.array, width, height, rfilter)
        return Bitmap._wrap(convert(linear, self.pixel_format(), self.component_format(), self.srgb_gamma()))

    def split(self) -> list[tuple[str, Bitmap]]:
        """Return (layer, picture) for each layer of a multi-channel picture; channels without a layer are `<root>`.

        The layer is what stands before the last dot of a channel's name: `albedo.R` is R of `albedo`.
        """
        if self.pixel_format() is not _PixelFormat.MultiChannel:
            return [("<root>", self)]
        layers: dict[str, list[int]] = {}
        for position, name in enumerate(self._pixels.names):
            layers.setdefault(name.rpartition(".")[0] or "<root>", []).append(position)
        result = []
        for layer, positions in layers.items():
            names = tuple(self._pixels.names[i].rpartition(".")[2] for i in positions)
            array = np.ascontiguousarray(self.array[..., positions])
            pixels = Pixels(array, guess_pixel_format(names), self.srgb_gamma(), names, dict(self.metadata()))
            result.append((layer, Bitmap._wrap(pixels)))
        return result

    def vflip(self) -> None:
        """Turn the picture upside down in place."""
        self._pixels.array = np.ascontiguousarray(self.array[::-1])

    def clear(self) -> None:
        """Set all numbers to 0."""
        self.array[...] = 0

    def accumulate(self, other: Bitmap) -> None:
        """Add a picture of the same size and channels; numbers are converted, not tone curves."""
        if other.array.shape != self.array.shape:
            raise SceneError(f"cannot add a picture of shape {other.array.shape} to one of shape {self.array.shape}")
        self._pixels.array = (self.array + other.array).astype(self.component_format())

    def write(
        self, path: str | os.PathLike[str], format: _FileFormat | int = _FileFormat.Auto, quality: int = -1
    ) -> None:
        """Write the picture; the extension chooses the format unless `format` does.

        What a format cannot hold is converted: PNG, JPEG, PPM, BMP and TGA take floats through the sRGB curve, EXR,
        HDR and PFM get linear numbers; JPEG, HDR, PFM and PPM drop opacity. The file appears whole or not at all.
        `quality`: PNG effort 1 to 9 (default 5), JPEG 1 to 100 (default 100), EXR loss of DWAB (default: lossless ZIP).
        """
        if not isinstance(path, (str, os.PathLike)):
            raise WrongTypeError(f"write(): a file name is needed, found {type(path).__name__}")
        if isinstance(format, int):
            write_image(self._pixels, path, _FileFormat.Auto, format)
        else:
            write_image(self._pixels, path, format, quality)

    def write_async(
        self, path: str | os.PathLike[str], format: _FileFormat | int = _FileFormat.Auto, quality: int = -1
    ) -> Future[None]:
        """Write a copy of the picture in another thread; `.result()` of what comes back waits and raises its errors."""
        return _writer().submit(Bitmap(self).write, path, format, quality)

    def __eq__(self, other: object) -> bool:
        """Whether formats, tone curve, channel names and numbers agree; NaN equals NaN, metadata is not compared."""
        if not isinstance(other, Bitmap):
            return NotImplemented
        a, b = self._pixels, other._pixels
        same_meaning = (a.pixel_format, a.srgb_gamma, a.names, a.array.dtype) == (
            b.pixel_format, b.srgb_gamma, b.names, b.array.dtype)  # fmt: skip
        return same_meaning and np.array_equal(a.array, b.array, equal_nan=a.array.dtype.kind == "f")

    def __repr__(self) -> str:
        channels = ", ".join(self._pixels.names)
        notes = "".join(f"\n    {key} => {value!r}," for key, value in self.metadata().items())
        return (
            f"Bitmap[\n  pixel_format = {self.pixel_format().value},"
            f"\n  component_format = {self.component_format().name},"
            f"\n  size = [{self.width()}, {self.height()}],\n  srgb_gamma = {int(self.srgb_gamma())},"
            f"\n  channels = [{channels}],"
            + (f"\n  metadata = {{{notes}\n  }}," if notes else "")
            + f"\n  data = [ {self.array.nbytes} B of image data ]\n]"
        )

    def _repr_png_(self) -> bytes | None:
        """Return what a notebook shows: the first layer as a PNG, None if it has no colours."""
        first = self.split()[0][1]
        if first.pixel_format() is _PixelFormat.MultiChannel:
            return None
        target = _PixelFormat.RGBA if first.has_alpha() else _PixelFormat.RGB
        return write_png(first.convert(target, np.uint8, True)._pixels, -1)


def _from_array(source: Any, pixel_format: Any, names: tuple[str, ...]) -> Pixels:
    """Return pixels copied from anything that NumPy can read, checked and in native byte order."""
    array = as_numpy(source)
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3 or 0 in array.shape:
        raise SceneError(
            f"an image is an array (height, width) or (height, width, channels) with no axis of length 0; "
            f"the shape given is {np.shape(as_numpy(source))}"
        )
    dtype = as_component_dtype(array.dtype)
    pixels = np.array(array, dtype=dtype, order="C", copy=True)
    found = None if pixel_format is None else as_pixel_format(pixel_format)
    if found is None:
        found = guess_pixel_format(names) if names else _BY_COUNT.get(pixels.shape[2], _PixelFormat.MultiChannel)
    expected = len(found.channels) or pixels.shape[2]
    if expected != pixels.shape[2]:
        raise SceneError(f"pixel format {found.value} has {expected} channels, the array has {pixels.shape[2]}")
    return Pixels(pixels, found, dtype == np.uint8, names if found is _PixelFormat.MultiChannel else ())


def as_numpy(source: Any) -> npt.NDArray[Any]:
    """Return anything with `__array__`, `numpy()` or the DLPack protocol, or nested lists, as a NumPy array."""
    if not hasattr(source, "__array__") and not hasattr(source, "__array_interface__") and hasattr(source, "numpy"):
        source = source.numpy()
    return np.asarray(source)
