"""Transforms of single points, against values computed by hand and NumPy."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from luxgrad.render.transform import ScalarTransform3f, ScalarTransform4f

T = ScalarTransform4f


def test_calls_chain_from_the_right() -> None:
    chain = T().translate([1, 2, 3]).rotate([0, 1, 0], 30).scale(2)
    assert chain == T().translate([1, 2, 3]) @ T().rotate([0, 1, 0], 30) @ T().scale(2)
    root3 = np.sqrt(3)
    assert np.allclose(chain @ [1, 2, 3], [root3 + 3 + 1, 4 + 2, -1 + 3 * root3 + 3])


def test_points_vectors_and_normals() -> None:
    chain = T().translate([1, 2, 3]).scale([2, 1, 4])
    points = np.arange(12.0).reshape(4, 3)
    assert np.allclose(chain @ points, points * [2, 1, 4] + [1, 2, 3])
    assert np.allclose(chain.transform_vector(points), points * [2, 1, 4])
    assert np.allclose(chain.transform_normal([1, 1, 1]), [0.5, 1, 0.25])
    skewed = T(np.array([[1, 2, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1.0]]))
    tangent, normal = np.array([1.0, 2, 3]), np.array([3.0, 0, -1])
    assert abs(skewed.transform_vector(tangent) @ skewed.transform_normal(normal)) < 1e-12


def test_inverse() -> None:
    chain = T().look_at([3, 1, 2], [0, 0, 1], [0, 0, 1]).scale([1, 2, 3])
    assert np.allclose((chain @ chain.inverse()).matrix, np.eye(4))
    assert np.allclose(chain.inverse_transpose().matrix, np.linalg.inv(chain.matrix).T)
    with pytest.raises(ValueError, match="no inverse"):
        T().scale([1, 0, 1]).inverse()


def test_look_at_is_a_frame_with_x_to_the_left() -> None:
    frame = T().look_at(origin=[0, 3, 4], target=[1, 0, 0], up=[0, 1, 0])
    linear = frame.matrix[:3, :3]
    assert np.allclose(linear.T @ linear, np.eye(3)) and np.linalg.det(linear) > 0
    assert np.allclose(frame @ [0, 0, np.sqrt(26)], [1, 0, 0])
    assert np.cross([0, 1, 0], linear[:, 2]) @ linear[:, 0] > 0
    with pytest.raises(ValueError, match="same point"):
        T().look_at([1, 1, 1], [1, 1, 1], [0, 1, 0])


def test_look_at_without_a_usable_up() -> None:
    assert np.allclose(T().look_at([0, 0, 4], [0, 0, 0]).matrix[:3, :3], [[0, 1, 0], [1, 0, 0], [0, 0, -1]])
    for up in ([0, 0, 0], [0, 0, -5]):
        assert np.all(np.isfinite(T().look_at([0, 0, 4], [0, 0, 0], up).matrix))


def test_projections() -> None:
    view = T().perspective(40, 0.1, 100)
    assert np.allclose(np.diag(view.matrix), [2.747477, 2.747477, 1.001001, 0], atol=1e-6)
    edge = np.tan(np.radians(20))
    assert np.allclose(view @ [[2 * edge, 0, 2], [0, 0, 0.1], [0, 0, 100]], [[1, 0, 0.95095], [0, 0, 0], [0, 0, 1]],
                       atol=1e-5)
    assert np.allclose(T().orthographic(1, 5) @ [2, 3, 5], [2, 3, 1])


def test_scale_is_detected() -> None:
    assert not T().rotate([1, 2, 3], 50).translate([4, 5, 6]).has_scale()
    assert T().scale(1.01).has_scale() and T(np.diag([1, 1, 2, 1.0])).has_scale()


def test_frames() -> None:
    s, t, n = np.eye(3)[[1, 2, 0]]
    assert np.allclose(T().from_frame(s, t, n) @ [1, 2, 3], [3, 1, 2])
    assert np.allclose(T().to_frame(s, t, n) @ [3, 1, 2], [1, 2, 3])


def test_plane() -> None:
    plane = ScalarTransform3f().translate([1, 2]).scale([3, 4])
    assert plane.matrix.tolist() == [[3, 0, 1], [0, 4, 2], [0, 0, 1]]
    assert np.allclose(ScalarTransform3f().rotate(90) @ [1, 0], [0, 1])
    assert T().translate([1, 2, 9]).scale([3, 4, 7]).extract() == plane
    assert T.from_plane(plane).extract() == plane


def test_matrices_of_many_makes() -> None:
    matrix = np.diag([1.0, 2, 3, 1])
    assert T(matrix.tolist()) == T(matrix) == T(T(matrix)) == T(matrix[:, :, None])
    with pytest.raises(ValueError, match=r"expected a matrix of shape \(4, 4\), got \(3, 3\)"):
        T(np.eye(3))
    with pytest.raises(ValueError, match="rotation axis"):
        T().rotate([0, 0, 0], 10)
    with pytest.raises(ValueError, match="last axis must have length 3"):
        T() @ [1.0, 2.0]


def test_values_do_not_change_and_compare() -> None:
    transform = T().translate([1, 2, 3])
    with pytest.raises(ValueError, match="read-only"):
        transform.matrix[0, 0] = 5
    assert transform != T() and transform != 3 and hash(transform) == hash(T().translate([1, 2, 3]))
    assert pickle.loads(pickle.dumps(transform)) == transform
    assert repr(ScalarTransform3f()).startswith("ScalarTransform3f([[1, 0, 0]")
