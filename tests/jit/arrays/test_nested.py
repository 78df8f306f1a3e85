"""Nested arrays: components, broadcasting, swizzles, masks, NumPy."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import luxgrad as dr
import luxgrad.scalar as scalar
from luxgrad.llvm.ad import Array2f, Array3f, Array3f64, Array3i, Array33f, Bool, Float, Float64, Int


def test_construction_broadcasts_or_sets_components() -> None:
    assert Array3f(Float(1, 2, 3)).shape == (3, 3)
    assert Array3f([1, 2, 3]).shape == (3, 1)
    assert np.array_equal(Array3f(1, Float(2, 3), 4).numpy(), [[1, 1], [2, 3], [4, 4]])
    assert np.array_equal(Array3f(np.arange(6).reshape(3, 2)).numpy(), np.arange(6).reshape(3, 2))
    with pytest.raises(TypeError, match=r"\(3, N\).*\(2, 3\)"):
        Array3f(np.zeros((2, 3)))
    with pytest.raises(TypeError, match="expected 3 components"):
        Array3f(1, 2)


def test_operators_act_on_components() -> None:
    a, b = Array3f(1, 2, 3), Array3f(4, 5, 6)
    assert np.allclose((a * b + 1).numpy()[:, 0], [5, 11, 19])
    assert np.allclose((2 - a).numpy()[:, 0], [1, 0, -1])
    assert type(a + Float64(1)) is Array3f64 and type(a + Array3i(1)) is Array3f
    assert type(a < b).__name__ == "Array3b" and dr.all(a < b)[0]
    with pytest.raises(RuntimeError, match="Incompatible arguments"):
        a + Array2f(1, 2)


def test_flat_operands_reach_every_row_of_deeper_arrays() -> None:
    m = Array33f(1)
    assert (m * Float(1, 2)).shape == (3, 3, 2)
    assert np.array_equal((m + Array3f(1, 2, 3)).numpy()[..., 0], 1 + np.tile([[1, 2, 3]], (3, 1)))


def test_components_by_name_are_live_and_swizzles_are_copies() -> None:
    v = Array3f(1, 2, 3)
    v.x = 7
    v.y += 1
    assert np.allclose(v.numpy()[:, 0], [7, 3, 3])
    w = v.zx
    assert type(w) is Array2f
    w.x += 1
    assert v.z[0] == 3 and w.x[0] == 4
    with pytest.raises(AttributeError):
        v.w  # noqa: B018


def test_masks_of_elements_and_components() -> None:
    v = Array3f(Float(1, 2), Float(3, 4), 5)
    v[Bool(True, False)] = 0
    assert np.array_equal(v.numpy(), [[0, 2], [0, 4], [0, 5]])
    v[v > 3] += 10
    assert np.array_equal(v.numpy(), [[0, 2], [0, 14], [0, 15]])
    v.x[v.x > 1] = -1
    assert list(v.x) == [0, -1]


def test_in_place_and_copies() -> None:
    v = Array3f(1)
    w, c = v, copy.copy(v)
    v += 1
    assert w is v and c.x[0] == 1 and v.x[0] == 2


def test_text_has_one_row_per_element() -> None:
    assert repr(Array2f(Float(1, 2), Float(3, 4))) == "[[1, 3],\n [2, 4]]"


def test_scalar_vectors_hold_python_numbers() -> None:
    v = scalar.Array3f(1, 2, 3) * 2
    assert list(v) == [2, 4, 6] and type(v.x) is float
    assert type(v + Float(1)).__name__ == "Array3f" and (v + Float(1, 2)).shape == (3, 2)
    assert dr.dot(v, v) == 56.0


def test_integer_components() -> None:
    assert np.array_equal((Array3i(7, -7, 9) // 2).numpy()[:, 0], [3, -3, 4])
    assert type(Array3i(1) * 1.5) is Array3f and Array3i(Int(1, 2)).shape == (3, 2)
