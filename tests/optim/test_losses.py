"""Losses against NumPy, and their gradients against the derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import luxgrad.ad.api as ad
from luxgrad.jit.arrays.namespace import namespace
from luxgrad.optim import losses

types = namespace("llvm", True)
Float, Array3f, UInt32 = types.get("Float64"), types.get("Array3f64"), types.get("UInt32")
A = np.random.default_rng(1).uniform(0, 3, 60)
B = np.random.default_rng(2).uniform(0, 3, 60)
FORMULAS: dict[str, Callable[[Any, Any], Any]] = {
    "l1": lambda a, b: np.abs(a - b).mean(),
    "l2": lambda a, b: ((a - b) ** 2).mean(),
    "mse": lambda a, b: ((a - b) ** 2).mean(),
    "relative_l2": lambda a, b: ((a - b) ** 2 / (b**2 + 0.01)).mean(),
    "mape": lambda a, b: (np.abs(a - b) / (np.abs(b) + 0.01)).mean(),
    "smooth_l1": lambda a, b: np.where(abs(a - b) < 1, (a - b) ** 2 / 2, abs(a - b) - 0.5).mean(),
    "log_l2": lambda a, b: ((np.log1p(a) - np.log1p(b)) ** 2).mean(),
}


@pytest.mark.parametrize("name", list(FORMULAS))
def test_value_and_gradient(name: str) -> None:
    loss = getattr(losses, name)
    a = Float(A.copy())
    ad.enable_grad(a)
    value = loss(a, Float(B.copy()))
    assert float(value) == pytest.approx(FORMULAS[name](A, B), rel=1e-9)
    ad.backward(value)
    for k in (0, 17, 59):
        step = np.zeros(60)
        step[k] = 1e-6
        difference = (FORMULAS[name](A + step, B) - FORMULAS[name](A - step, B)) / 2e-6
        assert a.grad[k] == pytest.approx(difference, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("name", list(FORMULAS))
def test_nested_arrays_average_over_everything(name: str) -> None:
    loss = getattr(losses, name)
    value = loss(Array3f(A.reshape(3, 20)), Array3f(B.reshape(3, 20)))
    assert float(value) == pytest.approx(FORMULAS[name](A, B), rel=1e-9)


def test_targets_may_be_numpy_arrays_or_numbers() -> None:
    assert float(losses.l2(Float(A.copy()), B)) == pytest.approx(((A - B) ** 2).mean(), rel=1e-9)
    assert float(losses.l1(Float(A.copy()), 0.5)) == pytest.approx(np.abs(A - 0.5).mean(), rel=1e-9)


def test_the_target_gets_no_gradient() -> None:
    a, b = Float([1, 2]), Float([3, 4])
    ad.enable_grad(a, b)
    ad.backward(losses.l2(a, b))
    assert np.all(b.grad.numpy() == 0) and np.all(a.grad.numpy() == -2)


def test_log_l2_reads_negative_values_as_black() -> None:
    assert float(losses.log_l2(Float([-2.0, -0.5]), Float([0.0, 0.0]))) == 0.0


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match=r"the image has shape \(2,\), its target \(3,\)"):
        losses.l2(Float([1, 2]), Float([1, 2, 3]))
    with pytest.raises(TypeError, match="floating-point"):
        losses.l2(UInt32([1]), UInt32([1]))
    with pytest.raises(ValueError, match="beta"):
        losses.smooth_l1(Float([1]), Float([1]), beta=0.0)
