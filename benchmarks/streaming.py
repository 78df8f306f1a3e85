"""How fast streams are: luxgrad.stream against the loop over windows of the file that one would write by hand.

Run `python benchmarks/streaming.py [--mib 1024] [--rounds 3]`. Both use the same kernels, windows of the
same size and the same file of random float32 numbers, in the system's cache; they take turns. Rates are gigabytes
(10^9) read and written per second. Streams should reach 0.8 of the loop's.
"""

from __future__ import annotations

import argparse
import mmap
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import luxgrad as dr
from luxgrad import stream
from luxgrad.llvm import Float

Task = tuple[str, float, Callable[[], Any], Callable[[], Any]]  # name, bytes moved, the loop, the stream


def make(path: Path, mib: int) -> None:
    """Write `mib` MiB of random numbers."""
    block = np.random.default_rng(0).random(1 << 20, np.float32)
    with open(path, "wb") as file:
        for k in range(mib // 4):
            file.write(np.roll(block, k))


def windows(path: Path, chunk: int) -> Iterator[Any]:
    """Yield arrays over windows of a file."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        for start in range(0, size, 4 * chunk):
            view = mmap.mmap(file.fileno(), min(4 * chunk, size - start), access=mmap.ACCESS_READ, offset=start)
            yield Float(np.frombuffer(view, np.float32))


def total(x: Any) -> Any:
    """Return the task of one reduction."""
    return dr.sum(x * x + 1)


def curve(x: Any) -> Any:
    """Return the task of one result per element."""
    return dr.sin(x) * x + 1


def heavy(x: Any) -> Any:
    """Return the task that computes more than it reads."""
    for _ in range(8):
        x = dr.sin(x) + dr.exp(-x)
    return dr.sum(x)


def loop_sum(path: Path, chunk: int, fn: Callable[[Any], Any]) -> float:
    """Return a sum by hand."""
    return sum(fn(x).item() for x in windows(path, chunk))


def loop_file(path: Path, chunk: int, target: Path) -> None:
    """Write a result per element by hand."""
    with open(target, "wb", buffering=0) as file:
        for x in windows(path, chunk):
            file.write(curve(x).numpy())
        os.fsync(file.fileno())  # as the stream does before the file gets its name


def tasks(path: Path, target: Path, chunk: int) -> list[Task]:
    """Return what is measured."""
    source = stream.raw(path, np.float32)
    nbytes = float(path.stat().st_size)
    return [
        ("sum of x x + 1", nbytes, lambda: loop_sum(path, chunk, total),
         lambda: stream.evaluate(total, source, chunk=chunk)),
        ("sum, 16 functions", nbytes, lambda: loop_sum(path, chunk, heavy),
         lambda: stream.evaluate(heavy, source, chunk=chunk)),
        ("x sin x + 1 to a file", 2 * nbytes, lambda: loop_file(path, chunk, target),
         lambda: stream.evaluate(curve, source, chunk=chunk, out=target)),
    ]  # fmt: skip


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--mib", type=int, default=1024, help="size of the file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--chunk", type=int, default=16 << 20, help="elements per chunk")
    parser.add_argument("--folder", default=None, help="where the files are made")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        path, target = Path(folder, "data.bin"), Path(folder, "out.bin")
        make(path, asked.mib)
        print(f"{'task':<24}{'loop GB/s':>12}{'stream GB/s':>13}{'ratio':>8}")
        for name, nbytes, loop, streamed in tasks(path, target, asked.chunk):
            times: list[list[float]] = [[], []]
            for k in range(asked.rounds + 1):
                for column, run in zip(times, (loop, streamed), strict=True):
                    target.unlink(missing_ok=True)  # a stream keeps an old result until the new one is complete
                    begin = time.perf_counter()
                    run()
                    if k:  # the first round compiles
                        column.append(time.perf_counter() - begin)
            a, b = (nbytes / statistics.median(t) / 1e9 for t in times)
            print(f"{name:<24}{a:>12.2f}{b:>13.2f}{b / a:>8.2f}")


if __name__ == "__main__":
    main()
