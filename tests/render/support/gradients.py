"""Scenes whose pictures have derivatives in one parameter, and what tests of them need: differences, directions."""

from __future__ import annotations

from typing import Any

import numpy as np
from lanes import DOUBLE, load

from luxgrad.ad import api
from luxgrad.jit.arrays import reduce
from luxgrad.render.image.bitmap import Bitmap
from luxgrad.render.render import render
from luxgrad.render.transform import ScalarTransform4f as T
from luxgrad.render.traverse import traverse

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
        if hasattr(light, "_density"):
            light._density = lambda kept=light.distribution: kept
    return scene


def numbers_of(value: Any) -> np.ndarray:
    return np.asarray(value.numpy(), np.float64)


def assign(params: Any, key: str, values: np.ndarray) -> None:
    """Set a parameter from numbers in the shape that `numpy()` gives."""
    params[key] = like(params[key], values)
    params.update()


def weighted(image: Any) -> Any:
    """Return the sum of all pixels, each with its weight."""
    return reduce.sum(image.array * DOUBLE.Float(WEIGHTS.ravel()))


def like(value: Any, step: np.ndarray) -> Any:
    """Return numbers in the shape that `numpy()` gives as an array of a parameter's type."""
    if hasattr(value, "array"):
        return type(value)(step)
    if step.ndim == 3:
        return type(value)([[float(x) for x in row[:, 0]] for row in step])
    return type(value)(*[DOUBLE.Float(row) for row in step]) if step.ndim == 2 else DOUBLE.Float(step)


def differences(scene: Any, key: str, step: np.ndarray, size: float = 1e-5, spp: int = SPP) -> float:
    """Return the central difference along `step`."""
    params = traverse(scene)
    start = numbers_of(params[key]).copy()
    sums = []
    for sign in (1, -1):
        assign(params, key, start + sign * size * step)
        image = scene.integrator().render(scene, scene.sensors()[0], SEED, spp)
        sums.append(float((numbers_of(image) * WEIGHTS).sum()))
    return (sums[0] - sums[1]) / (2 * size)


def direction_for(value: Any, key: str) -> np.ndarray:
    shape = numbers_of(value).shape
    step = np.random.default_rng(1).standard_normal(shape)
    if key.endswith("to_world"):
        step[3] = 0
        step *= 0.1
    return step


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
