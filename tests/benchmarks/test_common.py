"""The harness of the paired timings, with two systems that only sleep or fail."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
SCRIPT = """
import sys, time
sys.path.insert(0, {folder!r})
import common
pause = {{"slow": 0.03, "fast": 0.005}}[sys.argv[2]]
def work():
    print("noise")
    time.sleep(pause)
    return pause
def fail():
    raise ValueError("broken")
tasks = {{"sleep": work, "fails": fail}}
if sys.argv[2] == "fast":
    tasks["extra"] = work
common.serve(tasks)
"""


def common() -> Any:
    spec = importlib.util.spec_from_file_location("common", FOLDER / "common.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_systems_take_turns_and_failures_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(folder=str(FOLDER)))
    module = common()
    workers = [module.Worker(sys.executable, str(script), name) for name in ("fast", "slow")]
    rows = module.compare(workers, ["sleep", "fails", "extra"], rounds=3, warmup=1)
    for worker in workers:
        worker.close()
    assert [len(v) for v in rows["sleep"].values()] == [3, 3]
    fast, slow = ([a["wall"] for a in rows["sleep"][name]] for name in ("fast", "slow"))
    assert min(slow) >= 0.03 > 0.005 and min(fast) < min(slow)
    assert rows["sleep"]["fast"][0]["value"] == 0.005
    assert rows["fails"] == {"fast": [], "slow": []}
    assert list(rows["extra"]) == ["fast"]
    printed = capsys.readouterr()
    assert "ValueError: broken" in printed.err
    line = next(line for line in printed.out.splitlines() if line.startswith("sleep"))
    assert float(line.split()[-1]) > 1.5  # the peer's time over ours


def test_a_worker_that_dies_is_an_error(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("raise SystemExit(3)")
    with pytest.raises(RuntimeError, match="the worker of x has ended with code 3"):
        common().Worker(sys.executable, str(script), "x")


def test_whole_processes_are_timed_with_an_empty_and_a_filled_cache() -> None:
    code = "import os, pathlib; p = pathlib.Path(os.environ['LUXGRAD_CACHE_DIR'], 'k'); "
    code += "print(p.exists() or p.write_text('x')); s = sum(range(300_000 if p.read_text() else 0))"
    rows = common().cold_and_warm({"luxgrad": [sys.executable, "-c", code]}, 2, "start")
    assert set(rows) == {"start, cold cache", "start, warm cache"}
    assert all(len(v["luxgrad"]) == 2 and v["luxgrad"][0]["cpu"] > 0 for v in rows.values())
