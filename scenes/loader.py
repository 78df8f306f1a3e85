"""Loads scenes from files, text and dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import dict_parser, xml_parser
from .instantiate import instantiate
from .nodes import Document
from .resolve import resolve_references
from .resolver import default_resolver
from .upgrade import upgrade_nodes

__all__ = ["load_dict", "load_file", "load_string", "parse_file", "parse_string"]


def parse_file(path: str | Path, *, tolerant: bool | None = None, **parameters: Any) -> Document:
    """Return the nodes of a scene file, upgraded and with references resolved, without building any object."""
    return _prepared(xml_parser.parse_file(path, parameters, default_resolver(), tolerant))


def parse_string(text: str, *, tolerant: bool | None = None, **parameters: Any) -> Document:
    """Return the nodes of a scene given as XML text, upgraded and with references resolved."""
    return _prepared(xml_parser.parse_string(text, parameters, default_resolver(), tolerant))


def _prepared(document: Document) -> Document:
    resolve_references(document)
    upgrade_nodes(document)
    return document


def load_file(
    path: str | Path, *, types: Any = None, parallel: bool = True, optimize: bool = True, tolerant: bool | None = None,
    **parameters: Any,
) -> Any:
    """Return the scene, or other object, that an XML file describes.

    `types` is the namespace of array types of the variant to load for. Keyword `parameters` replace `$name` in the
    file. `tolerant` reads old files with warnings where they use names that are gone: by default (None) those of
    versions below 2. `parallel` and `optimize` are accepted for compatibility; equal objects are never merged, so
    that each keeps its own parameters. Mistakes raise SceneError with file and line.
    """
    return instantiate(parse_file(path, tolerant=tolerant, **parameters), types)


def load_string(
    text: str, *, types: Any = None, parallel: bool = True, optimize: bool = True, tolerant: bool | None = None,
    **parameters: Any,
) -> Any:
    """Return the scene, or other object, that XML text describes; arguments as in `load_file`."""
    return instantiate(parse_string(text, tolerant=tolerant, **parameters), types)


def load_dict(scene: Mapping[str, Any], *, types: Any = None, parallel: bool = True, optimize: bool = True) -> Any:
    """Return the scene, or other object, that a dictionary describes; arguments as in `load_file`.

    Keys become ids. Objects passed as values are used as they are, under the id of their key.
    """
    document = dict_parser.parse_dict(scene, default_resolver())
    resolve_references(document)
    return instantiate(document, types)
