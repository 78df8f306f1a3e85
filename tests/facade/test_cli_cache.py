"""`luxgrad cache`: files listed, removed by age, cleared; scenes prepared so that later commands compile nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luxgrad as dr
from luxgrad.cli import main
from luxgrad.cli.warm import outlined
from luxgrad.jit.datacache import data_cache
from luxgrad.jit.runtime import cache
from luxgrad.jit.runtime.engine import runtime
from luxgrad.render.image.bitmap import Bitmap

SCENE = """<scene version="3.0.0">
 <integrator type="path"><integer name="max_depth" value="3"/></integrator>
 <sensor type="perspective"><float name="fov" value="40"/>
  <transform name="to_world"><lookat origin="0,0,4" target="0,0,0" up="0,1,0"/></transform>
  <sampler type="independent"><integer name="sample_count" value="32"/></sampler>
  <film type="hdrfilm"><integer name="width" value="40"/><integer name="height" value="30"/></film></sensor>
 <bsdf type="diffuse" id="paint"><texture name="reflectance" type="bitmap"><string name="filename" value="paint.png"/>
 </texture></bsdf>
 <shape type="rectangle" id="floor"><ref id="paint"/></shape>
 <shape type="sphere" id="ball"><float name="radius" value="0.5"/>
  <bsdf type="roughconductor"><float name="alpha" value="0.2"/></bsdf></shape>
 <emitter type="constant"/>
</scene>"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a scene; caches on disk are beside it."""
    monkeypatch.setenv("LUXGRAD_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setenv("LUXGRAD_DATA_CACHE_DIR", str(tmp_path / "data"))
    (tmp_path / "room.xml").write_text(SCENE)
    Bitmap(np.random.default_rng(1).integers(0, 255, (8, 8, 3), np.uint8)).write(tmp_path / "paint.png")
    return tmp_path


def fill(folder: Path) -> None:
    for k in range(5):
        cache.write(f"kernel{k}", bytes(1_000_000))
        when = time.time() - 1000 * (k + 1)
        os.utime(folder / "kernels" / f"kernel{k}.lux", (when, when))
    data_cache().store.write("mesh-abc", [bytes(2_000_000)])


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["cache", *arguments]) == 0
    return capsys.readouterr().out


def test_files_are_listed_and_counted(folder: Path, capsys: Any) -> None:
    assert "0 files, 0.0 MB of 1074 MB" in run(capsys, "size")
    fill(folder)
    size = run(capsys, "size").splitlines()
    assert size[0].startswith("kernels:") and "5 files, 5.0 MB of 1074 MB" in size[0]
    assert size[1].startswith("data:") and "1 files, 2.0 MB of 4295 MB" in size[1]
    listed = run(capsys, "list")
    places = [listed.index(name) for name in ("kernel0", "kernel1", "kernel4", "mesh-abc")]
    assert places == sorted(places) and "1,000,024" in listed
    assert "kernel0" not in run(capsys, "list", "data")


def test_pruning_keeps_what_was_used_last(folder: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(folder)
    out = run(capsys, "prune", "kernels", "--max-size", "2.5M")
    assert "3.0 MB removed, 2.0 MB left" in out and "data" not in out
    assert sorted(p.stem for p in (folder / "kernels").iterdir()) == ["kernel0", "kernel1"]
    assert "0.0 MB removed" in run(capsys, "prune")
    monkeypatch.setenv("LUXGRAD_CACHE_MAXSIZE", "1500K")
    assert "1.0 MB removed, 1.0 MB left" in run(capsys, "prune")
    with pytest.raises(SystemExit):
        main(["cache", "prune", "--max-size", "lots"])
    assert "expected a size like '512M' or '2G', found 'lots'" in capsys.readouterr().err


def test_clearing_leaves_files_of_others(folder: Path, capsys: Any) -> None:
    fill(folder)
    (folder / "kernels" / "notes.txt").write_text("mine")
    assert "2.0 MB removed, 0.0 MB left" in run(capsys, "clear", "data")
    assert len(list((folder / "kernels").iterdir())) == 6
    run(capsys, "clear")
    assert [p.name for p in (folder / "kernels").iterdir()] == ["notes.txt"]


_LATER = """
import sys
from luxgrad.cli import main
code = main(sys.argv[1:])
import luxgrad as dr
from luxgrad.jit.datacache import data_cache
from luxgrad.jit.runtime import cache
print(code, *dr.launch_stats()[1:], cache.STORE.written, data_cache().misses, data_cache().store.hits)
"""


def later(*arguments: str) -> list[int]:
    """Return exit code, soft and hard misses, kernels written, data made and data found of a command's process."""
    done = subprocess.run([sys.executable, "-c", _LATER, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.splitlines()[-1].split()]


def test_a_warm_scene_compiles_nothing(folder: Path) -> None:
    scene, picture = str(folder / "room.xml"), str(folder / "picture.exr")
    code, _, compiled, _, made, _ = later("cache", "warm", scene, "--lr", "0.05", "--optimizer", "SGD")
    assert code == 0 and compiled > 10 and made > 0
    code, loaded, compiled, written, made, found = later("render", scene, "-o", picture)
    assert (code, compiled, written, made) == (0, 0, 0, 0) and loaded > 0 and found > 0
    fit = ("fit", scene, "--target", picture, "--steps", "7", "--quiet", "--lr", "0.05", "--optimizer", "SGD")
    code, loaded, compiled, written, *_ = later(*fit)
    assert (code, compiled, written) == (0, 0, 0) and loaded > 10
    assert later("cache", "warm", scene, "--lr", "0.05", "--optimizer", "SGD")[2:4] == [0, 0]


def test_warming_one_command_of_a_changed_size(folder: Path, capsys: Any) -> None:
    scene = str(folder / "room.xml")
    # In a process of its own: here kernels that differ in numbers only have met, which makes these arguments.
    assert later("cache", "warm", scene, "--only", "render", "--size", "16x8", "--spp", "4")[0] == 0
    code, _, compiled, *_ = later("render", scene, "--size", "16x8", "--spp", "4", "--quiet")
    assert (code, compiled) == (0, 0)
    out = run(capsys, "warm", scene, "--only", "render", "--size", "16x8", "--spp", "4")
    assert "ready for loading, rendering\n" in out
    assert main(["cache", "warm", scene, "--params", "nothing like this"]) == 2
    assert "nothing like this" in capsys.readouterr().err


def test_outlines_run_all_chunks_of_long_kernels_only() -> None:
    from luxgrad.llvm import Float

    def long(n: int) -> Any:
        x = dr.arange(Float, n)
        for k in range(300):
            x = x * 1.0001 + 0.5 * k
        return x

    n = 1 << 20
    expected = long(n).numpy().copy()
    with outlined(n):
        assert np.array_equal(long(n // 2).numpy(), expected[: n // 2])  # too few lanes
        assert np.array_equal((dr.arange(Float, n) + 1).numpy(), np.arange(1, n + 1))  # too short
        assert np.isfinite(dr.sum(long(n)).numpy()).all()
        total = float(dr.sum(long(n))[0])
    assert 0 < total < 0.5 * expected.astype(np.float64).sum()
    assert "run" not in vars(runtime) and np.array_equal(long(n).numpy(), expected)
