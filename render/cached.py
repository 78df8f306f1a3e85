"""What is made from files, remembered by their contents (see `jit/datacache.py`)."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..jit.datacache import STAMPS, Unkept, Value, content_digest, data_cache
from .file_access import read_bytes

_EXR = b"\x76\x2f\x31\x01"  # how such files begin

__all__ = ["Unkept", "Value", "code_version", "file_digest", "from_file", "remembered"]


@functools.cache
def code_version() -> str:
    """Return a digest of the code that makes what is cached: files that other code has made are not read."""
    here = Path(__file__).parent
    found = hashlib.blake2b(digest_size=16)
    for pattern in ("image/*.py", "shapes/*.py", "accel/*.py", "textures/bitmap.py", "emitters/envmap.py",
                    "distributions.py"):  # fmt: skip
        for path in sorted(here.glob(pattern)):
            found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


def remembered(kind: str, key: Any, make: Callable[[], Value], on_disk: bool = True) -> Value:
    """Return the value of a key, made if it is not in the cache; its arrays are read-only and shared."""
    return data_cache().lookup(kind, key, make, code_version if on_disk else None)


def file_digest(path: str | os.PathLike[str], what: str) -> str:
    """Return a text that stands for the contents of a file; `what` goes into messages about missing files."""
    return STAMPS.known_digest(path) or STAMPS.read(path, lambda: read_bytes(path, what))[1]


def from_file(
    kind: str, path: str | os.PathLike[str], parameters: tuple[Any, ...], make: Callable[[bytes], Value], what: str,
    on_disk: bool = True,
) -> tuple[Value, tuple[Any, ...]]:  # fmt: skip
    """Return what `make` makes of a file's contents, and the key that stands for it: the digest of the contents first.

    `parameters` are what else `make` depends on; `what` goes into messages about missing files.
    """
    digest = STAMPS.known_digest(path)
    if digest is not None:
        found = data_cache().find(kind, (digest, *parameters))
        if found is not None:
            return found, (digest, *parameters)
    data, digest = STAMPS.read(path, lambda: read_bytes(path, what))
    other: list[str] = []

    def checked() -> Value:
        value = make(data)
        # The library for OpenEXR reads the file once more, and it may have been written meanwhile.
        if data.startswith(_EXR) and content_digest(read_bytes(path, what)) != digest:
            other.append(content_digest(os.urandom(16)))
            raise Unkept(value)
        return value

    value = remembered(kind, (digest, *parameters), checked, on_disk)
    return value, (*(other or [digest]), *parameters)
