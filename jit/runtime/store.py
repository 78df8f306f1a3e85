"""Folders of cached files that any number of processes share, and that nothing found in them can harm.

A file is written under a temporary name and renamed, so it is there whole or not at all; it begins with a mark and a
checksum, and one that does not agree with them counts as missing. The files used longest ago go when the folder is
full. A folder that cannot be read or written, a full disk and a wrong clock cost time, never a result.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["StoredFile", "Store", "short_digest"]

TEMPORARY = ".new-"
_LEFT_BEHIND = 600.0  # seconds after which a temporary file belongs to a process that was killed
_AHEAD = 60.0  # seconds by which clocks of machines that share a folder may differ


def short_digest(parts: Sequence[Any]) -> bytes:
    """Return 16 bytes that depend on all bytes of the parts."""
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(part)
    return found.digest()


@dataclass(frozen=True)
class StoredFile:
    """A file of a store: its name without the ending, bytes, and when it was last used (seconds since 1970)."""

    name: str
    size: int
    used: float
    path: Path


class Store:
    """The files with the ending `suffix` in a folder that may hold `limit` bytes.

    `folder` and `limit` are asked at every use, since settings change; a folder of None switches the store off.
    """

    def __init__(
        self,
        magic: bytes,
        suffix: str,
        folder: Callable[[], Path | None],
        limit: Callable[[], int],
        digest: Callable[[Sequence[Any]], bytes] = short_digest,
    ) -> None:
        self.magic, self.suffix, self.folder, self.limit, self.digest = magic, suffix, folder, limit, digest
        self.lock = threading.Lock()
        self._unchecked: dict[Path, int] = {}  # per folder: bytes written since its size was last looked at
        self.hits = self.misses = self.written = self.evicted = self.damaged = self.failed = 0

    def path(self, name: str) -> Path | None:
        """Return where an object lies or would lie, None if the store is off."""
        place = self.folder()
        return None if place is None else place / (name + self.suffix)

    def read(self, name: str, allocate: Callable[[int], Any] = bytearray) -> Any:
        """Return the bytes of a stored object, in the buffer `allocate` makes, or None if there is no whole one.

        A damaged or foreign file is removed where that is possible.
        """
        path = self.path(name)
        if path is None:
            return None
        try:
            body = self._checked(path, allocate)
        except (OSError, MemoryError):
            self.misses += 1
            return None
        if body is None:
            self.misses += 1
            self.damaged += 1
            self.remove(name)
            return None
        self.hits += 1
        with contextlib.suppress(OSError):
            os.utime(path)  # last use, for eviction
        return body

    def _checked(self, path: Path, allocate: Callable[[int], Any]) -> Any:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would never end
            return None
        with open(path, "rb", buffering=0) as file:
            head = file.read(len(self.magic) + 16)
            size = os.fstat(file.fileno()).st_size - len(head)
            if len(head) < len(self.magic) + 16 or not head.startswith(self.magic) or size <= 0:
                return None
            body = allocate(size)
            view, done = memoryview(body).cast("B"), 0
            while done < size:
                count = file.readinto(view[done:])
                if not count:
                    return None
                done += count
        return body if self.digest([view]) == head[len(self.magic) :] else None

    def write(self, name: str, parts: Sequence[Any]) -> bool:
        """Store an object made of parts (bytes or buffers); return whether that was possible.

        What is larger than the limit is not stored. Errors of the file system are no errors here: the next process
        does the work again.
        """
        place, limit = self.folder(), self.limit()
        size = sum(memoryview(part).nbytes for part in parts) + len(self.magic) + 16
        if place is None or size > limit:
            return False
        try:
            place.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=place, prefix=TEMPORARY)
            try:
                with os.fdopen(handle, "wb") as file:
                    for part in (self.magic, self.digest(parts), *parts):
                        file.write(part)
                os.replace(temporary, place / (name + self.suffix))
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
        except OSError:
            self.failed += 1
            return False
        self.written += 1
        self._look_after(place, size, limit)
        return True

    def _look_after(self, place: Path, size: int, limit: int) -> None:
        """Look at the size of the folder after the first write of a process and whenever much was written since."""
        with self.lock:
            waiting = self._unchecked.get(place)
            self._unchecked[place] = 0 if waiting is None else waiting + size
            due = waiting is None or waiting + size > limit // 16
            if due:
                self._unchecked[place] = 0
        if due:
            self.evict(limit)

    def files(self) -> list[StoredFile]:
        """Return the stored files, those used longest ago first.

        A time in the future says that a clock was wrong, and that the file was not used since: such files come first.
        """
        now = time.time() + _AHEAD
        found = [f for f in self._scan() if f.path.name.endswith(self.suffix)]
        return sorted(found, key=lambda f: (f.used <= now, f.used, f.name))

    def _scan(self) -> list[StoredFile]:
        place = self.folder()
        found: list[StoredFile] = []
        if place is None:
            return found
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    ours = entry.name.endswith(self.suffix)
                    if not ours and not entry.name.startswith(TEMPORARY):
                        continue
                    with contextlib.suppress(OSError):  # gone meanwhile
                        info = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(info.st_mode):
                            name = entry.name.removesuffix(self.suffix)
                            found.append(StoredFile(name, info.st_size, info.st_mtime, Path(entry.path)))
        except OSError:
            return []
        return found

    def size(self) -> int:
        """Return the bytes of all stored files."""
        return sum(f.size for f in self.files())

    def evict(self, limit: int) -> int:
        """Remove the files used longest ago until at most `limit` bytes are left, and what killed processes left.

        Return the bytes that were removed.
        """
        freed = self._remove_left_behind()
        files = self.files()
        total = sum(f.size for f in files)
        for file in files:
            if total <= limit:
                break
            if _unlink(file.path):
                total -= file.size
                freed += file.size
                self.evicted += 1
        return freed

    def _remove_left_behind(self) -> int:
        now = time.time()
        old = [
            f for f in self._scan() if f.path.name.startswith(TEMPORARY) and abs(now - f.used) > _LEFT_BEHIND
        ]  # also those from the future: a live writer only loses its file
        return sum(f.size for f in old if _unlink(f.path))

    def remove(self, name: str) -> None:
        """Remove one object, if there is one and the folder lets us."""
        path = self.path(name)
        if path is not None:
            _unlink(path)

    def clear(self) -> int:
        """Remove all files of this store, also unfinished ones; return how many bytes were removed."""
        return sum(f.size for f in self._scan() if _unlink(f.path))

    def statistics(self) -> dict[str, int]:
        """Return what the folder holds and what this process did with it."""
        files = self.files()
        return {
            "files": len(files), "bytes": sum(f.size for f in files), "hits": self.hits, "misses": self.misses,
            "written": self.written, "evicted": self.evicted, "damaged": self.damaged, "failed": self.failed,
        }  # fmt: skip


def _unlink(path: Path) -> bool:
    """Remove a file and return whether it is gone by our doing."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True
