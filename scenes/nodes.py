"""What a scene file or dictionary says, before any object is built: a flat list of nodes, node 0 the root."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from ..jit.errors import SceneError
from .resolver import FileResolver

__all__ = ["Child", "Document", "Location", "Node", "Property", "Reference", "SceneWarning"]


class SceneWarning(UserWarning):
    """A scene was read in a way its author may not expect: old names, ignored properties."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where something was written: a file or string with line and column, or the path of a dictionary node."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.source} (line {self.line}, col {self.column})" if self.line else self.source

    def fail(self, message: str) -> NoReturn:
        """Raise SceneError for a mistake at this place."""
        raise SceneError(f"Error while loading {self}: {message}")


@dataclass(frozen=True, slots=True)
class Reference:
    """Stands for the object whose id is `id`, which may come later."""

    id: str


@dataclass(frozen=True, slots=True)
class Child:
    """Stands for the object of node `index`."""

    index: int


@dataclass(slots=True)
class Property:
    """A value of `luxgrad.render.values`, a `Reference` or a `Child`, and where it was written."""

    value: Any
    location: Location


@dataclass(slots=True)
class Node:
    """One object of a scene: its kind ("" in dictionaries, where the plugin's name tells), plugin, id and properties.

    `instance` holds an object that the user passed ready-made. `old` marks files written for versions below 2,
    `tolerant` asks that properties which the plugin does not know are dropped with a warning.
    """

    kind: str
    plugin: str
    location: Location
    id: str = ""
    properties: dict[str, Property] = field(default_factory=dict)
    instance: Any = None
    old: bool = False
    tolerant: bool = False
    folder: Path | None = None
    unnamed: int = 0

    def add(self, name: str | None, value: Any, location: Location) -> None:
        """Add a property; nameless ones get `_arg_0`, `_arg_1` ...; a name used before raises SceneError."""
        if name is None:
            name = f"_arg_{self.unnamed}"
            self.unnamed += 1
        before = self.properties.get(name)
        if before is not None:
            location.fail(f'the property "{name}" was given before at {before.location}')
        self.properties[name] = Property(value, location)

    def children(self) -> list[int]:
        """Return the indices of the nodes that this one refers to, in order."""
        return [p.value.index for p in self.properties.values() if isinstance(p.value, Child)]


@dataclass(slots=True)
class Document:
    """All nodes of a scene, their ids, and the folders in which its files are searched.

    `paths` holds the ids that dictionary nodes have by their place ("shape.bsdf.reflectance").
    """

    resolver: FileResolver
    nodes: list[Node] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    paths: dict[str, int] = field(default_factory=dict)

    def append(self, node: Node) -> int:
        """Add a node and its id, return its index; an id used before raises SceneError with both places."""
        index = len(self.nodes)
        if node.id:
            before = self.ids.get(node.id)
            if before is not None:
                node.location.fail(f'duplicate ID: "{node.id}" (previous was at {self.nodes[before].location})')
            self.ids[node.id] = index
        self.nodes.append(node)
        return index
