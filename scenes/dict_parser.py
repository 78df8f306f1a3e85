"""Turns scene dictionaries into documents of nodes (scene_format.md 2.3)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..render.transform import ScalarTransform3f, ScalarTransform4f
from ..render.values import Rgb, SpectrumValue, object_kind
from .nodes import Child, Document, Location, Node, Reference
from .resolver import FileResolver

__all__ = ["parse_dict"]

_MAX_DEPTH = 100


def parse_dict(scene: Mapping[str, Any], resolver: FileResolver) -> Document:
    """Return the document of a scene dictionary; the root is a scene unless it has another `type`."""
    if not isinstance(scene, Mapping):
        Location("dictionary").fail(f"expected a dictionary, got {type(scene).__name__}")
    document = Document(resolver)
    root = {"type": "scene", **scene} if "type" not in scene else scene
    _Parser(document).node(root, "", "", None)
    for path, index in document.paths.items():
        _check_id(document, path, index)
    return document


def _check_id(document: Document, path: str, index: int) -> None:
    """Refuse an explicit id that is the key of another object."""
    other = document.ids.get(path)
    if other is not None and other != index:
        nodes = document.nodes
        nodes[other].location.fail(f'duplicate ID: "{path}" (it is also {nodes[index].location})')


def _place(path: str) -> Location:
    return Location(f'dictionary node "{path or "root"}"')


class _Parser:
    """Walks nested dictionaries; `path` is the place of a value, joined by dots."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def node(self, entries: Mapping[str, Any], path: str, key: str, parent: Node | None) -> None:
        """Read the dictionary of an object and make it the property `key` of its parent."""
        place = _place(path)
        if path.count(".") >= _MAX_DEPTH:
            place.fail(f"dictionaries are nested more than {_MAX_DEPTH} deep")
        plugin = entries.get("type")
        if not isinstance(plugin, str):
            place.fail("missing 'type' attribute" if plugin is None
                       else f"'type' must be a string, got {type(plugin).__name__}")
        if plugin == "scene" and parent is not None:
            place.fail("a scene can only be the root of a dictionary")
        explicit = entries.get("id", "")
        if not isinstance(explicit, str):
            place.fail(f"'id' must be a string, got {type(explicit).__name__}")
        # An explicit id is reserved in the document, where it must be unique; keys may repeat at other places.
        node = Node("scene" if plugin == "scene" else "", plugin, place, explicit)
        index = self.document.append(node)
        node.id = explicit or key
        if parent is not None:
            self._attach(parent, key, index, path, place)
        for name, value in entries.items():
            self._check_key(name, place)
            if name not in ("type", "id"):
                self._entry(name, value, f"{path}.{name}" if path else name, node, at_root=parent is None)

    def _attach(self, parent: Node, key: str, index: int, path: str, place: Location) -> None:
        self.document.paths[path] = index
        parent.add(key, Child(index), place)

    def _check_key(self, name: Any, place: Location) -> None:
        if not isinstance(name, str):
            place.fail(f"Dictionary keys must be strings, got {name!r}")
        if "." in name:
            place.fail(f"The object key '{name}' contains a '.' character, which is reserved as a delimiter in "
                       f"object paths; write '{name.replace('.', '_')}'")

    def _entry(self, key: str, value: Any, path: str, node: Node, at_root: bool) -> None:
        """Read one entry of an object's dictionary."""
        place = _place(path)
        if isinstance(value, Mapping):
            kind = value.get("type")
            if kind == "resources":
                self._resources(value, place, at_root)
            elif kind == "ref":
                node.add(key, Reference(_only(value, place, "id", str)), place)
            elif kind == "rgb":
                node.add(key, _colour(value, place), place)
            elif kind == "spectrum":
                node.add(key, _spectrum(value, place), place)
            else:
                self.node(value, path, key, node)
        elif value is None:
            place.fail("the value is None; leave the entry out instead")
        elif object_kind(value) is not None:
            given = Node(object_kind(value) or "", type(value).__name__, place, instance=value)
            given.id = key
            self._attach(node, key, self.document.append(given), path, place)
            if hasattr(value, "set_id"):
                value.set_id(key)
        else:
            node.add(key, _value(value), place)

    def _resources(self, entries: Mapping[str, Any], place: Location, at_root: bool) -> None:
        if not at_root:
            place.fail("Declarations of resource folders must be done at the root of the dictionary")
        written = str(_only(entries, place, "path", (str, Path)))
        found = self.document.resolver.find(written)
        if found is None or not found.is_dir():
            place.fail(f'resource folder "{written}" not found')
        self.document.resolver = self.document.resolver.prepend(found)


def _only(entries: Mapping[str, Any], place: Location, name: str, expected: Any) -> Any:
    """Return the one entry that may stand beside `type`."""
    kind = entries["type"]
    if set(entries) != {"type", name}:
        found = ", ".join(map(str, entries))
        place.fail(f"'{kind}' dictionary should contain exactly 'type' and '{name}', got {found}")
    if not isinstance(entries[name], expected):
        place.fail(f"'{name}' of a '{kind}' dictionary has the wrong type {type(entries[name]).__name__}")
    return entries[name]


def _numbers(value: Any) -> list[float] | None:
    """Return a flat list of numbers, or None for anything else."""
    if isinstance(value, (str, bytes, bool, Mapping)):
        return None
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return [float(x) for x in array.reshape(-1)] if array.ndim <= 2 else None


def _colour(entries: Mapping[str, Any], place: Location) -> Rgb:
    if set(entries) != {"type", "value"}:
        found = ", ".join(map(str, entries))
        place.fail(f"'rgb' dictionary should contain 2 entries ('type' and 'value'), got {found}")
    numbers = _numbers(entries["value"])
    if numbers is None or len(numbers) not in (1, 3):
        place.fail(f"could not interpret {entries['value']!r} as a color; expected one number or three")
    return Rgb(*(numbers * 3 if len(numbers) == 1 else numbers))


def _spectrum(entries: Mapping[str, Any], place: Location) -> SpectrumValue:
    if len(entries) != 2 or not ({"value", "filename"} & set(entries)):
        place.fail("'spectrum' dictionary should contain 2 entries ('type' and either 'value' or 'filename'), "
                   f"got {', '.join(map(str, entries))}")
    if "filename" in entries:
        return SpectrumValue(filename=str(entries["filename"]))
    value = entries["value"]
    numbers = _numbers(value)
    if numbers is not None and len(numbers) == 1:
        return SpectrumValue(value=numbers[0])
    array = None if numbers is None else np.array(value, dtype=np.float64)
    if array is None or array.ndim != 2 or array.shape[1] != 2 or not len(array):
        place.fail(f"could not interpret {value!r} as a spectrum; expected one number or (wavelength, value) pairs")
    if np.any(np.diff(array[:, 0]) <= 0.0):
        place.fail("Wavelengths must be specified in increasing order")
    return SpectrumValue(pairs=tuple((float(x), float(y)) for x, y in array))


def _value(value: Any) -> Any:
    """Return a plain value: NumPy scalars as Python numbers, three numbers as a vector, anything else as it is."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (bool, int, float, str, ScalarTransform3f, ScalarTransform4f)):
        return value
    if isinstance(value, (list, tuple, np.ndarray)):
        numbers = _numbers(value)
        if numbers is not None and len(numbers) == 3 and np.ndim(value) == 1:
            return np.array(numbers, dtype=np.float64)
    return value
