"""Tensors against NumPy: indexing, assignment, broadcasting, reductions, products."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import luxgrad as dr
from luxgrad.llvm.ad import Array3f, Bool, Float, Int, TensorXf, TensorXf64, TensorXi, TensorXu, UInt

VALUES = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

KEYS: list[Any] = [
    0, -1, (0, 1), (1, 2, 3), (slice(None), 1), (Ellipsis, 0), (Ellipsis, slice(None, None, -1)), (None, 0), Ellipsis,
    (slice(1, None), slice(None, None, 2), slice(3, 0, -2)), (slice(None), None), (0, Ellipsis, None), slice(2, 2),
    [1, 0], [-1], (slice(None), [0, 2], [1, 3]), ([0, 1], slice(None), [1, 3]),
    (slice(None), np.array([[0, 1], [2, 0]])),
    (0, slice(None), [1, 1]), (0, [2, 0]), ([[0], [1]], [0, 1, 2]), (slice(None), slice(-2, None), -2),
]  # fmt: skip


def same(x: Any, y: Any) -> bool:
    return x.shape == np.shape(y) and bool(np.array_equal(x.numpy(), y))


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_reading_and_writing_as_numpy(key: Any) -> None:
    t, a = TensorXf(VALUES), VALUES.copy()
    assert same(t[key], a[key])
    values = np.random.default_rng(0).normal(size=a[key].shape).astype(np.float32)
    a[key] = values
    t[key] = values
    assert same(t, a)
    a[key] = 7
    t[key] = 7
    assert same(t, a)
    assert VALUES[1, 2, 3] == 23


def test_index_arrays_of_the_library() -> None:
    t = TensorXf(VALUES)
    assert same(t[UInt(1, 0)], VALUES[[1, 0]]) and same(t[:, Int(-1, 0)], VALUES[:, [-1, 0]])
    assert same(t[:, TensorXu([[0, 1]])], VALUES[:, [[0, 1]]])


def test_slices_are_copies() -> None:
    t = TensorXf(VALUES)
    part = t[0]
    part[0] = 77
    u = TensorXf(t)
    u += 1
    assert same(t, VALUES)


def test_wrong_indices() -> None:
    t = TensorXf(VALUES)
    for key, message in ((2, "index 2 is out of bounds for axis 0 with size 2"), ((0, 0, 0, 0), "too many indices"),
                         ((..., ...), "one ellipsis"), (Float(1), "integers"), ("x", "found 'x'")):  # fmt: skip
        with pytest.raises(IndexError, match=message):
            t[key]
    with pytest.raises(RuntimeError, match=r"\(5,\)"):
        t[0] = np.zeros(5)


def test_masks_select() -> None:
    t = TensorXf(VALUES)
    t[t > 5] += 1
    t[t > 20] = 0
    wanted = np.where(VALUES > 5, VALUES + 1, VALUES)
    assert same(t, np.where(wanted > 20, 0, wanted))


def test_broadcasting() -> None:
    t = TensorXf(VALUES)
    column = np.arange(3, dtype=np.float32)[:, None]
    assert same(t + TensorXf(column), VALUES + column) and same(t * Float(1, 2, 3, 4), VALUES * [1, 2, 3, 4])
    assert same(2 - t, 2 - VALUES) and same(t > 3, VALUES > 3) and same(-t, -VALUES)
    assert same(TensorXf(column) + TensorXf([1, 2]), column + [1, 2])
    assert same(TensorXf(3.0) * t, 3 * VALUES)
    assert same(t + VALUES[0], VALUES + VALUES[0])
    assert same(dr.maximum(t, 5.5), np.maximum(VALUES, 5.5))
    assert same(dr.select(t > 3, t, 0), np.where(VALUES > 3, VALUES, 0))
    assert type(TensorXi([1]) + 1.5) is TensorXf and type(t + TensorXf64(1.0)) is TensorXf64
    with pytest.raises(RuntimeError, match="incompatible shapes"):
        t + TensorXf([1, 2, 3])
    with pytest.raises(RuntimeError, match="Incompatible arguments: TensorXf and Array3f"):
        t + Array3f(1)


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, (0, 1), (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(axis: Any, keepdims: bool) -> None:
    t = TensorXf(VALUES)
    for ours, theirs in ((dr.sum, np.sum), (dr.max, np.max), (dr.min, np.min), (dr.mean, np.mean)):
        assert np.allclose(ours(t, axis, keepdims=keepdims).numpy(), theirs(VALUES, axis, keepdims=keepdims))
        assert ours(t, axis, keepdims=keepdims).shape == theirs(VALUES, axis, keepdims=keepdims).shape
    assert same(dr.count(t > 7, axis), np.sum(VALUES > 7, axis))
    assert same(dr.any(t > 7, axis), np.any(VALUES > 7, axis)) and same(dr.all(t > 7, axis), np.all(VALUES > 7, axis))


def test_tensors_reduce_everything_by_default() -> None:
    assert dr.sum(TensorXf(VALUES)).shape == () and float(dr.sum(TensorXf(VALUES))) == 276
    assert dr.max(TensorXf(np.zeros((0, 3))), 0).shape == (3,)
    with pytest.raises(RuntimeError, match="out of range"):
        dr.sum(TensorXf(VALUES), 3)


@pytest.mark.parametrize(
    "shapes",
    [((3, 4), (4, 2)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 1)), ((4,), (4, 3)), ((3, 4), (4,)), ((4,), (4,))],
)
def test_matrix_product(shapes: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=s) for s in shapes)
    product = TensorXf64(a) @ TensorXf64(b)
    assert product.shape == (a @ b).shape and np.allclose(product.numpy(), a @ b)


def test_construction() -> None:
    assert (
        TensorXf(3.0).shape == () and TensorXf([[1, 2], [3, 4]]).shape == (2, 2) and TensorXf(Float(1, 2)).shape == (2,)
    )
    assert TensorXf([1, 2, 3, 4], shape=(2, 2)).shape == (2, 2) and same(TensorXf(1, (2, 2)), np.ones((2, 2)))
    v = Array3f([1, 2], [3, 4], [5, 6])
    assert same(TensorXf(v), v.numpy()) and same(TensorXf(v, flip_axes=True), v.numpy().T)
    assert np.array_equal(Array3f(TensorXf(v)).numpy(), v.numpy())
    assert same(TensorXf(VALUES.T), VALUES.T) and np.shares_memory(TensorXf(VALUES).numpy(), VALUES)
    assert same(dr.zeros(TensorXf, (2, 3)), np.zeros((2, 3))) and same(dr.arange(TensorXf, 3), np.arange(3))
    with pytest.raises(TypeError, match="do not fill"):
        TensorXf([1, 2, 3], shape=(2, 2))
    for dtype in (np.float64, np.int64, np.uint8, np.float16, bool):
        assert np.array(TensorXf(VALUES.astype(dtype))).dtype == np.float32


def test_copies_pickles_text() -> None:
    t = TensorXf([[1, 2], [3, 4.5]])
    for u in (copy.copy(t), copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
        assert type(u) is TensorXf and same(u, t.numpy())
    assert repr(t) == "TensorXf([[1, 2],\n [3, 4.5]], shape=(2, 2))"
    assert [row.shape for row in t] == [(2,), (2,)] and len(t) == 2 and bool(TensorXf(1.0) == 1)


def test_gradients_pass_through_indexing_broadcasting_and_reductions() -> None:
    def f(x: Any) -> Any:
        t = TensorXf64(x, (2, 3))
        u = t[:, ::-1] * t[1] + dr.max(t, 0) * dr.sum(t, 1, keepdims=True)
        u[0] = u[0] * t[1, 0]
        return u.array

    import luxgrad.llvm.ad as types

    assert dr.check_grad(f, types.Float64(1, 5, 2, 4, 3, 6)).error < 1e-6


def test_gradient_of_a_tensor_has_its_shape() -> None:
    t = TensorXf(VALUES)
    dr.enable_grad(t)
    dr.backward(dr.max(t, 1))
    wanted = np.zeros_like(VALUES)
    wanted[:, 2] = 1
    assert same(t.grad, wanted)


def test_tensor_in_a_loop() -> None:
    t = TensorXf(VALUES)
    _, t = dr.while_loop((UInt(0), t), lambda i, t: i < 3, lambda i, t: (i + 1, t * 2))
    assert same(t, VALUES * 8)
    assert same(dr.select(Bool(True), t, 0), VALUES * 8)


def test_dimensions_are_added_removed_and_exchanged() -> None:
    t = TensorXf(VALUES)
    assert same(dr.expand_dims(t, 1), VALUES[:, None]) and same(dr.squeeze(t[:1, :, :1]), VALUES[0, :, 0])
    assert same(dr.squeeze(t[:1, :, :1], -1), VALUES[:1, :, 0]) and same(dr.transpose(t), VALUES.T)
    assert same(dr.transpose(t, (1, 0, 2)), VALUES.transpose(1, 0, 2)) and same(t.T, VALUES.T)
    assert same(dr.moveaxis(t, 0, -1), np.moveaxis(VALUES, 0, -1)) and same(dr.swapaxes(t, 0, 2), VALUES.swapaxes(0, 2))
    for axis in (0, 1, -1):
        assert same(dr.stack([t, t + 1], axis), np.stack([VALUES, VALUES + 1], axis))
    for wrong in (lambda: dr.squeeze(t, 0), lambda: dr.transpose(t, (0, 0, 1)), lambda: dr.stack([t, t[0]])):
        with pytest.raises(RuntimeError):
            wrong()
    with pytest.raises(TypeError, match="tensor is needed"):
        dr.squeeze(Float(1))


def test_binary_search() -> None:
    rng = np.random.default_rng(0)
    for size in (0, 1, 2, 7, 100):
        values = np.sort(rng.random(size)).astype(np.float32)
        queries = np.append(rng.random(50), [-1, 2]).astype(np.float32)
        table, wanted, sought = Float(values), np.searchsorted(values, queries), Float(queries)
        found = dr.binary_search(0, size, lambda i, t=table, q=sought: dr.gather(Float, t, i) < q)
        assert np.array_equal(np.broadcast_to(np.array(found), 52), wanted)
    found = dr.binary_search(UInt(0, 3), UInt(3, 5), lambda i: dr.gather(Float, Float(1, 2, 3, 4, 5, 9), i) < 2.5)
    assert list(found) == [2, 3]
    assert dr.binary_search(0, 10, lambda i: i < 7) == 7
