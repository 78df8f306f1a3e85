"""What the numbers of an image mean: pixel formats, component types, file formats; `Pixels` ties them together."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...jit.errors import SceneError

__all__ = ["FileFormat", "PixelFormat", "Pixels", "Struct", "StructType", "as_component_dtype", "guess_pixel_format"]


class PixelFormat(enum.Enum):
    """How the channels of a pixel are to be read; `MultiChannel` stands for named channels without a common meaning."""

    Y = "y"
    YA = "ya"
    RGB = "rgb"
    RGBA = "rgba"
    XYZ = "xyz"
    XYZA = "xyza"
    MultiChannel = "multichannel"

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of the channels in order, empty for `MultiChannel`."""
        return () if self is PixelFormat.MultiChannel else tuple(self.value.upper())

    @property
    def has_alpha(self) -> bool:
        """Whether the last channel is an opacity."""
        return self.value.endswith("a")


class FileFormat(enum.Enum):
    """The image files that are known; `Auto` decides by contents when reading and by extension when writing."""

    Auto = "auto"
    OpenEXR = "openexr"
    PNG = "png"
    JPEG = "jpeg"
    RGBE = "rgbe"
    PFM = "pfm"
    PPM = "ppm"
    BMP = "bmp"
    TGA = "tga"


class StructType(enum.Enum):
    """Component types under Mitsuba's names; a NumPy type compares equal to the member of the same layout."""

    UInt8 = "uint8"
    UInt16 = "uint16"
    UInt32 = "uint32"
    Float16 = "float16"
    Float32 = "float32"
    Float64 = "float64"

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type of the same layout."""
        return np.dtype(self.value)


class Struct:
    """Description of one channel: its `name` and its NumPy type; `Struct.Type` lists the component types."""

    Type = StructType

    def __init__(self, name: str, dtype: np.dtype[Any]) -> None:
        self.name = name
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"{self.dtype.name} {self.name}"


_COMPONENTS = tuple(np.dtype(t.value) for t in StructType)


def as_component_dtype(given: Any) -> np.dtype[Any]:
    """Return the NumPy type of a component type given as NumPy type, name or `Struct.Type` member.

    Raises SceneError for types that images are not made of.
    """
    try:
        found = given.dtype if isinstance(given, StructType) else np.dtype(given).newbyteorder("=")
    except TypeError:
        found = None
    if found not in _COMPONENTS:
        known = ", ".join(t.value for t in StructType)
        raise SceneError(f"an image cannot have components of type {given!r}; use one of {known}")
    return np.dtype(found)


def as_pixel_format(given: Any) -> PixelFormat:
    """Return a pixel format given as member or name; raises SceneError naming the known ones."""
    wanted = given.lower() if isinstance(given, str) else given
    for candidate in PixelFormat:
        if wanted is candidate or wanted == candidate.value:
            return candidate
    raise SceneError(f"{given!r} is no pixel format; use one of {', '.join(p.name for p in PixelFormat)}")


def guess_pixel_format(names: Sequence[str]) -> PixelFormat:
    """Return the pixel format whose channels have exactly these names, else `MultiChannel`."""
    for candidate in PixelFormat:
        if candidate.channels == tuple(names):
            return candidate
    return PixelFormat.MultiChannel


@dataclass
class Pixels:
    """An image in memory: `array` (height, width, channels) in C order, row 0 on top, and what its numbers mean."""

    array: npt.NDArray[Any]
    pixel_format: PixelFormat
    srgb_gamma: bool
    names: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.names:
            self.names = self.pixel_format.channels or tuple(f"ch{i}" for i in range(self.array.shape[2]))
        if len(self.names) != self.array.shape[2]:
            raise SceneError(
                f"{len(self.names)} channels {list(self.names)} were announced, "
                f"the array has {self.array.shape[2]} (its shape is {self.array.shape})"
            )

    @property
    def colour_channels(self) -> list[int]:
        """Positions of the channels that a tone curve applies to: all but opacities."""
        return [i for i, name in enumerate(self.names) if name.rpartition(".")[2] != "A"]
