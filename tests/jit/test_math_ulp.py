"""Errors of elementary functions stay below the bounds their rows state, over all exponents and signs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luxgrad.jit.arrays.base import apply
from luxgrad.jit.arrays.namespace import namespace
from luxgrad.jit.dtypes import DType, Float16, Float32, Float64
from luxgrad.jit.ops.row import ROWS, Row
from luxgrad.jit.precision import bit_patterns, exact_values, ulp_error

NS = namespace("llvm", False)
FUNCTIONS = [r for r in ROWS.values() if r.ulp and r.kinds == "f"]
pytestmark = pytest.mark.cpu
COUNT = 60000


def worst(row: Row, dtype: DType, args: list[np.ndarray[Any, Any]]) -> tuple[float, str]:
    """Return the greatest error and where it is."""
    result = apply(row, tuple(NS.flat(dtype)(a) for a in args)).numpy()
    error = ulp_error(result, exact_values(row, dtype, *args), dtype)
    k = int(np.argmax(error))
    return float(error[k]), f"{row.name}({', '.join(repr(a[k]) for a in args)}) = {result[k]!r}"


@pytest.mark.parametrize("dtype", [Float32, Float64], ids=["f32", "f64"])
@pytest.mark.parametrize("row", FUNCTIONS, ids=[r.name for r in FUNCTIONS])
def test_all_bit_patterns(row: Row, dtype: DType) -> None:
    """Random bit patterns: every size of number, NaN and infinities."""
    error, where = worst(row, dtype, [bit_patterns(dtype, COUNT, k) for k in range(row.arity)])
    assert error <= row.ulp, where


@pytest.mark.parametrize("dtype", [Float16, Float32, Float64], ids=["f16", "f32", "f64"])
@pytest.mark.parametrize("row", FUNCTIONS, ids=[r.name for r in FUNCTIONS])
def test_usual_range(row: Row, dtype: DType) -> None:
    """Uniform samples of the row's intervals."""
    generator = np.random.default_rng(5)
    args = [generator.uniform(low, high, COUNT).astype(dtype.numpy) for low, high in row.domain]
    error, where = worst(row, dtype, args)
    assert error <= row.ulp, where


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_close_to_multiples_of_half_pi(name: str) -> None:
    """The hardest arguments: huge numbers next to a zero of the function, found by continued fractions."""
    row = ROWS[name]
    double = np.array([6381956970095103.0 * 2.0**797, 5.319372648326541e255, 3.0e22, 2.0**1023, 1.0e300, -1.0e16])
    # Exact values: NumPy's extended precision reduces by the full pi.
    error, where = worst(row, Float64, [double])
    assert error <= row.ulp, where
    single = np.array([1.6367e7, 13176795.0, 16367173 * 2.0**72, 1.0e10, 3.4e38, -2.0**100]).astype(np.float32)
    error, where = worst(row, Float32, [single])
    assert error <= row.ulp, where


def test_sine_stays_within_one() -> None:
    """sqrt(1 - sin^2) is a number everywhere."""
    x = np.concatenate([np.linspace(-7, 7, 100001), np.arange(-999, 999) * np.pi / 2]).astype(np.float32)
    for name in ("sin", "cos"):
        assert np.abs(apply(ROWS[name], (NS.get("Float")(x),)).numpy()).max() == 1.0


def test_signed_zeros_and_exact_values() -> None:
    """Odd functions keep the sign of zero; some results are known to the bit."""
    flat = NS.get("Float")
    zeros = np.array([0.0, -0.0], np.float32)
    for name in ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "cbrt", "erf"):
        result = apply(ROWS[name], (flat(zeros),)).numpy()
        np.testing.assert_array_equal(np.signbit(result), [False, True], err_msg=name)
    cases = {"exp": (0.0, 1.0), "log": (1.0, 0.0), "cos": (0.0, 1.0), "cosh": (0.0, 1.0), "acos": (1.0, 0.0)}
    for name, (x, y) in cases.items():
        assert apply(ROWS[name], (flat(np.array([x, x], np.float32)),)).numpy()[0] == y, name
    powers = np.arange(-149, 128).astype(np.float32)
    exact = np.ldexp(np.float32(1), np.arange(-149, 128))
    np.testing.assert_array_equal(apply(ROWS["exp2"], (flat(powers),)).numpy(), exact)
    np.testing.assert_array_equal(apply(ROWS["log2"], (flat(exact),)).numpy(), powers)
