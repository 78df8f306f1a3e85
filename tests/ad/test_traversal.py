"""Accumulation, flags, scopes, custom operations."""

from __future__ import annotations

import numpy as np
import pytest

from luxgrad.ad import api
from luxgrad.ad.api import ADFlag
from luxgrad.ad.custom import CustomOp, custom
from luxgrad.jit.arrays import reduce


def test_gradients_accumulate(t):
    x = t.Float(2.0)
    api.enable_grad(x)
    for k in range(1, 4):
        api.backward(x * x)
        assert x.grad.item() == 4.0 * k


def test_a_traversal_removes_its_edges(t):
    x = t.Float(2.0)
    api.enable_grad(x)
    y = x * x
    api.backward(y)
    api.backward(y)
    assert x.grad.item() == 4.0
    z = x * x
    api.backward(z, ADFlag.ClearNone)
    api.backward(z)
    assert x.grad.item() == 12.0


def test_interior_gradients(t):
    x = t.Float(2.0)
    api.enable_grad(x)
    y = x * x
    z = y * 3
    api.backward(z, ADFlag.ClearNone)
    assert y.grad.item() == 3.0 and z.grad.item() == 1.0


def test_set_and_clear(t):
    x = t.Float([1.0, 2.0])
    api.enable_grad(x)
    api.set_grad(x, t.Float([3.0, 4.0]))
    assert x.grad.numpy().tolist() == [3, 4]
    api.accum_grad(x, 1.0)
    assert x.grad.numpy().tolist() == [4, 5]
    api.set_grad(x, None)
    assert x.grad.numpy().tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="gradient of size 3 into AD variable .* size 2"):
        api.accum_grad(x, t.Float([1.0, 2.0, 3.0]))


def test_enable_twice_keeps_the_gradient(t):
    x = t.Float(2.0)
    api.enable_grad(x)
    api.backward(x * x)
    api.enable_grad(x)
    assert x.grad.item() == 4.0


def test_detach_and_replace(t):
    x = t.Float([1.0, 2.0])
    api.enable_grad(x)
    assert type(api.detach(x)) is t.Float and not api.grad_enabled(api.detach(x))
    plain = api.detach(x, preserve_type=False)
    assert not type(plain).is_diff and type(plain).__name__ == "Float64"
    y = api.replace_grad(t.Float([10.0, 20.0]), x * 3)
    assert y.numpy().tolist() == [10, 20]
    api.backward(y)
    assert x.grad.numpy().tolist() == [3, 3]


def test_suspend_and_resume(t):
    x, y = t.Float(2.0), t.Float(3.0)
    api.enable_grad(x, y)
    with api.suspend_grad():
        assert not api.grad_enabled(x)
        z = x * y
        with api.resume_grad(y):
            assert api.grad_enabled(y) and not api.grad_enabled(x)
            w = x * y
    assert not api.grad_enabled(z) and api.grad_enabled(x)
    api.backward(w)
    assert (x.grad.item(), y.grad.item()) == (0.0, 2.0)
    with api.suspend_grad(x):
        v = x * y
    api.backward(v)
    assert (x.grad.item(), y.grad.item()) == (0.0, 4.0)


def test_isolate(t):
    x = t.Float(2.0)
    api.enable_grad(x)
    y = x * x
    with api.isolate_grad():
        z = y * 5
        api.backward(z)
        assert x.grad.item() == 0.0
    assert x.grad.item() == 20.0


def test_forward_to_and_backward_to(t):
    x = t.Float(2.0)
    api.enable_grad(x)
    y = x * x * x
    api.set_grad(x, 1.0)
    assert api.forward_to(y).item() == 12.0
    x = t.Float(2.0)
    api.enable_grad(x)
    y = x * x * x
    api.set_grad(y, 1.0)
    api.enqueue("backward", y)
    assert api.backward_to(x).item() == 12.0


def test_nested_and_dict_arguments(t):
    tree = {"a": t.Vec(1.0, 2.0, 3.0), "b": [t.Float(4.0)]}
    api.enable_grad(tree)
    api.backward(reduce.sum(tree["a"] * tree["a"]) * tree["b"][0])
    g = api.grad(tree)
    assert g["a"].numpy().ravel().tolist() == [8, 16, 24] and g["b"][0].item() == 14


class Square(CustomOp):
    def eval(self, value, scale=2.0):
        self.value, self.scale = value, scale
        return value * value * scale, value + 0.0

    def forward(self):
        g = self.grad_in("value")
        self.set_grad_out((g * self.value * (2.0 * self.scale), g))

    def backward(self):
        a, b = self.grad_out()
        self.set_grad_in("value", a * self.value * (2.0 * self.scale) + b)


def test_custom_operation(t):
    x = t.Float([1.0, 2.0])
    api.enable_grad(x)
    y, z = custom(Square, x * 3.0, scale=5.0)
    assert y.numpy().tolist() == [45, 180]
    api.backward(y + z * 10.0)
    assert np.allclose(x.grad.numpy(), [(2 * 5 * 3 * 1 + 10) * 3, (2 * 5 * 3 * 2 + 10) * 3])
    x = t.Float([1.0, 2.0])
    api.enable_grad(x)
    y, z = custom(Square, x * 3.0, scale=5.0)
    api.forward(x)
    assert np.allclose(y.grad.numpy(), [90, 180]) and np.allclose(z.grad.numpy(), [3, 3])


def test_custom_operation_names_its_arguments(t):
    class Wrong(Square):
        def backward(self):
            self.set_grad_in("valeu", self.grad_out()[0])

    x = t.Float(1.0)
    api.enable_grad(x)
    with pytest.raises(KeyError, match="no argument 'valeu'; its arguments are: value, scale"):
        api.backward(custom(Wrong, x)[0])


def test_deep_graphs_need_no_recursion(t):
    x = t.Float(1.0)
    api.enable_grad(x)
    y = x
    for _ in range(20_000):
        y = y * 1.0001
    api.backward(y)
    assert np.isclose(x.grad.item(), 1.0001**20_000, rtol=1e-9)
    del y
