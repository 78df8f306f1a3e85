"""Joining, reordering, running sums, compaction: values against NumPy, and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import luxgrad as dr
import luxgrad.llvm.ad as t
from luxgrad.llvm.ad import Array2f, Array3f, Array22f, Bool, Float, Float64, Int, Matrix2f, TensorXf, UInt

SIZES = [1, 5, 16, 4096, 4097, 100_003]


def gradient(f: Any, *values: float) -> list[float]:
    x = Float(*values)
    dr.enable_grad(x)
    dr.backward(f(x))
    return list(dr.grad(x))


def test_concat() -> None:
    assert list(dr.concat([Float(1, 2), Float(3), Float(), dr.full(Float, 4, 2)])) == [1, 2, 3, 4, 4]
    assert type(dr.concat([Int(1), Float(2.5)])) is Float
    joined = dr.concat([Array2f(Float(1, 2), 3), Array2f(4, 5)])
    assert np.array_equal(joined.numpy(), [[1, 2, 4], [3, 3, 5]])
    a, b = np.ones((2, 3)), np.zeros((2, 2))
    assert np.array_equal(dr.concat([TensorXf(a), TensorXf(b)], 1).numpy(), np.concatenate([a, b], 1))
    assert np.array_equal(dr.concat([TensorXf(a), TensorXf(a)]).numpy(), np.concatenate([a, a]))
    bytes_ = [t.UInt8(np.arange(k, dtype=np.uint8)) for k in (3, 70, 1, 129)]
    assert np.array_equal(dr.concat(bytes_).numpy(), np.concatenate([b.numpy() for b in bytes_]))
    with pytest.raises(RuntimeError, match="axis 1"):
        dr.concat([TensorXf(a), TensorXf(np.ones((3, 3)))], 1)
    with pytest.raises(ValueError, match="at least one"):
        dr.concat([])


def test_gradients_of_concat() -> None:
    x, y = Float(1, 2), Float(3)
    dr.enable_grad(x, y)
    z = dr.concat([x, y, Float(9)])
    dr.backward(z * Float(1, 10, 100, 1000))
    assert list(dr.grad(x)) == [1, 10] and list(dr.grad(y)) == [100]
    x = Float(1, 2)
    dr.enable_grad(x)
    y = dr.concat([x * 2, Float(5)])
    dr.forward(x)
    assert list(dr.grad(y)) == [2, 2, 0]


def test_ravel_and_unravel() -> None:
    v = Array3f(Float(1, 2), Float(3, 4), 5)
    assert list(dr.ravel(v)) == [1, 3, 5, 2, 4, 5] and list(dr.ravel(v, "C")) == [1, 2, 3, 4, 5, 5]
    for order in "ACF":
        assert np.array_equal(dr.unravel(Array3f, dr.ravel(v, order), order).numpy(), v.numpy())
    m = Array22f([[1, 2], [3, 4]])
    assert list(dr.ravel(m, "F")) == [1, 3, 2, 4] and list(dr.ravel(m, "C")) == [1, 2, 3, 4]
    assert type(dr.unravel(Matrix2f, Float(1, 3, 2, 4))) is Matrix2f
    a = np.arange(6).reshape(2, 3)
    assert list(dr.ravel(TensorXf(a))) == list(a.ravel()) and list(dr.ravel(TensorXf(a), "F")) == list(a.ravel("F"))
    with pytest.raises(RuntimeError, match="4 elements"):
        dr.unravel(Array3f, Float(1, 2, 3, 4))
    with pytest.raises(ValueError, match="order"):
        dr.ravel(v, "K")


def test_ravel_computes_shared_work_once() -> None:
    x = dr.arange(Float, 64)
    v = Array3f(dr.sin(x), dr.sin(x) * 2, dr.sin(x) * 3)
    with dr.scoped_set_flag(dr.JitFlag.KernelHistory):
        dr.kernel_history_clear()
        dr.eval(dr.ravel(v))
        launches = [k for k in dr.kernel_history() if k["type"] == "JIT"]
    assert sum("sin" in k["ir"].getvalue() or k["operation_count"] > 8 for k in launches) <= 1
    assert len(launches) == 4


def test_gradients_of_ravel() -> None:
    assert gradient(lambda x: dr.ravel(Array2f(x, x * 2)) * Float(1, 10, 100, 1000), 1, 2) == [21, 2100]
    assert gradient(lambda x: dr.unravel(Array2f, x).y * 3, 1, 2, 3, 4) == [0, 3, 0, 3]


@pytest.mark.parametrize("size", SIZES)
def test_running_sums(size: int) -> None:
    h = np.arange(size) % 7
    inclusive = np.cumsum(h)
    assert np.array_equal(dr.cumsum(UInt(h)).numpy(), inclusive)
    assert np.array_equal(dr.prefix_sum(UInt(h)).numpy(), inclusive - h)
    assert np.array_equal(dr.cumsum(UInt(h), reverse=True).numpy(), np.cumsum(h[::-1])[::-1])
    assert np.allclose(dr.cumsum(Float(h * 0.1)).numpy(), inclusive * 0.1, rtol=1e-6)


@pytest.mark.parametrize("kind", ["Int8", "UInt8", "Int64", "Float16", "Float64"])
def test_running_sums_of_other_types(kind: str) -> None:
    h = (np.arange(300) % 5).astype(getattr(t, kind).dtype.numpy)
    found = dr.cumsum(getattr(t, kind)(h)).numpy()
    assert found.dtype == h.dtype and np.allclose(found, np.cumsum(h, dtype=h.dtype), atol=1)


def test_running_sums_of_components_rows_and_nothing() -> None:
    assert np.array_equal(dr.cumsum(Array2f(Float(1, 2), Float(3, 4))).numpy(), [[1, 3], [3, 7]])
    a = np.arange(12.0).reshape(3, 4)
    for axis in (0, 1, -1):
        assert np.array_equal(dr.cumsum(TensorXf(a), axis).numpy(), np.cumsum(a, axis))
    assert len(dr.cumsum(Float())) == 0
    with pytest.raises(TypeError, match="masks"):
        dr.prefix_sum(Bool(True))


def test_gradients_of_running_sums() -> None:
    assert gradient(lambda x: dr.prefix_sum(x) * Float(1, 10, 100), 1, 2, 3) == [110, 100, 0]
    weights = Float(1, 10, 100, 1000, 10000)
    assert gradient(lambda x: dr.block_prefix_sum(x, 3, False) * weights, *range(5)) == [111, 110, 100, 11000, 10000]


@pytest.mark.parametrize("size", SIZES)
def test_compress_keeps_the_order(size: int) -> None:
    mask = np.random.default_rng(size).random(size) < 0.3
    assert np.array_equal(dr.compress(Bool(mask)).numpy(), np.nonzero(mask)[0])


def test_compress_of_constants() -> None:
    assert len(dr.compress(Bool(False, False))) == 0 and list(dr.compress(dr.full(Bool, True, 3))) == [0, 1, 2]
    assert len(dr.compress(dr.zeros(Bool, 0))) == 0
    with pytest.raises(TypeError, match="mask"):
        dr.compress(UInt(1))


def test_block_reductions() -> None:
    x = np.arange(10.0)
    assert list(dr.block_sum(Float(x), 4)) == [6, 22, 17]
    assert list(dr.block_reduce("max", Float(x), 4)) == [3, 7, 9] and list(dr.block_reduce("min", Int(x), 4)) == [
        0,
        4,
        8,
    ]
    assert list(dr.block_reduce("or", Bool(x == 9), 4)) == [False, False, True]
    assert gradient(lambda v: dr.block_reduce("max", v, 2) * Float(1, 2), 3, 3, 5, 4) == [1, 1, 2, 0]
    assert dr.check_grad(lambda v: dr.block_reduce("mul", v, 2), Float64(1, 2, 3, 4, 5)).error < 1e-6
    big = np.ones(1_000_000, np.float32) * np.float32(0.1)
    assert np.allclose(dr.block_sum(Float(big), 500_000).numpy(), 50_000, rtol=1e-6)
    with pytest.raises(ValueError, match="positive"):
        dr.block_sum(Float(x), 0)


def test_reordering() -> None:
    assert list(dr.reverse(Float(1, 2, 3))) == [3, 2, 1]
    assert list(dr.tile(Float(1, 2), 2)) == [1, 2, 1, 2] and list(dr.repeat(Float(1, 2), 2)) == [1, 1, 2, 2]
    a = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(dr.reverse(TensorXf(a), 1).numpy(), a[:, ::-1])
    assert np.array_equal(dr.take(TensorXf(a), UInt(2, 0), 1).numpy(), a[:, [2, 0]])
    x, y = dr.meshgrid(Float(1, 2), Float(3, 4, 5))
    assert list(x) == [1, 2, 1, 2, 1, 2] and list(y) == [3, 3, 4, 4, 5, 5]
    x, y = dr.meshgrid(Float(1, 2), Float(3, 4, 5), indexing="ij")
    assert np.array_equal([list(x), list(y)], [g.ravel() for g in np.meshgrid([1, 2], [3, 4, 5], indexing="ij")])
    assert dr.reshape(TensorXf, Float(np.arange(6)), (-1, 2)).shape == (3, 2)


def test_slice_and_width_of_trees() -> None:
    tree = {"a": Array2f(Float(1, 2), 3), "b": [Float(4, 5), "text"]}
    assert dr.width(tree) == 2
    part = dr.slice(tree, 1)
    assert list(part["a"]) == [2, 3] and part["b"] == [5, "text"]
    with pytest.raises(RuntimeError, match=r"\[2, 3\]"):
        dr.width(Float(1, 2), Float(1, 2, 3))
