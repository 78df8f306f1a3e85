"""Checks of what users pass to renderings: each wrong argument is one error that says what would be right."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..jit.arrays import tree
from ..jit.arrays.base import ArrayBase
from ..jit.arrays.flat import Flat
from ..jit.dtypes import UInt32
from ..jit.errors import SceneError, WrongTypeError
from ..jit.trace import LITERAL

__all__ = ["check_integrator", "check_parameters", "check_scene", "find_sensor", "samples", "seed_number"]

SEED_LIMIT = 1 << 32


def _whole(value: Any, name: str, what: str, where: str) -> int:
    if not isinstance(value, (bool, np.bool_)):
        try:
            return operator.index(value)
        except (TypeError, RuntimeError):
            pass
    raise WrongTypeError(f"{where}: {name} must be an int, {what}; found {shown(value)}")


def shown(value: Any) -> str:
    """Return a value and its type for a message."""
    text = " ".join(repr(value).split())
    return f"{text if len(text) <= 60 else text[:57] + '...'} of type {type(value).__name__}"


def samples(value: Any, name: str = "spp", where: str = "render") -> int:
    """Return a number of samples per pixel as an int (0: the sampler's); raises WrongTypeError or SceneError."""
    count = _whole(value, name, "the samples per pixel (0: as many as the sampler says)", where)
    if not 0 <= count < SEED_LIMIT:
        raise SceneError(f"{where}: {name} must lie in 0 (as many as the sampler says) .. 2^32 - 1, found {count}")
    return count


def seed_number(value: Any, name: str = "seed", where: str = "render") -> Any:
    """Return a seed as an int, or as it is if it is a UInt32 array in memory: frozen functions are replayed with other
    seeds that way, and it is never read. Raises WrongTypeError or SceneError."""
    if isinstance(value, Flat) and value.dtype is UInt32 and value._n.op is not LITERAL:
        if value._n.size != 1:
            raise SceneError(f"{where}: {name} must be a single number, found {value._n.size}")
        return value
    seed = _whole(value, name, "the start of the random numbers", where)
    if not 0 <= seed < SEED_LIMIT:
        raise SceneError(f"{where}: {name} must lie in 0 .. 2^32 - 1, found {seed}")
    return seed


def check_scene(scene: Any, where: str = "render") -> None:
    """Raise WrongTypeError if `scene` is none."""
    if getattr(scene, "plugin_kind", None) != "scene" or isinstance(scene, type):
        raise WrongTypeError(f"{where}: a scene made by load_file() or load_dict() is needed, found {shown(scene)}")


def find_sensor(scene: Any, sensor: Any) -> Any:
    """Return a sensor by index, or as it is; raises SceneError if there is none, WrongTypeError if it is no sensor."""
    check_scene(scene)
    if getattr(sensor, "plugin_kind", None) == "sensor" and not isinstance(sensor, type):
        return sensor
    index = _whole(sensor, "sensor", "the number of one of the scene's sensors, or a Sensor", "render")
    sensors = scene.sensors()
    if not sensors:
        raise SceneError("render: the scene has no sensor; add one, or pass a Sensor")
    if not -len(sensors) <= index < len(sensors):
        raise SceneError(f"render: sensor {index} was asked for, the scene has {len(sensors)} (numbered from 0)")
    return sensors[index]


def check_integrator(integrator: Any, where: str = "render") -> None:
    """Raise WrongTypeError if it is no integrator."""
    if getattr(integrator, "plugin_kind", None) != "integrator" or isinstance(integrator, type):
        raise WrongTypeError(
            f"{where}: an integrator such as load_dict({{'type': 'path'}}) is needed, found {shown(integrator)}"
        )


def check_parameters(params: Any) -> None:
    """Raise WrongTypeError unless `params` is None, scene parameters, an optimiser, or a PyTree of arrays."""
    if params is None or isinstance(params, (Mapping, ArrayBase)) or hasattr(type(params), "items"):
        return
    if isinstance(params, (list, tuple)) and (not params or next(tree.arrays(params), None) is not None):
        return
    if not isinstance(params, (type, str, list, tuple)) and tree.fields(params) is not None:
        return
    raise WrongTypeError(
        f"render: params must be what traverse(scene) returns, an optimiser, or arrays, found {shown(params)}; sensor "
        "and integrator are passed by name"
    )
