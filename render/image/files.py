"""Image files: which format a file has, reading it, and writing it so that no reader ever sees half a file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ...jit.errors import FileFormatError, SceneError
from ..file_access import atomic_write, read_bytes
from . import exr, netpbm, pillow_files, rgbe
from .conversion import convert
from .pixel_format import FileFormat, PixelFormat, Pixels

__all__ = ["EXTENSIONS", "decode_image", "file_format", "read_image", "write_image"]

EXTENSIONS = {
    ".exr": FileFormat.OpenEXR, ".png": FileFormat.PNG, ".jpg": FileFormat.JPEG, ".jpeg": FileFormat.JPEG,
    ".hdr": FileFormat.RGBE, ".rgbe": FileFormat.RGBE, ".pfm": FileFormat.PFM, ".ppm": FileFormat.PPM,
    ".pgm": FileFormat.PPM, ".pnm": FileFormat.PPM, ".bmp": FileFormat.BMP, ".tga": FileFormat.TGA,
}  # fmt: skip
_MARKS = {
    b"\x76\x2f\x31\x01": FileFormat.OpenEXR, b"\x89PNG": FileFormat.PNG, b"\xff\xd8\xff": FileFormat.JPEG,
    b"#?RADIANCE": FileFormat.RGBE, b"#?RGBE": FileFormat.RGBE, b"PF": FileFormat.PFM, b"Pf": FileFormat.PFM,
    b"P2": FileFormat.PPM, b"P3": FileFormat.PPM, b"P5": FileFormat.PPM, b"P6": FileFormat.PPM, b"BM": FileFormat.BMP,
}  # fmt: skip

_Y, _RGB = PixelFormat.Y, PixelFormat.RGB
_GREY_AND_COLOUR = (_Y, PixelFormat.YA, _RGB, PixelFormat.RGBA)
# Format -> (pixel formats, component types, tone curve) that its files hold; the first type serves all others.
_HOLDS: dict[FileFormat, tuple[tuple[PixelFormat, ...], tuple[str, ...], bool]] = {
    FileFormat.OpenEXR: (tuple(PixelFormat), ("float32", "float16", "uint32"), False),
    FileFormat.PNG: (_GREY_AND_COLOUR, ("uint8", "uint16"), True),
    FileFormat.JPEG: ((_Y, _RGB), ("uint8",), True),
    FileFormat.RGBE: ((_RGB,), ("float32",), False),
    FileFormat.PFM: ((_Y, _RGB), ("float32",), False),
    FileFormat.PPM: ((_Y, _RGB), ("uint8", "uint16"), True),
    FileFormat.BMP: ((_Y, _RGB), ("uint8",), True),
    FileFormat.TGA: ((_Y, _RGB, PixelFormat.RGBA), ("uint8",), True),
}


def file_format(path: str | os.PathLike[str], start: bytes = b"") -> FileFormat:
    """Return the format told by the first bytes of a file, else by the extension of its name.

    Raises FileFormatError when neither is known.
    """
    for mark, kind in _MARKS.items():
        if start.startswith(mark):
            return kind
    extension = os.path.splitext(os.fspath(path))[1].lower()
    if extension not in EXTENSIONS:
        raise FileFormatError(
            f"{os.fspath(path)}: {extension or 'a name without extension'} is not a known image format; "
            f"the known extensions are {' '.join(EXTENSIONS)}"
        )
    return EXTENSIONS[extension]


def read_image(path: str | os.PathLike[str], kind: FileFormat = FileFormat.Auto) -> Pixels:
    """Return the contents of an image file.

    Raises MissingFileError naming the path as it was asked for, and FileFormatError for files that cannot be read.
    """
    return decode_image(path, read_bytes(path, "image file"), kind)


def decode_image(path: str | os.PathLike[str], data: bytes, kind: FileFormat = FileFormat.Auto) -> Pixels:
    """Return the picture that a file with the contents `data` holds; errors as in `read_image`.

    The library that decodes OpenEXR reads the file once more.
    """
    shown = os.fspath(path)
    if kind is FileFormat.Auto:
        kind = file_format(path, data[:16])
    if kind is FileFormat.OpenEXR:
        return exr.read_exr(Path(path), shown)
    if kind is FileFormat.RGBE:
        return rgbe.read_rgbe(data, shown)
    if kind is FileFormat.PFM:
        return netpbm.read_pfm(data, shown)
    if kind is FileFormat.PPM:
        return netpbm.read_ppm(data, shown)
    return pillow_files.read_pillow(data, shown, kind)


def _fitting(pixels: Pixels, kind: FileFormat) -> Pixels:
    """Return the pixels as a file of this kind can hold them: see `Bitmap.write`."""
    formats, types, curve = _HOLDS[kind]
    target = pixels.pixel_format
    if target not in formats:
        if target is PixelFormat.MultiChannel:
            raise SceneError(
                f"a {kind.name} file cannot hold the channels {list(pixels.names)}: "
                "write OpenEXR, or one layer of split()"
            )
        colour = _Y if target.value.startswith("y") and _Y in formats else _RGB
        with_alpha = PixelFormat.RGBA if target.has_alpha else colour
        target = with_alpha if with_alpha in formats else colour
    dtype = pixels.array.dtype
    is_float = dtype.kind == "f"
    if dtype.name not in types:
        # Half precision holds 8-bit colours exactly enough and is what such files usually use.
        to_half = kind is FileFormat.OpenEXR and dtype == np.uint8
        dtype = np.dtype("float16" if to_half else "uint16" if dtype == np.uint32 and "uint16" in types else types[0])
    # Integers keep their curve where the file is made of integers: they may be data, such as normals.
    gamma = curve if is_float or not curve else pixels.srgb_gamma
    return convert(pixels, target, dtype, gamma)


def write_image(
    pixels: Pixels, path: str | os.PathLike[str], kind: FileFormat = FileFormat.Auto, quality: int = -1
) -> None:
    """Write an image file in the format of its extension, or of `kind`."""
    if kind is FileFormat.Auto:
        kind = file_format(path)
    fitting = _fitting(pixels, kind)
    if kind is FileFormat.OpenEXR:
        atomic_write(path, lambda file: exr.write_exr(fitting, file, quality))
        return
    if kind is FileFormat.PNG:
        data = pillow_files.write_png(fitting, quality)
    elif kind is FileFormat.JPEG:
        data = pillow_files.write_jpeg(fitting, quality)
    elif kind is FileFormat.RGBE:
        data = rgbe.write_rgbe(fitting)
    elif kind is FileFormat.PFM:
        data = netpbm.write_pfm(fitting)
    elif kind is FileFormat.PPM:
        data = netpbm.write_ppm(fitting)
    else:
        data = pillow_files.write_pillow(fitting, kind)
    atomic_write(path, lambda file: file.write_bytes(data))
