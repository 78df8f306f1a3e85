"""The exceptions that luxgrad raises on purpose.

The tree, with the built-in classes each one can also be caught as::

    LuxgradError
    ├── SceneError            (ValueError)         a scene, parameter or asset cannot be used as given
    │   ├── WrongTypeError    (TypeError)          an argument is of a type that cannot be used there
    │   ├── FileFormatError                        a file exists but its contents are damaged or unsupported
    │   └── MissingFileError  (FileNotFoundError)  a file that was asked for is not there
    ├── FreezeError           (RuntimeError)       a frozen function does what a replay could not repeat
    ├── CompileError          (RuntimeError)       a traced program cannot be turned into a kernel
    ├── OutOfMemoryError      (MemoryError)        no memory for an array, with the figures and the largest arrays
    ├── MemoryBudgetError     (MemoryError)        a streamed evaluation cannot keep to the bytes it was given
    ├── NotStreamableError    (RuntimeError)       a function cannot be computed chunk by chunk; names the operation
    ├── BoundsError           (IndexError)         a gather or scatter left its array (told under the Debug flag)
    └── SymbolicError         (RuntimeError)       a value is needed that exists only inside a recorded loop or branch

Each message says what was asked for, what was found, where, and what to do.
"""

from __future__ import annotations

__all__ = [
    "BoundsError",
    "CompileError",
    "FileFormatError",
    "FreezeError",
    "LuxgradError",
    "MemoryBudgetError",
    "MissingFileError",
    "NotStreamableError",
    "OutOfMemoryError",
    "SceneError",
    "SymbolicError",
    "WrongTypeError",
]


class LuxgradError(Exception):
    """Base of every exception that luxgrad raises on purpose."""


class SceneError(LuxgradError, ValueError):
    """A scene, one of its parameters or one of its assets cannot be used as given."""


class WrongTypeError(SceneError, TypeError):
    """An argument is of a type that cannot be used there; the message says which types can."""


class FileFormatError(SceneError):
    """A file exists, but its contents are damaged, truncated or of an unsupported kind."""


class MissingFileError(SceneError, FileNotFoundError):
    """A file that was asked for does not exist; the message holds the path as it was written."""


class FreezeError(LuxgradError, RuntimeError):
    """A frozen function does something that replays of its launches could not repeat; the message names the line."""


class CompileError(LuxgradError, RuntimeError):
    """A traced program cannot be turned into a kernel; the message names the user's line."""


class OutOfMemoryError(LuxgradError, MemoryError):
    """There is no memory for an array, after everything that could be given up was; nothing else has changed.

    Attributes, in bytes: `requested`, `live` (in arrays), `cached` (in free blocks), `reserved` (from the system),
    `limit`, `largest_free`; and `top`, the largest live arrays as dictionaries.
    """

    requested = live = cached = reserved = limit = largest_free = 0
    top: list[dict[str, object]] = []


class MemoryBudgetError(LuxgradError, MemoryError):
    """A streamed evaluation needs more memory than `max_resident`; nothing was read or written.

    Attributes, in bytes: `budget` (what was given) and `least` (with which it works, in the smallest chunks).
    """

    budget = least = 0


class NotStreamableError(LuxgradError, RuntimeError):
    """A function cannot be computed chunk by chunk.

    Attributes: `op`, the operation that needs other chunks, and `line`, "file:line" of its call (None if unknown).
    """

    op = ""
    line: str | None = None


class BoundsError(LuxgradError, IndexError):
    """A gather or scatter left its array; raised under the Debug flag, the message names index, length and line."""


class SymbolicError(LuxgradError, RuntimeError):
    """A value is needed that exists only while a recorded loop, branch or call runs."""
