"""Vectors and matrices against NumPy, and derivatives where they could be infinite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import luxgrad as dr
import luxgrad.llvm.ad as t
import luxgrad.scalar as scalar
from luxgrad.llvm.ad import Array3f, Float, Matrix2f, Matrix3f, Matrix4f


def lanes_first(x: Any) -> np.ndarray:
    return np.moveaxis(x.numpy() if hasattr(x, "numpy") else x, -1, 0)


@pytest.fixture(params=[2, 3, 4])
def sample(request: pytest.FixtureRequest) -> tuple[Any, ...]:
    n = request.param
    rng = np.random.default_rng(n)
    a, b, v = rng.normal(size=(n, n, 7)), rng.normal(size=(n, n, 7)), rng.normal(size=(n, 7))
    kind, vector = getattr(t, f"Matrix{n}f64"), getattr(t, f"Array{n}f64")
    return kind(a), kind(b), vector(v), lanes_first(a), lanes_first(b), lanes_first(v)


def test_matrix_products(sample: tuple[Any, ...]) -> None:
    m, k, v, a, b, u = sample
    assert np.allclose(lanes_first(m * k), a @ b) and np.allclose(lanes_first(m @ k), a @ b)
    assert np.allclose(lanes_first(m @ v), np.einsum("nij,nj->ni", a, u))
    assert np.allclose(lanes_first(v @ m), np.einsum("ni,nij->nj", u, a))
    assert type(m @ k) is type(m) and type(m @ v) is type(v)
    assert np.allclose(lanes_first(m**3), a @ a @ a) and np.allclose(lanes_first(m**0), np.eye(len(u[0])))


def test_scalars_stand_for_multiples_of_the_identity(sample: tuple[Any, ...]) -> None:
    m, _, _, a, _, u = sample
    eye = np.eye(u.shape[1])
    assert np.allclose(lanes_first(m + 2), a + 2 * eye) and np.allclose(lanes_first(2 - m), 2 * eye - a)
    assert np.allclose(lanes_first(m * 2), 2 * a) and np.allclose(lanes_first(m / 2), a / 2)
    assert np.allclose(lanes_first(m + t.Float64(1)), a + eye)
    assert np.allclose(lanes_first(type(m)(3)), 3 * eye)


def test_inverse_and_determinant(sample: tuple[Any, ...]) -> None:
    m, k, _, a, b, _ = sample
    assert np.allclose(dr.det(m).numpy(), np.linalg.det(a))
    assert np.allclose(lanes_first(dr.inverse(m)), np.linalg.inv(a))
    assert np.allclose(lanes_first(k / m), b @ np.linalg.inv(a))
    assert np.allclose(lanes_first(1 / m), np.linalg.inv(a))


def test_transpose_trace_and_diagonal(sample: tuple[Any, ...]) -> None:
    m, _, v, a, _, u = sample
    assert np.array_equal(lanes_first(m.T), np.swapaxes(a, 1, 2))
    assert np.allclose(dr.trace(m).numpy(), np.trace(a, axis1=1, axis2=2))
    assert np.allclose(dr.frob(m).numpy(), (a * a).sum((1, 2)))
    assert np.array_equal(lanes_first(dr.diag(m)), np.diagonal(a, axis1=1, axis2=2))
    assert np.array_equal(lanes_first(dr.diag(v)), np.einsum("ni,ij->nij", u, np.eye(u.shape[1])))


def test_transpose_shares_nothing() -> None:
    m = Matrix2f(1, 2, 3, 4)
    m.T[0][0] += 10
    assert m[0, 0][0] == 1


def test_matrix_constructors() -> None:
    rows = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    for m in (
        Matrix3f(*range(1, 10)),
        Matrix3f(rows),
        Matrix3f(*rows),
        Matrix3f(np.array(rows)),
        Matrix3f(*map(Array3f, rows)),
    ):
        assert np.array_equal(m.numpy()[..., 0], rows)
    assert np.array_equal(Matrix4f(Matrix3f(rows)).numpy()[3, :, 0], [0, 0, 0, 1])
    assert np.array_equal(Matrix3f(Matrix4f(2)).numpy()[..., 0], 2 * np.eye(3))
    assert np.array_equal(dr.identity(Matrix3f, 4).numpy(), np.tile(np.eye(3)[..., None], 4))
    assert np.array_equal(dr.zeros(Matrix3f, (3, 3, 2)).numpy(), np.zeros((3, 3, 2)))
    with pytest.raises(TypeError, match="diag"):
        Matrix3f(Array3f(1, 2, 3))
    with pytest.raises(TypeError):
        Matrix3f([[1, 2, 3]])


def test_comparison_and_in_place() -> None:
    m = Matrix3f(2)
    same = m
    m *= Matrix3f(3)
    assert same is m and m[1, 1][0] == 6
    assert type(m == m).__name__ == "Array33b"
    with pytest.raises(RuntimeError, match="Incompatible"):
        m * Matrix2f(1)


def test_scalar_matrices() -> None:
    m = scalar.Matrix3f(1, 2, 3, 4, 5, 6, 7, 8, 10)
    assert np.allclose((dr.inverse(m) * m).numpy(), np.eye(3))
    assert list(m @ scalar.Array3f(1, 2, 3)) == [14, 32, 53]


def test_vector_functions() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 3, 9)).astype(np.float32)
    x, y = Array3f(a), Array3f(b)
    assert np.allclose(dr.cross(x, y).numpy(), np.cross(a, b, axis=0), atol=1e-6)
    assert np.allclose(dr.dot(x, y).numpy(), (a * b).sum(0), atol=1e-6)
    assert np.allclose(dr.abs_dot(x, y).numpy(), abs((a * b).sum(0)), atol=1e-6)
    assert np.allclose(dr.norm(x).numpy(), np.linalg.norm(a, axis=0))
    assert np.allclose(dr.normalize(x).numpy(), a / np.linalg.norm(a, axis=0), atol=1e-6)
    angle = dr.unit_angle(dr.normalize(x), dr.normalize(y)).numpy()
    cosine = (a * b).sum(0) / np.linalg.norm(a, axis=0) / np.linalg.norm(b, axis=0)
    assert np.allclose(angle, np.arccos(cosine), atol=1e-5)
    with pytest.raises(TypeError, match="three components"):
        dr.cross(t.Array2f(1), t.Array2f(1))


def test_derivative_of_the_length_is_finite_at_zero() -> None:
    v = Array3f([0.0, 3.0], [0.0, 0.0], [0.0, 4.0])
    dr.enable_grad(v)
    dr.backward(dr.norm(v))
    assert np.allclose(dr.grad(v).numpy(), [[0, 0.6], [0, 0], [0, 0.8]])


def test_derivative_of_the_inverse() -> None:
    x = Float(0.7)
    assert dr.check_grad(lambda x: dr.inverse(t.Matrix2f64(x, 1, 2, x * x))[0, 1], t.Float64(x)).error < 1e-6
