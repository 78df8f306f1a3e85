"""Turns written values into what a parameter wants: numbers, vectors, textures, volumes (scene_format.md 2.3, 2.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..jit.errors import SceneError
from . import spectra
from .registry import KINDS, Parameter, PluginEntry, entry, nearest
from .transform import ScalarTransform3f, ScalarTransform4f
from .values import Rgb, SpectrumValue, describe, object_kind, type_name

if TYPE_CHECKING:
    from .properties import Properties

__all__ = ["accepts", "build", "convert", "create"]

_EXPECTED = {
    "int": "integer", "bool": "boolean", "point": "vector", "ior": "string", "transform2": "transform",
    "texture": "texture/float/color/spectrum", "emissive": "texture/float/color/spectrum",
    "unbounded": "texture/float/color/spectrum", "volume": "volume/float/color/spectrum",
    "spectrum": "float/color/spectrum",
}


def accepts(parameter: Parameter, kind: str) -> bool:
    """Return True if the parameter can take a nested object of this kind."""
    wanted = parameter.kind
    if wanted in ("texture", "emissive", "unbounded"):
        return kind == "texture"
    if wanted == "volume":
        return kind in ("volume", "texture")
    return wanted in ("object", "any") or wanted == kind


def convert(parameter: Parameter, value: Any, props: Properties, source: str | None = None) -> Any:
    """Return `value` as the parameter's kind; `source` is the property's name in the scene.

    Raises SceneError for a value of the wrong type, a colour out of range and a choice that does not exist.
    """
    name = source or parameter.name
    try:
        result = _CONVERTERS.get(parameter.kind, _object)(parameter, value, props, name)
    except (_WrongType, OverflowError):
        expected = _EXPECTED.get(parameter.kind, parameter.kind)
        hint = _hint(parameter, value)
        where = f" at {props.location_of(name)}" if props.location_of(name) else ""
        raise SceneError(
            f'The property "{name}" has the wrong type '
            f"(expected {expected}, got {_got(value, props, name)}){where}{hint}"
        ) from None
    if parameter.choices is not None and isinstance(result, str) and result not in parameter.choices:
        near = nearest(result, list(parameter.choices))
        raise SceneError(
            f'the property "{name}" is "{result}"; it must be one of {", ".join(parameter.choices)}'
            + (f" ({near})" if near else "")
        )
    return result


class _WrongType(Exception):
    """Raised by converters; `convert` turns it into a message."""


def _got(value: Any, props: Properties, name: str) -> str:
    kind = props.kind_of(name) if name in props.keys() else None
    return kind or type_name(value)


def _hint(parameter: Parameter, value: Any) -> str:
    if parameter.kind in ("texture", "emissive", "unbounded", "volume") and type_name(value) == "vector":
        numbers = ", ".join(f"{x:g}" for x in np.asarray(value))
        return f"; for a colour write {{'type': 'rgb', 'value': [{numbers}]}} or <rgb>"
    if parameter.kind == "ior" and type_name(value) == "integer":
        return f"; write {value}.0 or the name of a material"
    if parameter.kind == "string" and parameter.choices:
        return f"; one of {', '.join(parameter.choices)}"
    return ""


def _scalar(value: Any) -> Any:
    """Return a Python number for a number of any make, or the value itself."""
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray):
        return value.item() if value.ndim == 0 else value
    if isinstance(value, np.generic):
        return value.item()
    if object_kind(value) is None and hasattr(type(value), "__float__"):
        try:
            return float(value)
        except (TypeError, ValueError):
            return value
    return value


def _float(parameter: Parameter, value: Any, props: Properties, name: str) -> float:
    number = _scalar(value)
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise _WrongType
    return float(number)


def _int(parameter: Parameter, value: Any, props: Properties, name: str) -> int:
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, bool) or not isinstance(number, int):
        raise _WrongType
    return number


def _bool(parameter: Parameter, value: Any, props: Properties, name: str) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise _WrongType
    return bool(value)


def _string(parameter: Parameter, value: Any, props: Properties, name: str) -> str:
    if not isinstance(value, str):
        raise _WrongType
    return value


def _ior(parameter: Parameter, value: Any, props: Properties, name: str) -> float | str:
    number = _scalar(value)
    if not isinstance(number, (float, str)):
        raise _WrongType
    return number


def _vector(parameter: Parameter, value: Any, props: Properties, name: str) -> Any:
    if isinstance(value, (str, Rgb, SpectrumValue)) or object_kind(value) is not None:
        raise _WrongType
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise _WrongType from None
    if array.size != 3:
        raise _WrongType
    return array.reshape(3)


def _transform(parameter: Parameter, value: Any, props: Properties, name: str) -> ScalarTransform4f:
    if isinstance(value, ScalarTransform4f):
        check_matrix(value.matrix, name)
        return value
    matrix = _matrix(value)
    check_matrix(matrix, name)
    if matrix.shape == (3, 3):
        return ScalarTransform4f.from_plane(ScalarTransform3f(matrix))
    return ScalarTransform4f(matrix)


def check_matrix(matrix: Any, name: str) -> None:
    """Raise SceneError for a transform with NaN or infinite numbers, or that maps everything to a line or point."""
    if not np.isfinite(matrix).all():
        raise SceneError(f"{name}: the transform has numbers that are not finite:\n{matrix}")
    if np.linalg.matrix_rank(matrix[:-1, :-1], tol=0.0) < 2:
        raise SceneError(f"{name}: the transform flattens everything to a line or point:\n{matrix}")


def _transform2(parameter: Parameter, value: Any, props: Properties, name: str) -> ScalarTransform3f:
    if isinstance(value, ScalarTransform3f):
        return value
    matrix = _matrix(value)
    return ScalarTransform3f(matrix) if matrix.shape == (3, 3) else ScalarTransform4f(matrix).extract()


def _matrix(value: Any) -> Any:
    """Return the matrix of a transform of any make as doubles of shape (3, 3) or (4, 4)."""
    if object_kind(value) is not None:
        raise _WrongType
    try:
        matrix = np.array(getattr(value, "matrix", value), dtype=np.float64)
    except (TypeError, ValueError):
        raise _WrongType from None
    if matrix.ndim == 3 and matrix.shape[2] == 1:
        matrix = matrix[:, :, 0]
    if matrix.shape not in ((3, 3), (4, 4)):
        raise _WrongType
    return matrix


def _any(parameter: Parameter, value: Any, props: Properties, name: str) -> Any:
    return value


def _object(parameter: Parameter, value: Any, props: Properties, name: str) -> Any:
    """Return a nested object; objects of classes that name no kind are trusted."""
    kind = props.kind_of(name) if name in props.keys() else object_kind(value)
    if kind is None:
        plain = isinstance(value, (bool, int, float, str, np.ndarray, np.generic, list, tuple, dict))
        useful = any(hasattr(value, name) for name in ("eval", "sample", "render", "traverse"))
        if plain or not useful or isinstance(value, (Rgb, SpectrumValue, ScalarTransform3f, ScalarTransform4f)):
            raise _WrongType
    elif not accepts(parameter, kind):
        raise _WrongType
    return value


def _spectrum_triplet(value: SpectrumValue, mode: str, props: Properties) -> Any:
    """Return linear RGB, shape (3,), of a spectrum in a slot of the given kind."""
    if value.value is not None:
        return value.value * spectra.equal_energy_rgb()
    pairs = value.pairs
    if pairs is None:
        pairs = spectra.read_spd(props.resolve(value.filename or ""))
    rgb = spectra.spectrum_to_rgb(pairs, emissive=mode == "emissive")
    return np.clip(rgb, 0.0, 1.0) if mode == "texture" else np.maximum(rgb, 0.0)


def _texture(parameter: Parameter, value: Any, props: Properties, name: str) -> Any:
    number = _scalar(value)
    mode = parameter.kind
    if isinstance(number, SpectrumValue):
        if number.value is not None and mode != "emissive":
            return _make_uniform(number.value, props, name)
        return _make_srgb(_spectrum_triplet(number, mode, props), mode, props, name)
    if isinstance(number, Rgb):
        if mode == "texture" and not all(0.0 <= x <= 1.0 for x in (number.r, number.g, number.b)):
            raise SceneError(f'Invalid RGB reflectance value {describe(number)} of the property "{name}", '
                             "must be in the range [0, 1]")
        return _make_srgb(number.array, mode, props, name)
    if isinstance(number, bool):
        raise _WrongType
    if isinstance(number, (int, float)):
        if mode == "emissive":
            return _make_srgb(np.full(3, float(number)), mode, props, name)
        return _make_uniform(float(number), props, name)
    return _object(parameter, value, props, name)


def _make_uniform(value: float, props: Properties, name: str) -> Any:
    return create("texture", "uniform", {"value": value}, props, name)


def _make_srgb(rgb: Any, mode: str, props: Properties, name: str) -> Any:
    values: dict[str, Any] = {"color": Rgb(*(float(x) for x in rgb))}
    table = entry("texture", "srgb").parameters or ()
    if mode != "texture" and any(parameter.name == "unbounded" for parameter in table):
        values["unbounded"] = True
    return create("texture", "srgb", values, props, name)


def _volume(parameter: Parameter, value: Any, props: Properties, name: str) -> Any:
    number = _scalar(value)
    if isinstance(number, bool):
        raise _WrongType
    kind = props.kind_of(name) if name in props.keys() else object_kind(value)
    if isinstance(number, (int, float, Rgb, SpectrumValue)) or kind == "texture":
        plain = float(number) if isinstance(number, int) else number
        return create("volume", "constvolume", {"value": plain}, props, name)
    return _object(parameter, value, props, name)


def _spectrum(parameter: Parameter, value: Any, props: Properties, name: str) -> Any:
    number = _scalar(value)
    if isinstance(number, SpectrumValue):
        return _spectrum_triplet(number, "emissive", props)
    if isinstance(number, Rgb):
        return number.array
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        return np.full(3, float(number))
    return _vector(parameter, value, props, name)


_CONVERTERS: dict[str, Callable[[Parameter, Any, Properties, str], Any]] = {
    "float": _float, "int": _int, "bool": _bool, "string": _string, "ior": _ior, "point": _vector, "vector": _vector,
    "transform": _transform, "transform2": _transform2, "any": _any, "spectrum": _spectrum,
    "texture": _texture, "emissive": _texture, "unbounded": _texture, "volume": _volume,
}
_CONVERTERS.update({kind: _object for kind in KINDS if kind not in _CONVERTERS})


def create(kind: str, name: str, values: dict[str, Any], props: Properties, source: str) -> Any:
    """Return a new plugin object made in place of the property `source` of `props`."""
    plugin = entry(kind, name)
    return build(plugin, props.derive(values, plugin, source))


def build(plugin: PluginEntry, props: Properties) -> Any:
    """Return the object that the plugin makes of checked properties."""
    props.check()
    made = plugin.factory(props)
    if plugin.parameters is None:
        props.refuse_unqueried()
    if object_kind(made) is None and hasattr(made, "__dict__"):
        made.plugin_kind = plugin.kind
    return made
