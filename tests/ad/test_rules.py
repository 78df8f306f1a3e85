"""Derivatives of array operations against central differences, both modes."""

from __future__ import annotations

import numpy as np
import pytest

from luxgrad.ad import api
from luxgrad.ad.check import GradientError, check_grad
from luxgrad.jit.arrays import functions as f
from luxgrad.jit.arrays import reduce
from luxgrad.jit.arrays.create import arange, zeros
from luxgrad.jit.arrays.linear import cross, norm, normalize
from luxgrad.jit.arrays.memops import gather, scatter, scatter_add, scatter_reduce
from luxgrad.jit.arrays.scan import prefix_sum
from luxgrad.jit.arrays.shape import concat

X = [0.3, 1.7, -0.4, 2.2, 0.9]


def _scatter(t, x):
    out = t.Float(np.arange(8.0))
    scatter(out, x * x, t.UInt([6, 1, 3, 0, 4]))
    return out * arange(t.Float, 8)


def _scatter_add(t, x):
    out = x + 0.0
    scatter_add(out, x * x, t.UInt([0, 0, 1, 4, 4]))
    return out * out


def _scatter_max(t, x):
    out = t.Float([0.5, 0.5, 5.0])
    scatter_reduce("max", out, x, t.UInt([0, 1, 0, 1, 2]))
    return out * t.Float([1.0, 2.0, 3.0])


CASES = {
    "arithmetic": lambda t, x: x * x - 3 * x / (x * x + 1) + 2,
    "broadcast": lambda t, x: x * reduce.sum(x) + reduce.mean(x * x),
    "select": lambda t, x: f.select(x > 0, f.sqrt(f.abs(x)), x * x),
    "gather": lambda t, x: gather(t.Float, x * x, t.UInt([0, 0, 3, 2])) * t.Float([1.0, 2.0, 3.0, 4.0]),
    "masked gather": lambda t, x: gather(t.Float, x, t.UInt([0, 1, 2]), t.Bool([True, False, True])),
    "scatter": _scatter,
    "scatter_add": _scatter_add,
    "scatter_reduce": _scatter_max,
    "prod": lambda t, x: reduce.prod(x),
    "max": lambda t, x: reduce.max(x) * 2,
    "min": lambda t, x: reduce.min(x) * 2,
    "concat": lambda t, x: concat([x, x * x, reduce.sum(x)]) * arange(t.Float, 11),
    "prefix_sum": lambda t, x: prefix_sum(x * x) * arange(t.Float, 5),
    "inclusive": lambda t, x: prefix_sum(x, exclusive=False) * arange(t.Float, 5),
    "slice": lambda t, x: x[1:4] * x[::-1][:3],
    "item": lambda t, x: x * x[2],
    "cross": lambda t, x: reduce.sum(cross(t.Vec(x, x * x, 1.0), t.Vec(1.0, x, x))),
    "norm": lambda t, x: norm(t.Vec(x, x * x, 1.0)),
    "normalize": lambda t, x: normalize(t.Vec(x, x * x, 1.0)).y,
}


@pytest.mark.parametrize("mode", ["backward", "forward"])
@pytest.mark.parametrize("name", CASES)
def test_derivative(t, name, mode):
    report = check_grad(lambda x: CASES[name](t, x), t.Float(X), mode=mode)
    assert report.entries == 5


def test_check_grad_finds_a_wrong_derivative(t):
    def wrong(x):
        return api.replace_grad(x * x, 3 * x)

    with pytest.raises(GradientError, match=r"args\[0\]\[\d\].*central difference"):
        check_grad(wrong, t.Float(X))


def test_zero_gradient_times_infinite_weight(t):
    x = t.Float([0.0, 4.0, -1.0])
    api.enable_grad(x)
    api.backward(f.select(x > 0, f.sqrt(x), 0.0))
    assert np.allclose(x.grad.numpy(), [0, 0.25, 0])


def test_norm_of_the_zero_vector(t):
    v = t.Vec(t.Float([0.0, 3.0]), t.Float([0.0, 0.0]), t.Float([0.0, 4.0]))
    api.enable_grad(v)
    api.backward(norm(v))
    g = api.grad(v).numpy()
    assert np.isfinite(g).all() and np.allclose(g[:, 1], [0.6, 0, 0.8])


def test_ties(t):
    x = t.Float([1.0, 2.0])
    api.enable_grad(x)
    api.backward(f.max(x, 1.0))
    assert x.grad.numpy().tolist() == [0, 1]  # at a tie the gradient goes to the second operand
    y = t.Float([2.0, 2.0, 1.0])
    api.enable_grad(y)
    api.backward(reduce.max(y))
    assert y.grad.numpy().tolist() == [1, 1, 0]


def test_size_one_inputs_receive_sums(t):
    x, y = t.Float(3.0), t.Float([1.0, 2.0, 3.0])
    api.enable_grad(x, y)
    api.backward(x * y + x * 2.0)
    assert x.grad.numpy().tolist() == [12.0] and y.grad.numpy().tolist() == [3, 3, 3]


def test_value_of_two_types(t):
    x = t.Single([1.5, 2.0])
    api.enable_grad(x)
    api.backward(t.Float(x) * t.Float([10.0, 20.0]))
    assert type(x.grad) is t.Single and np.allclose(x.grad.numpy(), [10, 20])
    x = t.Single([1.5, 2.0])
    api.enable_grad(x)
    y = t.Float(x) * t.Float([10.0, 20.0])
    api.forward(x)
    assert type(y.grad) is t.Float and np.allclose(y.grad.numpy(), [10, 20])


def test_integers_cut_the_graph(t):
    x = t.Float([1.7])
    api.enable_grad(x)
    y = t.Float(t.Int(x))
    assert not api.grad_enabled(y)
    assert not api.grad_enabled(f.floor(x))
    with pytest.raises(RuntimeError, match="does not depend on the input"):
        api.backward(y)


def test_empty_array(t):
    x = zeros(t.Float, 0)
    api.enable_grad(x)
    api.backward(x * 2.0)
    assert len(x.grad) == 0


@pytest.mark.parametrize("mode", ["backward", "forward"])
@pytest.mark.parametrize("values", [[0.0, 0.5, 2.0], [0.0, 0.0, 2.0], [3.0, 0.5, 2.0]])
def test_product_with_zero_factors(t, values, mode):
    check_grad(lambda x: reduce.prod(x), t.Float(values), mode=mode)
