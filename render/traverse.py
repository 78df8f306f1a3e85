"""Scene parameters by name: read, set, and tell the scene what changed."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..jit.arrays import tree
from ..jit.arrays.base import ArrayBase
from ..jit.arrays.create import make_opaque
from ..jit.errors import LuxgradError, SceneError, WrongTypeError
from ..jit.runtime.engine import runtime
from ..jit.runtime.evaluate import evaluate
from .interfaces.object import ParamFlags
from .slots import check_matrix

# Names of the development version of Mitsuba for the same arrays.
ALIASES = {"positions": "vertex_positions", "normals": "vertex_normals", "texcoords": "vertex_texcoords"}


class _Entry:
    """One parameter: its value (an array changed in place, or a plain Python value), flags, and the object it is in."""

    __slots__ = ("value", "flags", "owner", "name", "seen")

    frozen_skip = ("seen",)

    def __init__(self, value: Any, flags: ParamFlags, owner: Any, name: str) -> None:
        self.value, self.flags, self.owner, self.name = value, flags, owner, name
        self.seen = identity(value)

    def is_changed(self) -> bool:
        """Return whether the value is another one than at the last update."""
        return bool(identity(self.value) != self.seen)

    frozen_token = is_changed

    def frozen_restore(self) -> None:
        """Take the value as it is for what the scene has seen."""
        self.seen = identity(self.value)


def identity(value: Any) -> Any:
    """Return what changes when an array is rebound: node numbers, of value and gradient."""
    return [(x._n.index, x.index_ad) for x in tree.arrays(value)] if isinstance(value, ArrayBase) else value


class _Collector:
    """Walks objects and lists their parameters; every object is visited once, shared ones under their first name."""

    def __init__(self) -> None:
        self.entries: dict[str, _Entry] = {}
        self.parents: dict[int, tuple[Any, str]] = {}  # object -> (object it is nested in, its name there)
        self.depth: dict[int, int] = {}

    def walk(self, obj: Any, prefix: str, depth: int, inherited: ParamFlags) -> None:
        if id(obj) in self.depth:
            return
        self.depth[id(obj)] = depth
        collector = self

        class Callback:
            def put(self, name: str, value: Any, flags: ParamFlags | int) -> None:
                combined = ParamFlags(int(flags)) | inherited
                if combined & ParamFlags.NonDifferentiable:
                    combined &= ~ParamFlags.Discontinuous
                path = f"{prefix}.{name}" if prefix else name
                if hasattr(value, "traverse") and hasattr(value, "parameters_changed"):
                    if id(value) not in collector.depth:
                        collector.parents[id(value)] = (obj, name)
                        collector.walk(value, collector.unused(path, value), depth + 1, combined)
                else:
                    collector.entries[collector.unused(path, None)] = _Entry(value, combined, obj, name)

            put_object = put_parameter = put

        obj.traverse(Callback())

    def unused(self, path: str, obj: Any) -> str:
        """Return the path, with a number where it is taken already."""
        taken = self.entries if obj is None else {k.rsplit(".", 1)[0]: None for k in self.entries}
        if path not in taken:
            return path
        number = 1
        while f"{path}_{number}" in taken:
            number += 1
        return f"{path}_{number}"


class SceneParameters:
    """Dict-like access to the parameters below an object, by dotted names such as "wall.bsdf.reflectance.value".

    Setting converts to the stored type. After changes, `update` tells the objects. Iteration gives (name, value) pairs.
    """

    def __init__(self, entries: dict[str, _Entry], parents: dict[int, tuple[Any, str]], depth: dict[int, int]) -> None:
        self._entries, self._parents, self._depth = entries, parents, depth
        self._dirty: dict[str, None] = {}
        self._before: dict[str, Any] = {}  # what was there before values were set, until the scene has taken them

    def _entry(self, key: str) -> _Entry:
        if not isinstance(key, str):
            raise WrongTypeError(f"scene parameters have names, found the key {key!r} of type {type(key).__name__}")
        found = self._entries.get(key)
        if found is None:
            head, _, last = key.rpartition(".")
            alias = ALIASES.get(last)
            found = self._entries.get(f"{head}.{alias}" if head else alias) if alias else None
        if found is None:
            from .registry import nearest

            hint = nearest(key, list(self._entries))
            raise KeyError(
                f"there is no scene parameter '{key}'"
                + (f"; {hint}" if hint else "")
                + f" ({len(self._entries)} parameters)"
            )
        return found

    def __getitem__(self, key: str) -> Any:
        return self._entry(key).value

    def __setitem__(self, key: str, value: Any) -> None:
        entry = self._entry(key)
        if entry.flags & ParamFlags.ReadOnly:
            raise SceneError(f"scene parameter '{key}' is read-only")
        current = entry.value
        if value is current:
            if identity(current) != entry.seen:
                self._dirty[key] = None
            return
        converted = self._converted(key, entry, value)
        self._before.setdefault(key, current.__copy__() if isinstance(current, ArrayBase) else current)
        _store(entry, converted)
        self._dirty[key] = None

    def _converted(self, key: str, entry: _Entry, value: Any) -> Any:
        kind = type(entry.value)
        if value is None or isinstance(value, type) or isinstance(value, (str, bytes)) and kind is not str:
            raise WrongTypeError(f"scene parameter '{key}' is a {kind.__name__}, found {value!r}")
        accept = getattr(entry.owner, "accept_parameter", None)
        if accept is not None:
            value = accept(entry.name, value)
        if getattr(kind, "is_matrix", False) and hasattr(value, "matrix"):
            value = value.matrix  # a transform
        try:
            converted = value if type(value) is kind else kind(value)
        except (TypeError, ValueError, OverflowError, RuntimeError) as error:
            raise SceneError(
                f"scene parameter '{key}' is a {kind.__name__}; a {type(value).__name__} cannot be converted: {error}"
            ) from error
        if entry.name == "to_world" and runtime.recorder is None:
            check_matrix(converted.numpy().reshape(4, 4), key)
        # Values that one object has once (colours, roughness, transforms) are read by all lanes.
        sizes = {x._n.size for x in tree.arrays(converted)} - {1}
        single = getattr(type(entry.owner), "merge_fields", None) is not None
        if sizes and (single or getattr(entry.owner, "plugin_kind", "") in ("sensor", "film")):
            raise SceneError(f"scene parameter '{key}' is a single {kind.__name__}, found {sizes.pop()} values")
        return converted

    def __delitem__(self, key: str) -> None:
        del self._entries[key]

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        try:
            self._entry(key)
        except KeyError:
            return False
        return True

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self.items())

    def keys(self) -> list[str]:
        """Return the names."""
        return list(self._entries)

    def items(self) -> list[tuple[str, Any]]:
        """Return (name, value) pairs."""
        return [(k, e.value) for k, e in self._entries.items()]

    def get(self, key: str, default: Any = None) -> Any:
        """Return a parameter, or `default` if there is none of that name."""
        return self[key] if key in self else default

    def flags(self, key: str) -> ParamFlags:
        """Return what may be done with a parameter."""
        return self._entry(key).flags

    def set_dirty(self, key: str) -> None:
        """Mark a parameter as changed (after a change inside its array)."""
        self._entry(key)
        self._dirty[key] = None

    def keep(self, keys: str | Sequence[str]) -> None:
        """Keep only the parameters that a regular expression matches from the start, or that are listed."""
        if isinstance(keys, str):
            try:
                pattern = re.compile(keys)
            except re.error as error:
                raise SceneError(f"keep(): '{keys}' is no regular expression: {error}") from error
            chosen = {k for k in self._entries if pattern.match(k)}
        elif isinstance(keys, Iterable):
            chosen = set(keys)
            for k in chosen:
                self._entry(k)
        else:
            raise WrongTypeError(f"keep(): a regular expression or a list of names is needed, found {keys!r}")
        self._entries = {k: e for k, e in self._entries.items() if k in chosen}

    def copy(self) -> SceneParameters:
        """Return another view of the same parameters, for `keep`."""
        return SceneParameters(dict(self._entries), self._parents, self._depth)

    def update(self, values: Any = None) -> list[tuple[Any, set[str]]]:
        """Tell the scene what changed and return (object, names) of the objects told.

        `values` (an optimiser, a dict) is assigned first, as far as its names exist. If an object refuses a value, all
        values set since the last update are taken back before the error goes on.
        """
        if values is not None:
            if not hasattr(values, "items"):
                raise WrongTypeError(f"update(): an optimiser or a dict of values is needed, found {values!r}")
            for key, value in values.items():
                if key in self:
                    self[key] = value
        changed = [k for k, e in self._entries.items() if k in self._dirty or identity(e.value) != e.seen]
        evaluate([x._n for k in changed for x in tree.arrays(self._entries[k].value)])
        for k in changed:
            make_opaque(self._entries[k].value)
        told: dict[int, tuple[Any, set[str]]] = {}
        for key in changed:
            entry = self._entries[key]
            owner, name = entry.owner, entry.name
            while owner is not None:
                told.setdefault(id(owner), (owner, set()))[1].add(name)
                parent = self._parents.get(id(owner))
                if parent is None:
                    break
                owner, name = parent
        order = sorted(told.values(), key=lambda item: -self._depth.get(id(item[0]), 0))
        try:
            for obj, keys in order:
                obj.parameters_changed(sorted(keys))
        except Exception:
            self._take_back(order)
            raise
        # What objects derived themselves (normals of moved vertices) is no change of the next update.
        for entry in self._entries.values():
            entry.seen = identity(entry.value)
        self._dirty.clear()
        self._before.clear()
        return order

    def _take_back(self, order: list[tuple[Any, set[str]]]) -> None:
        """Give all parameters that were set their old values, and tell the same objects again."""
        for key, value in self._before.items():
            entry = self._entries.get(key)
            if entry is not None:
                _store(entry, value)
                entry.seen = identity(entry.value)
                self._dirty.pop(key, None)
        self._before.clear()
        for obj, keys in order:
            with contextlib.suppress(LuxgradError):  # of arrays that were changed in place there is no old value
                obj.parameters_changed(sorted(keys))

    def __repr__(self) -> str:
        rows = [("Name", "Flags", "Type", "Parent")]
        for key, entry in self._entries.items():
            rows.append((key, flag_text(entry.flags), type(entry.value).__name__, type(entry.owner).__name__))
        widths = [max(len(r[c]) for r in rows) for c in range(4)]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "SceneParameters[\n" + "\n".join("  " + line for line in lines) + "\n]"


def _store(entry: _Entry, value: Any) -> None:
    if isinstance(entry.value, ArrayBase):
        entry.value.assign(value)
    else:
        entry.value = value
        setattr(entry.owner, entry.name, value)


def flag_text(flags: ParamFlags) -> str:
    """Return the short form of flags: ∂ differentiable, D discontinuous, R read-only."""
    marks = [] if flags & ParamFlags.NonDifferentiable else ["∂"]
    marks += ["D"] if flags & ParamFlags.Discontinuous else []
    marks += ["R"] if flags & ParamFlags.ReadOnly else []
    return ", ".join(marks)


def traverse(obj: Any) -> SceneParameters:
    """Return the parameters of a scene or any object in it; raises WrongTypeError for other things.

    >>> import luxgrad.mi as mi
    >>> mi.set_variant("llvm_ad_rgb")
    >>> params = mi.traverse(mi.load_dict({"type": "diffuse", "reflectance": {"type": "rgb", "value": 0.25}}))
    >>> print(params["reflectance.value"])
    [[0.25, 0.25, 0.25]]
    >>> params["reflectance.value"] = mi.Color3f(0.5)
    >>> _ = params.update()
    """
    if isinstance(obj, type) or not hasattr(obj, "traverse") or not hasattr(obj, "parameters_changed"):
        raise WrongTypeError(f"traverse(): a scene or an object in one is needed, found {type(obj).__name__}")
    collector = _Collector()
    collector.walk(obj, "", 0, ParamFlags(0))
    return SceneParameters(collector.entries, collector.parents, collector.depth)
