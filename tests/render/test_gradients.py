"""Gradients of whole pictures, in double precision: path replay and plain differentiation against central differences.

All use the same random numbers, so that they are derivatives of one and the same sum and agree to rounding. That
holds where nothing that is sampled depends on the parameter: geometry is seen under point lights, roughness with two
segments.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gradients import (
    CASES,
    COLOUR,
    LAMP,
    METAL,
    POINT,
    ROOF,
    SEED,
    SENSOR,
    SPP,
    WEIGHTS,
    assign,
    backward,
    differences,
    direction_for,
    like,
    numbers_of,
    picture,
    scene_of,
    weighted,
)  # fmt: skip
from lanes import DOUBLE

from luxgrad.ad import api
from luxgrad.jit.arrays import reduce
from luxgrad.jit.errors import SceneError
from luxgrad.render.render import render
from luxgrad.render.traverse import traverse

pytestmark = pytest.mark.cpu

def forward(scene: Any, key: str, integrator: str, step: np.ndarray) -> float:
    params = traverse(scene)
    api.enable_grad(params[key])
    params.update()
    value = params[key]
    api.set_grad(value, like(value, step))
    image = picture(scene, integrator)
    rate = api.forward_to(image)
    return float((numbers_of(rate) * WEIGHTS).sum())


@functools.cache
def expected_change(name: str) -> tuple[np.ndarray, float]:
    """Return a direction in the space of a case's parameter and the central difference along it."""
    objects, key, depth = CASES[name]
    scene = scene_of(objects, "path", depth)
    step = direction_for(traverse(scene)[key], key)
    return step, differences(scene, key, step)


@pytest.mark.parametrize(
    ("integrator", "name"),
    [("prb", name) for name in CASES] + [("path", n) for n in ("reflectance", "plane")],
)
def test_gradients_are_central_differences(integrator: str, name: str) -> None:
    objects, key, depth = CASES[name]
    step, expected = expected_change(name)
    assert abs(expected) > 1e-4
    gradient = backward(scene_of(objects, integrator, depth), key, integrator)
    assert float((gradient * step).sum()) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", ["texels", "sky", "alpha"])
def test_forward_mode_gives_the_same(name: str) -> None:
    objects, key, depth = CASES[name]
    step, expected = expected_change(name)
    rate = forward(scene_of(objects, "prb", depth), key, "prb", step)
    assert rate == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", ["plane"])
def test_forward_mode_starts_anew_every_time(name: str) -> None:
    objects, key, depth = CASES[name]
    step, expected = expected_change(name)
    scene = scene_of(objects, "prb", depth)
    for factor in (2.0, 1.0):
        rate = forward(scene, key, "prb", step * factor)
        assert rate == pytest.approx(factor * expected, rel=1e-6)


@pytest.mark.parametrize("name", ["plane"])
def test_forward_mode_of_plain_differentiation(name: str) -> None:
    objects, key, depth = CASES[name]
    wide = SENSOR | {"film": SENSOR["film"] | {"rfilter": {"type": "gaussian", "stddev": 0.9}}}
    step, _ = expected_change(name)
    expected = differences(scene_of(objects, "path", depth, wide), key, step)
    rate = forward(scene_of(objects, "path", depth, wide), key, "path", step)
    assert rate == pytest.approx(expected, rel=1e-6)


FILMS: dict[str, dict[str, Any]] = {
    "rgba": {"pixel_format": "rgba", "rfilter": {"type": "box"}},
    "luminance": {"pixel_format": "luminance", "rfilter": {"type": "gaussian", "stddev": 0.3}},
    "xyz": {"pixel_format": "xyz", "sample_border": True, "crop_offset_x": 2, "crop_width": 4, "crop_height": 5},
}


@pytest.mark.parametrize("name", FILMS)
def test_films_pass_gradients_on(name: str) -> None:
    objects, key, depth = CASES["radiance"]
    sensor = SENSOR | {"film": SENSOR["film"] | FILMS[name]}

    def total(image: Any) -> Any:
        weights = np.random.default_rng(2).random(image.shape)
        return reduce.sum(image.array * DOUBLE.Float(weights.ravel()))

    scene = scene_of(objects, "prb", depth, sensor)
    params = traverse(scene)
    api.enable_grad(params[key])
    params.update()
    image = render(scene, seed=SEED, seed_grad=SEED + 1, spp=SPP)
    api.backward(total(image))
    gradient = numbers_of(api.grad(params[key]))
    # The picture is linear in the light, and black without it: alpha alone is left.
    start = numbers_of(params[key]).copy()
    plain = scene_of(objects, "prb", depth, sensor)
    lit, dark = (traverse(plain) for _ in range(2))
    sums = []
    for factor, view in ((1.0, lit), (0.0, dark)):
        assign(view, key, start * factor)
        image = plain.integrator().render(plain, plain.sensors()[0], SEED + 1, SPP)
        sums.append(float(total(image).numpy().item()))
    assert float((gradient * start).sum()) == pytest.approx(sums[0] - sums[1], rel=1e-9)


VERTICES = np.array([[-8, -0.5, 8], [8, -0.5, 8], [8, -0.5, -8], [-8, -0.5, -8]], float)
MOVES = {
    "up": np.tile([0.0, 1.0, 0.0], 4),
    "tilted": np.array([0, -1, 0, 0, 1, 0, 0, 1, 0, 0, -1, 0], float),
    "bent": np.array([0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], float),
}


@pytest.fixture
def quad(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    path = tmp_path / "quad.obj"
    path.write_text("".join(f"v {x} {y} {z}\n" for x, y, z in VERTICES) + "f 1 2 3\nf 1 3 4\n")
    return lambda **values: {"type": "obj", "filename": str(path), **values}


@pytest.mark.parametrize(("move", "smooth"), [("tilted", False), ("bent", True)])
@pytest.mark.parametrize("integrator", ["prb", "path"])
def test_moved_vertices(move: str, smooth: bool, integrator: str, quad: Callable[..., dict[str, Any]]) -> None:
    """Smooth normals follow the vertices; a bent quad with flat ones would have an edge that the view crosses."""
    objects = {"quad": quad(face_normals=not smooth, bsdf=METAL), "point": POINT}
    key, step = "quad.vertex_positions", MOVES[move]
    expected = differences(scene_of(objects, "path", 2), key, step)
    gradient = backward(scene_of(objects, integrator, 2), key, integrator)
    assert float(gradient @ step) == pytest.approx(expected, rel=1e-5)
    if move == "bent" and integrator == "prb":
        assert forward(scene_of(objects, "prb", 2), key, "prb", step) == pytest.approx(expected, rel=1e-5)


@pytest.mark.statistical
@pytest.mark.parametrize("lights", ["lamp", pytest.param("ball", marks=pytest.mark.slow), "roof"])
def test_replay_through_moving_surfaces_agrees_in_the_mean(lights: str, quad: Callable[..., dict[str, Any]]) -> None:
    """Solid angles of lights and of the next vertex change with the surface: the same derivative by another sum."""
    # Of the indirect light a metal shows little.
    objects: dict[str, Any] = {"quad": quad(face_normals=True, bsdf=COLOUR if lights == "roof" else METAL)}
    objects |= {
        "lamp": {"lamp": LAMP},
        "ball": {"ball": {"type": "sphere", "center": [1, 2, 0], "radius": 0.6, "emitter": LAMP["emitter"]}},
        "roof": {"point": POINT, "roof": ROOF},
    }[lights]
    depth = 3 if lights == "roof" else 2
    key, step = "quad.vertex_positions", MOVES["up"]
    replay, plain = [], []
    for kind, results in (("prb", replay), ("path", plain)):
        scene = scene_of(objects, kind, depth)
        params = traverse(scene)
        api.enable_grad(params[key])
        params.update()
        for seed in range(4):
            image = render(scene, seed=100 + seed, seed_grad=seed + 1, spp=600)
            api.backward(weighted(image))
            results.append(float(numbers_of(api.grad(params[key])) @ step))
            api.clear_grad(params[key])
    error = math.hypot(np.std(replay, ddof=1), np.std(plain, ddof=1)) / math.sqrt(4)
    assert abs(np.mean(replay) - np.mean(plain)) < 5 * error
    assert error < 0.05 * abs(np.mean(plain))


def test_nothing_to_differentiate_leaves_no_trace() -> None:
    objects, _, depth = CASES["reflectance"]
    image = render(scene_of(objects, "prb", depth), seed=1, spp=1)
    assert not api.grad_enabled(image)
    with pytest.raises(RuntimeError):
        api.backward(reduce.sum(image.array))


def test_parameters_changed_before_backward_are_refused() -> None:
    objects, key, depth = CASES["reflectance"]
    scene = scene_of(objects, "prb", depth)
    params = traverse(scene)
    api.enable_grad(params[key])
    image = render(scene, params)
    params[key] = params[key] * 0.5
    params.update()
    with pytest.raises(SceneError, match=f"'{key}' was changed after the image was rendered"):
        api.backward(reduce.mean(image, None))


def test_second_backward_without_update_has_all_gradients() -> None:
    """A backward pass cuts the edges from normals to vertices; the next rendering must not lose their share."""
    floor = {
        "type": "ply", "filename": str(Path(__file__).parent / "data" / "bent.ply"),
        "bsdf": {"type": "diffuse"},
    }  # fmt: skip
    scene = scene_of({"floor": floor, "point": POINT}, "prb", 2)
    params = traverse(scene)
    key = next(k for k in params.keys() if k.endswith("vertex_positions"))
    assert "floor.vertex_normals" in params
    api.enable_grad(params[key])
    params.update()
    found = []
    for _ in range(3):
        api.clear_grad(params[key])
        api.backward(reduce.mean(render(scene, params, seed=3), None))
        found.append(api.grad(params[key]).numpy().copy())
    assert np.abs(found[0]).max() > 0
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])
