"""What is passed to renderings: every wrong type and value is one error that says what would be right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import luxgrad.mi as mi
from luxgrad import LuxgradError, WrongTypeError
from luxgrad.render.variants import types


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """A scene with one sensor, its parameters, and integrators."""
    with mi.variant_context("llvm_ad_rgb"):
        scene = mi.load_dict(
            {
                "type": "scene",
                "integrator": {"type": "prb"},
                "sensor": {
                    "type": "perspective",
                    "film": {"type": "hdrfilm", "width": 3, "height": 2},
                    "sampler": {"type": "independent", "sample_count": 2},
                },
                "sky": {"type": "constant"},
            }
        )
        path, direct = mi.load_dict({"type": "path"}), mi.load_dict({"type": "direct"})
    return {"scene": scene, "params": mi.traverse(scene), "path": path, "direct": direct, "sensor": scene.sensors()[0]}


WHOLE = ["8", 2.5, 4.0, True, None, [4], float("nan"), 1j, object(), np.float32(4), np.True_, np.array([1, 2])]
RANGE = [-1, 1 << 32, -(1 << 70)]


@pytest.mark.parametrize("name", ["spp", "seed", "spp_grad", "seed_grad"])
def test_counts_and_seeds(made: dict[str, Any], name: str) -> None:
    for value in WHOLE:
        with pytest.raises(WrongTypeError, match=rf"^render: {name} must be an int.*found.* of type "):
            mi.render(made["scene"], **{name: value})
    for value in RANGE:
        with pytest.raises(LuxgradError, match=rf"^render: {name} must lie in 0 .*2\^32 - 1, found {value}"):
            mi.render(made["scene"], **{name: value})
    for good in (3, np.int64(3), np.uint8(3), types("llvm_ad_rgb").UInt32(3)):
        assert mi.render(made["scene"], **{"spp": 1, "seed": 7, name: good}).shape == (2, 3, 3)


@pytest.mark.parametrize("which", ["path", "direct"])
def test_integrators_check_what_they_are_given(made: dict[str, Any], which: str) -> None:
    render, scene = made[which].render, made["scene"]
    for value in WHOLE:
        with pytest.raises(WrongTypeError, match="^render: spp must be an int"):
            render(scene, 0, 0, value)
        with pytest.raises(WrongTypeError, match="^render: seed must be an int"):
            render(scene, 0, value, 1)
    for value in RANGE:
        with pytest.raises(LuxgradError, match="^render: (spp|seed) must lie in"):
            render(scene, 0, value, 1)
        with pytest.raises(LuxgradError, match="^render: (spp|seed) must lie in"):
            render(scene, 0, 1, value)
    assert np.array_equal(render(scene, 0, 5, 2), render(scene, made["sensor"], np.int64(5), 0))
    with pytest.raises(WrongTypeError, match="a scene made by load_file"):
        render(made["params"], 0, 0, 1)


def test_sensors(made: dict[str, Any]) -> None:
    for render in (mi.render, made["path"].render):
        for value in ("camera", None, True, 1.0, [0], made["path"], made["scene"], type(made["sensor"])):
            with pytest.raises(WrongTypeError, match="number of one of the scene's sensors, or a Sensor; found"):
                render(made["scene"], sensor=value, spp=1)
        for value in (1, -2, 1 << 80):
            with pytest.raises(LuxgradError, match=rf"sensor {value} was asked for, the scene has 1"):
                render(made["scene"], sensor=value, spp=1)
        assert render(made["scene"], sensor=-1, spp=1).shape == (2, 3, 3)
    with pytest.raises(LuxgradError, match="the scene has no sensor; add one"), mi.variant_context("llvm_ad_rgb"):
        mi.render(mi.load_dict({"type": "scene"}))


@pytest.mark.parametrize("wrong", ["path", 0, 3, False, object(), {"type": "path"}, "scene", "sensor", "class"])
def test_integrators(made: dict[str, Any], wrong: Any) -> None:
    value = {"class": type(made["path"]), "scene": made["scene"], "sensor": made["sensor"]}.get(str(wrong), wrong)
    with pytest.raises(WrongTypeError, match="^render: an integrator such as load_dict.* is needed, found"):
        mi.render(made["scene"], integrator=value, spp=1)


def test_scenes(made: dict[str, Any]) -> None:
    for value in ("room.xml", 3, None, {"type": "scene"}, [made["scene"]], made["params"], type(made["scene"])):
        with pytest.raises(WrongTypeError, match=r"^render: a scene made by load_file.* is needed, found "):
            mi.render(value, spp=1)


def test_parameters(made: dict[str, Any]) -> None:
    number = types("llvm_ad_rgb").Float(1)
    for value in ("radiance", 3, object(), made["scene"], made["sensor"], made["path"], [1], (None,), dict):
        with pytest.raises(WrongTypeError, match="^render: params must be what traverse.* by name"):
            mi.render(made["scene"], value, spp=1)
    for good in (None, made["params"], {}, {"a": number}, [number], number):
        assert mi.render(made["scene"], good, spp=1).shape == (2, 3, 3)


def test_wrong_types_are_type_errors_and_value_errors(made: dict[str, Any]) -> None:
    for kind in (TypeError, ValueError, LuxgradError):
        with pytest.raises(kind):
            mi.render(made["scene"], spp="8")
