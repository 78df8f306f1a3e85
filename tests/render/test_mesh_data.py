"""Vertex normals and the cutting of polygons."""

from __future__ import annotations

import numpy as np
import pytest

from luxgrad.render.shapes.mesh_data import MeshData, complete_normals, compute_vertex_normals, fan_triangles


def test_normals_of_a_cube_corner_are_weighted_by_angle() -> None:
    # The top is cut into two triangles that meet at the corner, the sides have one each: weighting by area or by
    # number of triangles would pull the normal up.
    vertices = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, -1]], np.float32)
    faces = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 1]], np.uint32)
    expected = np.array([-1, -1, 1]) / np.sqrt(3)
    np.testing.assert_allclose(compute_vertex_normals(vertices, faces)[0], expected, atol=1e-6)


def test_normals_of_a_sphere_point_outwards() -> None:
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, 48, endpoint=False), np.linspace(0.1, np.pi - 0.1, 24), indexing="ij")
    points = np.stack([np.sin(v) * np.cos(u), np.sin(v) * np.sin(u), np.cos(v)], axis=2)
    i, j = np.meshgrid(np.arange(48), np.arange(23), indexing="ij")
    corner = [(((i + a) % 48) * 24 + j + b).ravel() for a, b in ((0, 0), (0, 1), (1, 1), (1, 0))]
    faces = np.concatenate([np.stack([corner[k] for k in t], axis=1) for t in ((0, 1, 2), (0, 2, 3))])
    normals = compute_vertex_normals(points.reshape(-1, 3), faces).reshape(48, 24, 3)
    np.testing.assert_allclose(normals[:, 1:-1], points[:, 1:-1], atol=0.01)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=2), 1, atol=1e-6)


def test_normals_without_any_direction() -> None:
    vertices = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [5, 5, 5]], np.float32)
    two_sided = np.array([[0, 1, 2], [0, 2, 1], [1, 1, 2]])
    assert compute_vertex_normals(vertices, two_sided).tolist() == [[1, 0, 0]] * 4


def test_zero_normals_are_completed_with_a_warning() -> None:
    mesh = MeshData("m", np.eye(3, dtype=np.float32), np.array([[0, 1, 2]], np.uint32))
    given = np.array([[0, 0, 4], [0, 0, 0], [0, 0, 0]], np.float32)
    with pytest.warns(UserWarning, match="a.obj: 2 of 3"):
        out = complete_normals(given, mesh, "a.obj")
    d = 3.0**-0.5
    np.testing.assert_allclose(out, [[0, 0, 1], [d, d, d], [d, d, d]], atol=1e-6)


def test_fans() -> None:
    assert fan_triangles(np.array([3, 5, 2, 4])).tolist() == [
        [0, 1, 2], [3, 4, 5], [3, 5, 6], [3, 6, 7], [10, 11, 12], [10, 12, 13]]  # fmt: skip
    assert fan_triangles(np.array([], dtype=np.int64)).shape == (0, 3)
