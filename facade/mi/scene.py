"""Loading and rendering under the current variant."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from luxgrad.jit.arrays.base import ArrayBase
from luxgrad.jit.errors import WrongTypeError
from luxgrad.mi.state import current_types
from luxgrad.mi.transform import ArrayTransform
from luxgrad.render.render import render
from luxgrad.render.transform import ScalarTransform3f, ScalarTransform4f
from luxgrad.scenes import loader
from luxgrad.scenes.builtin import cornell_box

__all__ = ["cornell_box", "load_dict", "load_file", "load_string", "render"]


def load_file(
    path: str | os.PathLike[str], parallel: bool = True, optimize: bool = True, tolerant: bool | None = None,
    **parameters: Any,
) -> Any:
    """Return what an XML file describes, for the current variant; keywords replace `$name` in the file."""
    if not isinstance(path, (str, os.PathLike)):
        raise WrongTypeError(f"mi.load_file(): the name of a file is needed, found {type(path).__name__}")
    types = current_types("mi.load_file()")
    options: dict[str, Any] = {"parallel": parallel, "optimize": optimize, "tolerant": tolerant, **parameters}
    return loader.load_file(os.fspath(path), types=types, **options)


def load_string(
    string: str, parallel: bool = True, optimize: bool = True, tolerant: bool | None = None, **parameters: Any
) -> Any:
    """Return what XML text describes, for the current variant; keywords replace `$name` in the text."""
    if not isinstance(string, (str, bytes)):
        raise WrongTypeError(f"mi.load_string(): XML text is needed, found {type(string).__name__}")
    types = current_types("mi.load_string()")
    options: dict[str, Any] = {"parallel": parallel, "optimize": optimize, "tolerant": tolerant, **parameters}
    return loader.load_string(string, types=types, **options)


def load_dict(dict: Mapping[str, Any], parallel: bool = True, optimize: bool = True) -> Any:
    """Return what a dictionary describes, for the current variant."""
    types = current_types("mi.load_dict()")
    return loader.load_dict(_plain(dict), types=types, parallel=parallel, optimize=optimize)


def _plain(value: Any) -> Any:
    """Return a dictionary whose transforms and short vectors of array types are single values, as loaders need them."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, ArrayTransform):
        matrix = np.array(value.matrix)
        if matrix.shape[2:] not in ((), (1,)):
            raise ValueError(f"a scene takes one transform, found {matrix.shape[2]} in one {type(value).__name__}")
        kind: Any = ScalarTransform4f if value.size == 4 else ScalarTransform3f
        return kind(matrix.reshape(matrix.shape[:2]))
    if isinstance(value, ArrayBase) and getattr(value, "static_shape", None) == (3,):
        array = np.array(value, dtype=np.float64).reshape(3, -1)
        return array[:, 0] if array.shape[1] == 1 else value
    return value
