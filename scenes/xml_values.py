"""Values of property elements: numbers, vectors, colours, spectra and transforms as XML writes them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..render.transform import ScalarTransform4f
from ..render.values import Rgb, SpectrumValue
from .nodes import SceneWarning
from .xml_reader import Element

__all__ = ["PROPERTY_TAGS", "TRANSFORM_TAGS", "parse_value"]

_FLOAT = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf|infinity)", re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?\d+")
TRANSFORM_TAGS: Final = ("translate", "rotate", "scale", "lookat", "matrix")


def _is_float(text: str) -> bool:
    return _FLOAT.fullmatch(text) is not None


def _float(element: Element) -> float:
    text = element.attributes["value"]
    if not _is_float(text.strip()):
        element.fail(f'could not parse floating point value "{text}"')
    return float(text)


def _integer(element: Element) -> int:
    text = element.attributes["value"].strip()
    if _INTEGER.fullmatch(text):
        value = int(text) if len(text) < 30 else 1 << 64
    elif _is_float(text) and float(text).is_integer():
        value = int(float(text))
        warnings.warn(f'{element.location}: the integer is written as "{text}"', SceneWarning, stacklevel=2)
    else:
        element.fail(f'could not parse integer value "{text}"')
    if not -(1 << 63) <= value < 1 << 63:
        element.fail(f'could not parse integer value "{text[:40]}": it does not fit 64 bits')
    return value


def _boolean(element: Element) -> bool:
    text = element.attributes["value"]
    folded = text.strip().lower()
    if folded not in ("true", "false"):
        element.fail(f'could not parse boolean value "{text}" -- must be "true" or "false"')
    return folded == "true"


def _numbers(element: Element, text: str) -> list[float]:
    fields = [part for part in re.split(r"[,\s]+", text) if part]
    for part in fields:
        if not _is_float(part):
            element.fail(f'could not parse floating point value "{part}"')
    return [float(part) for part in fields]


def _triple(element: Element, missing: float | None) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the vector of "value" or of "x", "y", "z"; absent axes are `missing`, or an error if that is None."""
    attributes = element.attributes
    axes = [axis for axis in "xyz" if axis in attributes]
    if "value" in attributes:
        if axes:
            element.fail('Cannot mix "value" and "x"/"y"/"z" attributes')
        numbers = _numbers(element, attributes["value"])
        if len(numbers) not in (1, 3):
            element.fail(f'"value" attribute must have exactly 1 or 3 elements, got {len(numbers)}')
        return np.array(numbers * 3 if len(numbers) == 1 else numbers, dtype=np.float64)
    if missing is None:
        element.check_attributes(set(attributes), tuple("xyz"))
    values = [missing if missing is not None else 0.0] * 3
    for axis in axes:
        numbers = _numbers(element, attributes[axis])
        if len(numbers) != 1:
            element.fail(f'attribute "{axis}" must be one number, got "{attributes[axis]}"')
        values["xyz".index(axis)] = numbers[0]
    return np.array(values, dtype=np.float64)


def _linear(encoded: float) -> float:
    """Return the linear value of an sRGB-encoded one (IEC 61966-2-1)."""
    return encoded / 12.92 if encoded <= 0.04045 else float(((encoded + 0.055) / 1.055) ** 2.4)


def _colour(element: Element) -> Rgb:
    """Return linear RGB: numbers of <rgb> are linear, those of <srgb> and all hex colours are sRGB-encoded."""
    text = element.attributes["value"].strip()
    encoded = element.tag == "srgb"
    if text.startswith("#"):
        if not re.fullmatch(r"#[0-9a-fA-F]{6}", text):
            element.fail(f'could not parse RGB value "{text}"; a hex colour has six digits, as in #aabbcc')
        numbers = [int(text[i : i + 2], 16) / 255.0 for i in (1, 3, 5)]
        encoded = True
    else:
        fields = [part for part in re.split(r"[,\s]+", text) if part]
        if len(fields) not in (1, 3) or not all(_is_float(part) for part in fields):
            element.fail(f'could not parse RGB value "{text}"; expected 1 or 3 numbers')
        numbers = [float(part) for part in fields] * (3 if len(fields) == 1 else 1)
    return Rgb(*(map(_linear, numbers) if encoded else numbers))


def _spectrum(element: Element) -> SpectrumValue:
    element.check_attributes({"name", "value", "filename"}, ("name",))
    attributes = element.attributes
    if ("value" in attributes) == ("filename" in attributes):
        element.fail('<spectrum> element requires either "value" or "filename" attribute (but not both)')
    if "filename" in attributes:
        return SpectrumValue(filename=attributes["filename"])
    text = attributes["value"]
    fields = [part for part in re.split(r"[,\s]+", re.sub(r"\s*:\s*", ":", text)) if part]
    if len(fields) == 1 and _is_float(fields[0]):
        return SpectrumValue(value=float(fields[0]))
    pairs: list[tuple[float, float]] = []
    for part in fields:
        sides = part.split(":")
        if len(sides) != 2 or not all(map(_is_float, sides)):
            element.fail(f'Invalid spectrum value "{part}" (expected wavelength:value pairs)')
        if pairs and float(sides[0]) <= pairs[-1][0]:
            element.fail("Wavelengths must be specified in increasing order: "
                         f"found {sides[0]} after {pairs[-1][0]:g}")
        pairs.append((float(sides[0]), float(sides[1])))
    if not pairs:
        element.fail(f'Invalid spectrum value "{text}"')
    return SpectrumValue(pairs=tuple(pairs))


def _transform(element: Element) -> ScalarTransform4f:
    """Return the product of the commands; each acts after those before it."""
    element.check_attributes({"name"}, ("name",))
    result = ScalarTransform4f()
    for command in element.children:
        if command.tag not in TRANSFORM_TAGS:
            hint = "; write <lookat>" if command.tag.lower() == "lookat" else ""
            command.fail(f"unexpected <{command.tag}> element inside <transform>{hint}")
        if command.children:
            command.children[0].fail(f"unexpected <{command.children[0].tag}> element inside <{command.tag}>")
        result = _COMMANDS[command.tag](command) @ result
    return result


def _translate(element: Element) -> ScalarTransform4f:
    element.check_attributes({"value", "x", "y", "z"})
    return ScalarTransform4f().translate(_triple(element, 0.0))


def _scale(element: Element) -> ScalarTransform4f:
    element.check_attributes({"value", "x", "y", "z"})
    return ScalarTransform4f().scale(_triple(element, 1.0))


def _rotate(element: Element) -> ScalarTransform4f:
    element.check_attributes({"value", "x", "y", "z", "angle"}, ("angle",))
    axis = _triple(element, 0.0)
    angle = _numbers(element, element.attributes["angle"])
    if len(angle) != 1:
        element.fail(f'attribute "angle" must be one number of degrees, got "{element.attributes["angle"]}"')
    if not np.any(axis):
        element.fail("rotation axis cannot be zero")
    return ScalarTransform4f().rotate(axis, angle[0])


def _lookat(element: Element) -> ScalarTransform4f:
    element.check_attributes({"origin", "target", "up"}, ("origin", "target"))
    vectors: dict[str, list[float]] = {}
    for name, text in element.attributes.items():
        vectors[name] = _numbers(element, text)
        if len(vectors[name]) != 3:
            element.fail(f'attribute "{name}" of <lookat> must have exactly 3 elements, got "{text}"')
    if vectors["origin"] == vectors["target"]:
        element.fail("<lookat>: origin and target are the same point")
    return ScalarTransform4f().look_at(vectors["origin"], vectors["target"], vectors.get("up"))


def _matrix(element: Element) -> ScalarTransform4f:
    element.check_attributes({"value"}, ("value",))
    numbers = _numbers(element, element.attributes["value"])
    if len(numbers) not in (9, 16):
        element.fail(f"matrix must have 9 or 16 values, got {len(numbers)}")
    matrix = np.eye(4)
    side = 4 if len(numbers) == 16 else 3
    matrix[:side, :side] = np.array(numbers, dtype=np.float64).reshape(side, side)
    return ScalarTransform4f(matrix)


_COMMANDS: dict[str, Callable[[Element], ScalarTransform4f]] = {
    "translate": _translate, "rotate": _rotate, "scale": _scale, "lookat": _lookat, "matrix": _matrix,
}
_SIMPLE: dict[str, Callable[[Element], Any]] = {
    "boolean": _boolean, "integer": _integer, "float": _float, "rgb": _colour, "srgb": _colour,
    "string": lambda element: element.attributes["value"],
}
PROPERTY_TAGS: Final = frozenset({*_SIMPLE, "point", "vector", "spectrum", "transform"})


def parse_value(element: Element) -> Any:
    """Return the value of a property element whose attributes are substituted already; raises SceneError."""
    if element.tag == "transform":
        return _transform(element)
    if element.children:
        child = element.children[0]
        child.fail(f"unexpected <{child.tag}> element inside <{element.tag}>")
    if element.tag == "spectrum":
        return _spectrum(element)
    if element.tag in ("point", "vector"):
        element.check_attributes({"name", "value", "x", "y", "z"}, ("name",))
        return _triple(element, None)
    element.check_attributes({"name", "value"}, ("name", "value"))
    return _SIMPLE[element.tag](element)
