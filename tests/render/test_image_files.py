"""Image files: round trips, foreign files, damaged files."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import OpenEXR
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from luxgrad.jit.errors import FileFormatError, LuxgradError, MissingFileError, SceneError
from luxgrad.render.image import rgbe
from luxgrad.render.image.bitmap import Bitmap
from luxgrad.render.image.files import EXTENSIONS
from luxgrad.render.image.pixel_format import PixelFormat, Pixels

RNG = np.random.default_rng(11)
PF = Bitmap.PixelFormat


def noise(channels: int, kind: str, shape: tuple[int, int] = (13, 17)) -> Any:
    values = RNG.random((*shape, channels))
    return (values * (np.iinfo(kind).max if kind.startswith("u") else 1)).astype(kind)


@pytest.mark.parametrize(
    ("name", "channels", "kind"),
    [("exr", c, k) for c in (1, 3, 4, 6) for k in ("float16", "float32")]
    + [("png", c, k) for c in (1, 2, 3, 4) for k in ("uint8", "uint16")]
    + [("pfm", c, "float32") for c in (1, 3)]
    + [("ppm", c, k) for c in (1, 3) for k in ("uint8", "uint16")]
    + [("bmp", c, "uint8") for c in (1, 3)]
    + [("tga", c, "uint8") for c in (1, 3, 4)],
)
def test_lossless_round_trips(tmp_path: Path, name: str, channels: int, kind: str) -> None:
    bitmap = Bitmap(noise(channels, kind))
    bitmap.set_srgb_gamma(kind.startswith("u"))
    path = tmp_path / f"picture.{name}"
    bitmap.write(path)
    again = Bitmap(path)
    assert np.array_equal(again, bitmap) and again.component_format() == bitmap.component_format()
    assert again.pixel_format() is bitmap.pixel_format() and again.srgb_gamma() == bitmap.srgb_gamma()
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("width", [1, 7, 8, 9, 200, 1000])
def test_rgbe_round_trip(tmp_path: Path, width: int) -> None:
    data = (RNG.random((3, width, 3)) * 10.0 ** RNG.integers(-6, 7, (3, width, 1))).astype(np.float32)
    data[1, :] = 0.25
    data[2, width // 2 :] = 0
    Bitmap(data).write(tmp_path / "a.hdr")
    once = Bitmap(tmp_path / "a.hdr")
    # Eight bits relative to the largest channel of the pixel.
    assert (np.abs(np.array(once) - data) <= data.max(axis=2, keepdims=True) / 255).all()
    once.write(tmp_path / "b.rgbe")
    assert np.array_equal(Bitmap(tmp_path / "b.rgbe"), once)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 255), st.integers(1, 300)), min_size=1, max_size=12))
def test_rgbe_runs_unpack_to_what_was_packed(runs: list[tuple[int, int]]) -> None:
    line = np.concatenate([np.full(count, value, np.uint8) for value, count in runs])
    packed = rgbe._pack(line)
    unpacked, end = rgbe._unpack(packed, 0, line.size, "here")
    assert bytes(unpacked) == line.tobytes() and end == len(packed)


def test_rgbe_extremes() -> None:
    data = np.array([[[1e-45, 0, 0], [np.nan, np.inf, -1], [3e38, 1, 1], [0.999, 0.5, 0], [1, 2, 3]]], np.float32)
    out = rgbe.read_rgbe(rgbe.write_rgbe(Pixels(data, PixelFormat.RGB, False)), "x").array
    assert np.isfinite(out).all() and (out[0, 0] == 0).all() and out[0, 1, 0] == 0 and out[0, 1, 1] > 1e38
    assert out[0, 3, 0] == 1.0 and out[0, 4].tolist() == [1, 2, 3]


def test_rgbe_orientations_and_header() -> None:
    body = bytes([10, 20, 30, 129, 40, 50, 60, 129])
    head = b"#?RADIANCE\n# remark\nEXPOSURE=2\nFORMAT=32-bit_rle_rgbe\n\n"
    upright = rgbe.read_rgbe(head + b"-Y 2 +X 1\n" + body, "x")
    flipped = rgbe.read_rgbe(head + b"+Y 2 +X 1\n" + body, "x")
    assert upright.array[:, 0, 0].tolist() == [10 / 128, 40 / 128] and upright.metadata == {"EXPOSURE": "2"}
    assert np.array_equal(flipped.array, upright.array[::-1])


def test_jpeg_is_close(tmp_path: Path) -> None:
    x = np.linspace(0, 1, 64, dtype=np.float32)
    data = np.stack([x[None, :].repeat(48, 0), x[:48, None].repeat(64, 1), np.full((48, 64), 0.5, np.float32)], axis=2)
    Bitmap(data).write(tmp_path / "a.jpg")
    want = np.array(Bitmap(data).convert(None, np.uint8, True)).astype(int)
    assert np.abs(np.array(Bitmap(tmp_path / "a.jpg")).astype(int) - want).max() <= 3
    Bitmap(data).write(tmp_path / "b.jpeg", quality=20)
    assert (tmp_path / "b.jpeg").stat().st_size < (tmp_path / "a.jpg").stat().st_size
    Bitmap(np.ones((4, 4, 4), np.float32)).write(tmp_path / "c.jpg")
    assert Bitmap(tmp_path / "c.jpg").pixel_format() is PF.RGB


def test_floats_are_encoded_for_screens_and_bytes_decoded_for_exr(tmp_path: Path) -> None:
    Bitmap(np.full((2, 2, 3), 0.5, np.float32)).write(tmp_path / "a.png")
    assert (np.array(Bitmap(tmp_path / "a.png")) == 188).all()
    Bitmap(np.full((2, 2, 3), 188, np.uint8)).write(tmp_path / "a.exr")
    assert Bitmap(tmp_path / "a.exr").component_format() == np.float16
    np.testing.assert_allclose(np.array(Bitmap(tmp_path / "a.exr")).astype(float), 0.5, atol=4e-3)
    normals = Bitmap(np.full((2, 2, 3), 128, np.uint8))
    normals.set_srgb_gamma(False)
    normals.write(tmp_path / "n.png")
    assert (np.array(Bitmap(tmp_path / "n.png")) == 128).all(), "data in bytes must not go through the curve"
    Bitmap(np.ones((2, 2, 3))).convert(PF.XYZ).write(tmp_path / "x.png")
    assert (np.array(Bitmap(tmp_path / "x.png")) >= 254).all()


def test_exr_layers_and_metadata(tmp_path: Path) -> None:
    names = ["R", "G", "B", "A", "nn.X", "nn.Y", "nn.Z", "albedo.R", "albedo.G", "albedo.B", "depth.T"]
    bitmap = Bitmap(noise(len(names), "float32"), pixel_format=PF.MultiChannel, channel_names=names)
    bitmap.metadata().update(note="a remark", spp=16)
    bitmap.write(tmp_path / "m.exr")
    again = Bitmap(tmp_path / "m.exr")
    layers = dict(again.split())
    for name, original in bitmap.split():
        assert np.array_equal(layers[name], original) and layers[name].pixel_format() is original.pixel_format()
    assert again.metadata()["note"] == "a remark" and again.metadata()["spp"] == 16
    again.write(tmp_path / "again.exr")
    assert Bitmap(tmp_path / "again.exr") == again


def test_foreign_exr_files(tmp_path: Path) -> None:
    path = str(tmp_path / "mixed.exr")
    colour, index = noise(1, "float16")[..., 0], np.arange(13 * 17, dtype=np.uint32).reshape(13, 17)
    OpenEXR.File({"compression": OpenEXR.PIZ_COMPRESSION}, {"R": colour, "id": index}).write(path)
    mixed = Bitmap(path)
    assert mixed.component_format() == np.float32 and {f.name for f in mixed.struct_()} == {"R", "id"}
    assert np.array_equal(mixed.array[..., [f.name for f in mixed.struct_()].index("id")], index)
    parts = [OpenEXR.Part({}, {"Y": colour}, "first"), OpenEXR.Part({}, {"Z": colour * 2}, "second")]
    OpenEXR.File(parts).write(path)
    both = dict(Bitmap(path).split())
    assert np.array_equal(both["<root>"], colour) and np.array_equal(both["second"], colour * 2)
    Bitmap(noise(3, "float32", (64, 64))).write(path, quality=45)
    assert Bitmap(path).size() == (64, 64)


def png(array: Any, colour_type: int, filters: list[int]) -> bytes:
    """Return a 16-bit PNG written by the book, line y with filter `filters[y % len]`."""
    height, width, channels = array.shape
    lines = array.astype(">u2").reshape(height, -1).view(np.uint8).astype(int)
    step, body, above = 2 * channels, b"", np.zeros(lines.shape[1], int)
    for y, line in enumerate(lines):
        left = np.concatenate([np.zeros(step, int), line[:-step]])
        corner = np.concatenate([np.zeros(step, int), above[:-step]])
        guess = left + above - corner
        a, b, c = abs(guess - left), abs(guess - above), abs(guess - corner)
        paeth = np.where((a <= b) & (a <= c), left, np.where(b <= c, above, corner))
        kind = filters[y % len(filters)]
        prediction = [np.zeros_like(line), left, above, (left + above) // 2, paeth][kind]
        body += bytes([kind]) + ((line - prediction) % 256).astype(np.uint8).tobytes()
        above = line

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 16, colour_type, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("channels", "colour_type"), [(1, 0), (2, 4), (3, 2), (4, 6)])
def test_deep_pngs_of_others(tmp_path: Path, channels: int, colour_type: int) -> None:
    data = noise(channels, "uint16")
    (tmp_path / "a.png").write_bytes(png(data, colour_type, [0, 1, 2, 3, 4]))
    assert np.array_equal(Bitmap(tmp_path / "a.png").array, data)


def test_palettes_masks_and_rare_modes(tmp_path: Path) -> None:
    colours = Image.fromarray(noise(3, "uint8"))
    colours.quantize(8).save(tmp_path / "p.png")
    assert Bitmap(tmp_path / "p.png").pixel_format() is PF.RGB
    Image.fromarray(noise(1, "uint8")[..., 0] > 128).save(tmp_path / "1.png")
    assert set(np.unique(Bitmap(tmp_path / "1.png"))) == {0, 255}
    colours.convert("CMYK").save(tmp_path / "c.jpg")
    assert Bitmap(tmp_path / "c.jpg").pixel_format() is PF.RGB
    colours.save(tmp_path / "t.png", transparency=(1, 2, 3))
    assert Bitmap(tmp_path / "t.png").pixel_format() is PF.RGBA


def test_png_text_is_metadata(tmp_path: Path) -> None:
    for kind in ("uint8", "uint16"):
        bitmap = Bitmap(noise(3, kind))
        bitmap.metadata()["Author"] = "N. N."
        bitmap.write(tmp_path / "a.png")
        assert Bitmap(tmp_path / "a.png").metadata()["Author"] == "N. N."


def test_portable_maps_of_others(tmp_path: Path) -> None:
    path = tmp_path / "a.ppm"
    path.write_bytes(b"P3 # text\n2 1\n# more\n15\n15 0 3  0 15 5\n")
    assert np.array(Bitmap(path)).tolist() == [[[255, 0, 51], [0, 255, 85]]]
    path.write_bytes(b"P5\n2 2\n255\n" + bytes([1, 2, 3, 4]))
    assert np.array(Bitmap(path)).tolist() == [[1, 2], [3, 4]]
    (tmp_path / "big.pfm").write_bytes(b"Pf\n1 2\n2.0\n" + struct.pack(">2f", 1.5, 2.5))
    assert np.array(Bitmap(tmp_path / "big.pfm")).tolist() == [[5.0], [3.0]]


def test_contents_decide_before_the_extension(tmp_path: Path) -> None:
    data = noise(3, "uint8")
    Image.fromarray(data).save(tmp_path / "really.png")
    (tmp_path / "really.png").rename(tmp_path / "wrong.jpg")
    assert np.array_equal(Bitmap(tmp_path / "wrong.jpg"), data)


def test_missing_files_are_named_as_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingFileError, match=r"textures/none\.png") as caught:
        Bitmap("textures/none.png")
    assert isinstance(caught.value, FileNotFoundError) and str(tmp_path) in str(caught.value)
    with pytest.raises(MissingFileError, match="folder"):
        Bitmap(np.zeros((2, 2))).write("nowhere/a.png")
    with pytest.raises(FileFormatError, match="folder"):
        Bitmap(tmp_path)


def test_unknown_extensions_list_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"\.webm .*\.exr .*\.tga"):
        Bitmap(np.zeros((2, 2))).write(tmp_path / "a.webm")
    (tmp_path / "a.webm").write_bytes(b"abc")
    with pytest.raises(FileFormatError, match=r"a\.webm.*\.exr"):
        Bitmap(tmp_path / "a.webm")


def test_layers_go_only_into_exr(tmp_path: Path) -> None:
    with pytest.raises(SceneError, match="split"):
        Bitmap(np.zeros((2, 2, 6))).write(tmp_path / "a.png")


@pytest.mark.parametrize("extension", sorted(EXTENSIONS))
def test_damaged_files_give_one_error_with_the_path(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"cut{extension}"
    Bitmap(noise(3, "float32")).write(path)
    whole = path.read_bytes()
    for keep in (0, 3, 20, len(whole) // 2, len(whole) - 40):
        path.write_bytes(whole[:keep])
        with pytest.raises(FileFormatError, match="cut"):
            Bitmap(path)


@pytest.mark.parametrize("extension", sorted(set(EXTENSIONS) - {".exr"}))
def test_flipped_bytes_never_raise_anything_else(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"bent{extension}"
    Bitmap(noise(3, "float32")).write(path)
    whole = path.read_bytes()
    for _ in range(40):
        bent = bytearray(whole)
        for position in RNG.integers(0, len(whole), 3):
            bent[position] = RNG.integers(0, 256)
        path.write_bytes(bent)
        try:
            Bitmap(path)
        except LuxgradError as error:
            assert "bent" in str(error)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.png"
    Bitmap(np.zeros((2, 2, 3), np.uint8)).write(path)
    before = path.read_bytes()

    def full(self: Path, data: bytes) -> int:
        self.touch()
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="no space"):
        Bitmap(np.ones((2, 2, 3), np.uint8)).write(path)
    monkeypatch.undo()
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1
