"""Wavefront OBJ files as people have them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luxgrad.jit.errors import FileFormatError, LuxgradError, MissingFileError
from luxgrad.render.shapes.mesh_data import MeshData
from luxgrad.render.shapes.obj_reader import read_obj

SQUARE = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\n"


def load(tmp_path: Path, text: str, **options: Any) -> MeshData:
    path = tmp_path / "mesh.obj"
    path.write_text(text, encoding="utf-8")
    return read_obj(path, **options)


def corners(mesh: MeshData) -> list[Any]:
    result: list[Any] = mesh.vertices[mesh.faces].tolist()
    return result


def test_a_plain_triangle(tmp_path: Path) -> None:
    mesh = load(tmp_path, "# remark\no thing\nmtllib a.mtl\n" + SQUARE + "g part\nusemtl m\ns off\nf 1 2 3\n")
    assert corners(mesh) == [[[0, 0, 0], [1, 0, 0], [1, 1, 0]]]
    assert mesh.name == "mesh" and mesh.normals is None and mesh.texcoords is None
    assert mesh.vertices.dtype.name == "float32" and mesh.faces.dtype.name == "uint32"


def test_vertices_are_numbered_by_first_use(tmp_path: Path) -> None:
    # What Mitsuba 3.9.1 reads from this file; the position 9 9 9 is not used and left out.
    text = "v 9 9 9\n" + SQUARE + "vt 0 0\nvt 1 0\nvt .25 .75\nf 5/3 4/2 3/1\nf 2/1 3/1 4/2 5/3\n"
    mesh = load(tmp_path, text)
    assert mesh.faces.tolist() == [[0, 1, 2], [3, 2, 1], [3, 1, 0]]
    assert mesh.vertices.tolist() == [[0, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert mesh.texcoords is not None and mesh.texcoords.tolist() == [[0.25, 0.25], [1, 1], [0, 1], [0, 1]]
    plain = load(tmp_path, text, flip_tex_coords=False)
    assert plain.texcoords is not None and plain.texcoords.tolist() == [[0.25, 0.75], [1, 0], [0, 0], [0, 0]]


@pytest.mark.parametrize(
    "style", ["{0}", "{0}/{0}", "{0}//{0}", "{0}/{0}/{0}", "{0}/", "{0}/{0}/", "{0}//", "{0}/0/{0}"]
)
def test_styles_of_corners(tmp_path: Path, style: str) -> None:
    text = SQUARE + "vt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\n" + "vn 0 0 1\nvn 0 0 2\nvn 0 0 1\nvn 0 0 1\n"
    mesh = load(tmp_path, text + "f " + " ".join(style.format(i) for i in (1, 2, 3, 4)), flip_tex_coords=False)
    parts = [*style.split("/"), "", ""]
    assert corners(mesh) == [[[0, 0, 0], [1, 0, 0], [1, 1, 0]], [[0, 0, 0], [1, 1, 0], [0, 1, 0]]]
    assert (mesh.texcoords is not None) == (parts[1] == "{0}")
    assert (mesh.normals is not None) == (parts[2] == "{0}")
    if mesh.texcoords is not None:
        np.testing.assert_array_equal(mesh.texcoords, mesh.vertices[:, :2])
    if mesh.normals is not None:
        assert mesh.normals.tolist() == [[0, 0, 1]] * 4


def test_styles_may_be_mixed(tmp_path: Path) -> None:
    text = SQUARE + "vt 0.5 0.5\nvn 0 0 -1\nf 1/1/1 2//1 3/1/1\nf 1/1 3 4\n"
    with pytest.warns(UserWarning, match="3 of 6"):
        mesh = load(tmp_path, text, flip_tex_coords=False)
    assert mesh.faces.tolist() == [[0, 1, 2], [3, 4, 5]]
    half, none = [0.5, 0.5], [0, 0]
    assert mesh.texcoords is not None and mesh.texcoords.tolist() == [half, none, half, half, none, none]
    assert mesh.normals is not None and mesh.normals.tolist() == [[0, 0, -1]] * 3 + [[0, 0, 1]] * 3


def test_negative_indices_count_from_their_line(tmp_path: Path) -> None:
    text = SQUARE + "vt 0 0\nvt 1 0\nvt 1 1\nf -4/-3 -3/-2 -2/-1\nv 5 0 0\nv 6 0 0\nvt .5 .5\nf -2/-1 -1/-1 1/1\n"
    mesh = load(tmp_path, text, flip_tex_coords=False)
    assert corners(mesh) == [[[0, 0, 0], [1, 0, 0], [1, 1, 0]], [[5, 0, 0], [6, 0, 0], [0, 0, 0]]]
    assert mesh.texcoords is not None and mesh.texcoords[mesh.faces[1, 0]].tolist() == [0.5, 0.5]


def test_lines_may_continue_and_end_in_remarks(tmp_path: Path) -> None:
    text = "\ufeffv 0 0 0\r\nv 1 0 \\\r\n 0 # x\r\nv 1 1 0\n\tv 0 1 0 \nf 1 2 \\\n3 \\\n 4 # quad\nusemtl a\\b\n"
    assert len(load(tmp_path, text).faces) == 2
    with pytest.raises(FileFormatError, match=r"mesh\.obj:5: .*number 7"):
        load(tmp_path, "v 0 0 \\\n0\nv 1 0 0\nv 1 1 0\nf 1 2 7\n")


def test_extra_numbers_are_ignored(tmp_path: Path) -> None:
    text = "v 0 0 0 1\nv 1 0 0 .1 .2 .3\nv 1 1 0\nvt .5\nvt .5 .5 .5\nf 1/1 2/2 3/2\n"
    mesh = load(tmp_path, text, flip_tex_coords=False)
    assert corners(mesh) == [[[0, 0, 0], [1, 0, 0], [1, 1, 0]]]
    assert mesh.texcoords is not None and mesh.texcoords.tolist() == [[0.5, 0], [0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize("zero", ["0 0 0", "nan nan nan", "inf 0 0"])
def test_normals_without_direction_are_computed(tmp_path: Path, zero: str) -> None:
    with pytest.warns(UserWarning, match="mesh.obj: 1 of 3"):
        mesh = load(tmp_path, SQUARE + f"vn 0 1 0\nvn {zero}\nf 1//1 2//1 3//2\n")
    assert mesh.normals is not None and mesh.normals.tolist() == [[0, 1, 0], [0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("v 0 0 0\nv 1 x 0\nf 1 2 1\n", r"mesh\.obj:2: vertex position.*'x'"),
        ("v 0 0 0\nv 1 0\nf 1 2 1\n", r"mesh\.obj:2: .*needs 3 numbers.* has 2"),
        ("v 0 0 0\nv 1 nan 0\nf 1 2 1\n", r"mesh\.obj:2: .*not finite"),
        (SQUARE + "vt inf 0\nf 1/1 2/1 3/1\n", r"mesh\.obj:5: .*not finite"),
        (SQUARE + "f 1 2 5\n", r"mesh\.obj:5: .*number 5 of the vertices.*holds 4"),
        (SQUARE + "f 1 2 3\nf 1 2 -5\n", r"mesh\.obj:6: .*number -5"),
        (SQUARE + "f 1 2 0\n", r"mesh\.obj:5: .*number 0"),
        (SQUARE + "f 1/1 2/1 3/1\n", r"mesh\.obj:5: .*number 1 of the texture coordinates.*holds 0"),
        (SQUARE + "f 1//1 2//1 3//1\n", r"mesh\.obj:5: .*number 1 of the normals"),
        (SQUARE + "f 1 2 3\nf 1 2.5 3\n", r"mesh\.obj:6: .*'2\.5'"),
        (SQUARE + "f 1/1/1/1 2/1/1/1 3/1/1/1\n", r"mesh\.obj:5: .*'1/1/1/1'"),
        (SQUARE + "f /1 2/1 3/1\n", r"mesh\.obj:5: .*'/1'"),
        (SQUARE + "f 1 2 99999999999999999999999\n", r"mesh\.obj:5: "),
        (SQUARE + "f 1 2\n", r"mesh\.obj:5: .*at least 3 corners, this one has 2"),
        (SQUARE, r"mesh\.obj: the file holds no faces"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        load(tmp_path, text)


def test_missing_and_empty_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingFileError, match="meshes/none.obj"):
        read_obj("meshes/none.obj")
    with pytest.raises(FileFormatError, match="empty"):
        load(tmp_path, "")


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="vtnf 0123/-.\\\n#e", max_size=200))
def test_garbage_gives_no_other_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "garbage.obj"
    path.write_text(SQUARE + "f 1 2 3\n" + text)
    try:
        assert len(read_obj(path).faces) >= 1
    except LuxgradError as error:
        assert "garbage.obj" in str(error)


def test_large_files_load_fast(tmp_path: Path) -> None:
    n = 224
    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    grid = [f"{a / n:.6f} {b / n:.6f}" for a, b in zip(i.flat, j.flat, strict=True)]
    lines = [f"v {p} 0.5\nvt {p}\nvn 0 0 1" for p in grid]
    low = (i[:-1, :-1] * n + j[:-1, :-1] + 1).ravel()
    for a, b, c, d in zip(low, low + n, low + n + 1, low + 1, strict=True):
        lines.append(f"f {a}/{a}/{a} {b}/{b}/{b} {c}/{c}/{c}\nf {a}/{a}/{a} {c}/{c}/{c} {d}/{d}/{d}")
    (tmp_path / "big.obj").write_text("\n".join(lines))
    start = time.process_time()
    mesh = read_obj(tmp_path / "big.obj")
    assert len(mesh.faces) == 2 * (n - 1) ** 2 and len(mesh.vertices) == n * n
    # A quarter of this is usual; a reader that handles each corner by itself takes longer.
    assert time.process_time() - start < 3
