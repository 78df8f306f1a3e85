"""Derivatives asked of an integrator itself, and pictures in several passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gradients import (
    BALL,
    CASES,
    COLOUR,
    FLOOR,
    METAL,
    PAINTED,
    POINT,
    SEED,
    SENSOR,
    SPP,
    TEXELS,
    WEIGHTS,
    backward,
    differences,
    direction_for,
    like,
    lit_floor,
    numbers_of,
    scene_of,
)
from lanes import DOUBLE, load

from luxgrad.ad import api
from luxgrad.jit.errors import SceneError
from luxgrad.render.interfaces import integrator as base
from luxgrad.render.render import render
from luxgrad.render.transform import ScalarTransform4f as T
from luxgrad.render.traverse import traverse

pytestmark = pytest.mark.cpu

CUBE = {"type": "cube", "to_world": T().translate([0, -1, 0]), "bsdf": METAL}
SKY_AND_TEXTURE = {"sky": CASES["sky"][0]["sky"], "ball": {**BALL, "bsdf": PAINTED}}
# Name: (objects, parameters, depth).
OBJECTS: dict[str, tuple[dict[str, Any], list[str], int]] = {
    "colours": (
        lit_floor(**SKY_AND_TEXTURE), ["floor.bsdf.reflectance.value", "sky.data", "ball.bsdf.reflectance.data"], 3,
    ),
    "vertices": ({"floor": {**FLOOR, "bsdf": METAL}, "cube": CUBE, "point": POINT}, ["cube.vertex_positions"], 2),
}  # fmt: skip
GRADIENT = DOUBLE.TensorXf(WEIGHTS)


def attached(name: str, integrator: str) -> tuple[Any, list[Any]]:
    """Return a scene and its parameters with gradients."""
    objects, keys, depth = OBJECTS[name]
    scene = scene_of(objects, integrator, depth)
    params = traverse(scene)
    for key in keys:
        api.enable_grad(params[key])
    params.update()
    return scene, [params[key] for key in keys]


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("kind", ["prb", "path"])
def test_direct_calls_give_what_render_gives(kind: str, name: str) -> None:
    scene, values = attached(name, kind)
    seeds = {"seed": 7} if kind == "path" else {"seed": 1, "seed_grad": 7}
    image = render(scene, spp=SPP, **seeds)
    api.set_grad(image, GRADIENT)
    api.backward_from(image)
    expected = [numbers_of(api.grad(value)) for value in values]
    scene, values = attached(name, kind)
    for calls in (1, 2):
        scene.integrator().render_backward(scene, None, GRADIENT, sensor=0, seed=7, spp=SPP)
        for value, gradient in zip(values, expected, strict=True):
            assert np.abs(gradient).max() > 1e-3
            np.testing.assert_allclose(numbers_of(api.grad(value)), calls * gradient, rtol=1e-9, atol=1e-12)
    scene, values = attached(name, kind)
    change = 0.0
    for key, value, gradient in zip(OBJECTS[name][1], values, expected, strict=True):
        step = direction_for(value, key)
        api.set_grad(value, like(value, step))
        change += float((gradient * step).sum())
    for _ in range(2):
        tangent = numbers_of(scene.integrator().render_forward(scene, None, seed=7, spp=SPP))
        assert float((tangent * WEIGHTS).sum()) == pytest.approx(change, rel=1e-8)


def test_integrators_say_what_is_missing() -> None:
    objects, _, depth = CASES["reflectance"]
    for kind in ("path", "depth"):
        scene = scene_of(objects, "path", depth)
        made = scene.integrator() if kind == "path" else load({"type": "depth"}, DOUBLE)
        with pytest.raises(SceneError, match="enable_grad"):
            made.render_backward(scene, None, GRADIENT, spp=1)
    scene, _ = attached("vertices", "prb")
    with pytest.raises(SceneError, match=r"\(6, 8, 3\).*\(6, 4, 3\)"):
        scene.integrator().render_backward(scene, None, DOUBLE.TensorXf(WEIGHTS[:, :4]), spp=1)


def with_passes(kind: str, each: int | None, objects: dict[str, Any], depth: int = 3) -> Any:
    chosen = {"type": kind, "max_depth": depth} | ({} if each is None else {"samples_per_pass": each})
    return load({"type": "scene", "integrator": chosen, "sensor": SENSOR, **objects}, DOUBLE)


@pytest.mark.parametrize("kind", ["prb", "path"])
def test_passes_average(kind: str) -> None:
    """Replay seeds every pass by itself, so that the picture is that of renderings with these seeds."""
    objects = {**CASES["reflectance"][0]}
    sensor = SENSOR | {"film": SENSOR["film"] | {"rfilter": {"type": "box"}}}
    scene = with_passes(kind, 2, objects | {"sensor": sensor})
    image = numbers_of(render(scene, seed=3, spp=6))
    one = with_passes(kind, None, objects | {"sensor": sensor})
    parts = [numbers_of(render(one, seed=base.pass_seed(3, k), spp=2)) for k in range(3)]
    if kind == "prb":
        np.testing.assert_allclose(image, np.mean(parts, axis=0), rtol=1e-12)
    else:
        # The sampler goes on: the first pass is the same, the others are not.
        assert not np.allclose(image, np.mean(parts, axis=0), rtol=1e-3)
        assert abs(image.mean() - np.mean(parts)) < 0.2 * image.mean()
    single = render(with_passes(kind, 2, objects | {"sensor": sensor}), seed=3, spp=2)
    np.testing.assert_array_equal(parts[0], numbers_of(single))


def test_gradients_of_passes_are_central_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    objects, key, _ = CASES["reflectance"]
    for each, most, spp in ((2, None, 4), (None, 8 * 6 * 2, 5)):
        if most is not None:
            monkeypatch.setattr(base, "LANES", most)
        scene = with_passes("prb", each, objects)
        assert len(scene.integrator().plan(scene.sensors()[0], spp)) > 1
        step = direction_for(traverse(scene)[key], key)
        expected = differences(scene, key, step, spp=spp)
        params = traverse(scene)
        api.enable_grad(params[key])
        params.update()
        scene.integrator().render_backward(scene, None, GRADIENT, seed=SEED, spp=spp)
        gradient = numbers_of(api.grad(params[key]))
        assert float((gradient * step).sum()) == pytest.approx(expected, rel=1e-6)
        api.set_grad(params[key], like(params[key], step))
        rate = numbers_of(scene.integrator().render_forward(scene, None, seed=SEED, spp=spp))
        assert float((rate * WEIGHTS).sum()) == pytest.approx(expected, rel=1e-6)


def test_plans_of_passes() -> None:
    film = {"type": "hdrfilm", "width": 4096, "height": 4096, "rfilter": {"type": "box"}}
    scene = load({"type": "scene", "sensor": {"type": "perspective", "fov": 40, "film": film}})
    sensor = scene.sensors()[0]

    def plan(spp: int, each: int | None = None) -> list[int]:
        made = load({"type": "path"} | ({} if each is None else {"samples_per_pass": each}))
        return list(made.plan(sensor, spp))

    assert plan(255) == [255] and plan(256) == [128, 128]
    assert plan(512) == [171, 171, 170]
    assert plan(512, 64) == [64] * 8 and plan(4, 64) == [4] and plan(8, -1) == [8]
    with pytest.raises(SceneError, match="multiple"):
        plan(10, 4)
    with pytest.raises(SceneError, match="positive"):
        plan(4, 0)
    film |= {"width": 1 << 17, "height": 1 << 16}
    sensor = load({"type": "scene", "sensor": {"type": "perspective", "fov": 40, "film": film}}).sensors()[0]
    with pytest.raises(SceneError, match="crop"):
        plan(1)


SHINING = {"type": "area", "radiance": {"type": "rgb", "value": [8, 7, 5]}}
TEXTURED = {"type": "area", "radiance": {"type": "bitmap", "data": TEXELS, "raw": True}}
ABOVE = T().translate([0.3, 2.5, 0.5]).rotate([1, 0.2, 0], 80).scale(0.7)
LIGHTS: dict[str, tuple[dict[str, Any], str]] = {
    "rectangle": ({"type": "rectangle", "to_world": ABOVE, "emitter": SHINING}, "to_world"),
    "textured": ({"type": "rectangle", "to_world": ABOVE, "emitter": TEXTURED}, "to_world"),
    "disk": ({"type": "disk", "to_world": ABOVE, "emitter": SHINING}, "to_world"),
    "sphere": ({"type": "sphere", "to_world": ABOVE, "emitter": SHINING}, "to_world"),
    "cube": ({"type": "cube", "to_world": ABOVE, "emitter": SHINING}, "vertex_positions"),
}


def similarity(vertices: np.ndarray) -> np.ndarray:
    """Return a motion of vertices that turns, grows and shifts: every triangle keeps its share of the area."""
    offset = vertices.reshape(-1, 3) - vertices.reshape(-1, 3).mean(0)
    moved = np.cross([0.3, -0.2, 0.5], offset) + 0.4 * offset + [0.2, -0.5, 0.3]
    return np.asarray(moved.ravel())


@pytest.mark.parametrize("name", LIGHTS)
def test_replay_sees_lights_move(name: str) -> None:
    """The light moves with its sampled points: the derivative of a picture made by sampling it alone."""
    light, parameter = LIGHTS[name]
    objects = {"floor": {**FLOOR, "bsdf": METAL if name == "rectangle" else COLOUR}, "lamp": light}
    only = {"type": "direct", "emitter_samples": 1, "bsdf_samples": 0}
    key = f"lamp.{parameter}"
    drawn = load({"type": "scene", "integrator": only, "sensor": SENSOR, **objects}, DOUBLE)
    value = traverse(drawn)[key]
    step = similarity(numbers_of(value)) if name == "cube" else direction_for(value, key)
    expected = differences(drawn, key, step)
    assert abs(expected) > 1e-3
    gradient = backward(scene_of(objects, "prb", 2), key, "prb")
    assert float((gradient * step).sum()) == pytest.approx(expected, rel=1e-6)
