"""Slices that share the memory of their tensor, and copies the moment either is written."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import luxgrad as dr
from luxgrad.llvm import TensorXf, TensorXi8, UInt32
from luxgrad.llvm.ad import Float as DiffFloat
from luxgrad.llvm.ad import TensorXf as DiffTensor


def tensor(*shape, kind=TensorXf):
    a = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    t = kind(a - 1) + 1
    dr.eval(t)
    return t, a


KEYS = [np.s_[2:5], np.s_[1], np.s_[-3:], np.s_[4:5, 2:7], np.s_[3, 1:], np.s_[3:4, :, 2:5], np.s_[5:5]]
KEYS += [np.s_[6, 3, 1:2], np.s_[0, 0], np.s_[2:, None]]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_values(key):
    t, a = tensor(7, 9, 5)
    part, expected = t[key], a[key]
    assert part.shape == expected.shape and np.array_equal(part.numpy(), expected)
    assert np.array_equal((part * 2 + 1).numpy(), expected * 2 + 1)
    assert np.isclose(dr.sum(part, axis=None).array[0], expected.sum())
    if expected.size > 1:
        assert np.array_equal(dr.prefix_sum(part.array, False).numpy(), np.cumsum(expected, dtype=np.float32))
        assert np.array_equal(part[1:].numpy(), expected[1:])


def test_a_view_takes_no_memory():
    t, _ = tensor(1000, 300)
    gc.collect()
    before = dr.memory_stats()["live"]
    parts = [t[k : k + 100] for k in range(800)]
    assert dr.memory_stats()["live"] == before
    del t
    assert parts[7][3, 4].array[0] == 10 * 300 + 4
    before = dr.memory_stats()["live"]
    parts.clear()
    gc.collect()
    assert dr.memory_stats()["live"] < before


@pytest.mark.parametrize("write", ["view", "tensor", "add to view", "add to tensor"])
def test_writing_to_one_leaves_the_other(write):
    t, a = tensor(6, 50)
    part, b = t[2:4], a[2:4].copy()
    for _ in range(2):
        if write == "view":
            part[0] = 7
            b[0] = 7
        elif write == "tensor":
            t[2] = 7
            a[2] = 7
        elif write == "add to view":
            dr.scatter_add(part.array, 1.0, UInt32([0, 99]))
            b[0, 0] += 1
            b[1, 49] += 1
        else:
            dr.scatter_add(t.array, 1.0, UInt32([100, 199]))
            a[2, 0] += 1
            a[3, 49] += 1
        dr.eval(t, part)
        assert np.array_equal(t.numpy(), a) and np.array_equal(part.numpy(), b)


def test_numpy_sees_a_view_that_it_cannot_write():
    t, _ = tensor(4, 40)
    with pytest.raises(ValueError, match="read-only"):
        t[1:3].numpy()[0, 0] = 5


def test_of_numpy_memory():
    a = np.arange(60, dtype=np.float32).reshape(6, 10)
    t = TensorXf(a)
    part = t[1:3]
    assert np.array_equal((part + 1).numpy(), a[1:3] + 1)
    small = TensorXi8(np.arange(100, dtype=np.int8).reshape(10, 10))[3:5] + 1
    assert np.array_equal(small.numpy().ravel(), np.arange(31, 51))


def test_of_numpy_memory_in_frozen_functions():
    f = dr.freeze(lambda t: t[1:4] * 2)
    for k in range(3):
        a = np.arange(55, dtype=np.float32).reshape(5, 11) + k
        assert np.array_equal(f(TensorXf(a)).numpy(), a[1:4] * 2)
    assert f.n_recordings == 1


def test_gradients_pass_through_views():
    x = DiffFloat(np.arange(12, dtype=np.float32))
    dr.enable_grad(x)
    t = DiffTensor(x, shape=(4, 3))
    loss = dr.sum(t[1:3] * t[1:3] + t[0:2], axis=None)
    dr.backward(loss)
    expected = np.zeros(12)
    expected[3:9] += 2 * np.arange(3, 9)
    expected[0:6] += 1
    assert np.array_equal(dr.grad(x).numpy(), expected)


def test_views_in_and_out_of_frozen_functions():
    @dr.freeze
    def f(t, part):
        s = t * 2
        dr.eval(s)
        return s[1:3], t[2:], part + s[0], dr.sum(s[3], axis=None)

    for k in range(4):
        t, a = tensor(5, 33)
        t, a = t + k, a + k
        dr.eval(t)
        part = t[4]
        out = f(t, part)
        expected = (2 * a[1:3], a[2:], a[4] + 2 * a[0], (2 * a[3]).sum())
        for got, want in zip(out, expected, strict=True):
            assert np.allclose(got.numpy(), want)
    assert f.n_recordings == 1
