"""What a fit compares: sensors of the scene and the picture each should give."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..jit.arrays.base import ArrayBase
from ..jit.errors import SceneError
from ..render.image.bitmap import Bitmap
from ..render.image.pixel_format import PixelFormat

__all__ = ["View", "fitting", "make_views", "read_target"]


@dataclass(frozen=True)
class View:
    """A sensor (number or object) and the linear picture it should give, a NumPy array (height, width, channels)."""

    sensor: Any
    target: Any


def make_views(target: Any, sensor: Any) -> list[View]:
    """Return one view per sensor. Several sensors need as many targets; raises SceneError otherwise."""
    sensors = list(sensor) if isinstance(sensor, (list, tuple)) else [sensor]
    targets = list(target) if isinstance(target, (list, tuple)) else [target]
    if len(targets) > 1 and sensor == 0:
        sensors = list(range(len(targets)))
    if len(sensors) != len(targets):
        raise SceneError(f"fit(): {len(sensors)} sensors need as many targets, found {len(targets)}")
    return [View(s, read_target(t)) for s, t in zip(sensors, targets, strict=True)]


def read_target(target: Any) -> Any:
    """Return a target as float array (height, width, channels): from a file, a bitmap, an array or a tensor.

    Files and bitmaps become linear colours.
    """
    if isinstance(target, (str, os.PathLike)):
        if not Path(target).exists():
            raise SceneError(f'fit(): the target "{target}" does not exist')
        target = Bitmap(target)
    if isinstance(target, Bitmap):
        known = target.pixel_format() is not PixelFormat.MultiChannel
        array = np.array((target.convert(None, np.float32, False) if known else target).array)
    elif isinstance(target, ArrayBase):
        array = np.array(target)
    else:
        array = np.asarray(target)
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3 or array.dtype.kind not in "fiu":
        raise SceneError(f"fit(): a target is an image (height, width, channels), found {array.shape} {array.dtype}")
    if array.dtype.kind != "f":
        raise SceneError(
            "fit(): an array of integers is no linear picture; pass Bitmap(array), which knows the tone curve"
        )
    return array


def fitting(image: Any, target: Any, sensor: Any) -> Any:
    """Return a target as a tensor of the picture's type; raises SceneError if their sizes differ."""
    shape, wanted = tuple(image.shape), tuple(target.shape)
    if len(shape) == 3 and shape[:2] == wanted[:2] and shape[2] == 3 and wanted[2] == 4:
        target, wanted = target[..., :3], shape  # opacity of the file
    if shape != wanted:
        name = f"sensor {sensor}" if isinstance(sensor, int) else "the sensor"
        raise SceneError(
            f"fit(): the target of {name} has shape {wanted} (height, width, channels), its picture {shape}; "
            "set the film's size or resample the target (Bitmap.resample)"
        )
    return type(image)(np.ascontiguousarray(target))
