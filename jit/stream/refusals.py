"""Errors for functions that cannot be streamed: which operation it was, and on which line of the user's code."""

from __future__ import annotations

import sys
from types import FrameType

from ..errors import NotStreamableError
from ..trace import user_line

_HARMLESS = frozenset({"eval", "schedule", "make_opaque", "opaque"})  # they change no value
_PACKAGE = __name__.split(".")[0] + "."


def only_computes() -> bool:
    """Return whether the user's code asks for nothing but that something is computed now, as `eval` does."""
    frame: FrameType | None = sys._getframe(2)
    for _ in range(4):
        if frame is None:
            break
        module = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name in _HARMLESS and module.startswith(_PACKAGE + "jit.arrays."):
            return True
        frame = frame.f_back
    return False


def called() -> tuple[str, str | None]:
    """Return the name of the package's function that the user's code called last, and the line of the call."""
    frame: FrameType | None = sys._getframe(1)
    name = ""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith(_PACKAGE):
            return name, f"{frame.f_code.co_filename}:{frame.f_lineno}"
        if module.startswith(_PACKAGE + "jit.stream.") and not module.endswith((".context", ".refusals")):
            return name, None
        name = frame.f_code.co_name
        frame = frame.f_back
    return name, None


def not_streamable(op: str, reason: str, line: str | None = None) -> NotStreamableError:
    """Return the error for an operation, with its line and what can be streamed."""
    line = line or user_line()
    op = {"__getitem__": "[...]", "__repr__": "print", "__str__": "print", "__array__": "numpy"}.get(op, op)
    error = NotStreamableError(
        f"'{op}' at {line or 'an unknown line'} cannot be streamed: it {reason}. Streamed functions may compute "
        "element by element, gather from and scatter to arrays in memory, and reduce whole arrays (sum, prod, min, "
        "max, any, all, count, mean, dot)."
    )
    error.op, error.line = op, line
    return error


__all__ = ["called", "not_streamable", "only_computes"]
