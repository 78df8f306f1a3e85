"""Files that a fit can go on from: NumPy archives that appear whole or not at all."""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..jit.errors import FileFormatError

__all__ = ["read_checkpoint", "write_atomically", "write_checkpoint"]

_NOTES = "notes"


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file under a temporary name in its folder, then rename it: a reader never sees half of it."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_checkpoint(path: str | os.PathLike[str], notes: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Store arrays by name, and `notes` that JSON can hold."""
    memory = io.BytesIO()
    text = np.frombuffer(json.dumps(dict(notes)).encode(), np.uint8)
    np.savez(memory, **{_NOTES: text, **{f"a/{name}": array for name, array in arrays.items()}})
    write_atomically(path, memory.getvalue())


def read_checkpoint(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (notes, arrays) of a checkpoint; a damaged or foreign file raises FileFormatError."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            notes = json.loads(archive[_NOTES].tobytes().decode())
            arrays = {name[2:]: archive[name] for name in archive.files if name.startswith("a/")}
    except (KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise FileFormatError(f'"{path}" is no checkpoint of a fit ({error}); delete it to start afresh') from error
    return notes, arrays
