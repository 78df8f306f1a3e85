"""Reports, charts and checkpoint files."""

from __future__ import annotations

import math
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from luxgrad.jit.errors import FileFormatError
from luxgrad.optim.checkpoint import read_checkpoint, write_atomically, write_checkpoint
from luxgrad.optim.report import report, write_report
from luxgrad.optim.result import FitResult, numbers, summary
from luxgrad.optim.svg import Curve, chart
from luxgrad.render.image.bitmap import Bitmap


def result() -> FitResult:
    made = FitResult(["wall.value", "texture.data"], losses=[1.0, 0.1, 0.01], seconds=2.0, samples=4_000_000)
    for step in range(4):
        made.record("wall.value", np.array([0.1 * step, 0.2, 0.3]))
        made.record("texture.data", np.full((4, 4, 3), 0.25 * step))
    made.values = {"wall.value": numbers([0.3, 0.2, 0.3]), "texture.data": np.full((4, 4, 3), 0.75)}
    made.images = {"target": Bitmap(np.ones((2, 3, 3), np.float32)), "start": Bitmap(np.zeros((2, 3, 3), np.float32))}
    made.settings = {"steps": 3, "optimizer": "Adam<&>"}
    return made


class TestReport:
    def test_it_holds_pictures_curves_and_numbers_and_refers_to_nothing_outside(self, tmp_path: Path) -> None:
        path = tmp_path / "deep" / "report.html"
        write_report(path, result(), title="A & B", notes="1 < 2")
        text = path.read_text()
        assert text.count("data:image/png;base64,") == 2
        assert text.count("<svg") == 3
        assert "<script" not in text and not re.search(r'(src|href)="(?!data:)', text)
        assert "A &amp; B" in text and "1 &lt; 2" in text and "Adam&lt;&amp;&gt;" in text
        assert "1 to 0.01" in text and "2 million samples per second" in text
        assert "0.3000, 0.2000, 0.3000" in text

    def test_a_fit_without_steps_or_pictures_has_a_report_too(self) -> None:
        assert "<h2>" not in report(FitResult([]))

    def test_large_parameters_are_summarised(self) -> None:
        assert np.allclose(summary(np.arange(20.0)), [9.5, 0, 19])
        assert np.allclose(summary(np.arange(16.0).reshape(4, 4)), np.arange(16.0))
        assert "</span> least" in report(result())


class TestChart:
    def points(self, text: str) -> list[tuple[float, float]]:
        root = ElementTree.fromstring(text[: text.index("</svg>") + 6])
        line = root.find("polyline")
        assert line is not None
        return [(float(a), float(b)) for a, b in (p.split(",") for p in line.attrib["points"].split())]

    def test_a_straight_line_stays_straight_inside_the_frame(self) -> None:
        points = self.points(chart([Curve("a", [0, 1, 2], [1.0, 2.0, 3.0], "red")], width=480, height=220))
        assert points[0] == (58, 194) and points[2] == (468, 10)
        assert points[1] == ((58 + 468) / 2, (194 + 10) / 2)

    def test_a_power_is_straight_on_a_logarithmic_axis(self) -> None:
        points = self.points(chart([Curve("a", [0, 1, 2], [1.0, 0.1, 0.01], "red")], logarithmic=True))
        assert points[1][1] == pytest.approx((points[0][1] + points[2][1]) / 2, abs=0.02)

    def test_what_is_not_finite_is_left_out(self) -> None:
        points = self.points(chart([Curve("a", [0, 1, 2], [1.0, math.nan, 3.0], "red")]))
        assert len(points) == 2
        assert "no finite" in chart([Curve("a", [0], [math.inf], "red")])

    @pytest.mark.parametrize("y", [[2.0, 2.0], [0.0, 0.0], [-1e-9, 1e-9], [1e12, 3e12]])
    def test_flat_and_extreme_lines_get_finite_coordinates(self, y: list[float]) -> None:
        assert all(math.isfinite(v) for p in self.points(chart([Curve("a", [0, 1], y, "red")])) for v in p)


class TestCheckpoint:
    def test_arrays_and_notes_come_back_exactly(self, tmp_path: Path) -> None:
        path = tmp_path / "fit.npz"
        arrays = {"opt/a.b|value|0": np.array([0.1, 1e-30], np.float32), "x": np.array(7)}
        write_checkpoint(path, {"losses": [0.1, 0.2], "keys": ["ä"]}, arrays)
        notes, back = read_checkpoint(path)
        assert notes == {"losses": [0.1, 0.2], "keys": ["ä"]}
        assert set(back) == set(arrays)
        assert all(back[k].dtype == arrays[k].dtype and np.array_equal(back[k], arrays[k]) for k in arrays)
        assert [p.name for p in tmp_path.iterdir()] == ["fit.npz"]

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"\x93NUMPY"])
    def test_damaged_files_are_named(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "fit.npz"
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match="fit.npz"):
            read_checkpoint(path)

    def test_a_failed_write_leaves_the_old_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "fit.npz"
        write_atomically(path, b"old")

        def fail(*args: object) -> None:
            raise OSError("disk full")

        monkeypatch.setattr("os.replace", fail)
        with pytest.raises(OSError, match="disk full"):
            write_atomically(path, b"new")
        assert path.read_bytes() == b"old"
        assert [p.name for p in tmp_path.iterdir()] == ["fit.npz"]
