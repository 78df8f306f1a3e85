"""How much memory a stream takes, told by the system: C1 and C2. Each measurement is a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the system's count of resident memory is Linux's")

MEASURE = """
import sys
import numpy as np
import luxgrad as dr
from luxgrad import stream
from luxgrad.llvm import Float

def high() -> int:
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) >> 10

def totals(x):
    return dr.sum(x * x + 1), dr.min(x), dr.max(x), dr.count(x != 0)

def curve(x):
    return x * x + 1

path, budget, mode = sys.argv[1:4]
warm = np.ones(1 << 16, np.float32)
stream.evaluate(totals, warm, chunk=4096)
stream.evaluate(curve, warm, chunk=4096)
before = high()
if mode == "totals":
    print([v[0] for v in stream.evaluate(totals, stream.raw(path, np.float32), max_resident=budget).value])
elif mode == "file":
    stream.evaluate(curve, stream.raw(path, np.float32), max_resident=budget, out=sys.argv[4])
elif mode == "array":
    size = np.memmap(path, np.float32, "r").size
    out = np.memmap(sys.argv[4], np.float32, "w+", shape=(size,))
    stream.evaluate(curve, np.memmap(path, np.float32, "r"), max_resident=budget, out=out)
elif mode == "gradient":
    from luxgrad.llvm.ad import Float as Diff
    w = Diff(2)
    dr.enable_grad(w)
    fn = lambda x, w: dr.mean(dr.square(x * w - dr.mean(x * w)))
    stream.backward(fn, warm, params=(w,), chunk=4096, grad_out=np.empty_like(warm))
    before = high()
    stream.backward(fn, stream.raw(path, np.float32), params=(w,), max_resident=budget, grad_out=sys.argv[4])
else:
    print([v[0] for v in totals(Float(np.memmap(path, np.float32, "r")))])
print(high() - before)
"""


def measured(path: Path, budget: str, mode: str, *more: str) -> tuple[list[float], int]:
    """Return the totals found, and by how many MiB the most resident memory rose."""
    arguments = [sys.executable, "-c", MEASURE, str(path), budget, mode, *more]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    *values, rise = done.stdout.splitlines()
    return eval(values[0]) if values else [], int(rise)


def sparse(path: Path, nbytes: int) -> list[float]:
    """Make a file that is empty but for a few planted numbers; return its totals."""
    planted = {0: 3.0, nbytes // 8: -7.0, nbytes // 4 - 1: 11.0}
    with open(path, "wb") as file:
        file.truncate(nbytes)
        for position, value in planted.items():
            file.seek(4 * position)
            file.write(np.float32(value).tobytes())
    count = nbytes // 4
    squares = float(np.float32(count + sum(v * v for v in planted.values())))
    return [squares, -7.0, 11.0, len(planted)]


def test_C1_totals_of_a_file(tmp_path: Path) -> None:
    expected = sparse(tmp_path / "x.bin", 2 << 30)
    values, rise = measured(tmp_path / "x.bin", "256 MiB", "totals")
    assert values == expected and rise <= 256 + 32
    values, rise = measured(tmp_path / "x.bin", "24 MiB", "totals")
    assert values == expected and rise <= 24 + 32


def test_C1_the_whole_map_fails_the_check(tmp_path: Path) -> None:
    sparse(tmp_path / "x.bin", 1 << 30)
    assert measured(tmp_path / "x.bin", "256 MiB", "whole")[1] > 256 + 32


@pytest.mark.parametrize("mode", ["file", "array", "gradient"])
def test_C1_results_per_element(tmp_path: Path, mode: str) -> None:
    sparse(tmp_path / "x.bin", 384 << 20)
    assert measured(tmp_path / "x.bin", "48 MiB", mode, str(tmp_path / "y.npy"))[1] <= 48 + 32


def test_C2_totals_of_8_gigabytes(tmp_path: Path) -> None:
    expected = sparse(tmp_path / "x.bin", 8 << 30)
    values, rise = measured(tmp_path / "x.bin", "64 MiB", "totals")
    assert values == expected and rise <= 64 + 32


@pytest.mark.slow
def test_C2_totals_of_100_gigabytes(tmp_path: Path) -> None:
    expected = sparse(tmp_path / "x.bin", 100_000_000_000)
    values, rise = measured(tmp_path / "x.bin", "1 GiB", "totals")
    assert values == expected and rise <= 1.1 * 1024
