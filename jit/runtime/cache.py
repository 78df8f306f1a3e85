"""Compiled kernels: in memory by structure, on disk by content; literals that change become arguments.

Files are written under a temporary name and renamed, carry a checksum, and are ignored (then replaced) when damaged or
made by somebody else, so that any number of processes can share a folder.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from .. import debug
from ..codegen import host
from ..errors import CompileError

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


def folder() -> Path:
    """Return the folder of stored kernels: LUXGRAD_CACHE_DIR, or the platform's place for caches."""
    asked = debug.value("cache_dir")
    if asked:
        return Path(asked)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "luxgrad"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "luxgrad"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "luxgrad"


def size_limit() -> int:
    """Return the bytes the folder may hold: LUXGRAD_CACHE_MAXSIZE ("512M", "2G"), one GiB by default."""
    return int(debug.value("cache_maxsize"))


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
    path = folder() / f"{name}.lux"
    try:
        data = path.read_bytes()
    except OSError:
        return None
    head = len(_MAGIC) + 16
    body = data[head:]
    if data[: len(_MAGIC)] != _MAGIC or hashlib.blake2b(body, digest_size=16).digest() != data[len(_MAGIC) : head]:
        path.unlink(missing_ok=True)
        return None
    try:
        os.utime(path)  # last use, for eviction
    except OSError:
        return body
    return body


_written = 0


def write(name: str, body: bytes) -> None:
    """Store an object; a folder that cannot be written only costs the next process its time."""
    global _written
    place = folder()
    try:
        place.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.blake2b(body, digest_size=16).digest() + body)
            os.replace(temporary, place / f"{name}.lux")
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            return
    except OSError:
        return
    _written += len(body)
    if _written > size_limit() // 16:
        _written = 0
        evict(place, size_limit())


def evict(place: Path, limit: int) -> None:
    """Remove the objects used longest ago until the folder holds at most `limit` bytes."""
    entries = []
    for path in place.glob("*.lux"):
        try:
            info = path.stat()
        except OSError:
            continue
        entries.append((info.st_mtime, info.st_size, path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries, key=lambda entry: entry[:2]):
        if total <= limit:
            return
        path.unlink(missing_ok=True)
        total -= size


def load(name: str, symbols: tuple[str, ...] = ("kernel",)) -> host.CompiledModule | None:
    """Return a stored module, linked, or None."""
    body = read(name)
    if body is None:
        return None
    try:
        return host.link(body, symbols, name)
    except CompileError:
        (folder() / f"{name}.lux").unlink(missing_ok=True)
        return None
