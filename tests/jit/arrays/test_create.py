"""New arrays: sizes and values that cannot be are refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import luxgrad as dr
from luxgrad.llvm.ad import Array3f, Bool, Float, Int, Matrix3f, TensorXf, TensorXu, UInt, UInt8

SIZED: list[Callable[[Any, Any], Any]] = [
    dr.zeros,
    dr.ones,
    dr.empty,
    lambda kind, n: dr.full(kind, 2, n),
    lambda kind, n: dr.opaque(kind, 2, n),
]


@pytest.mark.parametrize("make", [*SIZED, lambda kind, n: dr.linspace(kind, 0, 1, n)])
def test_sizes(make: Callable[[Any, Any], Any]) -> None:
    for value in (2.5, "3", None, float("nan"), 1j, Float(2)):
        with pytest.raises(TypeError, match="the size of an array must be an int, found .* of type"):
            make(Float, value)
    with pytest.raises(ValueError, match="an array cannot have -1 elements"):
        make(Float, -1)
    for size in (1 << 32, 1 << 40):
        with pytest.raises(ValueError, match=rf"cannot have {size} elements: indices have 32 bits, .* 4294967295"):
            make(Float, size)
    for good in (3, np.int64(3), UInt(3)):
        assert len(make(Float, good)) == 3


@pytest.mark.parametrize("make", SIZED)
def test_shapes(make: Callable[[Any, Any], Any]) -> None:
    assert make(Array3f, (3, 2)).shape == (3, 2) and make(TensorXf, (2, 0)).shape == (2, 0)
    assert make(Matrix3f, (3, 3, 4)).shape == (3, 3, 4) and make(TensorXf, ()).shape == ()
    for shape in [(2, 4), (3, 2, 2)]:
        with pytest.raises(TypeError, match=r"Array3f has the shape \(3, 'N'\), asked for \(\d, "):
            make(Array3f, shape)
    with pytest.raises(ValueError, match="cannot have -4 elements"):
        make(TensorXf, (-4, -3))
    with pytest.raises(ValueError, match="1099511627776 elements"):
        make(TensorXf, (1 << 20, 1 << 20))
    with pytest.raises(TypeError, match="a flat array needs one size"):
        make(Float, (2, 3))


def test_the_greatest_size_exists() -> None:
    assert len(dr.zeros(Float, 2**32 - 1)) == 2**32 - 1 and dr.zeros(UInt, 2**32 - 1)[2**32 - 2] == 0


def test_values() -> None:
    for value in ("a", None, [1, 2], Float(1, 2), 1j, b"1"):
        with pytest.raises(TypeError, match="the elements of Float need a number for their value"):
            dr.full(Float, value, 2)
    with pytest.raises(OverflowError, match="-1 does not fit into UInt32"):
        dr.full(UInt, -1, 2)
    with pytest.raises(ValueError, match="nan does not fit into Int32"):
        dr.full(Int, float("nan"), 2)
    with pytest.raises(TypeError, match="the value is missing"):
        dr.opaque(Float)
    with pytest.raises(TypeError, match="Array3f has 3 components, found 2 values"):
        dr.full(Array3f, [1, 2], 2)
    assert dr.full(Array3f, [1, 2, 3], 2).numpy().tolist() == [[1, 1], [2, 2], [3, 3]]
    assert list(dr.full(Float, Float(7), 2)) == [7, 7] and list(dr.full(Float, np.float64(7), 1)) == [7]
    assert list(dr.full(Bool, 2, 1)) == [True] and list(dr.full(UInt, 2.5, 1)) == [2]


@pytest.mark.parametrize("wrong", ["a", np.ones(3), str, object()])
def test_the_like_of_what_is_no_array(wrong: Any) -> None:
    for make in (dr.zeros_like, dr.ones_like, dr.empty_like):
        with pytest.raises(TypeError, match="neither an array nor a PyTree of arrays"):
            make(wrong)


def test_arange_counts_as_range_does() -> None:
    for arguments in [(5,), (2, 5), (5, 0, -2), (0, 10, 3), (10, 0, -1), (-3,), (4, 4), (7, 2)]:
        wanted = list(range(*arguments))
        assert list(dr.arange(Int, *arguments)) == wanted and list(dr.arange(Float, *arguments)) == wanted
        assert list(dr.arange(UInt, *arguments)) == wanted and list(dr.arange(TensorXu, *arguments).array) == wanted
    assert list(dr.arange(Float, 0, 1, 0.25)) == [0, 0.25, 0.5, 0.75] and list(dr.arange(UInt, UInt(3))) == [0, 1, 2]
    assert list(dr.arange(UInt8, 250, 256)) == list(range(250, 256)) and list(dr.arange(Int, size=2)) == [0, 1]


_ARANGE: list[tuple[Any, tuple[Any, ...], type[Exception], str]] = [
    (Float, (0, 10, 0), ValueError, "step must not be 0"),
    (Float, (), TypeError, "where to stop is missing"),
    (Float, ("3",), TypeError, "stop must be a number, found '3'"),
    (Float, (float("inf"),), ValueError, "stop must be finite"),
    (Float, (0, 1, float("nan")), ValueError, "step must be finite"),
    (Float, (0, 3, 1e-12), ValueError, "3000000000001 elements"),
    (Float, (2**40,), ValueError, "limit is"),
    (UInt, (0, 10, 2.5), TypeError, "UInt counts in whole numbers, found start 0 and step 2.5"),
    (UInt, (-3, 3), OverflowError, "-3 does not fit into UInt32"),
    (UInt8, (300,), OverflowError, "299 does not fit into UInt8"),
    (Array3f, (3,), TypeError, "a flat array or tensor type is needed, found 'Array3f'"),
    (int, (3,), TypeError, "a flat array or tensor type is needed, found 'int'"),
]


@pytest.mark.parametrize(("kind", "arguments", "error", "message"), _ARANGE)
def test_impossible_ranges(kind: Any, arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        dr.arange(kind, *arguments)


def test_impossible_linspaces() -> None:
    with pytest.raises(TypeError, match="stop must be a number, found 'a'"):
        dr.linspace(Float, 0, "a", 3)
    with pytest.raises(ValueError, match="start must be finite"):
        dr.linspace(Float, float("-inf"), 0, 3)
    for kind in (int, Array3f, 3):
        with pytest.raises(TypeError, match="a flat array or tensor type is needed"):
            dr.linspace(kind, 0, 1, 3)
    with pytest.raises(TypeError, match="floating-point type is needed, found UInt"):
        dr.linspace(UInt, 0, 1, 3)


def test_hypot_of_infinities() -> None:
    inf, nan = float("inf"), float("nan")
    x, y = Float(nan, inf, inf, -inf, nan, 3e30, 0), Float(inf, nan, inf, 2, 1, 4e30, 0)
    wanted = [inf, inf, inf, inf, nan, 5e30, 0]
    assert np.allclose(dr.hypot(x, y).numpy(), wanted, rtol=1e-6, equal_nan=True)
    assert dr.hypot(nan, inf) == inf and dr.hypot(3, 4) == 5 and np.isnan(dr.hypot(nan, 1.0))
    z = Float(3, inf)
    dr.enable_grad(z)
    dr.backward(dr.hypot(z, Float(4, 1)))
    assert dr.grad(z)[0] == pytest.approx(0.6)
