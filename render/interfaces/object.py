"""What every object of a scene is: something with a name, parameters that can be listed, and a reaction to changes."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol


class ParamFlags(enum.IntFlag):
    """What may be done with a scene parameter."""

    Differentiable = 0
    NonDifferentiable = 1
    Discontinuous = 2  # moves edges of what is visible: gradients need more than the smooth part
    ReadOnly = 4


class TraversalCallback(Protocol):
    """What `traverse` reports to."""

    def put(self, name: str, value: Any, flags: ParamFlags | int) -> None:
        """Report a parameter (an array, changed in place when it is set) or a nested object."""


class Object:
    """Base of scene objects. `merge_fields` lists the attributes that evaluation reads, in classes whose objects may
    share generated code: objects that differ only in single values there are evaluated from one table."""

    plugin_kind: ClassVar[str] = "object"
    plugin_name: str = ""
    merge_fields: ClassVar[tuple[str, ...] | None] = None

    def __init__(self, props: Any = None) -> None:
        self._id = getattr(props, "id", "") or ""
        self.types: Any = getattr(props, "types", None)
        if props is not None and hasattr(props, "adopt"):
            props.adopt(type(self))

    def id(self) -> str:
        """Return the name given in the scene, "" if none."""
        return self._id

    def set_id(self, name: str) -> None:
        """Name the object."""
        self._id = name

    def traverse(self, callback: TraversalCallback) -> None:
        """Report parameters and nested objects."""

    def parameters_changed(self, keys: Sequence[str] = ()) -> None:
        """React to changed parameters (of this object, or of nested ones if `keys` names them)."""

    def __repr__(self) -> str:
        name = f' "{self._id}"' if self._id else ""
        return f"<{self.plugin_kind} {self.plugin_name or type(self).__name__}{name}>"
