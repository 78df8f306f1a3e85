"""Derivatives within frozen functions, at their borders, and whole optimisation steps."""

from __future__ import annotations

import numpy as np
import pytest

import luxgrad as dr
from luxgrad.jit.errors import FreezeError
from luxgrad.llvm.ad import Array3f, Float, TensorXf, UInt32
from luxgrad.optim.adam import Adam, AdamW
from luxgrad.optim.rmsprop import RMSProp
from luxgrad.optim.sgd import SGD


def data(*values):
    x = dr.opaque(Float, 0, len(values)) + Float(list(values))
    dr.eval(x)
    return x


def test_backward_inside_sets_and_adds_gradients():
    @dr.freeze
    def f(x, y):
        loss = dr.mean((2 * x - y) ** 2)
        dr.backward(loss)
        return dr.detach(loss)

    x = data(1, 2, 3)
    dr.enable_grad(x)
    expected = np.zeros(3)
    for k in range(4):
        y = np.array([3, 4, 5 + k], np.float32)
        loss = f(x, Float(y))
        residual = 2 * np.array([1, 2, 3]) - y
        expected += 4 * residual / 3
        assert np.isclose(loss[0], np.mean(residual**2)) and np.allclose(x.grad.numpy(), expected)
    assert f.n_recordings == 2  # without a gradient, and with one
    dr.clear_grad(x)
    f(x, Float(y))
    assert np.allclose(x.grad.numpy(), 4 * residual / 3) and f.n_recordings == 2


def test_forward_inside():
    @dr.freeze
    def f(x):
        x = Float(x)
        dr.enable_grad(x)
        y = dr.sin(x) * x
        dr.set_grad(x, 1.0)
        dr.forward_to(y)
        return dr.detach(y), dr.grad(y)

    for k in range(3):
        v = np.array([0.5, 1 + k], np.float32)
        y, slope = f(Float(v))
        assert np.allclose(y.numpy(), np.sin(v) * v)
        assert np.allclose(slope.numpy(), np.sin(v) + v * np.cos(v), rtol=1e-5)
    assert f.n_recordings == 1


def test_gradients_set_before_the_call_are_read():
    @dr.freeze
    def f(x):
        return dr.grad(x) * 2

    x = data(1, 2)
    dr.enable_grad(x)
    for k in range(1, 4):
        dr.set_grad(x, data(k, 2 * k))
        assert list(f(x)) == [2 * k, 4 * k] and list(x.grad) == [k, 2 * k]


def test_derivatives_of_results_stop_with_an_error():
    @dr.freeze
    def f(x):
        return x * x, dr.detach(x) + 1

    x = data(1, 2)
    dr.enable_grad(x)
    for _ in range(2):
        y, z = f(x)
        assert list(y) == [1, 4] and dr.grad_enabled(y) and not dr.grad_enabled(z)
        with pytest.raises(FreezeError, match="frozen function 'f' from outside"):
            dr.backward(dr.sum(y) + 1)
        with pytest.raises(FreezeError, match="frozen function 'f' from outside"):
            dr.forward(x)
        dr.clear_grad(x)
        del y
    dr.backward(dr.sum(x * 3))
    assert list(x.grad) == [3, 3]


def test_gradients_do_not_leave_through_inputs():
    x = data(1, 2)
    dr.enable_grad(x)
    y = x * 3

    @dr.freeze
    def f(y):
        dr.backward(dr.sum(y * y))

    with pytest.raises(FreezeError, match="gradient crosses the border of a frozen function"):
        f(y)

    @dr.freeze
    def g(x, y):
        dr.backward(dr.sum(x * dr.detach(y)))

    for _ in range(2):
        dr.clear_grad(x)
        g(x, y)
        assert list(x.grad) == [3, 6]


def test_new_leaves_and_shared_derivatives_come_out():
    @dr.freeze
    def f(x):
        a = dr.detach(x) + 1
        dr.enable_grad(a)
        dr.set_grad(a, 5.0)
        return a, Float(a), a

    for k in range(3):
        a, b, c = f(data(1, k))
        assert a is c and dr.grad_enabled(a) and list(b.grad) == [5, 5] and a.index_ad == b.index_ad
        dr.backward(dr.sum(b * b))
        assert list(a.grad) == [5 + 4, 5 + 2 * (k + 1)]


def test_loops_gathers_and_scatters_with_derivatives():
    def step(x, index):
        _, y = dr.while_loop(
            (UInt32(0), Float(x)), lambda i, y: i < 4, lambda i, y: (i + 1, y * 1.1 + dr.gather(Float, x, index)),
            max_iterations=4,
        )  # fmt: skip
        target = dr.zeros(Float, 3)
        dr.scatter_add(target, y, index)
        dr.backward(dr.sum(target * target))

    f = dr.freeze(step)
    index = UInt32([2, 0, 2])
    for k in range(3):
        a, b = data(1, 2, 3 + k), data(1, 2, 3 + k)
        dr.enable_grad(a, b)
        f(a, index)
        step(b, index)
        assert np.array_equal(a.grad.numpy(), b.grad.numpy())
    assert f.n_recordings == 1


@pytest.mark.parametrize(
    "make", [
        lambda p: Adam(0.1, p), lambda p: Adam(0.1, p, amsgrad=True, uniform=True), lambda p: AdamW(0.1, p),
        lambda p: RMSProp(0.1, p), lambda p: SGD(0.1, p, momentum=0.9), lambda p: Adam(0.1, p, mask_updates=True),
    ],
)  # fmt: skip
def test_whole_steps_of_optimisers(make):
    def run(frozen):
        values = {"a": data(1, 2, 3), "t": TensorXf([1, 2, 3, 4], shape=(2, 2)), "v": Array3f([1, 2], [3, 4], [5, 6])}
        opt = make(values)

        def step(target):
            loss = dr.sum((opt["a"] - target) ** 2) + dr.sum(opt["t"].array ** 2) + dr.sum(dr.dot(opt["v"], opt["v"]))
            dr.backward(loss)
            opt.step()
            return loss

        call = dr.freeze(step) if frozen else step
        losses = [call(data(3, 2, k))[0] for k in range(6)]
        if frozen:
            assert call.n_recordings == 1
        return losses, [opt["a"].numpy(), opt["t"].numpy(), opt["v"].numpy()], opt.state_arrays()

    (a, x, s), (b, y, t) = run(False), run(True)
    assert a == b and all(np.array_equal(u, v) for u, v in zip(x, y, strict=True))
    assert s.keys() == t.keys() and all(np.array_equal(s[k], t[k]) for k in s)


def test_learning_rates_as_arrays_do_not_count():
    opt = SGD(1.0, {"x": data(0, 0)})

    @dr.freeze
    def step(rate):
        opt.set_learning_rate(rate)
        dr.backward(dr.sum(opt["x"]))
        opt.step()

    for k in range(1, 4):
        before = opt["x"].numpy().copy()
        step(data(0.5 * k))
        assert np.allclose(before - opt["x"].numpy(), 0.5 * k)
    assert step.n_recordings <= 2


def test_too_many_iterations_are_found_in_replays_too():
    @dr.freeze
    def f(x, n):
        _, y = dr.while_loop(
            (UInt32(0), Float(x)), lambda i, y: i < n, lambda i, y: (i + 1, y * 1.5), max_iterations=4
        )
        dr.backward(dr.sum(y))

    x, few, many = data(1, 2), dr.opaque(UInt32, 4), dr.opaque(UInt32, 5)
    dr.enable_grad(x)
    f(x, few)
    dr.clear_grad(x)
    f(x, few)
    assert np.allclose(x.grad.numpy(), 1.5**4)
    dr.clear_grad(x)
    f(x, many)
    with pytest.raises(RuntimeError, match="more than max_iterations=4"):
        x.grad.numpy()
    dr.clear_grad(x)
    f(x, few)
    assert np.allclose(x.grad.numpy(), 1.5**4) and f.n_recordings == 1
    with pytest.raises(RuntimeError, match="more than max_iterations=4"):
        dr.freeze(f.fn)(x, many)
