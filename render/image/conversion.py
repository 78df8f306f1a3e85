"""Conversion of pixels: tone curve, colour space, opacity and number format.

Every conversion goes the same way: numbers to [0, 1] floats, tone curve off, colour space, tone curve on, numbers back.
Steps that change nothing are left out, so that equal formats are copied bit by bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...jit.errors import SceneError
from .pixel_format import PixelFormat, Pixels

__all__ = ["convert", "dequantise", "quantise", "srgb_to_linear", "linear_to_srgb"]

FloatArray = npt.NDArray[np.floating[Any]]

# Rec. ITU-R BT.709 primaries with a D65 white point: XYZ of each primary in a column; its middle row is the luminance.
_RGB_TO_XYZ = np.array(
    [[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]], dtype=np.float64
)
_XYZ_TO_RGB = np.linalg.inv(_RGB_TO_XYZ)
_HALF_MAX = 65504.0


def srgb_to_linear(value: FloatArray) -> FloatArray:
    """Return linear values of sRGB-encoded ones (IEC 61966-2-1) in the same type; negative ones are mirrored."""
    magnitude = np.abs(value)
    with np.errstate(over="ignore"):
        curved = np.power((magnitude + 0.055) * (1 / 1.055), 2.4)
    return np.copysign(np.where(magnitude <= 0.04045, magnitude * (1 / 12.92), curved), value).astype(value.dtype)


def linear_to_srgb(value: FloatArray) -> FloatArray:
    """Return sRGB-encoded values of linear ones (IEC 61966-2-1) in the same type; negative ones are mirrored."""
    magnitude = np.abs(value)
    with np.errstate(over="ignore"):
        line = magnitude * 12.92
    curved = 1.055 * np.power(magnitude, 1 / 2.4) - 0.055
    return np.copysign(np.where(magnitude <= 0.0031308, line, curved), value).astype(value.dtype)


def dequantise(array: npt.NDArray[Any], dtype: np.dtype[Any]) -> FloatArray:
    """Return the array as floats: the full range of an integer becomes [0, 1], floats keep their value."""
    if array.dtype.kind == "u":
        return np.asarray(array * np.float64(1.0 / np.iinfo(array.dtype).max), dtype=dtype)
    return np.asarray(array, dtype=dtype)


def quantise(array: FloatArray, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the floats in another number format.

    Integers: [0, 1] becomes the full range, rounded to nearest; everything above 1, infinities too, becomes the
    largest value, NaN and negative values become 0. Nothing is dithered, so equal input gives equal output.
    Half precision: finite values beyond its range become its largest number, since one infinite texel would
    spread through every filter.
    """
    if dtype.kind == "u":
        top = np.iinfo(dtype).max
        # fmax takes the number where the other is NaN.
        unit: FloatArray = np.fmin(np.fmax(array, 0.0), 1.0)
        scaled: Any = unit.astype(np.float64 if top > 65535 else np.float32) * top
        return np.asarray(np.floor(scaled + 0.5), dtype=dtype)
    if dtype == np.float16 and array.dtype != np.float16:
        clipped = np.where(np.isinf(array), array, np.clip(array, -_HALF_MAX, _HALF_MAX))
        return np.asarray(clipped, dtype=dtype)
    with np.errstate(over="ignore"):
        return np.asarray(array, dtype=dtype)


def _change_space(array: FloatArray, source: PixelFormat, target: PixelFormat) -> FloatArray:
    """Return linear pixels (h, w, channels) of another pixel format; a new opacity is 1, a lost one is dropped."""
    colour = array[..., :-1] if source.has_alpha else array
    kinds = source.value.rstrip("a"), target.value.rstrip("a")
    if kinds[0] != kinds[1]:
        if kinds[0] == "y":
            # A grey of luminance Y: equal primaries.
            colour = np.repeat(colour, 3, axis=2)
            kinds = "rgb", kinds[1]
        if kinds == ("rgb", "xyz"):
            colour = colour @ _RGB_TO_XYZ.T.astype(array.dtype)
        elif kinds == ("xyz", "rgb"):
            colour = colour @ _XYZ_TO_RGB.T.astype(array.dtype)
        elif kinds == ("rgb", "y"):
            colour = (colour @ _RGB_TO_XYZ[1].astype(array.dtype))[..., None]
        elif kinds == ("xyz", "y"):
            colour = colour[..., 1:2]
    if not target.has_alpha:
        return colour
    alpha = array[..., -1:] if source.has_alpha else np.ones_like(colour[..., :1])
    return np.concatenate([colour, alpha], axis=2)


def convert(source: Pixels, pixel_format: PixelFormat, dtype: np.dtype[Any], srgb_gamma: bool) -> Pixels:
    """Return the pixels in another pixel format, number format and tone curve; the array is always a new one.

    Raises SceneError when one of the pixel formats is `MultiChannel` and the other is not.
    """
    same_space = source.pixel_format is pixel_format
    if not same_space and PixelFormat.MultiChannel in (source.pixel_format, pixel_format):
        raise SceneError(
            f"an image of format {source.pixel_format.value} with channels {list(source.names)} cannot be converted to "
            f"{pixel_format.value}; take its layers apart with split()"
        )
    same_curve = same_space and source.srgb_gamma == srgb_gamma
    names = source.names if same_space else pixel_format.channels
    if same_curve and source.array.dtype == dtype:
        return Pixels(source.array.copy(), pixel_format, srgb_gamma, names, dict(source.metadata))
    wide = any(t.itemsize >= 4 and t != np.float32 for t in (source.array.dtype, dtype))
    values = dequantise(source.array, np.dtype(np.float64 if wide else np.float32))
    if not same_curve:
        if source.srgb_gamma:
            values = _on_colours(source, values, srgb_to_linear)
        if not same_space:
            values = _change_space(values, source.pixel_format, pixel_format)
        if srgb_gamma:
            values = _on_colours(Pixels(values, pixel_format, False, names), values, linear_to_srgb)
    return Pixels(np.ascontiguousarray(quantise(values, dtype)), pixel_format, srgb_gamma, names, dict(source.metadata))


def _on_colours(meaning: Pixels, values: FloatArray, curve: Any) -> FloatArray:
    """Return a copy with the curve applied to all channels but opacities."""
    channels = meaning.colour_channels
    if len(channels) == values.shape[2]:
        curved: FloatArray = curve(values)
        return curved
    result = values.copy()
    result[..., channels] = curve(values[..., channels])
    return result
