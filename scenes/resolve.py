"""Connects references to the objects they name."""

from __future__ import annotations

from ..render.registry import nearest
from .nodes import Child, Document, Reference

__all__ = ["resolve_references"]


def resolve_references(document: Document) -> None:
    """Replace every reference by the node it names; unknown ids and cycles raise SceneError."""
    for node in document.nodes:
        for name, prop in node.properties.items():
            if not isinstance(prop.value, Reference):
                continue
            wanted = prop.value.id
            index = document.ids.get(wanted, document.paths.get(wanted))
            if index is None:
                known = [*document.ids, *document.paths]
                hint = nearest(wanted, known)
                prop.location.fail(
                    f'unresolved reference to "{wanted}" in property "{name}"; no object has this id'
                    + (f"; {hint}" if hint else "")
                )
            prop.value = Child(index)
    _refuse_cycles(document)


def _refuse_cycles(document: Document) -> None:
    """Raise SceneError for an object that contains itself, naming the objects on the way."""
    done: set[int] = set()
    for start in range(len(document.nodes)):
        path: list[int] = []
        stack = [(start, iter(document.nodes[start].children()))] if start not in done else []
        if stack:
            path.append(start)
        while stack:
            index, children = stack[-1]
            child = next(children, None)
            if child is None:
                stack.pop()
                path.pop()
                done.add(index)
            elif child in path:
                loop = [*path[path.index(child):], child]
                names = [document.nodes[i].id or str(document.nodes[i].location) for i in loop]
                document.nodes[child].location.fail(f"circular reference detected: {' -> '.join(names)}")
            elif child not in done:
                stack.append((child, iter(document.nodes[child].children())))
                path.append(child)
