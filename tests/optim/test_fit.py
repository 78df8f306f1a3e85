"""The fitting loop on a grey plane under a white sky: known answers, resume, limits, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luxgrad.jit.errors import LuxgradError, SceneError
from luxgrad.optim import losses
from luxgrad.optim.fit import fit, select_keys
from luxgrad.optim.fit_integrator import replay_of
from luxgrad.optim.fit_views import read_target
from luxgrad.optim.result import FitStep
from luxgrad.optim.sgd import SGD
from luxgrad.render.image.bitmap import Bitmap
from luxgrad.render.transform import ScalarTransform4f
from luxgrad.render.traverse import traverse
from luxgrad.render.variants import types
from luxgrad.scenes.loader import load_dict

T = ScalarTransform4f
KEY = "paint.reflectance.value"


def sensor(x: float = 0.0, size: int = 8) -> dict[str, Any]:
    return {
        "type": "perspective", "fov": 40, "to_world": T().look_at([x, 0, 4], [x, 0, 0], [0, 1, 0]),
        "film": {"type": "hdrfilm", "width": size, "height": size, "rfilter": {"type": "box"}},
    }  # fmt: skip


def scene(color: tuple[float, float, float] = (0.5, 0.5, 0.5), integrator: str = "path", **more: Any) -> Any:
    """A lamp of radiance 4 above a plane that fills the picture."""
    return load_dict({
        "type": "scene", "integrator": {"type": integrator, "max_depth": 2}, "sensor": sensor(),
        "paint": {"type": "diffuse", "reflectance": {"type": "rgb", "value": list(color)}},
        "plane": {"type": "rectangle", "to_world": T().scale(5), "bsdf": {"type": "ref", "id": "paint"}},
        "lamp": {"type": "rectangle", "to_world": T().translate([0, 0, 6]).rotate([1, 0, 0], 180).scale(2),
                 "emitter": {"type": "area", "radiance": {"type": "rgb", "value": 4.0}}}, **more,
    }, types=types("llvm_ad_rgb"))  # fmt: skip


def picture(color: tuple[float, float, float]) -> Any:
    from luxgrad.render.render import render

    return np.array(render(scene(color), spp=256, seed=77))


COLOR = (0.7, 0.3, 0.05)


@pytest.fixture(scope="module")
def target() -> Any:
    return picture(COLOR)


def test_a_colour_is_found_again(target: Any) -> None:
    seen: list[FitStep] = []
    result = fit(
        scene(), target, KEY, SGD, steps=12, spp=16, lr=6.0, lr_end=1.0, progress=False, callback=seen.append,
    )  # fmt: skip
    assert np.allclose(result.values[KEY].ravel(), COLOR, atol=0.01)
    assert result.steps == 12 and [s.step for s in seen] == list(range(12))
    assert result.loss < 0.05 * result.losses[0]
    assert len(result.history[KEY]) == 13 and np.allclose(result.history[KEY][0], 0.5)
    assert set(result.images) == {"target", "start", "fitted"}
    assert np.allclose(np.array(result.images["fitted"]).mean((0, 1)), target.mean((0, 1)), rtol=0.03)
    assert result.samples == 12 * 16 * 64 and result.samples_per_second > 0


def test_the_scene_keeps_the_fitted_values(target: Any) -> None:
    world = scene()
    result = fit(world, target, [KEY], steps=3, spp=4, progress=False, image_spp=0)
    assert np.array_equal(np.array(traverse(world)[KEY]), result.values[KEY].astype(np.float32))
    assert result.images == {}


def test_values_stay_within_their_limits(target: Any) -> None:
    result = fit(scene(), target * 10, KEY, steps=4, spp=4, lr=0.3, progress=False, image_spp=0)
    assert np.array(result.history[KEY]).max() == 1.0
    free = fit(scene(), target * 10, KEY, steps=4, spp=4, lr=0.3, progress=False, image_spp=0, limits=None)
    assert np.array(free.history[KEY]).max() > 1.5


def test_a_resumed_fit_gives_the_same_numbers(target: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"params": KEY, "spp": 4, "lr": 0.05, "progress": False, "image_spp": 4}
    straight = fit(scene(), target, steps=9, **options)
    path = tmp_path / "fit.npz"

    class Killed(Exception):
        pass

    def kill(step: FitStep) -> None:
        if step.step == 6:
            raise Killed

    with pytest.raises(Killed):
        fit(scene(), target, steps=9, checkpoint_path=path, checkpoint_every=2, callback=kill, **options)
    again = fit(scene(), target, steps=9, checkpoint_path=path, checkpoint_every=2, **options)
    assert again.losses == straight.losses
    assert np.array_equal(again.values[KEY], straight.values[KEY])
    assert all(np.array_equal(a, b) for a, b in zip(again.history[KEY], straight.history[KEY], strict=True))
    assert again.images["start"] == straight.images["start"]
    assert again.samples == 3 * 4 * 64  # the steps up to the last checkpoint were not repeated
    finished = fit(scene(), target, steps=9, checkpoint_path=path, **options)
    assert finished.losses == straight.losses and finished.samples == 0


def test_a_checkpoint_of_another_fit_is_refused(target: Any, tmp_path: Path) -> None:
    path = tmp_path / "fit.npz"
    fit(scene(), target, KEY, steps=2, spp=4, checkpoint_path=path, progress=False, image_spp=0)
    with pytest.raises(SceneError, match="spp was 4, now 8"):
        fit(scene(), target, KEY, steps=2, spp=8, checkpoint_path=path, progress=False, image_spp=0)


def test_a_callback_can_stop(target: Any) -> None:
    result = fit(scene(), target, KEY, steps=50, spp=4, progress=False, image_spp=0, callback=lambda s: s.step == 2)
    assert result.steps == 3


def test_other_optimisers_and_losses(target: Any) -> None:
    result = fit(scene(), target, KEY, SGD, steps=6, spp=8, lr=4.0, progress=False, image_spp=0)
    assert result.settings["optimizer"] == "SGD" and result.loss < 0.2 * result.losses[0]
    mine = SGD(4.0, momentum=0.1)
    assert fit(scene(), target, KEY, mine, steps=2, spp=4, progress=False, image_spp=0).loss > 0 and KEY in mine
    bright = fit(scene(), target, KEY, steps=8, spp=8, lr=0.1, loss=losses.log_l2, progress=False, image_spp=0)
    assert bright.loss < 0.5 * bright.losses[0]


def test_two_views_share_the_parameter(target: Any) -> None:
    world = scene(sensor2=sensor(0.5))
    from luxgrad.render.render import render

    second = np.array(render(scene(COLOR, sensor2=sensor(0.5)), sensor=1, spp=256, seed=3))
    result = fit(world, [target, second], KEY, steps=12, spp=8, lr=0.1, lr_end=0.01, progress=False, image_spp=8)
    assert np.allclose(result.values[KEY].ravel(), COLOR, atol=0.06)
    assert {"target", "target 2", "fitted 2"} <= set(result.images)
    with pytest.raises(SceneError, match="2 sensors need as many targets"):
        fit(world, target, KEY, sensor=[0, 1])


def test_plain_path_tracing_is_replaced_by_replay() -> None:
    made = replay_of(scene(integrator="path"))
    assert made.plugin_name == "prb" and made.max_depth == 2
    assert replay_of(scene(integrator="prb")) is None


class TestTargets:
    def test_files_and_bitmaps_become_linear(self, tmp_path: Path) -> None:
        path = tmp_path / "grey.png"
        Bitmap(np.full((2, 3, 3), 128, np.uint8)).write(path)
        assert np.allclose(read_target(path), 0.2159, atol=1e-3)
        assert np.allclose(read_target(str(path)), read_target(Bitmap(path)))
        assert read_target(np.ones((2, 3), np.float32)).shape == (2, 3, 1)

    def test_wrong_targets_say_what_is_wrong(self, target: Any, tmp_path: Path) -> None:
        with pytest.raises(SceneError, match=r"shape \(4, 4, 3\).*its picture \(8, 8, 3\)"):
            fit(scene(), target[:4, :4], KEY, steps=1, spp=1, progress=False, image_spp=0)
        with pytest.raises(SceneError, match="no linear picture"):
            read_target(np.zeros((4, 4, 3), np.uint8))
        with pytest.raises(SceneError, match="does not exist"):
            read_target(tmp_path / "none.exr")

    def test_opacity_of_a_target_is_dropped(self, target: Any) -> None:
        rgba = np.concatenate([target, np.ones((8, 8, 1), np.float32)], axis=2)
        assert fit(scene(), rgba, KEY, steps=1, spp=4, progress=False, image_spp=0).steps == 1


class TestKeys:
    def test_patterns_lists_and_everything(self) -> None:
        parameters = traverse(scene())
        assert select_keys(parameters, "paint.*value$") == [KEY]
        assert select_keys(parameters, [KEY]) == [KEY]
        everything = select_keys(parameters, None)
        assert KEY in everything and "lamp.emitter.radiance.value" in everything
        assert "plane.to_world" not in everything and "plane.to_world" in select_keys(parameters, "plane.to_world")

    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ("nothing", "no parameter matches"), ("film", "without derivative"),
            (["paint.reflectance.valeu"], "did you mean"), (["sensor.film.size"], "has no derivative"),
        ],
    )  # fmt: skip
    def test_mistakes_are_explained(self, params: Any, message: str) -> None:
        with pytest.raises(SceneError, match=message):
            select_keys(traverse(scene()), params)


def test_a_parameter_without_effect_is_reported(target: Any) -> None:
    world = scene(unused={"type": "diffuse", "reflectance": {"type": "rgb", "value": 0.5}})
    with pytest.warns(UserWarning, match='the gradient of "unused.reflectance.value" is exactly 0'):
        fit(world, target, "paint|unused", steps=1, spp=4, progress=False, image_spp=0)


def test_a_loss_that_is_not_finite_stops_the_fit(target: Any) -> None:
    broken = target.copy()
    broken[0, 0, 0] = np.nan
    with pytest.raises(LuxgradError, match="the loss is nan in step 0"):
        fit(scene(), broken, KEY, steps=2, spp=4, progress=False, image_spp=0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"steps": -1}, "steps must be at least 0, found -1"),
        ({"steps": 2.5}, "steps must be an int, found 2.5 of type float"),
        ({"spp": 0}, "spp must be at least 1, found 0"),
        ({"spp": "8"}, "spp must be an int, found '8'"),
        ({"spp": True}, "spp must be an int, found True"),
        ({"lr": 0.0}, "lr must be a positive, finite number, found 0.0"),
        ({"lr": float("nan")}, "lr must be a positive, finite number, found nan"),
        ({"lr": float("inf")}, "lr must be a positive, finite number, found inf"),
        ({"lr": "fast"}, "lr must be a number, found 'fast'"),
        ({"lr": None}, "lr must be a number, found None"),
        ({"lr_end": -1.0}, "lr_end must be a positive, finite number, found -1.0"),
        ({"seed": -1}, r"seed must lie in 0 \.\. 2\^32 - 1, found -1"),
        ({"seed": 1.5}, "seed must be an int"),
        ({"spp_grad": -4}, "spp_grad must lie in 0"),
        ({"checkpoint_every": 0}, "checkpoint_every must be at least 1, found 0"),
        ({"optimizer": "Adam"}, "optimizer must be an object or function .* found 'Adam'"),
        ({"optimizer": 3}, "optimizer must be an object or function"),
        ({"loss": "l2"}, "loss must be an object or function"),
        ({"callback": 3}, "callback must be an object or function"),
        ({"integrator": "prb"}, "an integrator such as .* is needed, found 'prb'"),
        ({"params": 3}, "params must be a pattern or a list of paths, found 3"),
        ({"params": [3]}, "params must be a pattern or a list of paths, found 3"),
        ({"params": "("}, r"'\(' is no regular expression: missing \)"),
        ({"scene": None}, "a scene made by .* is needed, found None"),
    ],
)
def test_impossible_arguments_are_refused(target: Any, wrong: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"scene": scene(), "target": target, "params": "paint", "progress": False, **wrong}
    with pytest.raises(SceneError, match=rf"^fit\(\): {message}"):
        fit(**arguments)
