"""PNG, JPEG, BMP and TGA through Pillow, with colour PNGs of 16 bits in full depth."""

from __future__ import annotations

import io
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, PngImagePlugin

from ...jit.errors import FileFormatError
from .pixel_format import FileFormat, PixelFormat, Pixels

__all__ = ["read_pillow", "write_jpeg", "write_pillow", "write_png"]

_FORMATS = {1: PixelFormat.Y, 2: PixelFormat.YA, 3: PixelFormat.RGB, 4: PixelFormat.RGBA}


def read_pillow(data: bytes, path: str, kind: FileFormat) -> Pixels:
    """Return the picture as 8 or 16 bit Y, YA, RGB or RGBA; text chunks become metadata.

    Raises FileFormatError for damaged and truncated files.
    """
    try:
        image = Image.open(io.BytesIO(data), formats=[kind.name])
        array = _deep_colours(image, data) if _is_deep(image) else _as_array(image)
    # Pillow's decoders raise these, by plugin, for damaged input.
    except (OSError, SyntaxError, ValueError, EOFError, IndexError, TypeError, zlib.error) as error:
        reason = str(error).replace(repr(io.BytesIO), "it")
        raise FileFormatError(
            f"{path}: the {kind.name} picture is damaged, truncated or unsupported: {reason}"
        ) from error
    except Image.DecompressionBombError as error:
        raise FileFormatError(
            f"{path}: {error}. Set PIL.Image.MAX_IMAGE_PIXELS higher if the picture is meant to be so large"
        ) from error
    metadata = {k: v for k, v in image.info.items() if isinstance(k, str) and isinstance(v, str)}
    return Pixels(array, _FORMATS[array.shape[2]], True, metadata=metadata)


def _is_deep(image: Image.Image) -> bool:
    """Whether a PNG has 16 bits and several channels: Pillow would keep only the upper byte."""
    return isinstance(image, PngImagePlugin.PngImageFile) and bool(image.tile) and ";16B" in str(image.tile[0].args) \
        and image.mode in ("RGB", "RGBA")  # fmt: skip


def _deep_colours(image: Image.Image, data: bytes) -> npt.NDArray[Any]:
    """Return a colour PNG of 16 bits in full depth.

    Decoding once as big-endian and once as little-endian gives the upper and the lower bytes: either way Pillow keeps
    the byte that it takes for the upper one. Grey with opacity has the bytes of an RGBA picture of 8 bits.
    """
    layout = str(image.tile[0].args).removesuffix(";16B")  # type: ignore[attr-defined]

    def plane(layout: str) -> npt.NDArray[np.uint16]:
        again = Image.open(io.BytesIO(data), formats=["PNG"])
        again.tile = [tile._replace(args=layout) for tile in again.tile]
        return np.asarray(again).astype(np.uint16)

    if layout == "LA":
        quads = plane("RGBA")
        return np.ascontiguousarray(quads[..., 0::2] << 8 | quads[..., 1::2])
    return plane(f"{layout};16B") << 8 | plane(f"{layout};16L")


def _as_array(image: Image.Image) -> npt.NDArray[Any]:
    """Return any other picture as (height, width, channels), palettes and rare modes turned into colours."""
    if image.mode.startswith("I"):
        return np.array(image).astype(np.uint16)[..., None]
    if "transparency" in image.info and image.mode in ("1", "L", "RGB", "P"):
        image = image.convert("RGBA" if image.mode in ("RGB", "P") else "LA")
    elif image.mode == "1":
        image = image.convert("L")
    elif image.mode == "PA":
        image = image.convert("RGBA")
    elif image.mode not in ("L", "LA", "RGB", "RGBA"):
        image = image.convert("RGB")
    array = np.array(image)
    return array if array.ndim == 3 else array[..., None]


def _squeezed(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array[..., 0] if array.shape[2] == 1 else array


def write_png(pixels: Pixels, quality: int) -> bytes:
    """Return the file of uint8 or uint16 pixels with 1 to 4 channels; `quality` 1 to 9 is the effort, -1 chooses 5."""
    level = 5 if quality < 0 else min(9, max(0, quality))
    strings = {k: v for k, v in pixels.metadata.items() if isinstance(v, str)}
    if pixels.array.dtype == np.uint16:
        return _deep_png(pixels.array, level, strings)
    info = PngImagePlugin.PngInfo()
    for key, value in strings.items():
        info.add_text(key[:79], value)
    out = io.BytesIO()
    Image.fromarray(_squeezed(pixels.array)).save(out, "PNG", compress_level=level, pnginfo=info)
    return out.getvalue()


def _deep_png(array: npt.NDArray[Any], level: int, strings: dict[str, str]) -> bytes:
    """Return a PNG of 16 bits per channel (Pillow writes only grey ones); each line minus the one above."""
    height, width, channels = array.shape
    lines = np.ascontiguousarray(array, dtype=">u2").view(np.uint8).reshape(height, -1)
    up = lines.copy()
    up[1:] -= lines[:-1]
    filtered = np.concatenate([np.full((height, 1), 2, dtype=np.uint8), up], axis=1)
    colour_type = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    out = io.BytesIO()
    out.write(b"\x89PNG\r\n\x1a\n")

    def chunk(kind: bytes, body: bytes) -> None:
        out.write(len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big"))

    chunk(b"IHDR", width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([16, colour_type, 0, 0, 0]))
    for key, value in strings.items():
        chunk(b"iTXt", key[:79].encode("latin-1", "replace") + b"\0\0\0\0\0" + value.encode())
    chunk(b"IDAT", zlib.compress(filtered.tobytes(), level))
    chunk(b"IEND", b"")
    return out.getvalue()


def write_jpeg(pixels: Pixels, quality: int) -> bytes:
    """Return the file of uint8 Y or RGB pixels; `quality` 1 to 100, -1 chooses 100. Colour is never subsampled."""
    out = io.BytesIO()
    level = 100 if quality < 0 else min(100, max(1, quality))
    Image.fromarray(_squeezed(pixels.array)).save(out, "JPEG", quality=level, subsampling=0)
    return out.getvalue()


def write_pillow(pixels: Pixels, kind: FileFormat) -> bytes:
    """Return a BMP or TGA file of uint8 Y, RGB or RGBA pixels."""
    out = io.BytesIO()
    Image.fromarray(_squeezed(pixels.array)).save(out, kind.name)
    return out.getvalue()
