"""The portable formats: PFM (floats) and the PPM/PGM family (8 and 16 bit), read and written without any library."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from ...jit.errors import FileFormatError
from .pixel_format import PixelFormat, Pixels

__all__ = ["read_pfm", "read_ppm", "write_pfm", "write_ppm"]


def _header(data: bytes, count: int, path: str) -> tuple[list[str], int]:
    """Return the first `count` words after the two-letter mark, comments left out, and where the pixels start."""
    words: list[str] = []
    cursor = 2
    pattern = re.compile(rb"(?:\s+|#[^\n]*\n)*([^\s#]+)")
    while len(words) < count:
        found = pattern.match(data, cursor)
        if not found:
            raise FileFormatError(f"{path}: the header of the image ends early")
        words.append(found[1].decode("latin-1"))
        cursor = found.end()
    return words, cursor + 1


def _size(words: list[str], path: str) -> tuple[int, int]:
    try:
        width, height = int(words[0]), int(words[1])
    except ValueError:
        width = height = 0
    if width < 1 or height < 1:
        raise FileFormatError(f"{path}: {words[0]!r} x {words[1]!r} is not the size of an image")
    return width, height


def _pixels(data: bytes, start: int, dtype: str, shape: tuple[int, ...], path: str) -> npt.NDArray[Any]:
    count = int(np.prod(shape, dtype=np.int64))
    need = count * np.dtype(dtype).itemsize
    if len(data) - start < need:
        raise FileFormatError(
            f"{path}: {shape[1]} x {shape[0]} pixels need {need} bytes, the file holds {len(data) - start}"
        )
    return np.frombuffer(data, dtype=dtype, count=count, offset=start).reshape(shape)


def read_pfm(data: bytes, path: str) -> Pixels:
    """Return the linear float32 image; the file stores its bottom row first."""
    words, start = _header(data, 3, path)
    width, height = _size(words, path)
    try:
        scale = float(words[2])
    except ValueError:
        raise FileFormatError(f"{path}: the scale of the image, {words[2]!r}, is not a number") from None
    channels = 3 if data[:2] == b"PF" else 1
    array = _pixels(data, start, "<f4" if scale < 0 else ">f4", (height, width, channels), path)[::-1].astype(
        np.float32
    )
    if abs(scale) not in (0.0, 1.0):
        array *= np.float32(abs(scale))
    return Pixels(np.ascontiguousarray(array), PixelFormat.RGB if channels == 3 else PixelFormat.Y, False)


def write_pfm(pixels: Pixels) -> bytes:
    """Return the file of float32 Y or RGB pixels."""
    height, width, channels = pixels.array.shape
    head = f"{'PF' if channels == 3 else 'Pf'}\n{width} {height}\n-1.0\n".encode()
    return head + np.ascontiguousarray(pixels.array[::-1], dtype="<f4").tobytes()


def read_ppm(data: bytes, path: str) -> Pixels:
    """Return a grey or colour image of 8 or 16 bits, plain (P2, P3) or binary (P5, P6)."""
    kind = data[:2]
    words, start = _header(data, 3, path)
    width, height = _size(words, path)
    top = int(words[2]) if words[2].isdigit() else 0
    if not 0 < top < 65536:
        raise FileFormatError(f"{path}: the largest value of the image, {words[2]!r}, is not within 1 and 65535")
    channels = 3 if kind in (b"P3", b"P6") else 1
    shape = (height, width, channels)
    if kind in (b"P5", b"P6"):
        array = _pixels(data, start, ">u2" if top > 255 else "u1", shape, path)
    else:
        text = re.sub(rb"#[^\n]*", b"", data[start:]).split()
        if len(text) < height * width * channels:
            raise FileFormatError(f"{path}: {width} x {height} pixels were announced, the file ends early")
        try:
            array = np.array(text[: height * width * channels], dtype=np.int64).reshape(shape)
        except (ValueError, OverflowError):
            raise FileFormatError(f"{path}: a pixel is not a whole number") from None
    if array.size and not 0 <= int(array.max()) <= top:
        raise FileFormatError(f"{path}: a pixel lies above the largest value that the header announces, {top}")
    dtype = np.dtype(np.uint16 if top > 255 else np.uint8)
    if top not in (255, 65535):
        array = np.floor(array * ((65535 if top > 255 else 255) / top) + 0.5)
    return Pixels(np.ascontiguousarray(array.astype(dtype)), PixelFormat.RGB if channels == 3 else PixelFormat.Y, True)


def write_ppm(pixels: Pixels) -> bytes:
    """Return the binary file of uint8 or uint16 Y or RGB pixels."""
    height, width, channels = pixels.array.shape
    deep = pixels.array.dtype == np.uint16
    head = f"{'P6' if channels == 3 else 'P5'}\n{width} {height}\n{65535 if deep else 255}\n".encode()
    return head + pixels.array.astype(">u2" if deep else "u1").tobytes()
