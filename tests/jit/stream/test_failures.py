"""What is left after errors, interrupts and damaged files: nothing under the final name, nothing in memory (C6)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luxgrad as dr
from luxgrad import stream
from luxgrad.llvm import Float, UInt32


def live() -> int:
    return dr.memory_stats()["live"]


@pytest.mark.parametrize("keep", [False, True])
def test_C6_an_exception_in_the_third_chunk(tmp_path: Path, keep: bool) -> None:
    x = np.ones(1000, np.float32)
    bins = dr.opaque(Float, 1, 4)
    dr.eval(bins)
    runs = 0

    def function(x: Any) -> Any:
        nonlocal runs
        runs += x.state == dr.VarState.Evaluated  # not the runs on symbols
        dr.scatter_add(bins, x, UInt32(0))
        if runs == 3:
            raise RuntimeError("in chunk 3")
        return x + 1

    before, threads = live(), threading.active_count()
    (tmp_path / "out.npy").write_bytes(b"the old result")
    with pytest.raises(RuntimeError, match="in chunk 3"):
        stream.evaluate(function, x, out=tmp_path / "out.npy", chunk=128, keep_partial=keep)
    assert (tmp_path / "out.npy").read_bytes() == b"the old result"
    assert (tmp_path / "out.npy.partial").exists() is keep
    assert live() == before and threading.active_count() == threads
    assert bins.numpy().tolist() == [1, 1, 1, 1]
    if keep:
        done = np.frombuffer((tmp_path / "out.npy.partial").read_bytes()[128:][: 4 * 256], np.float32)
        assert (done == 2).all()


def test_C6_nothing_stays_in_memory_after_success(tmp_path: Path) -> None:
    x = np.ones(5000, np.float32)
    stream.evaluate(dr.sum, x, chunk=512)
    before = live()
    stream.evaluate(lambda x: x * 2, x, out=tmp_path / "out.npy", chunk=512)
    stream.evaluate(lambda x: (x - dr.mean(x), dr.max(x)), x, chunk=512)
    assert live() == before


INTERRUPTED = """
import sys, threading, time
import numpy as np
import luxgrad as dr
from luxgrad import stream
before = dr.memory_stats()["live"]
try:
    stream.evaluate(lambda x: dr.sin(x), stream.raw(sys.argv[1], np.float32), out=sys.argv[2], chunk=1 << 18,
                    progress=lambda done, total: print(done, flush=True))
except KeyboardInterrupt:
    began = time.perf_counter()
dr.sync_thread()
dr.set_thread_count(1)
print("interrupted", dr.memory_stats()["live"] - before, time.perf_counter() - began < 2, threading.active_count())
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signal of this kind to send to a process")
def test_C6_interrupt_from_the_keyboard(tmp_path: Path) -> None:
    with open(tmp_path / "in.bin", "wb") as file:
        file.truncate(1 << 30)
    arguments = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "in.bin"), str(tmp_path / "out.npy")]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(3):
        process.stdout.readline()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert output.splitlines()[-1] == "interrupted 0 True 1"
    assert [p.name for p in tmp_path.iterdir()] == ["in.bin"]


def test_C6_files_that_are_too_short(tmp_path: Path) -> None:
    x = np.ones(1000, np.float32)
    np.save(tmp_path / "x.npy", x)
    os.truncate(tmp_path / "x.npy", 128 + 4 * 600)
    with pytest.raises(dr.FileFormatError, match=r"x\.npy is truncated.*offset 128 to 4128.*ends at offset 2528"):
        stream.evaluate(lambda x: x, tmp_path / "x.npy", out=tmp_path / "out.npy")
    (tmp_path / "x.bin").write_bytes(b"1234567")
    with pytest.raises(dr.FileFormatError, match="no whole number of elements of 4 bytes.*offset 4"):
        stream.raw(tmp_path / "x.bin", np.float32)
    (tmp_path / "no.npy").write_bytes(b"something else")
    with pytest.raises(dr.FileFormatError, match="no .npy file"):
        stream.evaluate(dr.sum, tmp_path / "no.npy")
    with pytest.raises(dr.MissingFileError, match="absent.npy"):
        stream.evaluate(dr.sum, tmp_path / "absent.npy")
    np.save(tmp_path / "f.npy", np.asfortranarray(np.ones((4, 3))))
    with pytest.raises(dr.FileFormatError, match="Fortran"):
        stream.evaluate(dr.sum, tmp_path / "f.npy")
    assert not (tmp_path / "out.npy").exists()


def shortened(path: Path) -> None:
    os.truncate(path, 4 * 500)


def touched(path: Path) -> None:
    time.sleep(0.01)
    with open(path, "r+b") as file:
        file.write(b"\0\0\0\0")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (shortened, r"truncated while.*elements 256 to 383.*offset 1024 to 1536"),
        (touched, "was changed while.*offset 1024"),
    ],
)
def test_C6_files_that_change_meanwhile(tmp_path: Path, change: Callable[[Path], None], message: str) -> None:
    path = tmp_path / "x.bin"
    np.ones(1000, np.float32).tofile(path)
    runs = 0

    def function(x: Any) -> Any:
        nonlocal runs
        runs += x.state == dr.VarState.Evaluated
        if runs == 3 and x.state == dr.VarState.Evaluated:
            os.truncate(path, 4 * 300) if change is shortened else change(path)
        return x + 1

    before = live()
    with pytest.raises(dr.FileFormatError, match=message):
        stream.evaluate(function, stream.raw(path, np.float32), out=tmp_path / "out.npy", chunk=128)
    assert [p.name for p in tmp_path.iterdir()] == ["x.bin"] and live() == before


def test_slices_of_wrong_shape_are_found() -> None:
    class Short:
        shape, dtype, chunks = (1000,), np.dtype(np.float32), (100,)

        def __getitem__(self, key: slice) -> Any:
            return np.ones(min(key.stop, 650) - key.start, np.float32)

    with pytest.raises(dr.FileFormatError, match=r"gave shape \(10,\) for elements 640 to 699 \(byte offset 2560\)"):
        stream.evaluate(dr.sum, Short(), chunk=128)
