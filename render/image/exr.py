"""OpenEXR pictures: half and single precision, any number of named channels in layers, several parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import OpenEXR

from ...jit.errors import FileFormatError
from .pixel_format import Pixels, guess_pixel_format

__all__ = ["ordered_channels", "read_exr", "write_exr"]

# What the file says about its own layout; everything else of plain type becomes metadata.
_LAYOUT = {"channels", "compression", "dataWindow", "displayWindow", "lineOrder", "type", "tiles", "chunkCount", "name",
           "dwaCompressionLevel", "zipCompressionLevel", "version"}  # fmt: skip
_COLOURS = {name: rank for rank, name in enumerate(["R", "G", "B", "X", "Y", "Z", "A"])}


def ordered_channels(names: list[str]) -> list[str]:
    """Return the channel names (alphabetic in the file) by layer, unnamed first, R G B A and X Y Z A within."""

    def rank(name: str) -> tuple[bool, str, int, str]:
        layer, _, channel = name.rpartition(".")
        return layer != "", layer, _COLOURS.get(channel, 3), channel

    return sorted(names, key=rank)


def read_exr(path: Path, shown: str) -> Pixels:
    """Return all channels of all parts in one array of their common type (half only where all are half).

    Channels of further parts carry the part's name as layer. `shown` is the path for messages.
    Raises FileFormatError for damaged files, deep pictures, subsampled channels and parts of different size.
    """
    try:
        file = OpenEXR.File(str(path), separate_channels=True)
        parts = list(file.parts)
        if not parts:
            # The library prints what is wrong with the pixels and leaves the part out.
            raise FileFormatError(f"{shown}: the OpenEXR picture is truncated or damaged: its pixels cannot be read")
        channels: dict[str, Any] = {}
        for part in parts:
            prefix = f"{part.name()}." if len(parts) > 1 and part is not parts[0] and part.name() else ""
            channels |= {prefix + name: channel for name, channel in part.channels.items()}
        header = dict(parts[0].header)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(f"{shown}: the OpenEXR picture is damaged, truncated or unsupported: {error}") from error
    names = ordered_channels(list(channels))
    planes = [channels[name].pixels for name in names]
    if not planes or any(p is None or p.dtype == object or p.shape != planes[0].shape for p in planes):
        shapes = {name: None if p is None else p.shape for name, p in zip(names, planes, strict=True)}
        raise FileFormatError(f"{shown}: only flat pictures with channels of one size are supported, this has {shapes}")
    half = all(p.dtype == np.float16 for p in planes)
    array = np.stack([np.asarray(p, dtype=np.float16 if half else np.float32) for p in planes], axis=2)
    metadata = {k: v for k, v in header.items() if k not in _LAYOUT and isinstance(v, str | int | float)}
    return Pixels(array, guess_pixel_format(names), False, tuple(names), metadata)


def write_exr(pixels: Pixels, path: Path, quality: int) -> None:
    """Write float16, float32 or uint32 pixels; `quality` above 0 is the loss of the DWAB packing (45 is usual)."""
    header: dict[str, Any] = {
        key: value
        for key, value in pixels.metadata.items()
        if isinstance(value, str | int | float) and key not in _LAYOUT
    }
    header["type"] = OpenEXR.scanlineimage
    header["compression"] = OpenEXR.ZIP_COMPRESSION
    if quality > 0:
        header["compression"] = OpenEXR.DWAB_COMPRESSION
        header["dwaCompressionLevel"] = float(quality)
    channels = {name: np.ascontiguousarray(pixels.array[..., i]) for i, name in enumerate(pixels.names)}
    OpenEXR.File(header, channels).write(str(path))
