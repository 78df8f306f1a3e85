"""The data cache: memory by last use, files of arrays, shared by processes; stamps of files; counts by name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luxgrad as dr
from luxgrad.jit import datacache, debug
from luxgrad.jit.datacache import STAMPS, DataCache, FileStamps, Unkept, content_digest, data_cache
from luxgrad.jit.memory.pool import pool
from luxgrad.jit.runtime.store import Store


def small(limit: int = 1 << 20, folder: Path | None = None) -> DataCache:
    store = Store(b"luxdata1", ".luxdata", lambda: folder, lambda: 1 << 22, datacache._block_digest)
    return DataCache(lambda: limit, store)


def array(cache: DataCache, key: Any, size: int = 100) -> Any:
    return cache.lookup("test", key, lambda: {"a": np.full(size, 7.0)}, lambda: "1")["a"]


@pytest.fixture
def empty() -> Iterator[DataCache]:
    """Return the cache of the process, emptied before and after."""
    dr.clear_cache("data")
    yield data_cache()
    dr.clear_cache("data")


def test_a_value_is_made_once_and_cannot_be_written() -> None:
    cache = small()
    first, second = array(cache, ("k", 1)), array(cache, ("k", 1))
    assert first is second and (cache.hits, cache.misses) == (1, 1)
    assert array(cache, ("k", 2)) is not first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        first.flags.writeable = True


def test_views_of_what_was_made_cannot_be_written_either() -> None:
    base = np.zeros((4, 6))
    value = small().lookup("test", 0, lambda: {"rows": base[1:3], "columns": np.zeros((3, 3))[:, 1]})
    for part in value.values():
        with pytest.raises(ValueError, match="WRITEABLE"):
            part.flags.writeable = True
    assert not base.flags.writeable and value["columns"].flags.c_contiguous


def test_the_longest_unused_go_when_the_limit_is_reached() -> None:
    cache = small(limit=3 * (800 + 512))
    kept = [array(cache, k) for k in range(3)]
    array(cache, 0)
    array(cache, 3)
    assert cache.find("test", 1) is None and cache.find("test", 0)["a"] is kept[0] and cache.evictions == 1
    assert cache.nbytes == 3 * 1312 and kept[1][0] == 7.0
    array(cache, "large", 10_000)
    assert cache.find("test", "large") is None and cache.nbytes == 3 * 1312  # would have driven out all others
    assert cache.clear() == 3 * 1312 and cache.statistics()["entries"] == 0
    off = small(limit=0)
    assert array(off, 0) is not array(off, 0)


def test_errors_and_unkept_values_leave_nothing() -> None:
    cache = small()

    def fails() -> Any:
        raise OSError("no")

    def passes() -> Any:
        raise Unkept({"a": np.ones(2)})

    with pytest.raises(OSError, match="no"):
        cache.lookup("test", 0, fails)
    assert cache.lookup("test", 0, passes)["a"].tolist() == [1, 1]
    assert cache.statistics()["entries"] == 0


def test_files_hold_every_type(tmp_path: Path) -> None:
    record = np.zeros(3, [("shape", "f8", 12), ("lower", "f4", 3), ("kind", "i4")])
    record["lower"][1] = 2, 3, 4
    value = {
        "f": np.arange(5, dtype=np.float16), "u": np.ones((2, 3, 1), np.uint8), "none": np.zeros((0, 3), np.uint32),
        "scalar": np.array(4.5), "record": record, "number": 3, "real": 0.1, "text": "ä", "nothing": None,
        "list": [1, 2],
    }  # fmt: skip
    small(folder=tmp_path).lookup("test", "key", lambda: value, lambda: "1")
    (path,) = tmp_path.glob("test-*.luxdata")
    assert path.stat().st_mode & 0o077 == 0
    again = small(folder=tmp_path)
    found = again.lookup("test", "key", lambda: pytest.fail("is stored"), lambda: "1")
    assert set(found) == set(value) and again.store.hits == 1 and again.statistics()["misses"] == 0
    for name, expected in value.items():
        if isinstance(expected, np.ndarray):
            assert found[name].dtype == expected.dtype and found[name].shape == expected.shape
            assert found[name].tobytes() == expected.tobytes() and found[name].ctypes.data % 64 == 0
            with pytest.raises(ValueError, match="WRITEABLE"):
                found[name].flags.writeable = True
        else:
            assert found[name] == expected
    assert small(folder=tmp_path).lookup("test", "key", lambda: {"new": 1}, lambda: "2") == {"new": 1}


def test_without_a_version_nothing_is_stored(tmp_path: Path) -> None:
    small(folder=tmp_path).lookup("test", "key", lambda: {"a": np.ones(3)})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("damage", ["cut", "flipped", "foreign", "header", "objects", "beyond"])
def test_damaged_files_are_made_again(tmp_path: Path, damage: str) -> None:
    cache = small(folder=tmp_path)
    array(cache, 0, 20_000)
    (path,) = tmp_path.glob("*.luxdata")
    whole = path.read_bytes()
    body = bytearray(whole[24:])
    if damage == "header":
        body[:8] = (1 << 60).to_bytes(8, "little")
    elif damage == "objects":
        body[:] = body.replace(b'"<f8"', b'"|O" ')
    elif damage == "beyond":
        body[:] = body.replace(b"[20000]", b"[90000]")
    if damage in ("header", "objects", "beyond"):  # with a checksum that agrees
        assert body != whole[24:]
        path.write_bytes(whole[:8] + datacache._block_digest([body]) + body)
    else:
        flipped = whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:]
        path.write_bytes({"cut": whole[:-100], "flipped": flipped, "foreign": b"hello" * 999}[damage])
    again = small(folder=tmp_path)
    assert array(again, 0, 20_000).tolist() == [7.0] * 20_000 and again.misses == 1
    assert path.read_bytes() == whole


def test_a_folder_that_cannot_be_used_only_costs_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    cache = small(folder=tmp_path / "file" / "below")
    assert array(cache, 0)[0] == 7.0 and cache.store.failed == 1
    assert array(cache, 0)[0] == 7.0 and cache.hits == 1


_FILLER = """
import sys
from pathlib import Path
import numpy as np
from luxgrad.jit import debug
from luxgrad.jit.datacache import data_cache
with debug.scoped(data_cache_dir=sys.argv[1], data_cache_maxsize="0", data_cache_disk="2M"):
    for k in range(40):
        got = data_cache().lookup("test", k % 8, lambda: {"a": np.full(30_000, float(k % 8))}, lambda: "1")
        assert (got["a"] == k % 8).all() and len(got["a"]) == 30_000
    print(data_cache().store.damaged, data_cache().store.failed)
"""


def test_processes_fill_one_folder_at_once(tmp_path: Path) -> None:
    together = [
        subprocess.Popen([sys.executable, "-c", _FILLER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in together:
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0 and out.split() == ["0", "0"]
    assert len(list(tmp_path.iterdir())) == 8


def test_a_killed_process_leaves_whole_files_only(tmp_path: Path) -> None:
    code = _FILLER.replace("for k in range(40)", "import itertools\n    for k in itertools.count()")
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    deadline = time.monotonic() + 30
    while not list(tmp_path.glob("*.luxdata")) and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    cache = small(folder=tmp_path)
    for k in range(8):
        got = cache.lookup("test", k, lambda k=k: {"a": np.full(30_000, float(k))}, lambda: "1")
        assert (got["a"] == k).all()
    assert cache.store.damaged == 0


def test_threads_share_it() -> None:
    cache, wrong = small(limit=20 * 1312), []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for k in rng.integers(0, 40, 500):
            got = cache.lookup("test", int(k), lambda k=k: {"a": np.full(100, float(k))})
            if got["a"][0] != k:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    held = cache.statistics()
    assert not wrong and held["bytes"] == held["entries"] * 1312 <= 20 * 1312
    assert held["hits"] + held["misses"] == 2000


class TestStamps:
    def read(self, stamps: FileStamps, path: Path) -> str:
        return stamps.known_digest(path) or stamps.read(path, path.read_bytes)[1]

    def test_old_files_are_known_by_their_times(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path, stamps = tmp_path / "a", FileStamps()
        path.write_bytes(b"12345678")
        assert self.read(stamps, path) == content_digest(b"12345678")
        assert stamps.known_digest(path) is None  # could be written again within the same tick
        later = time.time() + 10
        monkeypatch.setattr(time, "time", lambda: later)
        self.read(stamps, path)
        assert stamps.known_digest(path) == content_digest(b"12345678")
        os.utime(path, (1, 1))
        assert stamps.known_digest(path) is None  # a time that was set is a change
        path.unlink()
        assert stamps.known_digest(path) is None

    def test_a_change_of_the_same_size_is_noticed_at_once(self, tmp_path: Path) -> None:
        path, stamps = tmp_path / "a", FileStamps()
        for k in range(200):
            text = b"%08d" % k
            path.write_bytes(text)
            if k % 2:
                os.utime(path, ns=(10**18, 10**18))  # an archive that is unpacked sets the time too
            assert self.read(stamps, path) == content_digest(text)

    def test_another_file_under_the_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        later = time.time() + 10
        monkeypatch.setattr(time, "time", lambda: later)
        path, other, stamps = tmp_path / "a", tmp_path / "b", FileStamps()
        path.write_bytes(b"one")
        other.write_bytes(b"two")
        for p in (path, other):
            os.utime(p, ns=(10**18, 10**18))
        assert self.read(stamps, path) == content_digest(b"one")
        os.replace(other, path)
        assert self.read(stamps, path) == content_digest(b"two")

    @pytest.mark.parametrize("ahead", [-1e8, 1e8])
    def test_a_clock_that_jumps(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: float) -> None:
        path, stamps = tmp_path / "a", FileStamps()
        now = time.time() + ahead
        monkeypatch.setattr(time, "time", lambda: now)
        for k in range(20):
            path.write_bytes(b"%08d" % k)
            assert self.read(stamps, path) == content_digest(b"%08d" % k)

    def test_only_so_many_are_known(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        later = time.time() + 10
        monkeypatch.setattr(time, "time", lambda: later)
        stamps = FileStamps(count=3)
        for k in range(5):
            (tmp_path / str(k)).write_bytes(b"x")
            self.read(stamps, tmp_path / str(k))
        assert [stamps.known_digest(tmp_path / str(k)) is not None for k in range(5)] == [False] * 2 + [True] * 3


def test_digests_tell_types_shapes_and_borders_apart() -> None:
    a = np.arange(6.0)
    found = {
        content_digest(*parts)
        for parts in (
            [a], [a.reshape(2, 3)], [a.astype("f4")], [a[:5], a[5:]], [a[:4], a[4:]], [b"ab", b"c"], [b"a", b"bc"],
            [b"abc"],
        )
    }  # fmt: skip
    assert len(found) == 8 and content_digest(a[::2]) == content_digest(a[::2].copy())


def test_memory_is_given_up_before_arrays_fail(empty: DataCache) -> None:
    array(empty, 0)
    assert empty.nbytes > 0
    before = pool().limit
    try:
        pool().limit = pool().live + (1 << 20)
        with pytest.raises(dr.OutOfMemoryError):
            dr.eval(dr.arange(dr.llvm.Float, 1 << 22) + 1)
    finally:
        pool().limit = before
    assert empty.nbytes == 0 and empty.statistics()["entries"] == 0


def test_giving_up_does_not_wait_for_a_thread_in_the_cache(empty: DataCache) -> None:
    array(empty, 0)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with empty.lock:
            held.set()
            done.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    begin = time.monotonic()
    assert empty.clear(wait=0.05) == 0 and time.monotonic() - begin < 5
    done.set()
    thread.join()
    assert empty.clear() > 0


def test_counts_and_clearing_by_name(empty: DataCache, tmp_path: Path) -> None:
    with debug.scoped(data_cache_dir=tmp_path / "data", cache_dir=tmp_path / "kernels"):
        before = dr.cache_stats()
        assert before["data"]["entries"] == 0 and before["data"]["disk"]["folder"] == str(tmp_path / "data")
        array(empty, 0)
        array(empty, 0)
        dr.clear_cache("kernels")
        x = dr.arange(dr.llvm.Float, 100) * 3.125 + 17
        dr.eval(x)
        after = dr.cache_stats()
        assert [after["data"][k] - before["data"][k] for k in ("hits", "misses", "entries")] == [1, 1, 1]
        assert after["data"]["kinds"] == {"test": 1312} and after["data"]["disk"]["files"] == 1
        assert after["kernels"]["hard_misses"] == before["kernels"]["hard_misses"] + 1
        assert after["kernels"]["disk"]["files"] >= 1 and after["kernels"]["entries"] >= 1
        dr.clear_cache("data")
        assert dr.cache_stats()["data"]["entries"] == 0 and dr.cache_stats()["data"]["disk"]["files"] == 1
        array(empty, 0)
        assert dr.cache_stats()["data"]["disk"]["hits"] == after["data"]["disk"]["hits"] + 1
        dr.clear_cache(disk=True)
        cleared = dr.cache_stats()
        assert cleared["data"]["disk"]["files"] == 0 and cleared["kernels"]["disk"]["files"] == 0
        assert cleared["memory"]["evictions"] > after["memory"]["evictions"]
    with pytest.raises(ValueError, match="kernels, memory, data and all, found 'texture'"):
        dr.clear_cache("texture")


def test_a_forked_child_has_locks_of_its_own(empty: DataCache) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    with empty.lock, STAMPS.lock:
        child = os.fork()
        if child == 0:
            array(empty, "in the child")
            os._exit(0 if empty.find("test", "in the child") is not None else 1)
    assert os.waitpid(child, 0)[1] == 0
