"""The change of variables for meshes, against dense linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import luxgrad.ad.api as ad
from luxgrad.jit.arrays import reduce
from luxgrad.jit.arrays.namespace import namespace
from luxgrad.optim.adam import Adam
from luxgrad.optim.large_steps import LargeSteps

types = namespace("llvm", True)
Float, UInt = types.get("Float64"), types.get("UInt32")


def sheet(n: int = 5) -> tuple[Any, Any]:
    """Return vertices (V, 3) and triangles (F, 3) of a square grid."""
    x, y = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n))
    vertices = np.stack([x.ravel(), y.ravel(), 0.1 * x.ravel() * y.ravel()], axis=1)
    i = np.arange(n * n).reshape(n, n)
    a, b, c, d = i[:-1, :-1].ravel(), i[:-1, 1:].ravel(), i[1:, :-1].ravel(), i[1:, 1:].ravel()
    return vertices, np.concatenate([np.stack([a, b, d], 1), np.stack([a, d, c], 1)])


def dense(vertices: Any, faces: Any, lambda_: float) -> Any:
    n = len(vertices)
    adjacency = np.zeros((n, n))
    for f in faces:
        for a, b in ((0, 1), (1, 2), (2, 0)):
            adjacency[f[a], f[b]] = adjacency[f[b], f[a]] = 1
    return np.eye(n) + lambda_ * (np.diag(adjacency.sum(1)) - adjacency)


def test_both_directions_agree_with_the_dense_matrix() -> None:
    v, faces = sheet()
    system = LargeSteps(Float(v.ravel()), UInt(faces.ravel()), lambda_=7.0)
    order = np.unique(v, axis=0, return_index=True)[1]
    u = system.to_differential(Float(v.ravel())).numpy().reshape(-1, 3)
    assert np.allclose(u, (dense(v, faces, 7.0) @ v)[order], atol=1e-12)
    assert np.allclose(system.from_differential(Float(u.ravel())).numpy(), v.ravel(), atol=1e-9)


def test_gradients_are_smoothed_by_the_inverse() -> None:
    v, faces = sheet()
    system = LargeSteps(Float(v.ravel()), UInt(faces.ravel()), 19.0)
    u = system.to_differential(Float(v.ravel()))
    ad.enable_grad(u)
    weight = np.random.default_rng(0).normal(size=v.shape)
    ad.backward(reduce.sum(system.from_differential(u) * Float(weight.ravel())))
    order = np.unique(v, axis=0, return_index=True)[1]
    expected = np.linalg.solve(dense(v, faces, 19.0), weight)[order]
    assert np.allclose(u.grad.numpy().reshape(-1, 3), expected, atol=1e-9)
    ad.clear_grad(u)
    tangent = np.random.default_rng(1).normal(size=v.shape)
    ad.set_grad(u, Float(tangent[order].ravel()))
    moved = ad.forward_to(system.from_differential(u))
    assert np.allclose(moved.numpy().reshape(-1, 3), np.linalg.solve(dense(v, faces, 19.0), tangent), atol=1e-9)


def test_vertices_at_one_place_move_together() -> None:
    v = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], float)
    system = LargeSteps(Float(v.ravel()), UInt([0, 1, 2, 3, 5, 4]))
    assert system.n_vertices == 4
    u = system.to_differential(Float(v.ravel()))
    ad.enable_grad(u)
    moved = system.from_differential(u + Float(np.arange(12.0))).numpy().reshape(-1, 3)
    assert np.array_equal(moved[1], moved[3]) and np.array_equal(moved[2], moved[4])


def test_unused_vertices_and_degenerate_triangles_stay_put() -> None:
    v = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [5, 5, 5]], float)
    system = LargeSteps(Float(v.ravel()), UInt([0, 1, 2, 0, 0, 1]))
    u = system.to_differential(Float(v.ravel()))
    assert np.allclose(system.from_differential(u).numpy().reshape(-1, 3), v, atol=1e-9)


def test_a_sheet_is_pulled_to_another_without_tearing() -> None:
    v, faces = sheet()
    goal = v + [0.0, 0.0, 0.3]
    system = LargeSteps(Float(v.ravel()), UInt(faces.ravel()), 5.0)
    opt = Adam(0.1, {"u": system.to_differential(Float(v.ravel()))}, uniform=True)
    roughness = 0.0
    for _ in range(80):
        now = system.from_differential(opt["u"])
        ad.backward(reduce.sum((now - Float(goal.ravel())) * (now - Float(goal.ravel()))))
        opt.step()
        z = np.array(now).reshape(5, 5, 3)[..., 2] - v.reshape(5, 5, 3)[..., 2]
        roughness = max(roughness, float(np.abs(np.diff(z, axis=0)).max()))
    assert np.allclose(np.array(now).reshape(-1, 3), goal, atol=0.02)
    assert roughness < 0.05


def test_wrong_arguments() -> None:
    v, faces = sheet()
    with pytest.raises(ValueError, match="three numbers per vertex"):
        LargeSteps(Float([1, 2]), UInt([0, 0, 0]))
    with pytest.raises(ValueError, match="indices up to 99"):
        LargeSteps(Float(v.ravel()), UInt([0, 1, 99]))
    with pytest.raises(ValueError, match="lambda_"):
        LargeSteps(Float(v.ravel()), UInt(faces.ravel()), 0.0)
