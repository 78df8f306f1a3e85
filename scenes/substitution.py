"""Replaces `$name` in attributes of scene files by parameters given to the loader or by `<default>`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NoReturn

from ..jit.errors import SceneError
from ..render.registry import nearest
from .nodes import Location

__all__ = ["Parameters"]


class Parameters:
    """The parameters of one load, shared by the file and its includes; remembers which were used."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = {name: _text(name, value) for name, value in values.items()}
        self._unused = set(values)
        self._seen: set[str] = set()

    def set_default(self, name: str, value: str) -> None:
        """Give a parameter a value unless it has one."""
        self._values.setdefault(name, value)
        self._unused.discard(name)
        self._seen.add(name)

    def substitute(self, text: str, location: Location) -> str:
        """Return `text` with `$name` replaced, longest name first; `\\$` stands for a dollar sign."""
        if "$" not in text:
            return text
        names = sorted(self._values, key=len, reverse=True)
        parts: list[str] = []
        at = 0
        while at < len(text):
            if text.startswith("\\$", at):
                parts.append("$")
                at += 2
            elif text[at] == "$":
                name = next((n for n in names if text.startswith(n, at + 1)), None)
                if name is None:
                    self._undefined(text[at:], location)
                parts.append(self._values[name])
                self._unused.discard(name)
                at += 1 + len(name)
            else:
                parts.append(text[at])
                at += 1
        return "".join(parts)

    def _undefined(self, text: str, location: Location) -> NoReturn:
        match = re.match(r"\$\w*", text)
        name = match.group() if match else "$"
        hint = nearest(name[1:], list(self._values))
        location.fail(f"undefined parameter: {name}; give it when loading or with <default>"
                      + (f"; {hint}" if hint else ""))

    def check_used(self, source: str) -> None:
        """Raise SceneError if parameters were given that the scene does not mention."""
        if self._unused:
            names = sorted(self._unused)
            hints = filter(None, (nearest(name, sorted(self._seen)) for name in names))
            known = ", ".join(sorted(self._seen)) or "none"
            raise SceneError(f"Error while loading {source}: Found unused parameters: {', '.join(names)}. "
                             f"The scene declares: {known}. {' '.join(hints)}".rstrip())


def _text(name: str, value: Any) -> str:
    """Return a parameter as the text of an attribute."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, (list, tuple)) or hasattr(value, "tolist"):
        items = value.tolist() if hasattr(value, "tolist") else value
        return ", ".join(str(item) for item in items) if isinstance(items, (list, tuple)) else str(items)
    if hasattr(value, "__fspath__"):
        return str(value)
    raise SceneError(f'parameter "{name}": expected text or a number, got {type(value).__name__}')
