"""Lights: sampled directions follow their density, and lead to where rays find the same light and radiance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from chi2 import angles, assert_follows, directions, sphere
from lanes import SINGLE, load, numbers, uniform, vectors

from luxgrad.render.image.bitmap import Bitmap
from luxgrad.render.interfaces.records import Ray
from luxgrad.render.scene import Reference
from luxgrad.render.transform import ScalarTransform4f as T

pytestmark = [pytest.mark.cpu, pytest.mark.statistical]

LANES = 100_000
AREA = {"type": "area", "radiance": {"type": "rgb", "value": [3.0, 2.0, 1.0]}}
_noise = np.random.default_rng(4)
SKY = (_noise.random((8, 16, 3)) ** 4 + 0.05).astype(np.float32)
SKY[2, 5] = (30, 20, 10)
PICTURE = _noise.random((4, 6, 3)).astype(np.float32) ** 2


def painted(**values: Any) -> dict[str, Any]:
    """Return a light whose radiance is a picture."""
    return {"type": "area", "radiance": {"type": "bitmap", "data": PICTURE, "raw": True, **values}}


def turned(x: float, y: float) -> T:
    return T().rotate([1, 0, 0], x).rotate([0, 1, 0], y)


LIGHTS: dict[str, dict[str, Any]] = {
    "rectangle": {"type": "rectangle", "to_world": T().translate([0.3, 0, -1.2]).scale([1, 0.7, 1]), "emitter": AREA},
    "rectangle-skewed": {
        "type": "rectangle", "to_world": T().translate([0.5, 1.0, -0.8]) @ turned(30, -50), "emitter": AREA,
    },
    "rectangle-flipped": {
        "type": "rectangle", "to_world": T().translate([0, 0, 1.2]), "flip_normals": True, "emitter": AREA,
    },
    "rectangle-painted": {"type": "rectangle", "to_world": T().translate([0, 0.2, -0.8]), "emitter": painted()},
    "rectangle-texels": {
        "type": "rectangle", "to_world": T().translate([0, 0.2, -0.8]), "emitter": painted(filter_type="nearest"),
    },
    "rectangle-clamped": {
        "type": "rectangle", "to_world": T().translate([0, 0.2, -0.8]), "emitter": painted(wrap_mode="clamp"),
    },
    "rectangle-repeated": {
        "type": "rectangle", "to_world": T().translate([0, 0.2, -0.8]), "emitter": painted(to_uv=T().scale([2, 3, 1])),
    },
    "disk": {"type": "disk", "to_world": T().translate([0.2, 0.5, -1]) @ turned(-20, 10), "emitter": AREA},
    "disk-painted": {"type": "disk", "to_world": T().translate([0.2, 0.5, -1]), "emitter": painted()},
    "sphere": {"type": "sphere", "center": [0.5, 0.4, 1.5], "radius": 0.9, "emitter": AREA},
    "sphere-near": {"type": "sphere", "center": [0.7, 0.7, 0.5], "radius": 1.0, "emitter": AREA},
    "sphere-inside": {
        "type": "sphere", "center": [0.3, 0, 0.2], "radius": 1.0, "flip_normals": True, "emitter": AREA,
    },
    "sphere-painted": {  # its poles at the limb
        "type": "sphere", "to_world": T().translate([0.2, 0.1, 1.6]).rotate([1, 0, 0], 90), "emitter": painted(),
    },
    "cube": {"type": "cube", "to_world": T().translate([0.2, 0, 2]) @ turned(20, 50) @ T().scale(0.7), "emitter": AREA},
    "constant": {"type": "constant", "radiance": 0.7},
    "envmap": {"type": "envmap", "bitmap": Bitmap(SKY)},
    "envmap-turned": {"type": "envmap", "bitmap": Bitmap(SKY), "scale": 2.5, "to_world": turned(70, 40)},
    "envmap-compensated": {"type": "envmap", "bitmap": Bitmap(SKY), "mis_compensation": True},
}  # fmt: skip
TESTS = len(LIGHTS)


def scene_of(name: str) -> Any:
    return load({"type": "scene", "light": LIGHTS[name]})


def from_rays(scene: Any, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return radiance (3, n) and density (n) of the light along rays from the origin in directions (3, n)."""
    lanes = d.shape[1]
    v = vectors(SINGLE.Vector3f, d)
    ray = Ray(SINGLE.Point3f(0, 0, 0), v, SINGLE.Float(float("inf")))
    si = scene.ray_intersect(ray)
    index = scene.emitter_index(si)
    origin = Reference(SINGLE.Point3f(0, 0, 0))
    ds = scene.direction_to(si, origin, index)
    radiance = scene.eval_emitter(si, index)
    return numbers(radiance, lanes), numbers(scene.pdf_emitter_direction(origin, ds), lanes)


# The density of points on a sphere drawn by a picture is infinite at the limb: no quadrature of cells there.
@pytest.mark.parametrize("name", [name for name in LIGHTS if name != "sphere-painted"])
def test_directions_follow_the_density_that_rays_find(name: str) -> None:
    scene = scene_of(name)
    grid = sphere((24, 32), 20)
    d, sine = directions(grid)
    _, density = from_rays(scene, d)
    origin = Reference(SINGLE.Point3f(0, 0, 0))
    ds, _ = scene.sample_emitter_direction(origin, uniform(SINGLE, 2, LANES), False)
    pdf = numbers(ds.pdf, LANES)
    samples = np.where(pdf > 0, numbers(ds.d, LANES), np.nan)
    assert_follows(grid, angles(samples), density * sine, TESTS)


@pytest.mark.parametrize("name", LIGHTS)
def test_rays_along_sampled_directions_find_the_same_light(name: str) -> None:
    lanes = 20_000
    scene = scene_of(name)
    origin = Reference(SINGLE.Point3f(0, 0, 0))
    ds, weight = scene.sample_emitter_direction(origin, uniform(SINGLE, 2, lanes), False)
    pdf, d = numbers(ds.pdf, lanes), numbers(ds.d, lanes)
    radiance, density = from_rays(scene, d)
    emitted = numbers(scene.eval_emitter_direction(origin, ds), lanes)
    front = pdf > 0
    assert front.mean() > 0.15
    np.testing.assert_allclose(np.linalg.norm(d, axis=0), 1, rtol=1e-5)
    np.testing.assert_allclose(numbers(weight, lanes)[:, front], emitted[:, front] / pdf[front], rtol=1e-3)
    assert (numbers(weight, lanes)[:, ~front] == 0).all()
    # A few directions pass by the edge, or see the surface too flat.
    scale = np.abs(emitted).max()
    agree = np.abs(radiance - emitted).max(0) < 2e-3 * scale
    agree &= np.abs(density - pdf) < 5e-3 * (density + pdf) + 1e-6
    assert agree[front].mean() > 0.995
    reach = numbers(ds.dist, lanes)
    np.testing.assert_allclose(numbers(ds.p, lanes), d * reach, atol=1e-4 * reach.max())


def test_sampled_radiance_adds_up_to_the_integral_over_directions() -> None:
    grid = sphere((60, 80), 6)
    d, sine = directions(grid)
    # Compensation leaves dim parts to the materials' samples.
    for name in LIGHTS.keys() - {"envmap-compensated"}:
        scene = scene_of(name)
        radiance, _ = from_rays(scene, d)
        integral = (radiance * sine).sum(1) * grid.points()[2]
        origin = Reference(SINGLE.Point3f(0, 0, 0))
        _, weight = scene.sample_emitter_direction(origin, uniform(SINGLE, 2, LANES), False)
        w = numbers(weight, LANES)
        error = 5 * w.std(1) / math.sqrt(LANES) + 4e-3 * integral
        assert (np.abs(w.mean(1) - integral) < error).all(), (name, w.mean(1), integral)


BEHIND: dict[str, dict[str, Any]] = {
    "rectangle": {"type": "rectangle", "to_world": T().translate([0, 0, 1.2]), "emitter": AREA},
    "painted": {"type": "rectangle", "to_world": T().translate([0, 0, 1.2]), "emitter": painted()},
    "disk": {"type": "disk", "to_world": T().translate([0, 0, -1]), "flip_normals": True, "emitter": AREA},
    "inside a sphere": {"type": "sphere", "center": [0.1, 0, 0], "emitter": AREA},
    "inside a cube": {"type": "cube", "emitter": AREA},
}


@pytest.mark.parametrize("name", BEHIND)
def test_area_lights_are_black_from_behind(name: str) -> None:
    scene = load({"type": "scene", "light": BEHIND[name]})
    d, _ = directions(sphere((8, 12), 2))
    radiance, density = from_rays(scene, d)
    assert (radiance == 0).all() and (density == 0).all()
    origin = Reference(SINGLE.Point3f(0, 0, 0))
    ds, weight = scene.sample_emitter_direction(origin, uniform(SINGLE, 2, 500), False)
    assert (numbers(ds.pdf, 500) == 0).all() and (numbers(weight, 500) == 0).all()


def test_point_light() -> None:
    scene = load({"type": "scene", "p": {"type": "point", "position": [1, 2, 2], "intensity": 18.0}})
    ds, weight = scene.sample_emitter_direction(Reference(SINGLE.Point3f(0, 0, 0)), uniform(SINGLE, 2, 4), False)
    np.testing.assert_allclose(numbers(weight, 4), 2.0, rtol=1e-6)
    np.testing.assert_allclose(numbers(ds.d, 4), np.repeat([[1 / 3], [2 / 3], [2 / 3]], 4, 1), rtol=1e-6)
    assert ds.delta.numpy().all() and numbers(ds.pdf, 4)[0] == 1


def test_lights_are_chosen_by_their_weights() -> None:
    point = {"type": "point", "position": [0, 0, 1]}
    weights = [3.0, 0.0, 1.0, 0.5]
    entries = {f"p{i}": {**point, "sampling_weight": w} for i, w in enumerate(weights)}
    scene = load({"type": "scene", **entries})
    u = uniform(SINGLE, 1, LANES)
    index, probability, again = scene.sample_emitter(u)
    chosen = numbers(index, LANES).astype(int)
    wanted = np.array(weights) / sum(weights)
    np.testing.assert_allclose(np.bincount(chosen, minlength=4) / LANES, wanted, atol=5e-3)
    np.testing.assert_allclose(numbers(probability, LANES), wanted[chosen], rtol=1e-5)
    np.testing.assert_allclose(numbers(scene.emitter_probability(index), LANES), wanted[chosen], rtol=1e-5)
    rest = numbers(again, LANES)
    assert rest.min() >= 0 and rest.max() <= 1 and abs(rest.mean() - 0.5) < 0.01 and abs(rest.std() - 12**-0.5) < 0.01


def test_several_lights_add_up() -> None:
    """With one sample each, the expected sum over all lights is that of the lights alone."""
    names = ["rectangle", "sphere", "constant"]
    alone = []
    for name in names:
        origin = Reference(SINGLE.Point3f(0, 0, 0))
        _, w = scene_of(name).sample_emitter_direction(origin, uniform(SINGLE, 2, LANES), False)
        alone.append(numbers(w, LANES).mean(1))
    scene = load({"type": "scene", **{n: LIGHTS[n] for n in names}})
    _, w = scene.sample_emitter_direction(Reference(SINGLE.Point3f(0, 0, 0)), uniform(SINGLE, 2, LANES, 9), False)
    w = numbers(w, LANES)
    assert (np.abs(w.mean(1) - np.sum(alone, 0)) < 5 * w.std(1) / math.sqrt(LANES) + 1e-3).all()


def test_environment_follows_a_new_image() -> None:
    scene = scene_of("envmap")
    other = load({"type": "scene", "e": {"type": "envmap", "bitmap": Bitmap(SKY[::-1].copy())}})
    from luxgrad.render.traverse import traverse

    params = traverse(scene)
    halo = np.concatenate([SKY[:, -1:], SKY, SKY[:, :1]], 1)[::-1]
    params["light.data"] = SINGLE.TensorXf(np.ascontiguousarray(halo))
    params.update()
    d, _ = directions(sphere((6, 8), 2))
    for a, b in zip(from_rays(scene, d), from_rays(other, d), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
