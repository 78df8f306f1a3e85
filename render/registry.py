"""The list of plugins: what a scene file may name, and the class or function that builds it.

A plugin is a class with a parameter table and one constructor argument, the `Properties` of its node::

    @register("bsdf", "diffuse")
    class Diffuse(BSDF):
        parameters = (Parameter("reflectance", "texture", 0.5, "albedo, linear RGB"),)

        def __init__(self, props: Properties) -> None:
            self.reflectance = props["reflectance"]

Plugin modules are found by walking the folder of their kind, and are imported when one of their names is asked for.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from ..jit.errors import SceneError

__all__ = [
    "KINDS", "REQUIRED", "Parameter", "PluginEntry", "entry", "find_kinds", "known", "lookup", "nearest", "register",
    "register_bsdf", "register_emitter", "register_film", "register_integrator", "register_medium", "register_phase",
    "register_rfilter", "register_sampler", "register_sensor", "register_shape", "register_texture", "register_volume",
    "register_user",
]

T = TypeVar("T", bound=type)


class _Required:
    """Stands in `Parameter.default` for a property that must be given."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()

# Kinds of object and the folders (or single modules) of `luxgrad.render` that hold their plugins.
KINDS: Final[dict[str, tuple[str, ...]]] = {
    "scene": ("scene",),
    "bsdf": ("bsdfs",),
    "emitter": ("emitters",),
    "film": ("films",),
    "integrator": ("integrators",),
    "medium": ("media",),
    "phase": ("phases", "media"),
    "rfilter": ("rfilters", "films"),
    "sampler": ("samplers",),
    "sensor": ("sensors",),
    "shape": ("shapes",),
    "texture": ("textures",),
    "volume": ("volumes", "media"),
}
_VALUE_KINDS: Final = frozenset({
    "float", "int", "bool", "string", "point", "vector", "transform", "transform2", "texture", "emissive", "unbounded",
    "volume", "spectrum", "ior", "object", "any",
})
# Nested objects of these kinds are bound by their kind, whatever the scene calls them (scene_format.md 2.2).
_BOUND_BY_TYPE: Final = frozenset(
    {"bsdf", "emitter", "film", "integrator", "phase", "rfilter", "sampler", "sensor", "shape"}
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One property that a plugin accepts.

    `kind` is a value kind (float, int, bool, string, point, vector, transform, transform2, ior, spectrum, any), a slot
    that turns numbers and colours into objects (texture, emissive, unbounded, volume), or a kind of nested object.
    Objects bind by kind (bsdf, emitter, film ...) or, for texture, volume and medium, by name; `by_type` overrides
    this. With `many` the value is the list of all objects that bind to it. A default of None means "may be absent".
    """

    name: str
    kind: str
    default: Any = REQUIRED
    doc: str = ""
    choices: tuple[str, ...] | None = None
    many: bool = False
    by_type: bool | None = None

    def __post_init__(self) -> None:
        if self.kind not in _VALUE_KINDS and self.kind not in KINDS:
            raise ValueError(f'parameter "{self.name}" has the unknown kind "{self.kind}"')

    @property
    def required(self) -> bool:
        """True if the property must be given."""
        return self.default is REQUIRED and not self.many

    @property
    def binds_by_type(self) -> bool:
        """True if a nested object of this kind is taken whatever its name is."""
        if self.by_type is not None:
            return self.by_type
        return self.kind in _BOUND_BY_TYPE or (self.many and (self.kind == "object" or self.kind in KINDS))


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """A registered plugin; `parameters` is None where the plugin has no table and accepts what it queries."""

    kind: str
    name: str
    factory: Callable[[Any], Any]
    parameters: tuple[Parameter, ...] | None
    ignored: frozenset[str]
    from_user: bool


_entries: dict[tuple[str, str], PluginEntry] = {}
_walked: set[str] = set()
# Two locks: a thread that imports plugins holds the first; `register`, which runs inside imports of any thread, only
# ever waits for the second, so that it cannot deadlock with Python's import locks.
_walk_lock = threading.RLock()
_entries_lock = threading.Lock()


def _kind(kind: str) -> str:
    """Return the kind under which plugins are listed; a spectrum is a texture."""
    kind = "texture" if kind == "spectrum" else kind
    if kind not in KINDS:
        raise SceneError(f'unknown kind of plugin "{kind}"; the kinds are {", ".join(KINDS)}')
    return kind


def register(kind: str, name: str) -> Callable[[T], T]:
    """Return a class decorator that lists the class as plugin `name` of `kind` and sets its kind and name on it."""

    def add(cls: T) -> T:
        cls.plugin_kind = _kind(kind)  # type: ignore[attr-defined]
        cls.plugin_name = name  # type: ignore[attr-defined]
        _add(_make_entry(kind, name, cls, from_user=False))
        return cls

    return add


def register_user(kind: str, name: str, factory: Callable[[Any], Any]) -> None:
    """List a plugin of the user's, built by `factory(props)`; a second call with the same name replaces the first."""
    if not callable(factory):
        raise SceneError(f'{kind} plugin "{name}": expected a function of one argument, got {type(factory).__name__}')
    _add(_make_entry(kind, name, factory, from_user=True))


def _make_entry(kind: str, name: str, factory: Callable[[Any], Any], from_user: bool) -> PluginEntry:
    parameters = getattr(factory, "parameters", None)
    table = tuple(parameters) if parameters is not None else None
    return PluginEntry(_kind(kind), name, factory, table, frozenset(getattr(factory, "ignored", ())), from_user)


def _add(new: PluginEntry) -> None:
    key = (new.kind, new.name)
    if new.from_user:
        _find(*key)
    with _entries_lock:
        old = _entries.get(key)
        if old is not None and not (old.from_user and new.from_user) and not _same_class(old.factory, new.factory):
            raise SceneError(f'a {new.kind} plugin named "{new.name}" exists already ({_origin(old.factory)})')
        _entries[key] = new


def _same_class(a: Any, b: Any) -> bool:
    """Return True for two versions of one class, as after a reload of its module."""
    names = [(getattr(f, "__module__", None), getattr(f, "__qualname__", None)) for f in (a, b)]
    return isinstance(a, type) and isinstance(b, type) and names[0] == names[1] and "<locals>" not in a.__qualname__


def _origin(factory: Any) -> str:
    return f"{getattr(factory, '__module__', '?')}.{getattr(factory, '__qualname__', '?')}"


def _modules(kind: str) -> Iterator[str]:
    """Yield the full names of the modules that may hold plugins of `kind`."""
    root = __package__
    present = {info.name: info.ispkg for info in pkgutil.iter_modules(importlib.import_module(root).__path__)}
    for folder in KINDS[kind]:
        if folder not in present:
            continue
        yield f"{root}.{folder}"
        if present[folder]:
            package = importlib.import_module(f"{root}.{folder}")
            for info in pkgutil.walk_packages(package.__path__, prefix=f"{root}.{folder}."):
                yield info.name


def _find(kind: str, name: str) -> PluginEntry | None:
    """Return the entry, importing first the module of that name, then all modules of the kind; None if unknown."""
    with _walk_lock:
        found = _entries.get((kind, name))
        if found is not None or kind in _walked:
            return found
        modules = list(_modules(kind))
        for module in modules:
            if module.rpartition(".")[2] == name:
                importlib.import_module(module)
        if (kind, name) in _entries:
            return _entries[kind, name]
        for module in modules:
            importlib.import_module(module)
        _walked.add(kind)
        return _entries.get((kind, name))


def entry(kind: str, name: str) -> PluginEntry:
    """Return the entry of plugin `name` of `kind`; an unknown name raises SceneError with the known names."""
    kind = _kind(kind)
    found = _find(kind, name)
    if found is not None:
        return found
    others = [other for other in find_kinds(name) if other != kind]
    if others:
        hint = f'"{name}" is a plugin of kind {" and ".join(others)}'
    else:
        hint = nearest(name, known(kind))
    names = ", ".join(known(kind)) or "none"
    raise SceneError(f'unknown {kind} plugin "{name}"{"; " + hint if hint else ""}. Known {kind} plugins: {names}')


def lookup(kind: str, name: str) -> Callable[[Any], Any]:
    """Return the class or function that builds plugin `name` of `kind`; an unknown name raises SceneError."""
    return entry(kind, name).factory


def known(kind: str) -> list[str]:
    """Return the sorted names of all plugins of a kind."""
    kind = _kind(kind)
    _find(kind, "")
    return sorted(name for other, name in _entries if other == kind)


def find_kinds(name: str) -> list[str]:
    """Return the kinds that have a plugin of this name, in the order of `KINDS`."""
    return [kind for kind in KINDS if _find(kind, name) is not None]


def nearest(word: str, words: list[str]) -> str:
    """Return 'did you mean "x"?' for the nearest spelling among `words`, or an empty string."""
    near = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    return f'did you mean "{near[0]}"?' if near else ""


def _user_function(kind: str) -> Callable[[str, Callable[[Any], Any]], None]:
    def add(name: str, factory: Callable[[Any], Any]) -> None:
        register_user(kind, name, factory)

    add.__name__ = add.__qualname__ = f"register_{kind}"
    add.__doc__ = f"List a {kind} plugin of the user's, built by `factory(props)`."
    return add


register_bsdf = _user_function("bsdf")
register_emitter = _user_function("emitter")
register_film = _user_function("film")
register_integrator = _user_function("integrator")
register_medium = _user_function("medium")
register_phase = _user_function("phase")
register_rfilter = _user_function("rfilter")
register_sampler = _user_function("sampler")
register_sensor = _user_function("sensor")
register_shape = _user_function("shape")
register_texture = _user_function("texture")
register_volume = _user_function("volume")
