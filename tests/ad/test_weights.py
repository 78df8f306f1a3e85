"""Gradients times weights: a zero gradient stays zero whatever the weight, others are multiplied."""

from __future__ import annotations

import gc
import weakref

import numpy as np

import luxgrad as dr
from luxgrad.ad.rules import RULES
from luxgrad.llvm.ad import Float


def test_zero_gradient_beats_infinite_and_nan_weights() -> None:
    x = Float([0.0, 4.0, -1.0])
    dr.enable_grad(x)
    dr.backward(dr.select(x > 1, dr.sqrt(x), 0.0))
    np.testing.assert_array_equal(dr.grad(x).numpy(), [0, 0.25, 0])
    y, w = Float([1.0, 2.0]), Float([np.inf, np.nan])
    dr.enable_grad(y)
    dr.backward(dr.select(y > 5, y * w, y))
    np.testing.assert_array_equal(dr.grad(y).numpy(), [1, 1])


def test_other_gradients_meet_infinite_weights() -> None:
    x = Float([0.0, 4.0])
    dr.enable_grad(x)
    dr.backward(dr.sqrt(x))
    np.testing.assert_array_equal(dr.grad(x).numpy(), [np.inf, 0.25])


def test_weights_that_are_arguments_are_recognised() -> None:
    """The table of picks, made by calling the weights with marks, says the same as the weights."""
    assert {RULES[r].name: RULES[r].picks for r in RULES}["mul"] == [1, 0]
    assert {RULES[r].name: RULES[r].picks for r in RULES}["exp"] == [-1]
    assert {RULES[r].name: RULES[r].picks for r in RULES}["fma"] == [1, 0, None]
    assert {RULES[r].name: RULES[r].picks for r in RULES}["div"] == [None, None]


def test_one_gradient_for_several_parents_is_not_shared_memory() -> None:
    """`a + b` hands one gradient to both; a gather that adds into one of them must leave the other alone."""
    a, b = Float([1.0, 2.0]), Float([3.0, 4.0])
    dr.enable_grad(a, b)
    dr.eval(a, b)
    index = dr.llvm.ad.UInt32([0, 0])
    dr.backward((a + b) + dr.gather(Float, a, index))
    np.testing.assert_array_equal(dr.grad(a).numpy(), [3, 1])
    np.testing.assert_array_equal(dr.grad(b).numpy(), [1, 1])


def test_a_leaf_forgets_dead_dependents() -> None:
    x = Float([1.0, 2.0])
    dr.enable_grad(x)
    for _ in range(200):
        x * 2.0
    gc.collect()
    assert len(x._ad.children) < 128
    y = x * 3.0
    reference = weakref.ref(y._ad)
    del y
    assert reference() is None
