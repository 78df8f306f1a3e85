"""The derivative rules of rows agree with central differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luxgrad.jit.arrays import functions
from luxgrad.jit.arrays.base import apply
from luxgrad.jit.arrays.namespace import namespace
from luxgrad.jit.ops.row import ROWS, Row

NS = namespace("llvm", False)
Float64, Bool = NS.get("Float64"), NS.get("Bool")
CASES = [(r, k) for r in ROWS.values() if r.weights is not None for k, w in enumerate(r.weights) if w is not None]
pytestmark = pytest.mark.cpu


def samples(row: Row) -> list[np.ndarray[Any, Any]]:
    """Return values of the row's intervals, away from the kinks at 0 and at equal arguments."""
    generator = np.random.default_rng(row.number)
    out = [generator.uniform(low, high, 200) for low, high in row.domain]
    keep = np.abs(out[0]) > 1e-2
    if row.arity == 2:
        keep &= np.abs(out[0] - out[1]) > 1e-2
    return [a[keep] for a in out]


def value(row: Row, args: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Return the compiled row's values."""
    arrays = [(Bool(a > 0.5) if row.mask_first and k == 0 else Float64(a)) for k, a in enumerate(args)]
    result: np.ndarray[Any, Any] = apply(row, tuple(arrays)).numpy()
    return result


def weight(row: Row, position: int, args: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Return the rule's values."""
    rule = row.weights[position] if row.weights is not None else None
    if not callable(rule):
        return np.full(len(args[0]), rule, np.float64)
    arrays = [(Bool(a > 0.5) if row.mask_first and k == 0 else Float64(a)) for k, a in enumerate(args)]
    result = rule(functions, apply(row, tuple(arrays)), *arrays)
    return np.broadcast_to(result.numpy(), len(args[0]))


@pytest.mark.parametrize(("row", "position"), CASES, ids=[f"{r.name}-{k}" for r, k in CASES])
def test_weight(row: Row, position: int) -> None:
    """Fourth-order central differences in double precision, to a relative 1e-6."""
    args = samples(row)
    step = 1e-3 * (row.domain[position][1] - row.domain[position][0]) / 20

    def moved(by: float) -> np.ndarray[Any, Any]:
        return value(row, [a + by if k == position else a for k, a in enumerate(args)])

    expected = (8 * (moved(step) - moved(-step)) - (moved(2 * step) - moved(-2 * step))) / (12 * step)
    scale = np.maximum(np.abs(expected), 1e-3)
    np.testing.assert_array_less(np.abs(weight(row, position, args) - expected) / scale, 1e-6)


def test_every_differentiable_row_has_a_weight_per_argument() -> None:
    """A row that takes floats and gives floats either has rules or is constant almost everywhere."""
    constant = {"floor", "ceil", "trunc", "round", "sign", "and", "or", "xor", "not"}
    for row in ROWS.values():
        if row.weights is not None:
            assert len(row.weights) == row.arity, row.name
        elif "f" in row.kinds and row.result == "same":
            assert row.name in constant, row.name


def test_weights_at_the_ends() -> None:
    """Limits that users meet: vertical tangents are infinite, powers of zero have finite derivatives."""
    ends = [np.array([1.0, -1.0])]
    assert np.isposinf(weight(ROWS["asin"], 0, ends)).all()
    assert np.isneginf(weight(ROWS["acos"], 0, ends)).all()
    assert np.isposinf(weight(ROWS["sqrt"], 0, [np.array([0.0, 0.0])])).all()
    zero = np.array([0.0, 0.0])
    np.testing.assert_array_equal(weight(ROWS["pow"], 0, [zero, np.array([1.0, 2.0])]), [1.0, 0.0])
    np.testing.assert_array_equal(weight(ROWS["pow"], 1, [zero, np.array([1.0, 2.0])]), [0.0, 0.0])
    np.testing.assert_array_equal(weight(ROWS["pow"], 0, [zero, zero]), [0.0, 0.0])
