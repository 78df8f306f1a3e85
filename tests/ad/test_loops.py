"""Derivatives of recorded loops and branches."""

from __future__ import annotations

import numpy as np
import pytest

from luxgrad.ad import api
from luxgrad.ad.check import check_grad
from luxgrad.jit.arrays import functions as f
from luxgrad.jit.arrays import reduce
from luxgrad.jit.arrays.create import arange, zeros
from luxgrad.jit.arrays.memops import gather, scatter_add
from luxgrad.jit.control import if_stmt, switch, while_loop


def powers(t, x, limit=8):
    """Return x ** (2 ** k) for lane k."""
    n = arange(t.UInt, len(x))
    return while_loop(
        (t.UInt(0), x), lambda i, v: i < n, lambda i, v: (i + 1, v * v), labels=("i", "v"), max_iterations=limit
    )[1]


@pytest.mark.parametrize("mode", ["backward", "forward"])
def test_loop_of_products(t, mode):
    check_grad(lambda x: powers(t, x), t.Float([1.1, 0.9, 1.2, 0.8]), mode=mode)


@pytest.mark.parametrize("mode", ["backward", "forward"])
def test_captured_arrays(t, mode):
    def fn(p, x):
        return while_loop(
            (t.UInt(0), x), lambda i, v: i < 4, lambda i, v: (i + 1, f.sin(v * p) + v), max_iterations=4
        )[1]

    check_grad(fn, t.Float(0.7), t.Float([0.1, 0.4, 1.3]), mode=mode)


@pytest.mark.parametrize("mode", ["backward", "forward"])
def test_gather_inside(t, mode):
    def fn(table):
        n = table._n.size
        return while_loop(
            (t.UInt(0), t.Float(1.0) + zeros(t.Float, 3)),
            lambda i, v: i < n,
            lambda i, v: (i + 1, v * gather(t.Float, table, (i + arange(t.UInt, 3)) % n) + 0.1),
            max_iterations=5,
        )[1]

    check_grad(fn, t.Float([0.5, 1.5, 0.8, 1.1]), mode=mode)


def test_sum_loop_needs_no_trajectory(t):
    p = t.Float([1.5, 2.0])
    api.enable_grad(p)
    n = t.UInt([3, 5])
    v = while_loop(
        (t.UInt(0), zeros(t.Float, 2)), lambda i, v: i < n, lambda i, v: (i + 1, v + p * p), max_iterations=-1
    )[1]
    api.backward(v)
    assert np.allclose(p.grad.numpy(), [3 * 3.0, 5 * 4.0])


def test_false_sum_loop_is_refused(t):
    x = t.Float([1.5, 2.0])
    api.enable_grad(x)
    v = while_loop((t.UInt(0), x), lambda i, v: i < 3, lambda i, v: (i + 1, v * v), max_iterations=-1)[1]
    with pytest.raises(RuntimeError, match="declares a sum loop"):
        api.backward(v)


def test_bound_that_is_too_small_is_refused(t):
    x = t.Float([1.5, 2.0])
    api.enable_grad(x)
    v = while_loop((t.UInt(0), x), lambda i, v: i < 3, lambda i, v: (i + 1, v * v), max_iterations=2)[1]
    with pytest.raises(RuntimeError, match="max_iterations=2"):
        api.backward(v)


def test_missing_bound_is_explained(t):
    x = t.Float([1.5])
    api.enable_grad(x)
    v = while_loop((t.UInt(0), x), lambda i, v: i < 3, lambda i, v: (i + 1, v * v))[1]
    with pytest.raises(RuntimeError, match="needs max_iterations"):
        api.backward(v)
    x = t.Float([1.5])
    api.enable_grad(x)
    v = while_loop((t.UInt(0), x), lambda i, v: i < 3, lambda i, v: (i + 1, v * v))[1]
    api.forward(x)
    assert np.allclose(v.grad.numpy(), 8 * 1.5**7)


def test_state_the_body_never_reads(t):
    x = t.Float([1.0, 2.0])
    api.enable_grad(x)
    _, v, _ = while_loop(
        (t.UInt(0), t.Float(1.0), t.Float(2.0)),
        lambda i, v, w: i < 2,
        lambda i, v, w: (i + 1, v * x, w),
        max_iterations=2,
    )
    api.backward(reduce.sum(v))
    assert np.allclose(x.grad.numpy(), [2, 4])


def test_nested_loops(t):
    def fn(x):
        def outer(i, v):
            inner = while_loop((t.UInt(0), v), lambda j, w: j < i, lambda j, w: (j + 1, w * x), max_iterations=4)
            return i + 1, inner[1] + x

        return while_loop((t.UInt(0), x), lambda i, v: i < 4, outer, max_iterations=4)[1]

    check_grad(fn, t.Float([0.7, 1.1]), mode="forward")
    x = t.Float([0.7, 1.1])
    api.enable_grad(x)
    with pytest.raises(RuntimeError, match="inside another recorded loop.*mode='evaluated'"):
        api.backward(fn(x))


def test_recorded_loop_in_an_evaluated_one(t):
    def fn(x):
        def outer(i, v):
            inner = while_loop((t.UInt(0), v), lambda j, w: j < i, lambda j, w: (j + 1, w * x), max_iterations=4)
            return i + 1, inner[1] + x

        return while_loop((t.UInt(0), x), lambda i, v: i < 4, outer, mode="evaluated")[1]

    check_grad(fn, t.Float([0.7, 1.1]))


def test_suspended_loop_keeps_the_input_attached(t):
    a = t.Float([1.0, 2.0, 3.0])
    api.enable_grad(a)
    with api.suspend_grad():
        r = while_loop((t.Int(0), zeros(t.Float, 3)), lambda i, r: i < 5, lambda i, r: (i + 1, r + a))[1]
    assert api.grad_enabled(a) and not api.grad_enabled(r)
    assert np.allclose(r.numpy(), [5, 10, 15])


@pytest.mark.parametrize("mode", ["backward", "forward"])
def test_branches(t, mode):
    def fn(x, p):
        y = if_stmt((x,), x > 0.5, lambda a: a * a * p, lambda a: f.exp(a))
        return switch(arange(t.UInt, 5) % 3, [lambda v: v * p, lambda v: v * v, lambda v: -v], y)

    check_grad(fn, t.Float([0.3, 1.7, -0.4, 2.2, 0.9]), t.Float(1.3), mode=mode)


def test_backward_inside_a_loop_reaches_outer_arrays(t):
    table = t.Float([1.0, 2.0, 3.0])
    api.enable_grad(table)

    def body(i):
        with api.resume_grad():
            v = gather(t.Float, table, i % 3)
            y = v * v
            api.set_grad(y, 1.0)
            api.backward_from(y)
        return (i + 1,)

    with api.suspend_grad():
        (i,) = while_loop((arange(t.UInt, 4),), lambda i: i < 6, body)
    assert np.allclose(table.grad.numpy(), _expected())


def _expected():
    table, g = np.array([1.0, 2.0, 3.0]), np.zeros(3)
    for lane in range(4):
        for i in range(lane, 6):
            g[i % 3] += 2 * table[i % 3]
    return g


def test_differentiable_scatter_in_a_loop_is_refused(t):
    x = t.Float([1.0, 2.0])
    api.enable_grad(x)
    out = zeros(t.Float, 2)

    def body(i):
        scatter_add(out, x, arange(t.UInt, 2))
        return (i + 1,)

    with pytest.raises(RuntimeError, match="differentiable scatter inside a recorded loop"):
        while_loop((t.UInt(0) + arange(t.UInt, 2) * 0,), lambda i: i < 3, body)
