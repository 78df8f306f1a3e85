"""Builds the objects of a document, children first."""

from __future__ import annotations

import warnings
from typing import Any

from ..jit.errors import LuxgradError, SceneError
from ..render.properties import Properties
from ..render.registry import PluginEntry, entry, find_kinds, known, nearest
from ..render.slots import build
from ..render.values import object_kind, type_name
from .nodes import Child, Document, Node, SceneWarning

__all__ = ["instantiate"]


def _refuse_scalar(types: Any) -> None:
    if types is not None and getattr(getattr(types, "ns", None), "backend", "") == "scalar":
        raise SceneError(
            f"scenes cannot be loaded in the variant {types.variant}, which has array types only; use llvm_ad_rgb"
        )


def instantiate(document: Document, types: Any) -> Any:
    """Return the object of node 0, or a list where it expands to several; errors name the node's place."""
    _refuse_scalar(types)
    made: dict[int, list[Any]] = {}
    kinds: dict[int, str] = {}
    for index in _children_first(document):
        node = document.nodes[index]
        if node.instance is not None:
            made[index], kinds[index] = [node.instance], node.kind
            continue
        try:
            plugin = _find(node)
            made[index] = _expanded(_build(document, node, plugin, types, made, kinds), node)
            kinds[index] = plugin.kind
        except Exception as error:
            raise _explained(node, error) from error
    objects = made[0]
    return objects[0] if len(objects) == 1 else objects


def _children_first(document: Document) -> list[int]:
    """Return the indices of all nodes that the root needs, every node after its children."""
    order: list[int] = []
    seen: set[int] = {0}
    stack = [(0, iter(document.nodes[0].children()))]
    while stack:
        index, children = stack[-1]
        child = next((c for c in children if c not in seen), None)
        if child is None:
            order.append(index)
            stack.pop()
        else:
            seen.add(child)
            stack.append((child, iter(document.nodes[child].children())))
    return order


def _find(node: Node) -> PluginEntry:
    """Return the plugin of a node; dictionaries name no kind, there the plugin's name decides."""
    if node.kind:
        return entry(node.kind, node.plugin)
    kinds = find_kinds(node.plugin)
    if not kinds:
        names = sorted({name for kind in ("bsdf", "emitter", "film", "integrator", "medium", "phase", "rfilter",
                                          "sampler", "sensor", "shape", "texture", "volume") for name in known(kind)})
        hint = nearest(node.plugin, names)
        raise SceneError(f'unknown plugin "{node.plugin}"{"; " + hint if hint else ""}. '
                         f"Known plugins: {', '.join(names)}")
    return entry(kinds[0], node.plugin)


def _build(
    document: Document, node: Node, plugin: PluginEntry, types: Any, made: dict[int, list[Any]], kinds: dict[int, str]
) -> Any:
    """Return the object of a node whose children are made."""
    values: dict[str, Any] = {}
    child_kinds: dict[str, str] = {}
    locations: dict[str, str] = {}
    for name, prop in node.properties.items():
        place = str(prop.location)
        if not isinstance(prop.value, Child):
            values[name], locations[name] = prop.value, place
            continue
        for position, item in enumerate(made[prop.value.index]):
            label = name if position == 0 else f"{name}_{position}"
            values[label], locations[label] = item, place
            child_kinds[label] = object_kind(item) or kinds[prop.value.index]
    resolver = document.resolver if node.folder is None else document.resolver.append(node.folder)
    props = Properties(values, entry=plugin, id=node.id, location=str(node.location), types=types, resolver=resolver,
                       locations=locations, kinds=child_kinds)
    if node.tolerant and plugin.parameters is not None:
        for name in props.unqueried():
            if props.kind_of(name) is None:
                warnings.warn(f'{locations[name]}: the {plugin.kind} plugin "{plugin.name}" does not know the property '
                              f'{type_name(values[name])} "{name}"; it is ignored', SceneWarning, stacklevel=2)
                del props[name]
    result = build(plugin, props)
    if node.id and hasattr(result, "set_id"):
        result.set_id(node.id)
    return result


def _expanded(made: Any, node: Node) -> list[Any]:
    """Return the objects that stand for `made`: those of its `expand()` if it has any, else itself."""
    expand = getattr(made, "expand", None)
    objects = list(expand()) if callable(expand) and object_kind(made) is not None else []
    return objects or [made]


def _explained(node: Node, error: Exception) -> SceneError:
    """Return the error with the place and plugin of the node before its message, of the same class if it is ours."""
    kind = f"{node.kind} " if node.kind else ""
    reason = str(error) if isinstance(error, LuxgradError) else f"{type(error).__name__}: {error}"
    message = f'At {node.location}: failed to instantiate {kind}plugin of type "{node.plugin}": {reason}'
    return type(error)(message) if isinstance(error, SceneError) else SceneError(message)
