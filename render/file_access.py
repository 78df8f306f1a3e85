"""Reading files with errors that name the path as it was asked for, and writing them whole or not at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from ..jit.errors import FileFormatError, MissingFileError

__all__ = ["atomic_write", "read_bytes"]


def read_bytes(path: str | os.PathLike[str], what: str) -> bytes:
    """Return the contents of a file; `what` ("image file", "mesh file") goes into the messages.

    Raises MissingFileError naming the path as written, and FileFormatError for folders and empty files.
    """
    shown = os.fspath(path)
    try:
        data = Path(path).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        where = "" if os.path.isabs(shown) else f" (looked for in {os.getcwd()})"
        raise MissingFileError(f"{what} {shown} does not exist{where}") from None
    except (IsADirectoryError, PermissionError) as error:
        # Windows reports a folder as a lack of permission.
        if not os.path.isdir(shown):
            raise
        raise FileFormatError(f"{shown} is a folder, {what} was asked for") from error
    if not data:
        raise FileFormatError(f"{shown}: the {what} is empty")
    return data


def atomic_write(path: str | os.PathLike[str], write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it, so that `path` is never seen unfinished.

    Raises MissingFileError when the folder does not exist; whatever `write` raises leaves the old file untouched.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise MissingFileError(
            f"cannot write {os.fspath(path)}: the folder {target.parent} does not exist; create it first"
        )
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        write(temporary)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
