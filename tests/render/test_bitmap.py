"""Bitmaps: arrays in and out, conversion, resampling, layers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luxgrad.jit.errors import SceneError
from luxgrad.render.image.bitmap import Bitmap
from luxgrad.render.image.conversion import linear_to_srgb, srgb_to_linear
from luxgrad.render.image.pixel_format import Struct
from luxgrad.render.image.util import convert_to_bitmap, write_bitmap

PF = Bitmap.PixelFormat
T = Struct.Type
RNG = np.random.default_rng(7)


def ramp(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize(
    ("shape", "expected"), [((4, 5), PF.Y), ((4, 5, 1), PF.Y), ((4, 5, 2), PF.YA), ((4, 5, 3), PF.RGB),
                            ((4, 5, 4), PF.RGBA), ((4, 5, 7), PF.MultiChannel)]  # fmt: skip
)
def test_channels_decide_the_format(shape: tuple[int, ...], expected: Any) -> None:
    bitmap = Bitmap(np.zeros(shape, np.float32))
    assert bitmap.pixel_format() is expected
    assert bitmap.size() == (5, 4) and (bitmap.width(), bitmap.height()) == (5, 4)
    assert np.array(bitmap).shape == ((4, 5) if expected is PF.Y else shape)
    assert bitmap.array.shape == (*shape[:2], bitmap.channel_count())


@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "float16", "float32", "float64", ">f4", ">u2"])
def test_component_types_and_their_curve(kind: str) -> None:
    data = (RNG.random((3, 4, 3)) * 100).astype(kind)
    bitmap = Bitmap(data)
    assert bitmap.component_format() == np.dtype(kind).newbyteorder("=")
    assert bitmap.srgb_gamma() is (kind == "uint8")
    assert np.array_equal(bitmap, data)


def test_numpy_types_equal_mitsubas_names() -> None:
    assert Bitmap(np.zeros((2, 2), np.float32)).component_format() == T.Float32
    assert Bitmap(np.zeros((2, 2), np.float32)).component_format() != T.Float16


def test_arrays_of_any_strides() -> None:
    a = ramp(6, 4, 4)
    views = [a[::-1, ::-1], a[:, ::2], a[..., :3], a[..., 2::-1], a.transpose(1, 0, 2), np.asfortranarray(a)]
    planar = np.ascontiguousarray(a.transpose(2, 0, 1)).transpose(1, 2, 0)
    for view in [*views, planar, a[2:3, 1:2], np.broadcast_to(a[:1], a.shape)]:
        assert np.array_equal(Bitmap(view), view)


def test_the_array_is_copied() -> None:
    a = ramp(2, 2, 3)
    bitmap = Bitmap(a)
    copy = Bitmap(bitmap)
    a[...] = -1
    assert np.array_equal(bitmap, ramp(2, 2, 3))
    bitmap.clear()
    assert np.array_equal(copy, ramp(2, 2, 3)) and copy != bitmap


@pytest.mark.parametrize("bad", [np.zeros(4), np.zeros((2, 2, 2, 2)), np.zeros((0, 3)), np.zeros((2, 2), np.complex64),
                                 np.zeros((2, 2), bool), np.zeros((2, 2), np.int64), np.array([["a"]])])  # fmt: skip
def test_other_arrays_are_refused(bad: Any) -> None:
    with pytest.raises(SceneError):
        Bitmap(bad)


def test_wrong_channel_counts_are_refused() -> None:
    with pytest.raises(SceneError, match="rgb has 3 channels, the array has 4"):
        Bitmap(np.zeros((2, 2, 4)), pixel_format=PF.RGB)
    with pytest.raises(SceneError, match="2 channels"):
        Bitmap(np.zeros((2, 2, 5)), channel_names=["a", "b"])


def test_empty_bitmaps() -> None:
    bitmap = Bitmap(PF.RGB, T.Float16, (7, 5))
    assert bitmap.size() == (7, 5) and bitmap.component_format() == np.float16 and not bitmap.array.any()
    assert Bitmap(PF.MultiChannel, T.Float32, [2, 3], channel_count=6).channel_count() == 6


def test_bright_values_become_white() -> None:
    values = np.array([0, 0.5, 1, 2, 1e3, 1e4, 1e9, 1e38, np.inf, np.nan, -1, -np.inf], np.float32)
    bitmap = Bitmap(np.repeat(values[None, :, None], 3, axis=2))
    for target, top in ((T.UInt8, 255), (T.UInt16, 65535), (T.UInt32, 2**32 - 1)):
        out = np.array(bitmap.convert(PF.RGB, target, srgb_gamma=True))[0, :, 0].astype(np.int64)
        assert (out[2:9] == top).all() and (out[9:] == 0).all() and out[0] == 0
    assert np.array(bitmap.convert(None, T.UInt8, True))[0, 1, 0] == 188
    assert np.array(bitmap.convert(None, T.UInt8, False))[0, 1, 0] == 128


def test_srgb_curve() -> None:
    # Points of IEC 61966-2-1: 18 % grey, both sides of the knee, the ends.
    linear = np.array([0, 0.0031308, 0.18, 0.5, 1.0])
    encoded = np.array([0, 0.04045, 0.46135613, 0.73535698, 1.0])
    np.testing.assert_allclose(linear_to_srgb(linear), encoded, atol=2e-6)
    np.testing.assert_allclose(srgb_to_linear(encoded), linear, atol=2e-6)
    wide = np.linspace(-3, 3, 101)
    np.testing.assert_allclose(linear_to_srgb(srgb_to_linear(wide)), wide, atol=1e-7)


@pytest.mark.parametrize("through", [np.float32, np.float16, np.float64, np.uint16])
def test_bytes_survive_a_linear_form(through: Any) -> None:
    data = np.arange(256, dtype=np.uint8).reshape(16, 16, 1).repeat(3, axis=2)
    linear = Bitmap(data).convert(None, through, False if through != np.uint16 else None)
    assert np.array_equal(linear.convert(None, np.uint8, True), data)


def test_conversions_keep_what_is_not_named() -> None:
    bytes_ = Bitmap(np.full((2, 2, 3), 128, np.uint8))
    same = bytes_.convert(component_format=T.Float32)
    assert same.srgb_gamma() and np.array(same)[0, 0, 0] == np.float32(128 / 255)
    linear = bytes_.convert(component_format="float32", srgb_gamma=False)
    np.testing.assert_allclose(np.array(linear), 0.2158605, rtol=1e-5)


def test_opacity_is_linear() -> None:
    data = np.full((1, 1, 4), 0.25, np.float32)
    encoded = np.array(Bitmap(data).convert(srgb_gamma=True))[0, 0]
    assert encoded[3] == np.float32(0.25) and encoded[0] > 0.5
    names = ["a.R", "a.A", "b.R", "b.A", "x"]
    multi = np.array(Bitmap(np.full((1, 1, 5), 0.25, np.float32), channel_names=names).convert(srgb_gamma=True))[0, 0]
    assert (multi[[1, 3]] == 0.25).all() and (multi[[0, 2, 4]] > 0.5).all()


def test_colour_spaces() -> None:
    rgb = RNG.random((4, 4, 3))
    bitmap = Bitmap(rgb)
    np.testing.assert_allclose(np.array(bitmap.convert(PF.Y)), rgb @ [0.212671, 0.715160, 0.072169], rtol=1e-12)
    np.testing.assert_allclose(np.array(bitmap.convert(PF.XYZ).convert(PF.RGB)), rgb, atol=1e-12)
    np.testing.assert_allclose(np.array(bitmap.convert(PF.XYZ).convert(PF.Y)), np.array(bitmap.convert(PF.Y)))
    white = Bitmap(np.ones((1, 1, 1))).convert(PF.XYZA)
    np.testing.assert_allclose(np.array(white)[0, 0], [0.950456, 1.0, 1.088754, 1.0], atol=1e-6)
    assert np.array_equal(np.array(bitmap.convert(PF.RGBA))[..., 3], np.ones((4, 4)))
    assert bitmap.convert(PF.RGBA).convert(PF.RGB) == bitmap


def test_multichannel_needs_split() -> None:
    with pytest.raises(SceneError, match="split"):
        Bitmap(ramp(2, 2, 5)).convert(PF.RGB)


def test_half_precision_stays_finite() -> None:
    out = np.array(Bitmap(np.array([[1e6, -1e6, np.inf]], np.float32)).convert(component_format=T.Float16))
    assert out.tolist() == [[65504.0, -65504.0, np.inf]]


def test_split_takes_layers_apart() -> None:
    names = ["R", "G", "B", "albedo.R", "albedo.G", "albedo.B", "albedo.A", "depth.T", "a.b.Y"]
    bitmap = Bitmap(ramp(2, 3, 9), pixel_format=PF.MultiChannel, channel_names=names)
    layers = bitmap.split()
    assert [(n, b.pixel_format()) for n, b in layers] == [
        ("<root>", PF.RGB), ("albedo", PF.RGBA), ("depth", PF.MultiChannel), ("a.b", PF.Y)]  # fmt: skip
    assert np.array_equal(layers[1][1], ramp(2, 3, 9)[..., 3:7])
    assert [f.name for f in layers[2][1].struct_()] == ["T"]
    plain = Bitmap(ramp(2, 2, 3))
    assert plain.split() == [("<root>", plain)]


def test_resampling_keeps_constants_and_means() -> None:
    for name in ("box", "tent", "gaussian", "mitchell", "catmullrom", "lanczos"):
        constant = Bitmap(np.full((5, 7, 3), 0.3, np.float32)).resample((16, 3), name)
        assert constant.size() == (16, 3)
        np.testing.assert_allclose(np.array(constant), 0.3, rtol=1e-5)
    data = RNG.random((8, 12, 3))
    halved = np.array(Bitmap(data).resample((6, 4), "box"))
    np.testing.assert_allclose(halved, data.reshape(4, 2, 6, 2, 3).mean(axis=(1, 3)), rtol=1e-12)


def test_resampling_agrees_with_mitsuba() -> None:
    up = np.array(Bitmap(np.arange(4, dtype=np.float32).reshape(1, 4)).resample([8, 2]))
    expected = [-0.08388, 0.197547, 0.700846, 1.281427, 1.718573, 2.299154, 2.802453, 3.08388]
    np.testing.assert_allclose(up, [expected] * 2, atol=2e-6)
    down = np.array(Bitmap(np.eye(8, dtype=np.float32)).resample([4, 4]))
    np.testing.assert_allclose(down[0], [0.454029, 0.056544, -0.017471, 0.000743], atol=2e-6)


def test_resampling_bytes_works_in_linear_light() -> None:
    half = Bitmap(np.array([[0, 255]], np.uint8)).resample((1, 1), "box")
    assert half.component_format() == np.uint8 and np.array(half)[0, 0] == 188


def test_bad_resampling_is_refused() -> None:
    with pytest.raises(SceneError, match="mitchell"):
        Bitmap(ramp(2, 2)).resample((1, 1), "sinc")
    with pytest.raises(SceneError, match="0 x 2"):
        Bitmap(ramp(2, 2)).resample((0, 2))


def test_flip_accumulate_equality_and_text() -> None:
    bitmap = Bitmap(ramp(3, 2, 3))
    bitmap.vflip()
    assert np.array_equal(bitmap, ramp(3, 2, 3)[::-1])
    bitmap.accumulate(Bitmap(ramp(3, 2, 3)))
    assert np.array_equal(bitmap, ramp(3, 2, 3)[::-1] + ramp(3, 2, 3))
    with pytest.raises(SceneError):
        bitmap.accumulate(Bitmap(ramp(2, 2, 3)))
    other = Bitmap(bitmap)
    assert other == bitmap
    other.set_srgb_gamma(True)
    assert other != bitmap and other != 3
    nan = Bitmap(np.full((1, 1), np.nan))
    assert nan == Bitmap(nan)
    bitmap.metadata()["note"] = "x"
    assert "size = [2, 3]" in repr(bitmap) and "note => 'x'" in repr(bitmap)


def test_pictures_for_notebooks() -> None:
    png = Bitmap(np.full((2, 2), 0.5))._repr_png_()
    assert png is not None and png.startswith(b"\x89PNG")
    assert Bitmap(ramp(2, 2, 6))._repr_png_() is None


class Tensor:
    """An array of another library."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def numpy(self) -> Any:
        return self.array


def test_anything_array_like_becomes_a_bitmap() -> None:
    data = RNG.random((2, 3, 3)).astype(np.float32)
    for source in (data, data.tolist(), Tensor(data), Bitmap(data)):
        bitmap = convert_to_bitmap(source)
        assert bitmap.component_format() == np.uint8 and bitmap.srgb_gamma()
        assert abs(int(np.array(bitmap)[0, 0, 0]) - linear_to_srgb(data)[0, 0, 0] * 255) <= 0.51
        assert convert_to_bitmap(source, uint8_srgb=False).component_format().kind == "f"


def test_write_bitmap(tmp_path: Path) -> None:
    data = RNG.random((4, 5, 3)).astype(np.float32)
    write_bitmap(tmp_path / "a.png", Tensor(data))
    assert np.array_equal(Bitmap(tmp_path / "a.png"), convert_to_bitmap(data))
    write_bitmap(str(tmp_path / "a.exr"), data, quality=-1)
    assert np.array_equal(Bitmap(tmp_path / "a.exr"), data)
    write_bitmap(tmp_path / "b.exr", data, write_async=True)
    Bitmap(data).write_async(tmp_path / "c.exr").result(timeout=30)
    deadline = time.monotonic() + 30
    while not (tmp_path / "b.exr").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert Bitmap(tmp_path / "b.exr") == Bitmap(tmp_path / "c.exr") == Bitmap(data)
