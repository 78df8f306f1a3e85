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
from lanes import DOUBLE, load

from luxgrad.ad import api
from luxgrad.jit.arrays import reduce
from luxgrad.render.image.bitmap import Bitmap
from luxgrad.render.render import render
from luxgrad.render.transform import ScalarTransform4f as T
from luxgrad.render.traverse import traverse

pytestmark = pytest.mark.cpu

WIDTH, HEIGHT, SPP, SEED = 8, 6, 4, 5
_noise = np.random.default_rng(3)
WEIGHTS = _noise.random((HEIGHT, WIDTH, 3))
SKY = _noise.random((4, 8, 3)).astype(np.float32)
TEXELS = _noise.random((3, 4, 3))


def rgb(*values: float) -> dict[str, Any]:
    return {"type": "rgb", "value": list(values)}


SENSOR: dict[str, Any] = {
    "type": "perspective", "fov": 40, "to_world": T().look_at(origin=[0.3, 1.5, 3], target=[0, 0, 0], up=[0, 1, 0]),
    "film": {"type": "hdrfilm", "width": WIDTH, "height": HEIGHT, "rfilter": {"type": "tent"}},
}  # fmt: skip
COLOUR = {"type": "diffuse", "reflectance": rgb(0.7, 0.5, 0.3)}
PAINTED = {"type": "diffuse", "reflectance": {"type": "bitmap", "data": TEXELS, "raw": True}}
METAL = {"type": "roughconductor", "alpha": 0.3, "material": "Cu"}
FLOOR = {"type": "rectangle", "to_world": T().translate([0, -0.5, 0]).rotate([1, 0, 0], -90).scale(8)}
LAMP = {
    "type": "rectangle", "to_world": T().translate([0, 2.5, 0.5]).rotate([1, 0, 0], 90).scale(0.7),
    "emitter": {"type": "area", "radiance": rgb(8, 7, 5)},
}  # fmt: skip
BALL = {"type": "sphere", "radius": 0.5, "center": [0, 0.2, 0]}
POINT = {"type": "point", "position": [1, 2, 1], "intensity": rgb(3, 4, 5)}
ROOF = {"type": "rectangle", "to_world": T().translate([0, 3, 0]).rotate([1, 0, 0], 90).scale(30), "bsdf": COLOUR}


def lit_floor(**objects: Any) -> dict[str, Any]:
    return {"floor": {**FLOOR, "bsdf": COLOUR}, **objects}


# Name: (objects, parameter, depth).
CASES: dict[str, tuple[dict[str, Any], str, int]] = {
    "reflectance": (lit_floor(lamp=LAMP, ball=BALL), "floor.bsdf.reflectance.value", 3),
    "texels": (
        {"floor": {**FLOOR, "bsdf": PAINTED}, "lamp": LAMP, "ball": BALL},
        "floor.bsdf.reflectance.data", 3,
    ),
    "radiance": (lit_floor(lamp=LAMP, ball=BALL), "lamp.emitter.radiance.value", 3),
    "constant": (lit_floor(sky={"type": "constant"}, ball=BALL), "sky.radiance.value", 3),
    "sky": (lit_floor(sky={"type": "envmap", "bitmap": Bitmap(SKY)}, ball=BALL), "sky.data", 3),
    "sky-scale": (lit_floor(sky={"type": "envmap", "bitmap": Bitmap(SKY)}, ball=BALL), "sky.scale", 3),
    "intensity": (lit_floor(point=POINT, ball=BALL), "point.intensity.value", 3),
    "light-position": (lit_floor(point=POINT), "point.position", 2),
    "alpha": ({"floor": {**FLOOR, "bsdf": METAL}, "point": POINT}, "floor.bsdf.alpha.value", 2),
    "eta": ({"floor": {**FLOOR, "bsdf": METAL}, "point": POINT, "ball": BALL}, "floor.bsdf.eta.value", 2),
    "k": ({"floor": {**FLOOR, "bsdf": METAL}, "point": POINT}, "floor.bsdf.k.value", 2),
    "specular": (
        {"floor": {**FLOOR, "bsdf": METAL}, "point": POINT, "roof": ROOF}, "floor.bsdf.specular_reflectance.value", 3,
    ),
    "plane": ({"floor": {**FLOOR, "bsdf": METAL}, "point": POINT}, "floor.to_world", 2),
}  # fmt: skip


def scene_of(objects: dict[str, Any], integrator: str, depth: int, sensor: dict[str, Any] | None = None) -> Any:
    chosen = {"type": integrator, "max_depth": depth}
    scene = load({"type": "scene", "integrator": chosen, "sensor": sensor or SENSOR, **objects}, DOUBLE)
    for light in scene.emitters():
        # What is sampled stays: the differences below are those of one sum.
        if hasattr(light, "_update"):
            light._update = lambda: None
    return scene


def numbers_of(value: Any) -> np.ndarray:
    return np.asarray(value.numpy(), np.float64)


def assign(params: Any, key: str, values: np.ndarray) -> None:
    """Set a parameter from numbers in the shape that `numpy()` gives."""
    current = params[key]
    if hasattr(current, "array"):
        params[key] = type(current)(values)
    elif values.ndim == 3:
        params[key] = type(current)([[float(x) for x in row[:, 0]] for row in values])
    elif values.ndim == 2:
        params[key] = type(current)(*[DOUBLE.Float(row) for row in values])
    else:
        params[key] = DOUBLE.Float(values)
    params.update()


def weighted(image: Any) -> Any:
    """Return the sum of all pixels, each with its weight."""
    return reduce.sum(image.array * DOUBLE.Float(WEIGHTS.ravel()))


def picture(scene: Any, integrator: str) -> Any:
    """Return the picture whose derivatives belong to the random numbers of SEED."""
    if integrator == "path":
        return render(scene, seed=SEED, spp=SPP)
    return render(scene, seed=SEED + 1, seed_grad=SEED, spp=SPP)


def backward(scene: Any, key: str, integrator: str) -> np.ndarray:
    params = traverse(scene)
    api.enable_grad(params[key])
    params.update()
    api.backward(weighted(picture(scene, integrator)))
    return numbers_of(api.grad(params[key]))


def forward(scene: Any, key: str, integrator: str, step: np.ndarray) -> float:
    params = traverse(scene)
    api.enable_grad(params[key])
    params.update()
    value = params[key]
    tangent = type(value)(step) if hasattr(value, "array") else _like(value, step)
    api.set_grad(value, tangent)
    image = picture(scene, integrator)
    rate = api.forward_to(image)
    return float((numbers_of(rate) * WEIGHTS).sum())


def _like(value: Any, step: np.ndarray) -> Any:
    if step.ndim == 3:
        return type(value)([[float(x) for x in row[:, 0]] for row in step])
    return type(value)(*[DOUBLE.Float(row) for row in step]) if step.ndim == 2 else DOUBLE.Float(step)


def differences(scene: Any, key: str, step: np.ndarray, size: float = 1e-5) -> float:
    """Return the central difference along `step`."""
    params = traverse(scene)
    start = numbers_of(params[key]).copy()
    sums = []
    for sign in (1, -1):
        assign(params, key, start + sign * size * step)
        image = scene.integrator().render(scene, scene.sensors()[0], SEED, SPP)
        sums.append(float((numbers_of(image) * WEIGHTS).sum()))
    return (sums[0] - sums[1]) / (2 * size)


def direction_for(value: Any, key: str) -> np.ndarray:
    shape = numbers_of(value).shape
    step = np.random.default_rng(1).standard_normal(shape)
    if key.endswith("to_world"):
        step[3] = 0
        step *= 0.1
    return step


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
