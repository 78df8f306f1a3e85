"""The integrator a fit differentiates through."""

from __future__ import annotations

from typing import Any

from ..render.properties import Properties
from ..render.registry import entry, known
from ..render.slots import build

__all__ = ["make_integrator", "replay_of"]

# Integrators whose derivative another one computes in constant memory, by replaying paths.
_REPLAY = {"path": "prb", "volpath": "prbvolpath"}
_SHARED = ("max_depth", "rr_depth", "hide_emitters")


def make_integrator(name: str, types: Any, **values: Any) -> Any:
    """Return an integrator by its plugin name; SceneError for unknown names and properties."""
    plugin = entry("integrator", name)
    return build(plugin, Properties(values, entry=plugin, types=types))


def replay_of(scene: Any) -> Any:
    """Return the path-replay integrator with the settings of the scene's integrator, None if that can stay."""
    own = scene.integrator()
    name = _REPLAY.get("path" if own is None else own.plugin_name)
    if name is None or name not in known("integrator"):
        return None
    values = {k: getattr(own, k) for k in _SHARED if hasattr(own, k)} or {"max_depth": -1}
    return make_integrator(name, scene.types, **values)
