"""Short ways from rendered arrays to bitmaps and files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .bitmap import Bitmap
from .files import file_format
from .pixel_format import FileFormat

__all__ = ["convert_to_bitmap", "write_bitmap"]

_SMALL_RANGE = (FileFormat.PNG, FileFormat.JPEG)


def convert_to_bitmap(data: Any, uint8_srgb: bool = True) -> Bitmap:
    """Return a bitmap of anything that holds pixels: a bitmap, an array or tensor of any library, nested lists.

    With `uint8_srgb` the result is ready for a screen: 8 bits, sRGB-encoded. Otherwise its numbers stay as they are.
    """
    bitmap = data if isinstance(data, Bitmap) else Bitmap(data)
    if uint8_srgb:
        bitmap = bitmap.convert(component_format=np.uint8, srgb_gamma=True)
    return bitmap


def write_bitmap(filename: str | os.PathLike[str], data: Any, write_async: bool = False, quality: int = -1) -> None:
    """Write anything that holds pixels to a file: PNG and JPEG as 8-bit sRGB, other formats as precisely as they can.

    Unlike Mitsuba's function this one returns when the file is complete unless `write_async` is set.
    """
    bitmap = convert_to_bitmap(data, uint8_srgb=file_format(filename) in _SMALL_RANGE)
    if write_async:
        bitmap.write_async(filename, quality=quality)
    else:
        bitmap.write(filename, quality=quality)
