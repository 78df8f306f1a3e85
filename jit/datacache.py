"""Data that takes long to make, kept by what it is made from: in memory, and on disk where a folder is given.

What the cache returns is shared by everybody who asks: its arrays are read-only, and whoever wants to change one makes
a copy. On disk an object is a JSON header and raw arrays, so that reading a file of a stranger runs no code.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import debug
from .memory.pool import pool
from .runtime.engine import runtime
from .runtime.store import Store, short_digest

__all__ = ["DataCache", "FileStamps", "Unkept", "Value", "content_digest", "data_cache"]

Value = Mapping[str, Any]  # names to arrays, numbers, texts, None and lists of those that are no arrays

_ALIGN = 64
_BLOCK = 1 << 16
_OVERHEAD = 512  # bytes that an entry counts besides its arrays
_MAGIC = b"luxdata1"
_SETTLED = 3.0  # seconds after which a file that is changed again gets another time, on any file system


def content_digest(*parts: Any) -> str:
    """Return a text that names the contents of bytes and arrays."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            found.update(f"{part.dtype.str}{part.shape}".encode())
            part = np.ascontiguousarray(part).reshape(-1).view(np.uint8)
        else:
            found.update(f"{len(part)}:".encode())
        found.update(part)
    return found.hexdigest()[:40]


def _block_digest(parts: Sequence[Any]) -> bytes:
    """Return 16 bytes that tell damage: of the sums of blocks, eight times as fast as a digest of all bytes."""
    found: list[Any] = []
    whole = parts[0] if len(parts) == 1 else b"".join(bytes(memoryview(part).cast("B")) for part in parts)
    data = np.frombuffer(whole, np.uint8)
    blocks = len(data) // _BLOCK * _BLOCK
    if blocks:
        found.append(data[:blocks].view(np.uint64).reshape(-1, _BLOCK // 8).sum(1))
    return short_digest([*found, data[blocks:], len(data).to_bytes(8, "little")])


@dataclass
class _Entry:
    kind: str
    value: Any
    nbytes: int


class Unkept(Exception):
    """Raised by what makes a value, to hand it out without keeping it."""

    def __init__(self, value: Value) -> None:
        super().__init__("this value is not to be kept")
        self.value = value


class DataCache:
    """Values by kind and key. The ones used longest ago go when more than `limit` bytes are held."""

    def __init__(self, limit: Callable[[], int], store: Store) -> None:
        self.limit, self.store = limit, store
        self.lock = threading.RLock()
        self.entries: OrderedDict[str, _Entry] = OrderedDict()
        self.nbytes = 0
        self.hits = self.misses = self.evictions = 0

    def find(self, kind: str, key: Any) -> Any:
        """Return the value in memory, None if there is none."""
        with self.lock:
            name = _name(kind, key)
            entry = self.entries.get(name)
            if entry is None:
                return None
            self.entries.move_to_end(name)
            self.hits += 1
            return entry.value

    def lookup(
        self, kind: str, key: Any, make: Callable[[], Value], version: Callable[[], str] | None = None
    ) -> Value:
        """Return the value of a key: from memory, from disk, or made now; its arrays are read-only from then on.

        `key` is anything whose `repr` tells it apart. `version` names the code of `make`: files of another one are not
        read; without it there are no files. Arrays that `make` returns belong to the cache, and what it raises passes,
        but for `Unkept`.
        """
        found = self.find(kind, key)
        if found is not None:
            return found  # type: ignore[no-any-return]
        name = ""
        if version is not None and self.store.folder() is not None:
            name = _name(kind, (key, version()))
            stored = self._read(name)
            if stored is not None:
                with self.lock:
                    self.hits += 1
                self._keep(kind, key, stored, _size(stored))
                return stored
        with self.lock:
            self.misses += 1
        try:
            value = _frozen(make())
        except Unkept as error:
            return _frozen(error.value)
        self._keep(kind, key, value, _size(value))
        if name:
            self.store.write(name, [_packed(value)])
        return value

    def share(self, kind: str, key: Any, make: Callable[[], tuple[Any, int]]) -> Any:
        """Return an object that cannot be stored; `make` returns it with the bytes it takes."""
        found = self.find(kind, key)
        if found is not None:
            return found
        with self.lock:
            self.misses += 1
        value, nbytes = make()
        self._keep(kind, key, value, nbytes)
        return value

    def _read(self, name: str) -> Value | None:
        body = self.store.read(name, _aligned)
        if body is None:
            return None
        try:
            return _frozen(_unpacked(body))
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            self.store.remove(name)
            return None

    def _keep(self, kind: str, key: Any, value: Any, nbytes: int) -> None:
        limit = self.limit()
        nbytes += _OVERHEAD
        if nbytes > limit:
            return
        name = _name(kind, key)
        gone: list[Any] = []  # freed outside of the lock: freeing may need another
        with self.lock:
            before = self.entries.pop(name, None)
            if before is not None:
                self.nbytes -= before.nbytes
                gone.append(before)
            self.entries[name] = _Entry(kind, value, nbytes)
            self.nbytes += nbytes
            while self.nbytes > limit:
                gone.append(self.entries.popitem(last=False)[1])
                self.nbytes -= gone[-1].nbytes
                self.evictions += 1

    def clear(self, wait: float = -1) -> int:
        """Forget what is in memory and return its bytes; scenes keep what they use.

        `wait`: seconds to wait for another thread that uses the cache, -1 for ever.
        """
        if not self.lock.acquire(timeout=wait):
            return 0
        try:
            gone, freed = self.entries, self.nbytes
            self.entries, self.nbytes = OrderedDict(), 0
        finally:
            self.lock.release()
        del gone
        return freed

    def statistics(self) -> dict[str, Any]:
        """Return what is held and what happened so far."""
        with self.lock:
            kinds: dict[str, int] = {}
            for entry in self.entries.values():
                kinds[entry.kind] = kinds.get(entry.kind, 0) + entry.nbytes
            return {
                "entries": len(self.entries), "bytes": self.nbytes, "limit": self.limit(), "hits": self.hits,
                "misses": self.misses, "evictions": self.evictions, "kinds": kinds,
            }  # fmt: skip


def _name(kind: str, key: Any) -> str:
    return f"{kind}-{hashlib.blake2b(repr(key).encode(), digest_size=16).hexdigest()}"


def _frozen(value: Value) -> Value:
    """Return the value with arrays that cannot be written, in one piece each."""
    result: dict[str, Any] = {}
    for name, item in value.items():
        if isinstance(item, np.ndarray):
            if not item.flags.c_contiguous:
                item = np.ascontiguousarray(item)
            part: Any = item
            while isinstance(part, np.ndarray):  # a writable base would let a view be written again
                part.flags.writeable = False
                part = part.base
            item = item.view()
        result[name] = item
    return result


def _size(value: Value) -> int:
    return sum(item.nbytes for item in value.values() if isinstance(item, np.ndarray))


def _aligned(size: int) -> NDArray[np.uint8]:
    raw = np.empty(size + _ALIGN, np.uint8)
    start = -raw.ctypes.data % _ALIGN
    return raw[start : start + size]


def _round(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


def _packed(value: Value) -> NDArray[np.uint8]:
    """Return a value as bytes: length of the header, header, arrays; each begins at a multiple of 64 bytes."""
    arrays = {name: item for name, item in value.items() if isinstance(item, np.ndarray)}
    plain = {name: item for name, item in value.items() if name not in arrays}
    table, offset = [], 0
    for name, item in arrays.items():
        table.append([name, item.dtype.str if item.dtype.fields is None else item.dtype.descr, item.shape, offset])
        offset += _round(item.nbytes)
    header = json.dumps({"byteorder": sys.byteorder, "plain": plain, "arrays": table}).encode()
    first = _round(8 + len(header))
    out = _aligned(first + offset)
    out[:first] = 0
    out[:8] = np.frombuffer(len(header).to_bytes(8, "little"), np.uint8)
    out[8 : 8 + len(header)] = np.frombuffer(header, np.uint8)
    for (_, _, _, place), item in zip(table, arrays.values(), strict=True):
        start = first + place
        out[start : start + item.nbytes] = item.reshape(-1).view(np.uint8)
        out[start + item.nbytes : start + _round(item.nbytes)] = 0
    return out


def _unpacked(body: NDArray[np.uint8]) -> dict[str, Any]:
    """Return the value of `_packed` bytes as views of them; raises ValueError, KeyError ... for anything else."""
    length = int.from_bytes(body[:8].tobytes(), "little")
    header = json.loads(body[8 : 8 + length].tobytes())
    if header["byteorder"] != sys.byteorder:
        raise ValueError(header["byteorder"])
    value: dict[str, Any] = dict(header["plain"])
    first = _round(8 + length)
    for name, form, shape, place in header["arrays"]:
        dtype = np.dtype(form if isinstance(form, str) else [(f[0], f[1], *map(tuple, f[2:])) for f in form])
        count = 1
        for n in shape:
            count *= n
        start = first + place
        raw = body[start : start + count * dtype.itemsize]
        if dtype.hasobject or place < 0 or raw.size != count * dtype.itemsize:
            raise ValueError(name)
        value[name] = raw.view(dtype).reshape(shape)
    return value


class FileStamps:
    """Contents of files that were read before, as far as their times tell that they are the same."""

    def __init__(self, count: int = 4096) -> None:
        self.count = count
        self.lock = threading.Lock()
        self.known: OrderedDict[str, tuple[tuple[int, ...], str]] = OrderedDict()

    def known_digest(self, path: str | os.PathLike[str]) -> str | None:
        """Return the digest of a file that is surely as it was when it was read; None asks to read it again."""
        where = os.path.abspath(path)
        try:
            now = _stamp(os.stat(where))
        except OSError:
            return None
        with self.lock:
            found = self.known.get(where)
            return found[1] if found is not None and found[0] == now else None

    def read(self, path: str | os.PathLike[str], reader: Callable[[], bytes]) -> tuple[bytes, str]:
        """Return the contents that `reader` reads from a file, and their digest, which is remembered.

        A file that was written less than three seconds ago may be written again within the same tick of its clock, and
        one with a time in the future tells nothing: the contents of both are read every time.
        """
        where = os.path.abspath(path)
        try:
            before = os.stat(where)
        except OSError:
            before = None
        began = time.time()
        data = reader()
        digest = content_digest(data)
        with self.lock:
            self.known.pop(where, None)
            if before is not None and max(before.st_mtime, before.st_ctime) < began - _SETTLED:
                self.known[where] = _stamp(before), digest
                while len(self.known) > self.count:
                    self.known.popitem(last=False)
        return data, digest

    def clear(self) -> None:
        """Forget all files."""
        with self.lock:
            self.known.clear()


def _stamp(info: os.stat_result) -> tuple[int, ...]:
    return info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino, info.st_dev


def _folder() -> Path | None:
    given = debug.value("data_cache_dir")
    return Path(given) if given else None


_cache = DataCache(
    lambda: int(debug.value("data_cache_maxsize")),
    Store(_MAGIC, ".luxdata", _folder, lambda: int(debug.value("data_cache_disk")), _block_digest),
)
STAMPS = FileStamps()


def _give_up() -> None:
    """Forget the values when memory is short, once nothing is left to wait for."""
    runtime.sync()
    # Called under the pool's lock, for which a thread that holds the cache's may wait: this one does not wait long.
    _cache.clear(wait=0.2)


pool().pressure.append(_give_up)


def _after_fork() -> None:
    _cache.lock = threading.RLock()
    STAMPS.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def data_cache() -> DataCache:
    """Return the cache of this process."""
    return _cache
