"""The demonstration writes its files and reports an honest error, at a size too small to succeed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "demo.py"


def load() -> Any:
    spec = importlib.util.spec_from_file_location("demo", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(out: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, float]:
    code = load().main(["--out", str(out), *arguments])
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last.startswith("largest colour error: ")
    return code, float(last.rpartition(" ")[2])


def test_files_and_last_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, error = run(tmp_path, capsys, "--size", "12", "--spp", "4", "--target-spp", "16", "--steps", "3")
    assert {p.name for p in tmp_path.iterdir()} == {"target.png", "start.png", "fitted.png", "report.html"}
    assert 0.01 < error < 0.6 and code == 1


@pytest.mark.slow
def test_the_colours_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, error = run(tmp_path, capsys)
    assert code == 0 and error <= 0.01
