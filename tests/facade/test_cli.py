"""The command line, run in this process on a small scene file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luxgrad.cli import main
from luxgrad.render.image.bitmap import Bitmap

SCENE = """<scene version="3.0.0">
 <default name="red" value="0.5"/>
 <integrator type="path"><integer name="max_depth" value="2"/></integrator>
 <sensor type="perspective" id="camera"><float name="fov" value="40"/>
  <transform name="to_world"><lookat origin="0,0,4" target="0,0,0" up="0,1,0"/></transform>
  <sampler type="independent"><integer name="sample_count" value="4"/></sampler>
  <film type="hdrfilm"><integer name="width" value="8"/><integer name="height" value="6"/><rfilter type="box"/></film>
 </sensor>
 <bsdf type="diffuse" id="paint"><rgb name="reflectance" value="$red, 0.5, 0.5"/></bsdf>
 <shape type="rectangle" id="plane"><transform name="to_world"><scale value="5"/></transform><ref id="paint"/></shape>
 <shape type="rectangle" id="lamp">
  <transform name="to_world"><scale value="2"/><rotate x="1" angle="180"/><translate z="6"/></transform>
  <emitter type="area"><rgb name="radiance" value="4"/></emitter></shape>
</scene>"""


@pytest.fixture
def scene(tmp_path: Path) -> str:
    path = tmp_path / "room.xml"
    path.write_text(SCENE)
    return str(path)


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the message of a command that ends with code 2."""
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error and "luxgrad: error: " in error
    return error


class TestRender:
    def test_the_image_is_written_where_asked(self, scene: str, tmp_path: Path, capsys: Any) -> None:
        out = tmp_path / "picture.exr"
        assert main(["render", scene, "-o", str(out), "--spp", "16", "-D", "red=0.25"]) == 0
        image = np.array(Bitmap(out))
        assert image.shape == (6, 8, 3)
        assert image[..., 0].mean() == pytest.approx(0.5 * image[..., 1].mean(), rel=1e-3)
        assert "8 x 6, 16 samples per pixel" in capsys.readouterr().out

    def test_without_a_name_the_image_lies_beside_the_scene(self, scene: str, tmp_path: Path, capsys: Any) -> None:
        assert main(["render", scene, "--quiet", "--size", "4x4"]) == 0
        assert Bitmap(tmp_path / "room.exr").size() == (4, 4)
        assert capsys.readouterr().out == ""

    def test_passes_share_the_samples(self, scene: str, tmp_path: Path) -> None:
        from luxgrad.cli.render import render_passes
        from luxgrad.render.render import render
        from luxgrad.render.variants import types
        from luxgrad.scenes.loader import load_file

        world = load_file(scene, types=types("llvm_ad_rgb"))
        one = render_passes(world, 0, None, 5, 4, 1)
        assert np.array_equal(one, np.array(render(world, seed=5, spp=4)))
        counted: list[int] = []
        parts = render_passes(world, 0, None, 5, 5, 2, lambda: counted.append(1))
        first, second = (np.array(render(world, seed=5 + i, spp=3 - i)) for i in range(2))
        assert np.allclose(parts, (first * 3 + second * 2) / 5, rtol=1e-6) and len(counted) == 2

    def test_another_integrator(self, scene: str, tmp_path: Path) -> None:
        out = str(tmp_path / "dark.exr")
        assert main(["render", scene, "-o", out, "--integrator", "path", "--max-depth", "1", "--quiet"]) == 0
        assert np.array(Bitmap(out)).max() == 0.0

    def test_mistakes_are_one_message(self, scene: str, tmp_path: Path, capsys: Any) -> None:
        assert "does not exist" in fails(capsys, "render", str(tmp_path / "none.xml"))
        assert "unused parameters: blue" in fails(capsys, "render", scene, "-D", "blue=1")
        assert 'did you mean "path"' in fails(capsys, "render", scene, "--integrator", "paht")
        assert "sensor 3 was asked for" in fails(capsys, "render", scene, "--sensor", "3")
        assert "unknown variant" in fails(capsys, "render", scene, "--variant", "gpu")
        assert "--max-depth needs --integrator" in fails(capsys, "render", scene, "--max-depth", "3")
        (tmp_path / "bad.xml").write_text('<scene version="3.0.0">\n<bsdf type="diffus"/></scene>')
        assert "line 2" in fails(capsys, "render", str(tmp_path / "bad.xml"))
        (tmp_path / "paint.xml").write_text('<bsdf type="diffuse" version="3.0.0"/>')
        assert "holds a bsdf" in fails(capsys, "render", str(tmp_path / "paint.xml"))

    def test_debug_raises(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            main(["render", "--debug", str(tmp_path / "none.xml")])

    @pytest.mark.parametrize("wrong", [
        ["--size", "8"], ["--spp", "0"], ["-D", "red"], ["--size", "0x4"], ["--spp", "99999999999999"],
        ["--spp", "2.5"], ["--seed", "-1"], ["--seed", "4294967296"], ["--seed", "x"], ["--passes", "0"],
        ["--sensor", "a"], ["--size", "8x-3"], ["-D", "=3"],
    ])  # fmt: skip
    def test_malformed_options_end_with_usage(self, scene: str, wrong: list[str], capsys: Any) -> None:
        with pytest.raises(SystemExit) as stopped:
            main(["render", scene, *wrong])
        assert stopped.value.code == 2 and "usage:" in capsys.readouterr().err


class TestFit:
    def test_everything_that_can_be_asked_for(self, scene: str, tmp_path: Path, capsys: Any) -> None:
        target, out, page, saved = (str(tmp_path / n) for n in ("t.exr", "o.png", "r.html", "p.npz"))
        main(["render", scene, "-o", target, "--spp", "64", "-D", "red=0.8", "--size", "6x5", "--quiet"])
        wanted = ["--report", page, "-o", out, "--save", saved, "--checkpoint", str(tmp_path / "c.npz")]
        options = ["--target", target, "--params", "paint", "--steps", "4", "--spp", "4", "--lr", "0.1"]
        assert main(["fit", scene, *options, *wanted]) == 0
        with np.load(saved) as values:
            red = values["paint.reflectance.value"].ravel()
        assert 0.6 < red[0] < 1.0 and abs(red[1] - 0.5) < 0.3
        assert Bitmap(out).size() == (6, 5)
        assert "<svg" in Path(page).read_text() and (tmp_path / "c.npz").exists()
        printed = capsys.readouterr().out
        assert "4 steps, loss" in printed and "0.5000 0.5000 0.5000" in printed

    def test_mistakes(self, scene: str, tmp_path: Path, capsys: Any) -> None:
        assert "does not exist" in fails(capsys, "fit", scene, "--target", str(tmp_path / "none.exr"))
        target = str(tmp_path / "t.exr")
        Bitmap(np.ones((6, 8, 3), np.float32)).write(target)
        message = fails(capsys, "fit", scene, "--target", target, "--params", "colour", "--quiet")
        assert "paint.reflectance.value" in message


    @pytest.mark.parametrize("wrong", ["nan", "-1", "0", "inf", "fast"])
    def test_rates(self, scene: str, wrong: str, capsys: Any) -> None:
        for option in ("--lr", "--lr-end"):
            with pytest.raises(SystemExit) as stopped:
                main(["fit", scene, "--target", "t.exr", option, wrong])
            assert stopped.value.code == 2 and f"expected a positive number, found '{wrong}'" in capsys.readouterr().err

    def test_patterns_and_outputs_are_checked_before_the_fit(self, scene: str, tmp_path: Path, capsys: Any) -> None:
        target = str(tmp_path / "t.exr")
        Bitmap(np.ones((6, 8, 3), np.float32)).write(target)
        command = ["fit", scene, "--target", target, "--quiet"]
        assert "'(' is no regular expression: missing )" in fails(capsys, *command, "--params", "(")
        file = tmp_path / "file"
        file.write_text("")
        for option in ("-o", "--save", "--report", "--checkpoint"):
            assert "it is a folder" in fails(capsys, *command, option, str(tmp_path))
            assert "it is no folder" in fails(capsys, *command, option, str(file / "x.exr"))
        assert ".abc is not a known image format" in fails(capsys, *command, "-o", "x.abc")
        assert ".abc is not a known image format" in fails(capsys, "render", scene, "-o", "x.abc")
        assert "it is a folder" in fails(capsys, "render", scene, "-o", str(tmp_path))
        assert "name of the scene file is empty" in fails(capsys, "render", "")
        assert "depend on the parameters" in fails(capsys, *command, "--integrator", "depth")

    def test_folders_of_outputs_are_made(self, scene: str, tmp_path: Path) -> None:
        assert main(["render", scene, "-o", str(tmp_path / "a" / "b" / "x.exr"), "--quiet", "--spp", "1"]) == 0
        assert Bitmap(tmp_path / "a" / "b" / "x.exr").size() == (8, 6)

    def test_columns_stay_aligned(self, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        from luxgrad.cli.fit import _print
        from luxgrad.optim.result import FitResult

        monkeypatch.setenv("COLUMNS", "120")
        start, fitted = np.array([0.5, 12345.25, -3e30]), np.array([-0.25, 1.0, 7.0])
        history = {"a.very.long[name].of.a.parameter": [start, fitted], "b": [np.array([1.0]), np.array([2.0])]}
        _print(FitResult(list(history), losses=[1.0, 0.5], history=history))
        lines = [line for line in capsys.readouterr().out.splitlines() if "│" in line]
        assert len(lines) == 2 and len({line.rindex("│") for line in lines}) == 1
        one, two, three = lines[0].split("│")[1:4]
        assert "[name]" in one and two.strip().split() == ["0.5000", "12345.2500", "-3.0000e+30"]
        assert [two.index(text) + len(text) for text in two.split()] == [
            three.index(text) + len(text) for text in three.split()
        ]

    def test_warnings_are_one_line(self, scene: str, tmp_path: Path, capsys: Any) -> None:
        target = str(tmp_path / "t.exr")
        Bitmap(np.ones((6, 8, 3), np.float32)).write(target)
        assert main(["fit", scene, "--target", target, "--params", "lamp.bsdf", "--quiet", "--steps", "1"]) == 0
        assert capsys.readouterr().err.startswith('luxgrad: warning: the gradient of "lamp.bsdf.reflectance.value" is')


class TestInfo:
    def test_the_installation(self, capsys: Any) -> None:
        assert main(["info"]) == 0
        out = capsys.readouterr().out
        assert all(word in out for word in ("LLVM", "processor", "kernel cache", "llvm_ad_rgb"))

    def test_a_scene(self, scene: str, capsys: Any) -> None:
        assert main(["info", scene, "-D", "red=0.1"]) == 0
        out = capsys.readouterr().out
        words = ("plane", "rectangle", "paint", "8 x 6", "integrator: path", "camera.film.size")
        assert all(word in out for word in words)

    def test_the_version(self, capsys: Any) -> None:
        with pytest.raises(SystemExit):
            main(["--version"])
        assert capsys.readouterr().out.startswith("luxgrad 0.")

    def test_help_does_not_wait_for_the_renderer(self) -> None:
        import subprocess
        import sys

        code = "import sys\nfrom luxgrad.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
        code += "print('numpy' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout.splitlines()[-1] == "False"
