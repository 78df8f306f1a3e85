"""Kernels in memory and on disk; literals that change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from luxgrad.jit.arrays.create import arange
from luxgrad.jit.runtime import cache
from luxgrad.jit.runtime.engine import runtime
from luxgrad.jit.runtime.history import history


def counts() -> tuple[int, int, int]:
    return history.launches, history.soft_misses, history.hard_misses


def run(t, factor: float, size: int = 1000):
    x = arange(t.Float, size) * factor + 0.5
    return x.numpy()


def change(before: tuple[int, int, int]) -> tuple[int, ...]:
    return tuple(b - a for a, b in zip(before, counts(), strict=True))


def test_hits_and_misses(t, fresh):
    before = counts()
    run(t, 3.25)
    assert change(before) == (1, 0, 1)
    before = counts()
    run(t, 3.25, size=777)  # the size is no part of the code
    assert change(before) == (1, 0, 0)
    runtime.kernels = {}
    before = counts()
    assert np.allclose(run(t, 3.25), np.arange(1000) * 3.25 + 0.5)
    assert change(before) == (1, 1, 0)


def test_a_literal_that_changes_becomes_an_argument(t, fresh):
    before = counts()
    for k in range(20):
        assert np.allclose(run(t, 2.5 + k), np.arange(1000) * (2.5 + k) + 0.5)
    assert change(before) == (20, 0, 2)


def test_two_literals_that_change(t, fresh):
    before = counts()
    for k in range(10):
        x = arange(t.Float, 100) * (2.5 + k) + (7.5 if k < 5 else 8.5 + k)
        assert np.allclose(x.numpy(), np.arange(100) * (2.5 + k) + (7.5 if k < 5 else 8.5 + k))
    assert change(before)[2] <= 3


@pytest.mark.parametrize("damage", ["truncated", "flipped", "foreign", "empty"])
def test_damaged_files_are_replaced(t, fresh, damage):
    run(t, 4.75)
    (path,) = fresh.glob("*.lux")
    whole = path.read_bytes()
    broken = {
        "truncated": whole[: len(whole) // 2],
        "flipped": whole[:100] + bytes([whole[100] ^ 1]) + whole[101:],
        "foreign": b"something else entirely" * 50,
        "empty": b"",
    }[damage]
    path.write_bytes(broken)
    runtime.kernels = {}
    before = counts()
    assert np.allclose(run(t, 4.75), np.arange(1000) * 4.75 + 0.5)
    assert change(before) == (1, 0, 1)
    assert path.read_bytes() == whole


def test_a_folder_that_cannot_be_written_only_costs_time(t, fresh, monkeypatch):
    blocked = fresh / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("LUXGRAD_CACHE_DIR", str(blocked / "below"))
    assert np.allclose(run(t, 5.75), np.arange(1000) * 5.75 + 0.5)


def test_least_recently_used_is_evicted(fresh):
    for k in range(6):
        cache.write(f"entry{k}", bytes(1000))
    import os

    for k in range(6):
        os.utime(fresh / f"entry{k}.lux", (k, k))
    os.utime(fresh / "entry0.lux", (100, 100))
    cache.STORE.evict(3500)
    assert sorted(p.stem for p in fresh.glob("*.lux")) == ["entry0", "entry4", "entry5"]


def test_size_limit_is_read(monkeypatch):
    monkeypatch.setenv("LUXGRAD_CACHE_MAXSIZE", "512M")
    assert cache.size_limit() == 512 << 20
    monkeypatch.setenv("LUXGRAD_CACHE_MAXSIZE", "lots")
    with pytest.raises(ValueError, match="LUXGRAD_CACHE_MAXSIZE must be like '512M'"):
        cache.size_limit()


_CHILD = """
from luxgrad.jit.arrays.namespace import namespace
from luxgrad.jit.arrays.create import arange
from luxgrad.jit.runtime.history import history
Float = namespace("llvm", False).get("Float")
for k in range(4):
    x = arange(Float, 500 + k)
    for _ in range(k + 1):
        x = x * 1.5 + 2.0
    x.numpy()
print(history.soft_misses, history.hard_misses)
"""


def test_processes_share_a_folder(fresh):
    environment = {"LUXGRAD_CACHE_DIR": str(fresh)}
    import os

    together = [
        subprocess.Popen([sys.executable, "-c", _CHILD], env={**os.environ, **environment}, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    for process in together:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0, out
    settings = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-c", _CHILD], env=settings, capture_output=True, text=True)
    assert done.stdout.split() == ["4", "0"], done.stderr
    assert not list(Path(fresh).glob(".new-*"))
