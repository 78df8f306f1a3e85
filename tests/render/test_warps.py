"""Maps of the unit square, tables drawn from, and microfacet normals: samples follow the density that is claimed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from chi2 import Grid, angles, assert_follows, directions, sphere
from lanes import SINGLE, numbers, uniform, vectors

from luxgrad.render import warp
from luxgrad.render.distributions import Bilinear2D, Discrete2D
from luxgrad.render.microfacet import Microfacets

pytestmark = [pytest.mark.cpu, pytest.mark.statistical]

LANES = 100_000
SQUARE = Grid((0.0, 0.0), (1.0, 1.0), (20, 20))
BALL = Grid((-1.0, -1.0), (1.0, 1.0), (20, 20), 32)
V = SINGLE.Vector3f
TESTS = 40

PLANE: dict[str, tuple[Callable[[Any], Any], Callable[..., Any], Grid]] = {
    "disk": (
        warp.square_to_uniform_disk_concentric, lambda x, y: (x * x + y * y < 1) / math.pi, BALL,
    ),
    "triangle": (
        # Half the quadrature points of the diagonal's cells lie on it.
        warp.square_to_uniform_triangle, lambda x, y: 2 * np.heaviside(np.round(1 - x - y, 9), 0.5),
        Grid((0, 0), (1, 1), (20, 20), 32),
    ),
    "tent": (warp.square_to_tent, lambda x, y: (1 - abs(x)) * (1 - abs(y)), BALL),
    "bilinear": (
        lambda u: warp.square_to_bilinear(*(SINGLE.Float(v) for v in (0.5, 1.5, 0.0, 2.0)), u.x, u.y)[:2],
        lambda x, y: 0.5 * (1 - x) * (1 - y) + 1.5 * x * (1 - y) + 2.0 * x * y, SQUARE,
    ),
}  # fmt: skip

ROUND: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "cosine": (lambda u: warp.square_to_cosine_hemisphere(u, V), lambda d: np.maximum(d[2], 0) / math.pi),
    "sphere": (lambda u: warp.square_to_uniform_sphere(u, V), lambda d: np.full(d.shape[1], 0.25 / math.pi)),
}


@pytest.mark.parametrize("name", PLANE)
def test_maps_of_the_plane(name: str) -> None:
    draw, density, grid = PLANE[name]
    x, y = (numbers(c, LANES) for c in draw(uniform(SINGLE, 2, LANES)))
    assert_follows(grid, (x, y), density, TESTS)


@pytest.mark.parametrize("name", ROUND)
def test_maps_to_the_sphere(name: str) -> None:
    draw, density = ROUND[name]
    grid = sphere()
    wo, sine = directions(grid)
    d = numbers(draw(uniform(SINGLE, 2, LANES)), LANES)
    np.testing.assert_allclose(np.linalg.norm(d, axis=0), 1, rtol=1e-5)
    assert_follows(grid, angles(d), density(wo) * sine, TESTS)


def test_maps_are_defined_at_the_corners_of_the_square() -> None:
    corners = np.array([[0, 0, 1, 1, 0.5], [0, 1, 0, 1, 0.5]]) * (1 - 2.0**-24)
    u = vectors(SINGLE.Point2f, corners)
    for draw, *_ in [*PLANE.values(), *ROUND.values()]:
        assert all(np.isfinite(numbers(c, 5)).all() for c in draw(u))
    surface = Microfacets("beckmann", SINGLE.Float(0.1), SINGLE.Float(0.2), True)
    wi = vectors(V, np.array([[0.0], [0.6], [0.8]]))
    m, pdf = surface.sample(wi, u)
    assert np.isfinite(numbers(m, 5)).all() and np.isfinite(numbers(pdf, 5)).all()


@pytest.mark.parametrize("kind", ["beckmann", "ggx"])
@pytest.mark.parametrize("visible", [True, False])
@pytest.mark.parametrize("alpha", [(0.15, 0.15), (0.6, 0.2)])
@pytest.mark.parametrize("theta", [5.0, 65.0])
def test_microfacet_normals(kind: str, visible: bool, alpha: tuple[float, float], theta: float) -> None:
    surface = Microfacets(kind, SINGLE.Float(alpha[0]), SINGLE.Float(alpha[1]), visible)
    t = math.radians(theta)
    wi = vectors(V, np.array([[0.5 * math.sin(t)], [math.sqrt(0.75) * math.sin(t)], [math.cos(t)]]))
    m, pdf = surface.sample(wi, uniform(SINGLE, 2, LANES))
    normals = numbers(m, LANES)
    grid = sphere()
    wo, sine = directions(grid)
    density = numbers(surface.pdf(wi, vectors(V, wo)), wo.shape[1])
    # Normals point up; of those turned away from wi none is visible.
    cosine = numbers(wi, 1)[:, 0] @ wo
    density = np.where((wo[2] > 0) & (~np.array(visible) | (cosine > 0)), density, 0.0)
    assert_follows(grid, angles(normals), density * sine, TESTS)
    assert_allclose_positive(numbers(pdf, LANES), numbers(surface.pdf(wi, m), LANES))


def assert_allclose_positive(a: np.ndarray, b: np.ndarray) -> None:
    assert (a > 0).all()
    np.testing.assert_allclose(a, b, rtol=1e-4)


@pytest.mark.parametrize("alpha", [0.1, 0.7])
@pytest.mark.parametrize("kind", ["beckmann", "ggx"])
def test_visible_facets_cover_what_the_eye_sees(kind: str, alpha: float) -> None:
    """The projected area of the visible facets is that of the surface (Heitz 2014, Eq. 2), up to the fit of G1."""
    surface = Microfacets(kind, SINGLE.Float(alpha), SINGLE.Float(alpha), True)
    grid = sphere((96, 36), 8)
    m, sine = directions(grid)
    wi = np.array([[math.sin(1.0)], [0.0], [math.cos(1.0)]])
    normals = vectors(V, m)
    d, g1 = numbers(surface.eval(normals), m.shape[1]), numbers(surface.smith_g1(vectors(V, wi), normals), m.shape[1])
    up = m[2] > 0
    area = grid.points()[2]
    assert abs((np.where(up, d * m[2], 0) * sine).sum() * area - 1) < 2e-3
    seen = np.where(up, d * g1 * np.maximum(wi[:, 0] @ m, 0), 0)
    assert abs((seen * sine).sum() * area / math.cos(1.0) - 1) < 5e-3


IMAGES = {
    "random": np.random.default_rng(2).random((5, 8)) ** 3,
    "spike": np.pad([[1.0]], ((3, 2), (1, 4))) + 1e-3,
    "holes": np.array([[0.0, 0, 1, 2], [0, 0, 3, 0], [1, 1, 0, 0]]),
    "small": np.array([[1.0, 3.0], [2.0, 0.0]]),
    "line": np.array([[0.0, 1.0, 0.5, 3.0, 0.0]] * 2),
}


@pytest.mark.parametrize("name", IMAGES)
def test_bilinear_tables(name: str) -> None:
    image = IMAGES[name]
    table = Bilinear2D(SINGLE, image)
    p, pdf = table.sample(uniform(SINGLE, 2, LANES))
    points = numbers(p, LANES)
    h, w = image.shape
    grid = Grid((0.0, 0.0), (1.0, 1.0), (4 * (w - 1), 4 * (h - 1)), 4)
    x, y, area = grid.points()
    density = numbers(table.pdf(vectors(SINGLE.Point2f, [x, y])), len(x))
    np.testing.assert_allclose(density.sum() * area, 1, rtol=1e-5)
    expected = _interpolate(image, x * (w - 1), y * (h - 1))
    np.testing.assert_allclose(density, expected / (expected.sum() * area), rtol=2e-3, atol=1e-6)
    assert_follows(grid, (points[0], points[1]), density, TESTS)
    again = numbers(table.pdf(p), LANES)
    np.testing.assert_allclose(numbers(pdf, LANES), again, rtol=1e-2, atol=1e-3)
    assert np.isfinite(points).all()


def _interpolate(image: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    i, j = np.minimum(x.astype(int), image.shape[1] - 2), np.minimum(y.astype(int), image.shape[0] - 2)
    u, v = x - i, y - j
    top = image[j, i] * (1 - u) + image[j, i + 1] * u
    return top * (1 - v) + (image[j + 1, i] * (1 - u) + image[j + 1, i + 1] * u) * v


def test_bilinear_table_never_enters_black_parts_at_the_edges_of_the_square() -> None:
    image = np.zeros((9, 9))
    image[6:8, 6:8] = 1
    p, pdf = Bilinear2D(SINGLE, image).sample(vectors(SINGLE.Point2f, [[0, 0, 1, 1], [0, 1, 0, 1]]))
    points = numbers(p, 4)
    assert np.isfinite(points).all() and (points >= 5 / 8).all() and (points <= 1).all()
    assert (numbers(pdf, 4) >= 0).all()


@pytest.mark.parametrize("name", IMAGES)
def test_discrete_tables(name: str) -> None:
    image = IMAGES[name]
    table = Discrete2D(SINGLE, image)
    column, row, pdf, rest = table.sample(uniform(SINGLE, 2, LANES))
    i, j = numbers(column, LANES).astype(int), numbers(row, LANES).astype(int)
    wanted = image / image.sum()
    np.testing.assert_allclose(numbers(pdf, LANES), wanted[j, i], rtol=1e-3)
    np.testing.assert_allclose(numbers(table.pdf(column, row), LANES), wanted[j, i], rtol=1e-5)
    counts = np.zeros(image.shape)
    np.add.at(counts, (j, i), 1)
    assert np.abs(counts - wanted * LANES).max() < 5 * math.sqrt(LANES * wanted.max())
    x, y = numbers(rest, LANES)
    # What is left of the numbers is uniform again within every cell.
    assert_follows(SQUARE, (x, y), lambda x, y: np.ones_like(x), TESTS)
