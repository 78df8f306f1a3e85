"""Compiled kernels: in memory by structure, on disk by content; literals that change become arguments.

How the files of any number of processes live in one folder is told in `store.py`.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import sys
from pathlib import Path
from typing import Any

from .. import debug
from ..codegen import host
from ..errors import CompileError
from .store import Store

_MAGIC = b"luxgrad1"


class Kernel:
    """Executable code of one program with the literals that are arguments (instruction numbers, in order)."""

    __slots__ = ("module", "address", "call", "parameters", "fixed", "hash", "origin", "ir", "instructions")

    def __init__(self, module: host.CompiledModule, parameters: tuple[int, ...], fixed: Any, digest: str) -> None:
        self.module = module
        self.address = module.address("kernel")
        word = ctypes.c_int64
        self.call = ctypes.CFUNCTYPE(None, word, word, word, ctypes.c_void_p)(self.address)
        self.parameters, self.fixed, self.hash = parameters, fixed, digest
        self.origin = "compiled"
        self.ir = ""
        self.instructions = 0


def folder() -> Path | None:
    """Return the folder of stored kernels: LUXGRAD_CACHE_DIR, or the platform's place for caches.

    None, which keeps nothing on disk, if the system does not tell where the user's files are (no HOME).
    """
    asked = debug.value("cache_dir")
    if asked:
        return Path(asked)
    given = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    if sys.platform != "darwin" and os.path.isabs(given):
        return Path(given) / "luxgrad"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if not os.environ.get("HOME", "unset"):  # HOME= leads to the root of the file system
        return None
    below = {"darwin": "Library/Caches", "win32": "AppData/Local"}.get(sys.platform, ".cache")
    return home / below / "luxgrad"


def size_limit() -> int:
    """Return the bytes the folder may hold: LUXGRAD_CACHE_MAXSIZE ("512M", "2G"), one GiB by default."""
    return int(debug.value("cache_maxsize"))


STORE = Store(_MAGIC, ".lux", folder, size_limit)


@functools.cache
def code_version() -> str:
    """Return a digest of the files that generate code: kernels made by other versions of them do not count."""
    package = Path(__file__).resolve().parents[1]
    found = hashlib.blake2b(digest_size=16)
    for folder_name in ("codegen", "ops", "passes", "../render/accel"):
        for path in sorted((package / folder_name).glob("*.py")):
            found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


def digest(key: Any) -> str:
    """Return the name under which an object is stored; depends on this machine's target too."""
    target = host.target()
    text = repr((key, target.triple, target.cpu, target.features, target.llvm_version, code_version(), _MAGIC))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def read(name: str) -> bytes | None:
    """Return a stored object, or None if there is none that is whole; a damaged file is removed."""
    body = STORE.read(name)
    return None if body is None else bytes(body)


def write(name: str, body: bytes) -> None:
    """Store an object; a folder that cannot be written only costs the next process its time."""
    STORE.write(name, [body])


def load(name: str, symbols: tuple[str, ...] = ("kernel",)) -> host.CompiledModule | None:
    """Return a stored module, linked, or None."""
    body = read(name)
    if body is None:
        return None
    try:
        return host.link(body, symbols, name)
    except CompileError:
        STORE.remove(name)
        return None
