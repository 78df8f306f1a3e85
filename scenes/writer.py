"""Writes scenes as XML text and as dictionaries: the way back from a document of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from ..jit.errors import SceneError
from ..render.registry import find_kinds
from ..render.transform import ScalarTransform3f, ScalarTransform4f
from ..render.values import Rgb, SpectrumValue, type_name
from .dict_parser import parse_dict
from .nodes import Child, Document, Node, Property
from .resolve import resolve_references
from .resolver import default_resolver

__all__ = ["dict_to_xml", "document_to_dict", "document_to_xml", "write_dict"]

_VERSION = "3.0.0"


def dict_to_xml(scene: Mapping[str, Any]) -> str:
    """Return a scene dictionary as XML text; objects and arrays that XML cannot hold raise SceneError."""
    document = parse_dict(scene, default_resolver())
    resolve_references(document)
    return document_to_xml(document)


def write_dict(scene: Mapping[str, Any], path: str | Path) -> None:
    """Write a scene dictionary as an XML file. File names in it are written as they are."""
    Path(path).write_text(dict_to_xml(scene), encoding="utf-8")


def document_to_xml(document: Document) -> str:
    """Return a document with resolved references as XML text that loads to the same scene."""
    return _XmlWriter(document).text()


def document_to_dict(document: Document) -> dict[str, Any]:
    """Return a document with resolved references as a dictionary for `load_dict`."""
    return _DictWriter(document).node(0)


class _Writer:
    """Knows which nodes need an id, and which are written already and only referred to."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.written: set[int] = set()
        uses: dict[int, int] = {}
        for node in document.nodes:
            for child in node.children():
                uses[child] = uses.get(child, 0) + 1
        top = {child for child in document.nodes[0].children()} | {0}
        explicit = set(document.ids.values())
        self.ids: dict[int, str] = {}
        taken: set[str] = set(document.ids)
        for index, node in enumerate(document.nodes):
            shared = uses.get(index, 0) > 1
            if index in explicit:
                self.ids[index] = next(name for name, at in document.ids.items() if at == index)
            elif shared or (index in top and node.id):
                self.ids[index] = _unique(node.id or f"{node.plugin}_{index}", taken)
            taken.add(self.ids.get(index, ""))

    def fail(self, prop: Property, name: str) -> SceneError:
        """Return the error for a value that cannot be written."""
        kind = type_name(prop.value)
        return SceneError(f'{prop.location}: the property "{name}" ({kind}) cannot be written to a file; '
                          "save it as a file of its own and give its filename")


def _unique(name: str, taken: set[str]) -> str:
    candidate, number = name, 0
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def _number(value: float) -> str:
    return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def _numbers(values: Any) -> str:
    return ", ".join(_number(float(x)) if np.isfinite(x) else str(float(x)) for x in values)


class _XmlWriter(_Writer):
    """Writes nodes as elements, one per line, indented by depth."""

    def text(self) -> str:
        """Return the whole file."""
        lines: list[str] = []
        self._element(0, None, 0, lines)
        return "\n".join(lines) + "\n"

    def _element(self, index: int, name: str | None, depth: int, lines: list[str]) -> None:
        node = self.document.nodes[index]
        if node.instance is not None:
            raise SceneError(f"{node.location}: an object of type {type(node.instance).__name__} cannot be written")
        kind = node.kind or _kind_of(node)
        attributes = {} if kind == "scene" else {"type": node.plugin}
        if depth == 0:
            attributes = {"version": _VERSION, **attributes}
        if index in self.ids:
            attributes["id"] = self.ids[index]
        if name is not None:
            attributes["name"] = name
        self.written.add(index)
        indent = "    " * depth
        head = f"{indent}<{kind}{_attributes(attributes)}"
        if not node.properties:
            lines.append(head + "/>")
            return
        lines.append(head + ">")
        for label, prop in node.properties.items():
            shown = None if label.startswith("_arg_") else label
            if not isinstance(prop.value, Child):
                lines.extend("    " * (depth + 1) + line for line in self._property(label, prop))
            elif prop.value.index in self.written:
                reference = {"id": self.ids[prop.value.index], **({"name": shown} if shown else {})}
                lines.append(f"{indent}    <ref{_attributes(reference)}/>")
            else:
                self._element(prop.value.index, shown, depth + 1, lines)
        lines.append(f"{indent}</{kind}>")

    def _property(self, name: str, prop: Property) -> list[str]:
        value = prop.value
        if isinstance(value, (ScalarTransform3f, ScalarTransform4f)):
            space = value if isinstance(value, ScalarTransform4f) else ScalarTransform4f.from_plane(value)
            matrix = _attributes({"value": _numbers(space.matrix.reshape(-1)).replace(",", "")})
            return [f"<transform{_attributes({'name': name})}>", f"    <matrix{matrix}/>", "</transform>"]
        tag, attributes = self._simple(name, prop)
        return [f"<{tag}{_attributes({'name': name, **attributes})}/>"]

    def _simple(self, name: str, prop: Property) -> tuple[str, dict[str, str]]:
        """Return tag and attributes of a value that is one element."""
        value = prop.value
        if isinstance(value, bool):
            return "boolean", {"value": str(value).lower()}
        if isinstance(value, int):
            return "integer", {"value": str(value)}
        if isinstance(value, float):
            return "float", {"value": repr(value)}
        if isinstance(value, str):
            return "string", {"value": value}
        if isinstance(value, Rgb):
            return "rgb", {"value": _numbers(value.array)}
        if isinstance(value, SpectrumValue):
            if value.filename is not None:
                return "spectrum", {"filename": value.filename}
            if value.pairs is None:
                return "spectrum", {"value": repr(value.value)}
            return "spectrum", {"value": ", ".join(f"{_number(x)}:{_number(y)}" for x, y in value.pairs)}
        if isinstance(value, np.ndarray) and value.shape == (3,):
            return "vector", {"value": _numbers(value)}
        raise self.fail(prop, name)


def _attributes(attributes: Mapping[str, str]) -> str:
    return "".join(f" {name}={quoteattr(value.replace('$', chr(92) + '$'))}" for name, value in attributes.items())


def _kind_of(node: Node) -> str:
    kinds = find_kinds(node.plugin)
    if not kinds:
        raise SceneError(f'{node.location}: unknown plugin "{node.plugin}"')
    return kinds[0]


class _DictWriter(_Writer):
    """Writes nodes as nested dictionaries; keys are names, else ids, else numbered by kind."""

    def node(self, index: int) -> dict[str, Any]:
        """Return the dictionary of a node that is written for the first time."""
        node = self.document.nodes[index]
        self.written.add(index)
        entries: dict[str, Any] = {"type": node.plugin}
        if index in self.ids and index != 0:
            entries["id"] = self.ids[index]
        for name, prop in node.properties.items():
            if isinstance(prop.value, Child):
                child = prop.value.index
                entries[self._key(name, child, entries)] = self._child(child)
            else:
                entries[name] = self._value(name, prop)
        return entries

    def _child(self, index: int) -> Any:
        node = self.document.nodes[index]
        if node.instance is not None:
            return node.instance
        return {"type": "ref", "id": self.ids[index]} if index in self.written else self.node(index)

    def _key(self, name: str, index: int, taken: Mapping[str, Any]) -> str:
        if not name.startswith("_arg_"):
            return _unique(name.replace(".", "_"), set(taken))
        node = self.document.nodes[index]
        name = node.id or node.kind or node.plugin
        return _unique(name.replace(".", "_"), {*taken, "type", "id"})

    def _value(self, name: str, prop: Property) -> Any:
        value = prop.value
        if isinstance(value, Rgb):
            return {"type": "rgb", "value": [value.r, value.g, value.b]}
        if isinstance(value, SpectrumValue):
            if value.filename is not None:
                return {"type": "spectrum", "filename": value.filename}
            return {"type": "spectrum", "value": value.value if value.pairs is None else list(value.pairs)}
        if isinstance(value, np.ndarray) and value.shape == (3,):
            return value.tolist()
        return value
