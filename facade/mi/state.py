"""The variant that names such as `mi.Float` and the loaders refer to."""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager

from luxgrad.jit.errors import LuxgradError
from luxgrad.render.variants import VARIANTS, Types, available, types

__all__ = ["NoVariantError", "current_types", "set_variant", "variant", "variant_context", "variants"]


class NoVariantError(LuxgradError, ImportError):
    """A name depends on the variant and none is set, or none of those asked for exists."""


_default: str | None = None  # of all threads
_here: contextvars.ContextVar[str | None] = contextvars.ContextVar("luxgrad_variant", default=None)


def variants() -> list[str]:
    """Return the names of the variants that run on this machine."""
    return available()


def variant() -> str | None:
    """Return the name of the current variant, None if none was set."""
    return _here.get() or _default


def set_variant(*names: str) -> None:
    """Make the first of `names` that runs on this machine the current variant of all threads.

    Scenes keep the variant they were loaded with. Raises NoVariantError if none of the names is available.
    """
    global _default
    _default = _pick(names)


def _pick(names: tuple[str, ...]) -> str:
    possible = available()
    for name in names:
        if name in possible:
            return name
    unknown = [name for name in names if name not in VARIANTS]
    asked = ", ".join(map(repr, names)) or "nothing"
    raise NoVariantError(
        f"set_variant({asked}): none of these variants {'exists' if unknown else 'runs on this machine'}; "
        f"available are {', '.join(possible)}"
    )


@contextmanager
def variant_context(*names: str) -> Iterator[None]:
    """Make the first available variant the current one within a `with` block of this thread."""
    token = _here.set(_pick(names))
    try:
        yield
    finally:
        _here.reset(token)


def current_types(what: str = "this name") -> Types:
    """Return the array types of the current variant; NoVariantError says how to set one, naming `what` was asked."""
    name = variant()
    if name is None:
        raise NoVariantError(
            f"{what} depends on the variant, and none is set. Call mi.set_variant('llvm_ad_rgb') first; available are "
            f"{', '.join(available())}"
        )
    return types(name)
