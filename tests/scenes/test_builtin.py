"""The scenes that come with the package."""

from __future__ import annotations

import numpy as np
import pytest

from luxgrad.render.traverse import traverse
from luxgrad.render.variants import types
from luxgrad.scenes.builtin import cornell_box, data_file
from luxgrad.scenes.loader import load_dict, load_file


@pytest.fixture(autouse=True)
def plugins() -> None:
    """Keep the real plugins, which the other tests of this folder replace."""


def test_the_cornell_box_dictionary_loads_with_its_names() -> None:
    scene = load_dict(cornell_box(), types=types("llvm_ad_rgb"))
    names = {shape.id() for shape in scene.shapes()}
    assert names == {"light", "floor", "ceiling", "back", "green-wall", "red-wall", "small-box", "large-box"}
    parameters = traverse(scene)
    assert np.allclose(np.array(parameters["red.reflectance.value"]).ravel(), [0.570068, 0.0430135, 0.0443706])
    assert list(scene.sensors()[0].film().size()) == [256, 256]
    box = scene.bbox()
    # The tall block stands a hundredth in the floor.
    assert np.allclose(np.array(box.min).ravel(), [-1, -1.01, -1], atol=1e-6)
    assert np.allclose(np.array(box.max).ravel(), [1, 1, 1], atol=1e-6)


def test_each_call_returns_a_dictionary_of_its_own() -> None:
    cornell_box()["sensor"]["fov"] = 1.0
    assert cornell_box()["sensor"]["fov"] == 39.3077


def test_the_scene_file_loads_and_carries_its_licence() -> None:
    scene = load_file(data_file("cornell-box/scene.xml"), types=types("llvm_ad_rgb"), resx=32, resy=16)
    assert len(scene.shapes()) == 8 and list(scene.sensors()[0].film().size()) == [32, 16]
    assert "CC0" in data_file("cornell-box/LICENSE.txt").read_text()
