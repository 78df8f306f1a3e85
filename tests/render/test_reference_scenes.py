"""Cornell box and Veach's plates against pictures and gradients of Mitsuba, through both accelerators."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lanes import SINGLE
from pictures import assert_same_mean
from scipy import stats

from luxgrad.ad import api
from luxgrad.jit.arrays import reduce
from luxgrad.render.properties import Properties
from luxgrad.render.registry import entry
from luxgrad.render.render import render
from luxgrad.render.slots import build
from luxgrad.render.traverse import traverse
from luxgrad.scenes.builtin import data_file
from luxgrad.scenes.loader import load_file

pytestmark = [pytest.mark.cpu, pytest.mark.statistical]

DATA = Path(__file__).parent / "data"
REFERENCES: dict[str, Any] = json.loads((DATA / "references.json").read_text("utf-8"))
SCENES = ["cornell-box", "veach-mis"]
ACCELERATORS = ["embree", "bvh"]


def scene_of(name: str, accelerator: str) -> Any:
    scene = load_file(data_file(f"{name}/scene.xml"), types=SINGLE)
    params = traverse(scene)
    film = next(key.removesuffix(".size") for key in params.keys() if key.endswith("film.size"))
    width, height = REFERENCES[name]["size"]
    params[f"{film}.size"] = SINGLE.Vector2u(width, height)
    params[f"{film}.crop_size"] = SINGLE.Vector2u(width, height)
    params.update()
    scene.use_accelerator(accelerator)
    return scene


def compare(name: str, accelerator: str, seeds: int, spp: int, folder: Path) -> None:
    scene = scene_of(name, accelerator)
    pictures = [render(scene, seed=seed, spp=spp).numpy() for seed in range(seeds)]
    stored = np.load(DATA / f"{name}.npz")
    reference = REFERENCES[name]
    overall = (np.array(reference["mean"]), np.array(reference["sem"]))
    assert_same_mean(pictures, stored["mean"].astype(float), stored["sem"].astype(float), overall, folder)


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("name", SCENES)
def test_pictures(name: str, accelerator: str, tmp_path: Path) -> None:
    compare(name, accelerator, 6, 12, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("name", SCENES)
def test_pictures_with_many_samples(name: str, accelerator: str, tmp_path: Path) -> None:
    compare(name, accelerator, 16, 64, tmp_path)


def gradients(name: str, keys: list[str], seeds: int, spp: int) -> dict[str, np.ndarray]:
    """Return the gradient of the mean over pixels and channels per seed, (seeds, components) per parameter."""
    scene = scene_of(name, "auto")
    params = traverse(scene)
    plugin = entry("integrator", "prb")
    depth = REFERENCES[name]["gradient"]["max_depth"]
    integrator = build(plugin, Properties({"max_depth": depth}, entry=plugin, types=SINGLE))
    result: dict[str, list[np.ndarray]] = {key: [] for key in keys}
    for key in keys:
        api.enable_grad(params[key])
    params.update()
    for seed in range(seeds):
        image = render(scene, integrator=integrator, seed=2 * seed, seed_grad=2 * seed + 1, spp=1, spp_grad=spp)
        api.backward(reduce.mean(image.array))
        for key in keys:
            result[key].append(np.asarray(api.grad(params[key]).numpy(), float).ravel())
            api.clear_grad(params[key])
    return {key: np.stack(values) for key, values in result.items()}


def compare_gradients(name: str, keys: list[str], seeds: int, spp: int) -> None:
    found = gradients(name, keys, seeds, spp)
    bound = stats.t.isf(stats.norm.sf(4.0), seeds - 1)
    for key, values in found.items():
        stored = REFERENCES[name]["gradient"]["values"][key]
        error = np.hypot(values.std(0, ddof=1) / math.sqrt(seeds), np.array(stored["sem"]))
        deviation = np.abs(values.mean(0) - np.array(stored["value"])) / (error + 1e-12)
        assert (deviation < bound).all(), (key, values.mean(0), stored["value"], deviation)


def test_gradients_of_walls_and_lamp() -> None:
    keys = ["LeftWallBSDF", "RightWallBSDF", "FloorBSDF", "BackWallBSDF", "TallBoxBSDF"]
    keys = [f"{key}.brdf_0.reflectance.value" for key in keys] + ["Light.emitter.radiance.value"]
    compare_gradients("cornell-box", keys, 6, 8)


def test_gradients_of_metals() -> None:
    keys = ["DiffuseBSDF.brdf_0.reflectance.value"]
    keys += [f"RoughBSDF.brdf_0.{part}.value" for part in ("specular_reflectance", "alpha", "eta", "k")]
    compare_gradients("veach-mis", keys, 6, 8)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_all_gradients(name: str) -> None:
    compare_gradients(name, list(REFERENCES[name]["gradient"]["values"]), 16, 32)
