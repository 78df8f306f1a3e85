"""Folders of stored files: shared by processes, killed writers, damage, full disks, wrong clocks, no home."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from luxgrad.jit.datacache import _block_digest
from luxgrad.jit.runtime import cache
from luxgrad.jit.runtime.store import TEMPORARY, Store, short_digest


def make(folder: Path | None, limit: int = 1 << 20, digest: Any = short_digest) -> Store:
    return Store(b"testing1", ".obj", lambda: folder, lambda: limit, digest)


def age(store: Store, name: str, seconds: float) -> None:
    path = store.path(name)
    assert path is not None
    os.utime(path, (time.time() - seconds,) * 2)


def names(store: Store) -> set[str]:
    return {f.name for f in store.files()}


@pytest.mark.parametrize("digest", [short_digest, _block_digest])
def test_what_was_written_is_read(tmp_path: Path, digest: Any) -> None:
    store = make(tmp_path / "made" / "when needed", digest=digest)
    body = bytes(range(256)) * 700
    assert store.write("a", [body[:100], body[100:]]) and store.write("b", [b"x"])
    assert bytes(store.read("a")) == body and bytes(store.read("b")) == b"x"
    assert store.read("c") is None and (store.hits, store.misses) == (2, 1)
    assert store.write("a", [b"other"]) and bytes(store.read("a")) == b"other"


@pytest.mark.parametrize("digest", [short_digest, _block_digest])
@pytest.mark.parametrize("place", [0, 5, 20, 30, 70_000, -1])
def test_every_changed_byte_is_noticed_and_the_file_removed(tmp_path: Path, place: int, digest: Any) -> None:
    store = make(tmp_path, digest=digest)
    store.write("a", [bytes(100_001)])
    path = tmp_path / "a.obj"
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)
    assert store.read("a") is None and not path.exists() and store.damaged == 1


@pytest.mark.parametrize("content", [b"", b"testing1", b"testing1" + bytes(16), b"%PDF-1.7 something of somebody else"])
def test_foreign_and_cut_files_count_as_missing(tmp_path: Path, content: bytes) -> None:
    store = make(tmp_path)
    (tmp_path / "a.obj").write_bytes(content)
    assert store.read("a") is None
    assert store.write("a", [b"good"]) and bytes(store.read("a")) == b"good"


def test_things_that_are_no_files_do_no_harm(tmp_path: Path) -> None:
    store = make(tmp_path)
    (tmp_path / "folder.obj").mkdir()
    assert store.read("folder") is None and not store.write("folder", [b"x"]) and store.failed == 1
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.obj")
        assert store.read("pipe") is None  # opening it would wait for ever
    (tmp_path / "notes.txt").write_text("mine")
    store.write("a", [b"x"])
    assert store.clear() == 25 and (tmp_path / "notes.txt").exists() and (tmp_path / "folder.obj").is_dir()


def test_the_longest_unused_go_first(tmp_path: Path) -> None:
    store = make(tmp_path)
    for k in range(6):
        store.write(f"n{k}", [bytes(1000)])
        age(store, f"n{k}", 1000 - k)
    assert store.read("n1") is not None  # used now
    freed = store.evict(3 * 1024 + 500)
    assert names(store) == {"n1", "n4", "n5"} and freed == 3 * 1024 and store.evicted == 3


def test_the_first_write_of_a_process_looks_after_the_folder(tmp_path: Path) -> None:
    old = make(tmp_path)
    for k in range(10):
        old.write(f"old{k}", [bytes(1000)])
        age(old, f"old{k}", 100)
    new = make(tmp_path, limit=5000)
    new.write("new", [bytes(1000)])
    assert "new" in names(new) and new.size() <= 5000
    for k in range(40):  # later again and again
        new.write(f"more{k}", [bytes(1000)])
        assert new.size() <= 5000 + 5000 // 16 + 1024


def test_what_is_larger_than_the_limit_is_not_stored(tmp_path: Path) -> None:
    store = make(tmp_path, limit=500)
    assert not store.write("a", [bytes(1000)]) and not list(tmp_path.iterdir())
    assert not make(None).write("a", [b"x"]) and make(None).read("a") is None and make(None).files() == []


def test_wrong_clocks(tmp_path: Path) -> None:
    store = make(tmp_path)
    for name, seconds in (("future", -1e7), ("ancient", 1e9), ("recent", 50.0), ("older", 500.0)):
        store.write(name, [bytes(1000)])
        age(store, name, seconds)
    os.utime(tmp_path / "ancient.obj", (-1e9, -1e9))  # before 1970
    assert [f.name for f in store.files()] == ["future", "ancient", "older", "recent"]
    store.evict(3000)
    assert names(store) == {"older", "recent"}
    age(store, "older", -1e7)
    assert bytes(store.read("older")) == bytes(1000)  # and is as of now
    store.evict(1100)
    assert names(store) == {"older"}


def test_what_killed_processes_left_is_removed_later(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom luxgrad.jit.runtime import store\n"
        "store.os.replace = lambda *a: os.kill(os.getpid(), signal.SIGKILL)\n"
        "s = store.Store(b'testing1', '.obj', lambda: Path(sys.argv[1]), lambda: 1 << 20)\ns.write('a', [bytes(5000)])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)])
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(TEMPORARY)
    store = make(tmp_path)
    assert store.read("a") is None and store.files() == []
    store.evict(1 << 20)
    assert left.exists()  # it may be at work still
    os.utime(left, (time.time() - 3600,) * 2)
    assert store.evict(1 << 20) == 5024 and not left.exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    store = make(tmp_path)
    store.write("before", [b"x"])
    real = os.fdopen

    class Full:
        def __init__(self, *args: Any) -> None:
            self.file = real(*args)

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *error: object) -> None:
            self.file.close()

        def write(self, part: Any) -> None:
            self.file.write(bytes(part)[:3])
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fdopen", Full)
    assert not store.write("a", [bytes(100)]) and store.failed == 1
    monkeypatch.undo()
    assert [p.name for p in tmp_path.iterdir()] == ["before.obj"] and bytes(store.read("before")) == b"x"


def test_a_folder_that_may_only_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make(tmp_path)
    store.write("good", [b"x"])
    store.write("bad", [b"x"])
    (tmp_path / "bad.obj").write_bytes(b"damaged")

    def refuse(*args: Any, **options: Any) -> Any:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for name in ("unlink", "utime", "replace", "mkdir"):
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setattr("tempfile.mkstemp", refuse)
    assert bytes(store.read("good")) == b"x" and store.read("bad") is None
    assert not store.write("new", [b"x"]) and store.evict(0) == 0 and store.clear() == 0
    monkeypatch.undo()
    assert names(store) == {"good", "bad"}


_WRITER = """
import os, sys
from pathlib import Path
from luxgrad.jit.runtime.store import Store
folder, me = Path(sys.argv[1]), int(sys.argv[2])
s = Store(b"testing1", ".obj", lambda: folder, lambda: 200_000)
for k in range(60):
    s.write(f"own{me}-{k}", [bytes([me]) * 10_000])
    s.write("all", [bytes([me]) * 30_000])
    body = s.read("all")
    assert body is None or (len(body) == 30_000 and len(set(body)) == 1), len(body)
    s.read(f"own{1 - me}-{k}")
assert s.damaged == 0 and s.failed == 0, (s.damaged, s.failed)
"""


def test_processes_that_fill_one_folder_keep_its_limit(tmp_path: Path) -> None:
    together = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path), str(me)], stderr=subprocess.PIPE, text=True)
        for me in (0, 1)
    ]
    for process in together:
        _, error = process.communicate(timeout=60)
        assert process.returncode == 0, error
    store = make(tmp_path)
    assert 100_000 < store.size() <= 200_000 + 2 * (200_000 // 16 + 30_024)
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(TEMPORARY)]


class TestKernelFolder:
    @pytest.fixture(autouse=True)
    def plain(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("LUXGRAD_CACHE_DIR", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)

    @pytest.mark.skipif(sys.platform != "linux", reason="where caches lie on Linux")
    def test_the_places_of_the_platform(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", "/home/somebody")
        assert cache.folder() == Path("/home/somebody/.cache/luxgrad")
        monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")  # to be ignored, says the specification
        assert cache.folder() == Path("/home/somebody/.cache/luxgrad")
        monkeypatch.setenv("XDG_CACHE_HOME", "/var/fast")
        assert cache.folder() == Path("/var/fast/luxgrad")

    @pytest.mark.skipif(sys.platform != "linux", reason="HOME is what tells the user's folder on Linux")
    def test_without_a_home_nothing_is_stored(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", "")
        assert cache.folder() is None and cache.read("a") is None
        cache.write("a", b"x")

        def nobody(path: str) -> str:
            return path

        monkeypatch.setattr(os.path, "expanduser", nobody)  # a user without an entry in the list of users
        monkeypatch.delenv("HOME")
        assert cache.folder() is None and cache.STORE.statistics()["files"] == 0
