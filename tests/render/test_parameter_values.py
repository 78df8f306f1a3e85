"""What is written to scene parameters: impossible names and values are refused and leave no trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import luxgrad.mi as mi
from luxgrad import SceneError, WrongTypeError

COLOUR, TEXTURE = "ball.bsdf.reflectance.value", "card.bsdf.reflectance.data"
SIZE, POSE, ANGLE = "sensor.film.size", "sensor.to_world", "sensor.x_fov"


@pytest.fixture
def params() -> Any:
    """The parameters of a scene with a sphere, a card with a texture, and a sensor."""
    with mi.variant_context("llvm_ad_rgb"):
        texture = {"type": "bitmap", "raw": True, "bitmap": mi.Bitmap(np.full((2, 2, 3), 0.5, np.float32))}
        colour = {"type": "rgb", "value": 0.5}
        return mi.traverse(
            mi.load_dict(
                {
                    "type": "scene",
                    "sensor": {"type": "perspective", "film": {"type": "hdrfilm", "width": 4, "height": 4}},
                    "ball": {"type": "sphere", "bsdf": {"type": "diffuse", "reflectance": colour}},
                    "card": {"type": "rectangle", "bsdf": {"type": "diffuse", "reflectance": texture}},
                }
            )
        )


def test_names(params: Any) -> None:
    for key in (3, None, ("ball",)):
        with pytest.raises(WrongTypeError, match="scene parameters have names, found the key"):
            params[key]
        with pytest.raises(WrongTypeError, match="scene parameters have names, found the key"):
            params[key] = 1
        assert key not in params
    for key, hint in [("nope", r"there is no scene parameter 'nope'"), (COLOUR[:-1], f'did you mean "{COLOUR}"')]:
        with pytest.raises(KeyError, match=hint):
            params[key] = 1


_WRONG: list[tuple[str, Any]] = [
    *((COLOUR, v) for v in ("red", None, [1, 2], [1, 2, 3, 4], np.ones(4), np.ones((3, 3)), {"type": "rgb"}, 1j)),
    *((TEXTURE, v) for v in ("a.png", None, 3, np.ones((2, 2)), np.ones((2, 2, 4)), np.ones((0, 2, 3)), np.ones(12))),
    *((SIZE, v) for v in ([4, 4, 4], [0, 4], [-1, 4], "4x4", [2**40, 1], None)),
    *((POSE, v) for v in (np.eye(3), "look", None, object())),
    *((ANGLE, v) for v in ("wide", 0, 200, [40, 50], None, float)),
]


@pytest.mark.parametrize(("key", "value"), _WRONG)
def test_values(params: Any, key: str, value: Any) -> None:
    before = np.array(params[key])
    other = np.array(params[COLOUR])
    params[COLOUR] = 0.25
    with pytest.raises(SceneError):
        params[key] = value
        params.update()
    after = np.array(params[key]) if key != COLOUR else other
    assert after.shape == before.shape and np.array_equal(after, before)
    params[COLOUR] = 0.75
    params.update()
    assert np.allclose(params[COLOUR], 0.75)


def test_refused_values_are_taken_back_with_all_that_were_set(params: Any) -> None:
    params[COLOUR] = 0.25
    params[TEXTURE] = np.ones((3, 3, 3))
    params[ANGLE] = 200
    with pytest.raises(SceneError, match="between 0 and 180"):
        params.update()
    assert np.allclose(params[COLOUR], 0.5) and params[TEXTURE].shape == (2, 2, 3) and 0 < params[ANGLE][0] < 180
    assert params.update() == []


def test_transforms_are_values_of_matrices(params: Any) -> None:
    with mi.variant_context("llvm_ad_rgb"):
        for kind in (mi.ScalarTransform4f, mi.Transform4f):
            pose = kind().translate([1, 2, 3])
            params[POSE] = pose
            assert np.allclose(np.array(params[POSE])[:3, 3].ravel(), [1, 2, 3])


def test_calls(params: Any) -> None:
    for pattern in ("*", "("):
        with pytest.raises(SceneError, match=r"keep\(\): '.' is no regular expression"):
            params.keep(pattern)
    with pytest.raises(WrongTypeError, match=r"keep\(\): a regular expression or a list of names is needed"):
        params.keep(3)
    for values in (3, [1], "abc"):
        with pytest.raises(WrongTypeError, match=r"update\(\): an optimiser or a dict of values is needed"):
            params.update(values)
    for thing in (3, None, {"a": 1}, [params], mi.Scene):
        with pytest.raises(WrongTypeError, match=r"traverse\(\): a scene or an object in one is needed"):
            mi.traverse(thing)


@pytest.mark.parametrize("bad", [0.0, float("nan")])
def test_transforms_that_flatten_or_are_not_finite_are_refused(bad):
    from luxgrad import mi
    from luxgrad.jit.errors import SceneError

    mi.set_variant("llvm_ad_rgb")
    scene = mi.load_dict({"type": "scene", "eye": {"type": "perspective"}, "wall": {"type": "rectangle"}})
    params = mi.traverse(scene)
    for key in ("eye.to_world", "wall.to_world"):
        before = params[key].numpy().copy()
        with pytest.raises(SceneError, match=f"{key}: the transform"):
            params[key] = mi.ScalarTransform4f().scale(bad)
        assert (params[key].numpy() == before).all()
