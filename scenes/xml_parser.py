"""Turns XML scenes into documents of nodes (scene_format.md 2.2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ..jit.errors import MissingFileError, SceneError
from . import upgrade
from .nodes import Child, Document, Node, Reference
from .resolver import FileResolver
from .substitution import Parameters
from .xml_reader import Element, read_xml
from .xml_values import PROPERTY_TAGS, TRANSFORM_TAGS, parse_value

__all__ = ["OBJECT_TAGS", "parse_file", "parse_string"]

OBJECT_TAGS: Final = (
    "scene", "bsdf", "emitter", "film", "integrator", "medium", "phase", "rfilter", "sampler", "sensor", "shape",
    "texture", "volume",
)
_MAX_INCLUDE_DEPTH = 15


def parse_file(
    path: str | Path, parameters: Mapping[str, Any], resolver: FileResolver, tolerant: bool | None = None
) -> Document:
    """Return the document of a scene file; files it names are searched in its own folder first.

    `tolerant` of None reads files of versions below 2 tolerantly, True all, False none.
    """
    path = Path(path)
    text = _read(path, str(path))
    parser = _Parser(Document(resolver.prepend(path.parent)), Parameters(parameters), tolerant)
    return parser.run(read_xml(text, str(path)), path)


def parse_string(
    text: str, parameters: Mapping[str, Any], resolver: FileResolver, tolerant: bool | None = None
) -> Document:
    """Return the document of a scene given as XML text; files it names are searched by the resolver."""
    parser = _Parser(Document(resolver), Parameters(parameters), tolerant)
    return parser.run(read_xml(text, "string"), None)


def _read(path: Path, shown: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise MissingFileError(f'scene file "{shown}" not found (looked for {path.absolute()})') from None
    except OSError as error:
        raise SceneError(f'scene file "{shown}" cannot be read: {error}') from error


class _File:
    """One file while it is read: its path, how it is read, and the files that include it."""

    def __init__(self, path: Path | None, shown: str, old: bool, tolerant: bool, parent: _File | None) -> None:
        self.path = path
        self.shown = shown
        self.old = old
        self.tolerant = tolerant
        self.parent = parent

    def chain(self) -> list[_File]:
        """Return the including files, outermost first, and this one."""
        return [*(self.parent.chain() if self.parent else []), self]


class _Parser:
    """Walks the elements of a file and its includes and fills one document."""

    def __init__(self, document: Document, parameters: Parameters, tolerant: bool | None) -> None:
        self.document = document
        self.parameters = parameters
        self.tolerant = tolerant

    def run(self, root: Element, path: Path | None) -> Document:
        """Return the filled document."""
        shown = root.location.source
        file = self._open(root, path, shown, None)
        root.attributes.pop("version", None)
        self._object(root, None, file)
        self.parameters.check_used(shown)
        return self.document

    def _open(self, root: Element, path: Path | None, shown: str, parent: _File | None) -> _File:
        """Return the state for a file by the version of its root element, whose old tags are renamed."""
        if root.tag not in OBJECT_TAGS and not (root.tag == "spectrum" and "type" in root.attributes):
            known = ", ".join(OBJECT_TAGS)
            if root.tag in PROPERTY_TAGS:
                root.fail(f"the root element must be an object ({known}), found <{root.tag}>")
            root.fail(f"encountered an unsupported XML element: <{root.tag}>; the root must be one of {known}")
        self._substitute(root)
        text = root.attributes.get("version")
        if text is None:
            root.fail(f'missing required attribute "version" in the root element <{root.tag}>; '
                      'write version="3.0.0"')
        if not re.fullmatch(r"\d+\.\d+\.\d+", text.strip()):
            root.fail(f'Invalid version number: "{text}"; write three numbers, as in version="3.0.0"')
        below_two = int(text.split(".")[0]) < 2
        tolerant = below_two if self.tolerant is None else self.tolerant
        if tolerant:
            upgrade.rename_elements(root)
        return _File(path, shown, below_two or tolerant, tolerant, parent)

    def _substitute(self, element: Element) -> None:
        for name, text in element.attributes.items():
            if "$" in text:
                element.attributes[name] = self.parameters.substitute(text, element.location)

    def _element(self, element: Element, parent: int, file: _File) -> None:
        """Read one child element of node `parent`."""
        tag = element.tag
        if tag in OBJECT_TAGS or (tag == "spectrum" and "type" in element.attributes):
            self._substitute(element)
            self._object(element, parent, file)
        elif tag in PROPERTY_TAGS:
            self._property(element, parent)
        elif tag in _SPECIAL:
            self._substitute(element)
            if element.children:
                element.children[0].fail(f"unexpected <{element.children[0].tag}> element inside <{tag}>")
            _SPECIAL[tag](self, element, parent, file)
        elif tag in TRANSFORM_TAGS:
            element.fail(f"transform operation <{tag}> can only appear inside a <transform> tag")
        else:
            hint = "; write <lookat> inside a <transform>" if tag.lower() == "lookat" else ""
            element.fail(f"encountered an unsupported XML element: <{tag}>{hint}")

    def _object(self, element: Element, parent: int | None, file: _File) -> int:
        """Read an object element with all its children; return the index of its node."""
        if element.tag == "scene":
            if parent is not None:
                element.fail("<scene> can only be the root of a file")
            element.check_attributes({"type", "id", "name"})
            plugin = "scene"
        else:
            element.check_attributes({"type", "id", "name"}, ("type",))
            plugin = element.attributes["type"]
        kind = "texture" if element.tag == "spectrum" else element.tag
        folder = file.path.parent if file.path else None
        node = Node(kind, plugin, element.location, element.attributes.get("id", ""), old=file.old,
                    tolerant=file.tolerant, folder=folder)
        index = self.document.append(node)
        if parent is not None:
            self.document.nodes[parent].add(element.attributes.get("name"), Child(index), element.location)
        for child in element.children:
            self._element(child, index, file)
        return index

    def _property(self, element: Element, parent: int) -> None:
        for part in (element, *element.children):
            self._substitute(part)
        value = parse_value(element)
        name = element.attributes["name"]
        if not name:
            element.fail(f'the attribute "name" of <{element.tag}> is empty')
        self.document.nodes[parent].add(name, value, element.location)

    def _default(self, element: Element, parent: int, file: _File) -> None:
        element.check_attributes({"name", "value"}, ("name", "value"))
        name = element.attributes["name"]
        if not name:
            element.fail("<default>: the name is empty")
        self.parameters.set_default(name, element.attributes["value"])

    def _ref(self, element: Element, parent: int, file: _File) -> None:
        element.check_attributes({"id", "name"}, ("id",))
        node = self.document.nodes[parent]
        node.add(element.attributes.get("name"), Reference(element.attributes["id"]), element.location)

    def _alias(self, element: Element, parent: int, file: _File) -> None:
        element.check_attributes({"id", "as"}, ("id", "as"))
        source, target = element.attributes["id"], element.attributes["as"]
        ids = self.document.ids
        if source not in ids:
            element.fail(f'alias source ID "{source}" not found; it must be declared before the alias')
        if target in ids:
            before = self.document.nodes[ids[target]].location
            element.fail(f'alias destination ID "{target}" already exists (at {before})')
        ids[target] = ids[source]

    def _path(self, element: Element, parent: int, file: _File) -> None:
        element.check_attributes({"value"}, ("value",))
        if parent != 0:
            element.fail("<path>: path can only be child of root")
        written = element.attributes["value"]
        found = self._near(file).find(written)
        if found is None or not found.is_dir():
            element.fail(f'<path>: folder "{written}" not found')
        self.document.resolver = self.document.resolver.prepend(found)

    def _near(self, file: _File) -> FileResolver:
        """Return the resolver that looks in the folder of `file` first."""
        return self.document.resolver.prepend(file.path.parent) if file.path else self.document.resolver

    def _include(self, element: Element, parent: int, file: _File) -> None:
        element.check_attributes({"filename", "name"}, ("filename",))
        written = element.attributes["filename"]
        try:
            found = self._near(file).resolve(written)
        except MissingFileError as error:
            raise MissingFileError(f"Error while loading {element.location}: included {error}") from None
        if not found.is_file():
            element.fail(f'included file "{written}" is not a file')
        chain = file.chain()
        for outer in chain:
            if outer.path is not None and outer.path.resolve() == found.resolve():
                loop = [entry.shown for entry in chain[chain.index(outer):]]
                element.fail(f"include loop: {' includes '.join([*loop, outer.shown])}")
        if len(chain) > _MAX_INCLUDE_DEPTH:
            element.fail(f"includes are nested more than {_MAX_INCLUDE_DEPTH} deep: "
                         + " includes ".join([*(entry.shown for entry in chain), str(found)]))
        root = read_xml(_read(found, written), str(found))
        inner = self._open(root, found, str(found), file)
        root.attributes.pop("version", None)
        if root.tag == "scene":
            root.check_attributes({"id", "name"})
            for child in root.children:
                self._element(child, parent, inner)
        else:
            if "name" in element.attributes:
                root.attributes["name"] = element.attributes["name"]
            self._object(root, parent, inner)


_SPECIAL = {
    "default": _Parser._default, "ref": _Parser._ref, "alias": _Parser._alias, "path": _Parser._path,
    "include": _Parser._include,
}
