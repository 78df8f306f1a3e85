"""Textures against a plain NumPy definition, and gradients to texels and positions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import luxgrad as dr
import luxgrad.llvm.ad as t
from luxgrad import FilterMode, WrapMode
from luxgrad.llvm.ad import Array2f, Array3f, Bool, Float, TensorXf, Texture1f, Texture2f, Texture3f


def wrapped(i: np.ndarray, n: int, mode: WrapMode) -> np.ndarray:
    if mode == WrapMode.Repeat:
        return i % n
    if mode == WrapMode.Mirror:
        i = i % (2 * n)
        return np.where(i < n, i, 2 * n - 1 - i)
    return np.clip(i, 0, n - 1)


def reference(texels: np.ndarray, pos: np.ndarray, filter_mode: FilterMode, wrap_mode: WrapMode) -> np.ndarray:
    """Return (channels, lanes) by the definition; pos is (dimensions, lanes) in double precision."""
    sizes = texels.shape[:-1][::-1]
    if filter_mode == FilterMode.Nearest:
        index = [wrapped(np.floor(p * n).astype(int), n, wrap_mode) for p, n in zip(pos, sizes, strict=True)]
        return texels[tuple(index[::-1])].T
    total = np.zeros((texels.shape[-1], pos.shape[1]))
    scaled = [p * n - 0.5 for p, n in zip(pos, sizes, strict=True)]
    for corner in itertools.product((0, 1), repeat=len(sizes)):
        weight, index = np.ones(pos.shape[1]), []
        for s, c, n in zip(scaled, corner, sizes, strict=True):
            fraction = s - np.floor(s)
            weight = weight * (fraction if c else 1 - fraction)
            index.append(wrapped(np.floor(s).astype(int) + c, n, wrap_mode))
        total += weight * texels[tuple(index[::-1])].T
    return total


@pytest.mark.parametrize("filter_mode", list(FilterMode))
@pytest.mark.parametrize("wrap_mode", list(WrapMode))
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_values(dimensions: int, filter_mode: FilterMode, wrap_mode: WrapMode) -> None:
    rng = np.random.default_rng(dimensions)
    texels = rng.random((3, 4, 5)[-dimensions:] + (2,)).astype(np.float32)
    pos = rng.random((dimensions, 200)).astype(np.float32) * 4 - 1.5
    texture = getattr(t, f"Texture{dimensions}f")(TensorXf(texels), filter_mode=filter_mode, wrap_mode=wrap_mode)
    found = texture.eval(getattr(t, f"Array{dimensions}f")(pos))
    assert np.allclose(
        [c.numpy() for c in found], reference(texels, pos.astype(float), filter_mode, wrap_mode), atol=1e-5
    )
    assert texture.filter_mode() == filter_mode and texture.wrap_mode() == wrap_mode


def test_texel_centres_and_axes() -> None:
    image = np.arange(6, dtype=np.float32).reshape(2, 3, 1)  # two rows, three columns
    texture = Texture2f(TensorXf(image))
    x, y = dr.meshgrid(Float(1 / 6, 3 / 6, 5 / 6), Float(0.25, 0.75))
    assert np.allclose(texture.eval(Array2f(x, y))[0].numpy(), image.ravel(), atol=1e-6)
    assert np.allclose(texture.eval(Array2f(0.5, 0.5))[0].numpy(), 2.5)
    corners = [c[0][0] for c in texture.eval_fetch(Array2f(0.5, 0.5))]
    assert corners == [1, 2, 4, 5]


def test_masked_lanes_and_strange_positions_read_nothing_wild() -> None:
    texture = Texture1f(TensorXf([[1], [2], [4]]))
    assert list(texture.eval(Float(0.5, 0.5), Bool(True, False))[0]) == [2, 0]
    for mode in WrapMode:
        wild = Texture1f(TensorXf([[1], [2], [4]]), filter_mode=FilterMode.Nearest, wrap_mode=mode)
        values = wild.eval(Float(float("nan"), float("inf"), -1e30))[0]
        assert set(values) <= {1.0, 2.0, 4.0}


def test_construction_and_replacement() -> None:
    texture = Texture3f((2, 3, 4), 5)
    assert texture.shape == (2, 3, 4, 5) and texture.ndim == 3 and len(texture.value()) == 120
    assert [c[0] for c in texture.eval(Array3f(0.5))] == [0] * 5
    texture = Texture1f(2, 1)
    texture.set_value(Float(3, 5))
    assert list(texture.eval(Float(0.25, 0.75))[0]) == [3, 5] and texture.tensor().shape == (2, 1)
    texture.set_tensor(TensorXf([[1], [2], [3]]))
    assert texture.shape == (3, 1)
    with pytest.raises(ValueError, match=r"\(4, 4\)"):
        Texture2f(TensorXf(np.ones((4, 4))))
    with pytest.raises(TypeError, match="2 components"):
        Texture2f((2, 2), 1).eval(Array3f(0.5))
    with pytest.raises(RuntimeError, match="elements"):
        texture.set_value(Float(1))


def test_gradients() -> None:
    texels = t.TensorXf64(np.random.default_rng(0).random((3, 4, 2)))

    def f(value: t.Float64, x: t.Float64, y: t.Float64) -> t.Float64:
        texture = t.Texture2f64(t.TensorXf64(value, (3, 4, 2)), wrap_mode=WrapMode.Repeat)
        a, b = texture.eval(t.Array2f64(x, y))
        return a * b

    assert dr.check_grad(f, texels.array, t.Float64(0.3, 0.77), t.Float64(0.61, 0.12)).error < 1e-5


def test_precision_of_the_position_decides() -> None:
    texture = Texture1f(TensorXf([[0], [1]]))
    assert type(texture.eval(t.Float64(0.3))[0]) is t.Float64
