"""PLY files: text and binary, polygons, attributes, damage; writing and reading back."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luxgrad.jit.errors import FileFormatError, LuxgradError, MissingFileError
from luxgrad.render.shapes.mesh_data import MeshData
from luxgrad.render.shapes.ply_reader import read_ply
from luxgrad.render.shapes.ply_writer import write_ply

FORMATS = ["ascii", "binary_little_endian", "binary_big_endian"]
CODES = {"float": "f", "double": "d", "uchar": "B", "char": "b", "int": "i", "uint": "I", "ushort": "H", "short": "h"}
PENTAGON = [(0, 0, 0), (2, 0, 0), (2, 1, 0), (0, 1, 0), (-1, 0.5, 0)]


def ply(form: str, elements: list[tuple[str, list[str], list[Any]]]) -> bytes:
    """Return a file; properties are "type name" or "list count_type type name", rows hold numbers and lists."""
    head = [f"ply\nformat {form} 1.0\ncomment by hand"]
    body: list[bytes] = []
    order = "<" if form == "binary_little_endian" else ">"
    for name, properties, rows in elements:
        head += [f"element {name} {len(rows)}", *(f"property {p}" for p in properties)]
        for row in rows:
            out: list[tuple[str, Any]] = []
            for p, value in zip(properties, row, strict=True):
                words = p.split()
                if words[0] == "list":
                    out += [(CODES[words[1]], len(value)), *((CODES[words[2]], v) for v in value)]
                else:
                    out.append((CODES[words[0]], value))
            if form == "ascii":
                body.append(" ".join(str(v) for _, v in out).encode() + b"\n")
            else:
                body.append(b"".join(struct.pack(order + code, v) for code, v in out))
    return "\n".join([*head, "end_header\n"]).encode() + b"".join(body)


def mesh_of(tmp_path: Path, data: bytes, **options: Any) -> MeshData:
    path = tmp_path / "mesh.ply"
    path.write_bytes(data)
    return read_ply(path, **options)


XYZ = ["float x", "float y", "float z"]
NORMAL = ["float nx", "float ny", "float nz"]
INDICES = ["list uchar int vertex_indices"]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", ["vertex_indices", "vertex_index"])
@pytest.mark.parametrize("polygons", [[(0, 1, 2), (0, 2, 3)], [(0, 1, 2, 3), (4, 0, 3, 2)], [(0, 1, 2, 3), (0, 3, 4)]])
def test_polygons(tmp_path: Path, form: str, name: str, polygons: list[tuple[int, ...]]) -> None:
    faces = [(p,) for p in polygons]
    mesh = mesh_of(tmp_path, ply(form, [("vertex", XYZ, PENTAGON), ("face", [f"list uchar int {name}"], faces)]))
    expected = [[p[0], p[k], p[k + 1]] for p in polygons for k in range(1, len(p) - 1)]
    assert mesh.faces.tolist() == expected
    np.testing.assert_array_equal(mesh.vertices, np.array(PENTAGON, np.float32))
    assert mesh.normals is None and mesh.texcoords is None and not mesh.attributes and mesh.name == "mesh"


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("names", [("u", "v"), ("s", "t"), ("texture_u", "texture_v")])
def test_vertex_data(tmp_path: Path, form: str, names: tuple[str, str]) -> None:
    properties = ["double x", "double y", "double z", *NORMAL, *(f"float {n}" for n in names)]
    rows = [(*p, 0, 0, 2, 0.25, 0.125) for p in PENTAGON]
    data = ply(form, [("vertex", properties, rows), ("face", INDICES, [((0, 1, 2),)])])
    mesh = mesh_of(tmp_path, data)
    assert mesh.normals is not None and mesh.normals.tolist() == [[0, 0, 1]] * 5
    assert mesh.texcoords is not None and mesh.texcoords.tolist() == [[0.25, 0.125]] * 5
    flipped = mesh_of(tmp_path, data, flip_tex_coords=True)
    assert flipped.texcoords is not None and flipped.texcoords.tolist() == [[0.25, 0.875]] * 5


@pytest.mark.parametrize("form", FORMATS)
def test_colours(tmp_path: Path, form: str) -> None:
    faces = ("face", INDICES, [((0, 1, 2),)])
    red = [f"uchar {n}" for n in ("red", "green", "blue", "alpha")]
    mesh = mesh_of(tmp_path, ply(form, [("vertex", XYZ + red, [(*p, 0, 128, 255, 7) for p in PENTAGON]), faces]))
    assert list(mesh.attributes) == ["vertex_color"]
    np.testing.assert_allclose(mesh.attributes["vertex_color"], [[0, 0.2158605, 1]] * 5, rtol=1e-5)
    short = [f"float {n}" for n in "rgb"]
    mesh = mesh_of(tmp_path, ply(form, [("vertex", XYZ + short, [(*p, 0.25, 3, -1) for p in PENTAGON]), faces]))
    np.testing.assert_array_equal(mesh.attributes["vertex_color"], [[0.25, 3, -1]] * 5)


@pytest.mark.parametrize("form", FORMATS)
def test_other_attributes(tmp_path: Path, form: str) -> None:
    vertex = [*XYZ, "float temp_0", "float quality", "float wind_x", "float wind_y", "float vertex_heat"]
    face = ["float mat_0", *INDICES, "list uchar float texcoord", "float r", "float g", "float b"]
    rows = [(*p, i, 2, 3, 4, 5) for i, p in enumerate(PENTAGON)]
    faces = [(1, (0, 1, 2, 3), (0.5, 0.5), 7, 8, 9), (2, (0, 3, 4), (), 4, 5, 6)]
    data = ply(form, [("vertex", vertex, rows), ("edge", ["int a", "int b"], [(0, 1)]), ("face", face, faces)])
    mesh = mesh_of(tmp_path, data)
    assert {name: a.shape for name, a in mesh.attributes.items()} == {
        "vertex_temp": (5, 1), "vertex_quality": (5, 1), "vertex_wind": (5, 2), "vertex_heat": (5, 1),
        "face_color": (3, 3), "face_mat": (3, 1)}  # fmt: skip
    assert mesh.attributes["vertex_temp"].ravel().tolist() == [0, 1, 2, 3, 4]
    assert mesh.attributes["face_mat"].ravel().tolist() == [1, 1, 2], "both triangles of the quad carry its value"
    assert mesh.attributes["face_color"].tolist() == [[7, 8, 9], [7, 8, 9], [4, 5, 6]]


def test_zero_normals_are_computed(tmp_path: Path) -> None:
    rows = [(*p, 0, 0, 0) for p in PENTAGON]
    data = ply("ascii", [("vertex", XYZ + NORMAL, rows), ("face", INDICES, [((0, 1, 2, 3, 4),)])])
    with pytest.warns(UserWarning, match="mesh.ply: 5 of 5"):
        mesh = mesh_of(tmp_path, data)
    assert mesh.normals is not None
    np.testing.assert_allclose(mesh.normals, [[0, 0, 1]] * 5, atol=1e-6)


@pytest.mark.parametrize("form", FORMATS)
def test_bad_contents_name_element_and_row(tmp_path: Path, form: str) -> None:
    nan = [*PENTAGON[:3], (0, float("nan"), 0), PENTAGON[4]]
    with pytest.raises(FileFormatError, match=r"mesh\.ply: element vertex, row 3"):
        mesh_of(tmp_path, ply(form, [("vertex", XYZ, nan), ("face", INDICES, [((0, 1, 2),)])]))
    for bad in (5, -1):
        faces = [((0, 1, 2),), ((0, bad, 2),)]
        with pytest.raises(FileFormatError, match=rf"mesh\.ply: element face, row 1 .*vertex {bad} of 5"):
            mesh_of(tmp_path, ply(form, [("vertex", XYZ, PENTAGON), ("face", INDICES, faces)]))
    with pytest.raises(FileFormatError, match=r"element face, row 1 .*only 2 corners"):
        mesh_of(tmp_path, ply(form, [("vertex", XYZ, PENTAGON), ("face", INDICES, [((0, 1, 2),), ((0, 1),)])]))
    with pytest.raises(FileFormatError, match="no faces"):
        mesh_of(tmp_path, ply(form, [("vertex", XYZ, PENTAGON)]))
    with pytest.raises(FileFormatError, match="no vertices"):
        flat = ("vertex", XYZ[:2], [p[:2] for p in PENTAGON])
        mesh_of(tmp_path, ply(form, [flat, ("face", INDICES, [((0, 1, 2),)])]))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("last", [(0, 3, 4), (0, 3, 4, 1)])
def test_truncated_files(tmp_path: Path, form: str, last: tuple[int, ...]) -> None:
    data = ply(form, [("vertex", XYZ, PENTAGON), ("face", INDICES, [((0, 1, 2),), (last,)])])
    body = data.index(b"end_header\n") + 11
    for cut in [*range(1, body, 17), *range(body, len(data) - 2, 3)]:
        with pytest.raises(FileFormatError, match=r"mesh\.ply"):
            mesh_of(tmp_path, data[:cut])
    with pytest.raises(FileFormatError, match=r"truncated"):
        mesh_of(tmp_path, data[: len(data) - 4])


@pytest.mark.parametrize("form", FORMATS)
def test_damaged_files_give_no_other_error(tmp_path: Path, form: str) -> None:
    rows, rng = [(*p, 1, 2, 3) for p in PENTAGON], np.random.default_rng(5)
    vertex = ("vertex", [*XYZ, "uchar red", "uchar green", "uchar blue"], rows)
    data = ply(form, [vertex, ("face", INDICES, [((0, 1, 2, 3),), ((0, 3, 4),)])])
    for _ in range(300):
        bent = bytearray(data)
        for position in rng.integers(0, len(data), 2):
            bent[position] = rng.integers(0, 256)
        try:
            mesh_of(tmp_path, bytes(bent))
        except LuxgradError as error:
            assert "mesh.ply" in str(error)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"obj\n", "not a PLY file"),
        (b"ply\nformat ascii 1.0\n", "does not end"),
        (b"ply\nelement vertex 1\nproperty float x\nend_header\n", "no format"),
        (b"ply\nformat ascii 1.0\nelement v 1\nproperty quad x\nend_header\n", r"mesh\.ply:4: .*'property quad x'"),
        (b"ply\nformat ascii 1.0\nproperty float x\nend_header\n", r"mesh\.ply:3: "),
        (b"ply\nformat ascii 1.0\nelement vertex -1\nend_header\n", r"mesh\.ply:3: "),
        (b"ply\nformat ebcdic 1.0\nend_header\n", r"mesh\.ply:2: "),
    ],
)
def test_bad_headers(tmp_path: Path, header: bytes, message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        mesh_of(tmp_path, header)


def test_text_that_is_no_number(tmp_path: Path) -> None:
    data = ply("ascii", [("vertex", XYZ, PENTAGON), ("face", INDICES, [((0, 1, 2),)])])
    with pytest.raises(FileFormatError, match=r"element vertex, property y, row 2.*'one'"):
        mesh_of(tmp_path, data.replace(b"2 1 0", b"2 one 0"))
    with pytest.raises(FileFormatError, match=r"property vertex_indices: a number does not fit"):
        mesh_of(tmp_path, data.replace(b"3 0 1 2", b"3 0 1.5 2"))
    with pytest.raises(FileFormatError, match=r"element face: a list size.*'x'"):
        mesh_of(tmp_path, data.replace(b"3 0 1 2", b"x 0 1 2"))


def test_round_trip(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    normals = rng.normal(size=(9, 3))
    mesh = MeshData(
        "thing", rng.random((9, 3), np.float32), rng.integers(0, 9, (7, 3)).astype(np.uint32),
        (normals / np.linalg.norm(normals, axis=1, keepdims=True)).astype(np.float32), rng.random((9, 2), np.float32),
        {"vertex_color": rng.random((9, 3), np.float32), "face_id": rng.random((7, 1), np.float32),
         "vertex_a_b": rng.random((9, 2), np.float32)},
    )  # fmt: skip
    write_ply(tmp_path / "thing.ply", mesh)
    again = read_ply(tmp_path / "thing.ply")
    assert again.name == "thing" and set(again.attributes) == set(mesh.attributes)
    pairs = [(getattr(again, n), getattr(mesh, n)) for n in ("vertices", "faces", "texcoords")]
    for a, b in [*pairs, *((again.attributes[n], mesh.attributes[n]) for n in mesh.attributes)]:
        np.testing.assert_array_equal(a, b)
    assert again.normals is not None and mesh.normals is not None
    np.testing.assert_allclose(again.normals, mesh.normals, atol=1e-6)
    with pytest.raises(MissingFileError, match="folder"):
        write_ply(tmp_path / "none" / "a.ply", mesh)
    with pytest.raises(MissingFileError, match="none.ply"):
        read_ply(tmp_path / "none.ply")
