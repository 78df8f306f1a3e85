"""Sparse matrices against NumPy and SciPy: products, conversions, derivatives, errors."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import luxgrad as dr
import luxgrad.llvm as plain
import luxgrad.llvm.ad as t
from luxgrad import CSRMatrix
from luxgrad.llvm.ad import Float64, TensorXf64, UInt32

SHAPES = [(1, 1), (5, 7), (7, 5), (0, 3), (3, 0), (0, 0), (40, 33), (1, 9), (9, 1)]
TENSORS = {"Float16": "TensorXf16", "Float32": "TensorXf", "Float64": "TensorXf64"}


def dense_of(shape: tuple[int, int], seed: int = 0) -> Any:
    """Return a matrix of small whole numbers, two thirds of them zero: sums and products are exact."""
    rng = np.random.default_rng(seed)
    return rng.integers(-3, 4, shape) * (rng.random(shape) < 1 / 3)


@pytest.mark.parametrize("shape", SHAPES)
def test_products_and_conversions_are_exact(shape: tuple[int, int]) -> None:
    dense, rng = dense_of(shape), np.random.default_rng(1)
    x, y = rng.integers(-4, 5, shape[1]), rng.integers(-4, 5, shape[0])
    wide, tall = rng.integers(-4, 5, (shape[1], 3)), rng.integers(-4, 5, (shape[0], 3))
    A = CSRMatrix.from_scipy(scipy.sparse.csr_array(dense.astype(float)))
    assert A.shape == shape and A.nnz == np.count_nonzero(dense) and type(A.values) is Float64
    assert np.array_equal((A @ Float64(x)).numpy(), dense @ x)
    assert np.array_equal(A.matvec(Float64(x)).numpy(), dense @ x)
    assert np.array_equal(A.rmatvec(Float64(y)).numpy(), dense.T @ y)
    assert np.array_equal((Float64(y) @ A).numpy(), y @ dense)
    assert np.array_equal((A @ TensorXf64(wide)).numpy(), dense @ wide)
    assert np.array_equal(A.rmatvec(TensorXf64(tall)).numpy(), dense.T @ tall)
    assert np.array_equal((A.T @ Float64(y)).numpy(), dense.T @ y) and A.T.shape == shape[::-1]
    assert np.array_equal((A.T.T @ Float64(x)).numpy(), dense @ x)
    assert np.array_equal(A.to_dense().numpy(), dense) and np.array_equal(A.T.to_dense().numpy(), dense.T)
    assert np.array_equal(A.diagonal().numpy(), np.diagonal(dense))
    assert np.array_equal(A.to_scipy().toarray(), dense)
    assert np.array_equal(CSRMatrix.from_dense(dense.astype(float)).to_dense().numpy(), dense)
    assert np.array_equal(CSRMatrix(A.row_offsets, A.columns, A.values, shape).to_dense().numpy(), dense)


@pytest.mark.parametrize("ns", [plain, t], ids=["llvm", "llvm.ad"])
@pytest.mark.parametrize("name", list(TENSORS))
def test_every_float_type(ns: Any, name: str) -> None:
    dense, kind = dense_of((11, 13)), getattr(ns, name)
    x, X = np.arange(13) % 5 - 2, np.arange(26).reshape(13, 2) % 5 - 2
    A = CSRMatrix.from_dense(dense, dtype=kind)
    product = A @ kind(x)
    assert type(product) is kind and np.array_equal(product.numpy(), dense @ x)
    assert np.array_equal((A @ getattr(ns, TENSORS[name])(X)).numpy(), dense @ X)
    assert np.array_equal(A.to_scipy().toarray(), dense)
    assert type(A @ ns.Float64(x)) is ns.Float64 and np.array_equal((A @ x).numpy(), dense @ x)
    assert np.array_equal((X.T @ A.T).numpy(), X.T @ dense.T)


def test_coordinates_come_in_any_order_and_add_up() -> None:
    rng = np.random.default_rng(2)
    rows, columns, values = rng.integers(0, 9, 200), rng.integers(0, 7, 200), rng.integers(-5, 6, 200).astype(float)
    expected = scipy.sparse.coo_array((values, (rows, columns)), (9, 7))
    A = CSRMatrix.from_coo(UInt32(rows), UInt32(columns), Float64(values), (9, 7))
    assert np.array_equal(A.to_dense().numpy(), expected.toarray()) and A.nnz == expected.tocsr().nnz
    assert np.array_equal(A.columns.numpy(), expected.tocsr().indices)
    assert np.array_equal(A.row_offsets.numpy(), expected.tocsr().indptr)
    unique = CSRMatrix.from_coo([2, 0, 1], [0, 1, 2], [1.0, 2.0, 3.0], (3, 3))
    assert np.array_equal(unique.to_dense().numpy(), [[0, 2, 0], [0, 0, 3], [1, 0, 0]])
    assert CSRMatrix.from_coo([], [], [], (2, 3)).nnz == 0
    doubled = CSRMatrix([0, 3], [1, 0, 1], [1.0, 2.0, 3.0], (1, 2))  # kept as they are, they count as their sum
    assert (
        doubled.nnz == 3
        and list(doubled @ t.Float([10, 1])) == [24]
        and doubled.to_dense().numpy().tolist() == [[2, 4]]
    )
    assert doubled.diagonal()[0] == 2 and list(doubled.rmatvec(t.Float([1]))) == [2, 4]


def test_rows_are_summed_in_order() -> None:
    rng = np.random.default_rng(3)
    values, x = rng.random(1000).astype(np.float32), rng.random(1000).astype(np.float32)
    A = CSRMatrix([0, 1000], np.arange(1000), plain.Float(values))
    results = {np.float32(dr.llvm.Float(A @ plain.Float(x))[0]) for _ in range(3)}
    expected = float(np.dot(values.astype(float), x.astype(float)))
    assert len(results) == 1 and abs(results.pop() - expected) < 1e-4 * expected


@pytest.mark.parametrize("mode", ["backward", "forward"])
def test_derivatives(mode: str) -> None:
    rows, columns = [2, 0, 0, 2, 2, 1], [1, 3, 0, 1, 0, 2]  # one place twice, one row empty
    rng = np.random.default_rng(4)

    def f(values: Float64, x: Float64, y: Float64) -> Any:
        A = CSRMatrix.from_coo(rows, columns, values, (4, 5))
        once, back = A @ x, A.rmatvec(y)
        return dr.concat([once * once, back * back, dr.square(A.T @ y), A.diagonal(), dr.square(A.to_dense().array)])

    def g(values: Float64, x: Float64) -> Any:
        A = CSRMatrix.from_coo(rows, columns, values, (4, 5))
        return dr.square((A @ TensorXf64(x, (5, 3))).array)

    def h(values: Float64) -> Any:
        return dr.square(CSRMatrix.from_dense(TensorXf64(values, (3, 4)), 0.4).values)

    values = Float64(rng.random(6))
    dr.check_grad(f, values, Float64(rng.random(5)), Float64(rng.random(4)), mode=mode)
    dr.check_grad(g, values, Float64(rng.random(15)), mode=mode)
    dr.check_grad(h, Float64(rng.random(12)), mode=mode)


def test_the_product_is_not_computed_twice_for_its_derivative() -> None:
    A = CSRMatrix.from_dense(dense_of((50, 40)), dtype=Float64)
    x = Float64(np.ones(40))
    dr.enable_grad(x)
    dr.eval(A @ x)
    with dr.scoped_set_flag(dr.JitFlag.KernelHistory):
        dr.kernel_history_clear()
        product = A @ x
        dr.eval(product)
        assert len(dr.kernel_history([dr.KernelType.JIT])) == 1
    dr.backward(product)
    assert np.array_equal(x.grad.numpy(), dense_of((50, 40)).sum(axis=0))


def test_values_can_be_replaced_and_fitted() -> None:
    rng = np.random.default_rng(5)
    dense = dense_of((12, 8)).astype(float)
    A = CSRMatrix.from_dense(dense)
    A.values = A.values * 2.0
    assert np.array_equal(A.to_dense().numpy(), 2 * dense)
    single = A.with_values(t.Float(np.ones(A.nnz)))
    assert type(single.values) is t.Float and np.array_equal(single.to_dense().numpy(), dense != 0)
    X = rng.random((8, 30))
    target = TensorXf64(dense @ X)
    optimiser = dr.opt.Adam(lr=0.1, params={"values": A.values})
    for _ in range(150):
        A.values = optimiser["values"]
        dr.backward(dr.sum(dr.square((A @ TensorXf64(X) - target).array)))
        optimiser.step()
    assert np.abs(A.to_dense().numpy() - dense).max() < 0.3


def test_frozen_functions_and_loops_take_matrices() -> None:
    A = CSRMatrix.from_dense(dense_of((6, 6)), dtype=plain.Float64)
    dense, rng = dense_of((6, 6)), np.random.default_rng(6)

    @dr.freeze
    def step(A: CSRMatrix, x: Any) -> Any:
        return A.rmatvec(A @ x)

    A.prepare_transpose()
    for _ in range(3):
        x = rng.integers(-3, 4, 6)
        assert np.array_equal(step(A, plain.Float64(x)).numpy(), dense.T @ (dense @ x))
    assert step.n_recordings == 1
    B = CSRMatrix.from_dense(dense_of((6, 6), 1), dtype=plain.Float64)
    B.prepare_transpose()
    assert np.array_equal(step(B, plain.Float64(x)).numpy(), dense_of((6, 6), 1).T @ (dense_of((6, 6), 1) @ x))


def test_wrong_arguments_are_named() -> None:
    A = CSRMatrix.from_dense(np.eye(3)[:2])
    for make, error, message in (
        (lambda: CSRMatrix([0, 1, 2], [0, 3], [1.0, 2.0], (2, 3)), ValueError, r"columns\[1\] is 3, .* has 3 columns"),
        (lambda: CSRMatrix([0, 1], [-1], [1.0], (1, 3)), ValueError, r"columns\[0\] is -1"),
        (lambda: CSRMatrix([0, 2, 1], [0], [1.0], (2, 3)), ValueError, r"row_offsets\[2\] is 1, less than 2"),
        (lambda: CSRMatrix([1, 1], [0], [1.0], (1, 3)), ValueError, r"row_offsets\[0\] must be 0, found 1"),
        (lambda: CSRMatrix([0, 2], [0], [1.0], (1, 3)), ValueError, r"row_offsets\[1\] is 2, but there are 1 values"),
        (lambda: CSRMatrix([0, 1], [0], [1.0], (2, 3)), ValueError, "2 rows need 3 row_offsets, found 2"),
        (lambda: CSRMatrix([0, 1], [0, 1], [1.0], (1, 3)), ValueError, "2 columns do not belong to 1 values"),
        (lambda: CSRMatrix([0, 1], [0.5], [1.0], (1, 3)), TypeError, "columns must be integers, found float64"),
        (lambda: CSRMatrix([0, 1], [0], UInt32([1]), (1, 3)), TypeError, "floats, found UInt"),
        (lambda: CSRMatrix([0, 1], [0], [1.0], 3), TypeError, r"\(rows, columns\), found 3"),
        (lambda: CSRMatrix.from_coo([0, 5], [0, 0], [1.0, 2.0], (2, 2)), ValueError, r"rows\[1\] is 5, .* has 2 rows"),
        (lambda: CSRMatrix.from_coo([0], [0, 0], [1.0, 2.0], (2, 2)), ValueError, "1 rows, 2 columns and 2 values"),
        (lambda: CSRMatrix.from_dense(np.ones(3)), ValueError, "two dimensions"),
        (lambda: CSRMatrix.from_scipy(np.eye(2)), TypeError, "ndarray"),
        (lambda: A @ Float64([1, 2]), ValueError, r"\(2, 3\) cannot be multiplied with a Float64 of shape \(2,\)"),
        (lambda: A.rmatvec(Float64([1, 2, 3])), ValueError, r"transposed matrix of shape \(3, 2\)"),
        (lambda: A @ t.Array3f(1), TypeError, "Array3f"),
        (lambda: A @ t.TensorXf(np.ones((3, 1, 1))), TypeError, r"\(3, 1, 1\)"),
        (lambda: A.with_values([1.0]), ValueError, "2 values are needed, found 1"),
    ):
        with pytest.raises(error, match=message):
            make()
    with pytest.raises(RuntimeError, match="2 entries, found an array of 3"):
        A.values = Float64([1, 2, 3])


def test_scipy_is_only_needed_to_make_its_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    A = CSRMatrix([0, 1], [0], [2.0])
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    assert A.to_dense().numpy().tolist() == [[2]]
    with pytest.raises(ImportError, match="pip install scipy"):
        A.to_scipy()
