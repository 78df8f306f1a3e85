"""The properties of one scene node, as its plugin sees them: typed values, nested objects, where they were written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from ..jit.errors import MissingFileError, SceneError
from . import slots
from .registry import Parameter, PluginEntry, nearest
from .values import Rgb, describe, object_kind, type_name

__all__ = ["Properties", "Resolver"]


class Resolver(Protocol):
    """Finds the files that scenes name."""

    def resolve(self, name: str) -> Path:
        """Return the path of an existing file; raises MissingFileError."""


_UNSET: Final = object()


class Properties:
    """Named values of one node, in the order they were given.

    With a parameter table (`entry` of a plugin that has one), values arrive converted: `props["alpha"]` is a texture
    where the table says so, absent properties give the table's default, nested objects bind by kind or name. Without a
    table the raw values arrive, and every one must be queried. `location` says where the node was written, `types`
    is the namespace of array types the scene is loaded with, `id` the name of the object.
    """

    def __init__(
        self, values: Mapping[str, Any] | str | None = None, *, entry: PluginEntry | None = None, plugin_name: str = "",
        id: str = "", location: str = "", types: Any = None, resolver: Resolver | None = None,
        locations: Mapping[str, str] | None = None, kinds: Mapping[str, str] | None = None,
    ) -> None:
        if isinstance(values, str):
            plugin_name, values = values, None
        self.kind = entry.kind if entry else ""
        self.plugin_name = plugin_name or (entry.name if entry else "")
        self.id = id
        self.location = location
        self.types = types
        self.resolver = resolver
        self._values: dict[str, Any] = dict(values or {})
        self._locations = dict(locations or {})
        self._kinds = dict(kinds or {})
        self._entry = entry
        self._table = {parameter.name: parameter for parameter in (entry.parameters if entry else None) or ()}
        self._ignored = entry.ignored if entry else frozenset()
        self._queried: set[str] = set()
        self._converted: dict[str, Any] = {}
        self._bound: dict[str, list[str]] | None = None

    def __getitem__(self, name: str) -> Any:
        """Return a property, or the default of the plugin's table; neither raises SceneError."""
        value = self._lookup(name)
        if value is _UNSET:
            raise SceneError(f'the property "{name}" is missing{self._where()}')
        return value

    def get(self, name: str, default: Any = _UNSET) -> Any:
        """Return a property or, if it was not given, `default`, else the table's default, else None."""
        if default is not _UNSET and name not in self:
            parameter = self._table.get(name)
            return default if parameter is None or default is None else slots.convert(parameter, default, self)
        value = self._lookup(name)
        return None if value is _UNSET else value

    def _lookup(self, name: str) -> Any:
        if name in self._converted:
            return self._converted[name]
        parameter = self._table.get(name)
        if parameter is None:
            self._queried.add(name)
            value = self._values.get(name, _UNSET)
            return value.array if isinstance(value, Rgb) else value
        sources = self._bindings().get(name, [])
        self._queried.update(sources)
        if parameter.many:
            value = [slots.convert(parameter, self._values[source], self, source) for source in sources]
        elif len(sources) > 1:
            places = " and ".join(self._locations.get(source) or f'"{source}"' for source in sources)
            raise SceneError(f"only a single {parameter.kind} can be given, found {len(sources)}: {places}")
        elif sources:
            value = slots.convert(parameter, self._values[sources[0]], self, sources[0])
        elif parameter.required:
            return _UNSET
        else:
            value = None if parameter.default is None else slots.convert(parameter, parameter.default, self)
        self._converted[name] = value
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        self._values[name] = value
        self._converted.clear()
        self._bound = None

    def __delitem__(self, name: str) -> None:
        del self._values[name]
        self._converted.clear()
        self._bound = None

    def __contains__(self, name: object) -> bool:
        """Return True if the property was given (a default does not count)."""
        if not isinstance(name, str):
            return False
        return bool(self._bindings().get(name)) if name in self._table else name in self._values

    has_property = __contains__

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def keys(self) -> list[str]:
        """Return the names of the given properties and nested objects, in order."""
        return list(self._values)

    property_names = keys

    def items(self) -> list[tuple[str, Any]]:
        """Return (name, raw value) pairs in order, and count all as queried."""
        self._queried.update(self._values)
        return list(self._values.items())

    def objects(self) -> list[tuple[str, Any]]:
        """Return the nested objects as (name, object) pairs in order, and count them as queried."""
        found = [(name, value) for name, value in self._values.items() if self.kind_of(name) is not None]
        self._queried.update(name for name, _ in found)
        return found

    def raw(self, name: str) -> Any:
        """Return a given property as it was written, without conversion."""
        self._queried.add(name)
        return self._values[name]

    def kind_of(self, name: str) -> str | None:
        """Return the plugin kind of the nested object `name`, or None if the property is a value."""
        return self._kinds.get(name) or object_kind(self._values[name])

    def location_of(self, name: str) -> str:
        """Return where a property was written, or where the node was."""
        return self._locations.get(name) or self.location

    def get_texture(self, name: str, default: float | None = None) -> Any:
        """Return a property as a reflectance texture, values in [0, 1]."""
        return self._slot("texture", name, default)

    def get_emissive_texture(self, name: str, default: float | None = None) -> Any:
        """Return a property as an emission texture of three channels, unbounded."""
        return self._slot("emissive", name, default)

    def get_unbounded_texture(self, name: str, default: float | None = None) -> Any:
        """Return a property as a texture of non-negative values without upper bound."""
        return self._slot("unbounded", name, default)

    def get_volume(self, name: str, default: float | None = None) -> Any:
        """Return a property as a volume; numbers and colours become constant volumes."""
        return self._slot("volume", name, default)

    def _slot(self, kind: str, name: str, default: float | None) -> Any:
        if name in self._table:
            return self[name] if default is None else self.get(name, default)
        self._queried.add(name)
        value = self._values.get(name, default)
        if value is None:
            raise SceneError(f'the property "{name}" is missing{self._where()}')
        return slots.convert(Parameter(name, kind), value, self, name)

    def resolve(self, filename: str) -> Path:
        """Return the path of an existing file that the scene names; raises MissingFileError."""
        if self.resolver is not None:
            return self.resolver.resolve(filename)
        path = Path(filename)
        if not path.exists():
            raise MissingFileError(f'the file "{filename}" does not exist (looked in {Path.cwd()})')
        return path

    def adopt(self, cls: type) -> None:
        """Use the parameter table of `cls` if the plugin has none of its own.

        Base constructors call this, so that a user's class registered by a function (`lambda props: Mine(props)`) gets
        the defaults and conversions of the built-in class it extends; other properties still count by query.
        """
        if self._entry is not None and self._entry.parameters is not None:
            return
        self._table = {parameter.name: parameter for parameter in getattr(cls, "parameters", None) or ()}
        self._ignored = frozenset(getattr(cls, "ignored", ()))
        self._converted.clear()
        self._bound = None

    def mark_queried(self, name: str) -> None:
        """Count a property as known to the plugin."""
        self._queried.add(name)

    def unqueried(self) -> list[str]:
        """Return the given properties that the plugin has neither asked for nor lists in its table."""
        if self.kind == "scene":  # a scene takes any object
            self.objects()
        bound = {source for sources in self._bindings().values() for source in sources}
        known = self._queried | bound | self._ignored
        return [name for name in self._values if name not in known]

    def check(self) -> None:
        """Convert all given properties; a wrong type, an unknown or a missing property raises SceneError."""
        if self._entry is None or self._entry.parameters is None:
            return
        for parameter in self._entry.parameters:
            if parameter.name in self:
                self[parameter.name]
        self.refuse_unqueried()
        for parameter in self._entry.parameters:
            if parameter.required and parameter.name not in self:
                raise SceneError(f'the required property "{parameter.name}" ({parameter.kind}) is missing')

    def refuse_unqueried(self) -> None:
        """Raise SceneError if properties are left that the plugin does not know."""
        left = self.unqueried()
        if not left:
            return
        noun = "property" if len(left) == 1 else "properties"
        lines = [f'Found {len(left)} unreferenced {noun} in {self.kind or "a"} plugin of type "{self.plugin_name}":']
        known = self._known_names()
        for name in left:
            kind = self.kind_of(name) or type_name(self._values[name])
            place = self._locations.get(name)
            hint = nearest(name, known)
            lines.append(f'  - {kind} "{name}": {describe(self._values[name])}'
                         + (f" at {place}" if place else "") + (f"; {hint}" if hint else ""))
        if known:
            lines.append(f"Known properties: {', '.join(known)}")
        raise SceneError("\n".join(lines))

    def _known_names(self) -> list[str]:
        table = self._table
        return list(table) if table else sorted(self._queried)

    def _bindings(self) -> dict[str, list[str]]:
        """Return, per parameter of the table, the names of the given properties that it takes."""
        if self._bound is None:
            self._bound = {}
            table = self._table
            for name in self._values:
                kind = self.kind_of(name)
                target = table.get(name)
                # An object called like a parameter that cannot take it (a shape's "bsdf" in a scene) binds by kind.
                if target is None or (kind is not None and not slots.accepts(target, kind)):
                    by_type = (p for p in table.values() if kind and p.binds_by_type and slots.accepts(p, kind))
                    target = next(by_type, target)
                if target is not None:
                    self._bound.setdefault(target.name, []).append(name)
        return self._bound

    def derive(self, values: Mapping[str, Any], entry: PluginEntry, source: str) -> Properties:
        """Return properties for an object made in place of the property `source`."""
        place = self.location_of(source)
        return Properties(values, entry=entry, location=place, types=self.types, resolver=self.resolver)

    def _where(self) -> str:
        return f" ({self.location})" if self.location else ""

    def __repr__(self) -> str:
        body = ", ".join(f"{name}={describe(value)}" for name, value in self._values.items())
        return f'Properties("{self.plugin_name}", id="{self.id}", {{{body}}})'
