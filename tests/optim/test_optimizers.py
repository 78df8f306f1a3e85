"""Optimisers: their rules against a NumPy version, the dictionary, learning rates, kernels, saving."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import luxgrad.ad.api as ad
from luxgrad.jit.arrays import functions as f
from luxgrad.jit.arrays import reduce
from luxgrad.jit.arrays.namespace import namespace
from luxgrad.jit.runtime.history import history
from luxgrad.optim.adam import Adam, AdamW
from luxgrad.optim.base import Optimizer
from luxgrad.optim.rmsprop import RMSProp
from luxgrad.optim.sgd import SGD

types = namespace("llvm", True)
Float, Float64, Array3f, UInt32 = (types.get(n) for n in ("Float", "Float64", "Array3f", "UInt32"))
TARGET = np.array([1.0, 2.0, 3.0])
WEIGHT = np.array([1.0, 2.0, 0.5])


def gradient(x: Any) -> Any:
    return 2 * WEIGHT * (x - TARGET)


def descend(opt: Optimizer, steps: int = 5) -> np.ndarray[Any, Any]:
    """Return the path of x from 0 on, (steps, 3), in double precision."""
    opt["x"] = Float64([0, 0, 0])
    path = []
    for _ in range(steps):
        ad.backward(reduce.sum(f.square(opt["x"] - Float64(TARGET)) * Float64(WEIGHT)))
        opt.step()
        path.append(opt["x"].numpy().copy())
    return np.array(path)


def adam_reference(
    steps: int = 5, *, lr: float = 0.1, a: float = 0.9, b: float = 0.999, epsilon: float = 1e-8,
    uniform: bool = False, amsgrad: bool = False, decay: float = 0.0,
) -> np.ndarray[Any, Any]:  # fmt: skip
    x, m, v, largest = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3)
    path = []
    for t in range(1, steps + 1):
        g = gradient(x)
        m, v = a * m + (1 - a) * g, b * v + (1 - b) * g**2
        scale = np.full(3, v.max()) if uniform else v
        largest = np.maximum(largest, scale)
        scale = largest if amsgrad else scale
        x = x * (1 - lr * decay)
        x = x - lr * np.sqrt(1 - b**t) / (1 - a**t) * m / (np.sqrt(scale) + epsilon)
        path.append(x)
    return np.array(path)


def sgd_reference(steps: int = 5, *, momentum: float = 0.0, nesterov: bool = False) -> np.ndarray[Any, Any]:
    x, v = np.zeros(3), np.zeros(3)
    path = []
    for _ in range(steps):
        g = gradient(x)
        v = momentum * v + g
        x = x - 0.1 * (g + momentum * v if nesterov else v)
        path.append(x)
    return np.array(path)


@pytest.mark.parametrize(
    ("options", "reference"),
    [
        ({}, {}),
        ({"beta_1": 0.5, "beta_2": 0.7, "epsilon": 0.5}, {"a": 0.5, "b": 0.7, "epsilon": 0.5}),
        ({"uniform": True}, {"uniform": True}),
        ({"amsgrad": True, "beta_2": 0.5}, {"amsgrad": True, "b": 0.5}),
        ({"amsgrad": True, "uniform": True, "beta_2": 0.5}, {"amsgrad": True, "uniform": True, "b": 0.5}),
    ],
)
def test_adam_follows_its_formula(options: dict[str, Any], reference: dict[str, Any]) -> None:
    assert np.allclose(descend(Adam(0.1, **options), 8), adam_reference(8, **reference), rtol=1e-9)


def test_adamw_decays_values_by_the_plain_learning_rate() -> None:
    assert np.allclose(descend(AdamW(0.1, weight_decay=0.3)), adam_reference(decay=0.3), rtol=1e-9)


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}])
def test_sgd_follows_its_formula(options: dict[str, Any]) -> None:
    assert np.allclose(descend(SGD(0.1, **options)), sgd_reference(**options), rtol=1e-12)


def test_rmsprop_follows_its_formula() -> None:
    x, v, path = np.zeros(3), np.zeros(3), []
    for _ in range(5):
        g = gradient(x)
        v = 0.99 * v + 0.01 * g**2
        x = x - 0.1 * g / (np.sqrt(v) + 1e-8)
        path.append(x)
    assert np.allclose(descend(RMSProp(0.1)), path, rtol=1e-9)


def test_masked_updates_leave_value_and_state_alone_where_the_gradient_is_zero() -> None:
    opt = SGD(0.1, momentum=0.9, mask_updates=True)
    opt["x"] = Float([0, 0])
    opt["x"].grad = Float([1, 1])
    opt.step()
    opt["x"].grad = Float([1, 0])
    opt.step()
    assert np.allclose(opt["x"].numpy(), [-0.1 - 0.19, -0.1])
    opt["x"].grad = Float([0, 1])
    opt.step()
    assert np.allclose(opt["x"].numpy(), [-0.29, -0.1 - 0.19])  # the second element's velocity was 1, not 0.9


def test_nested_arrays_share_one_scale_with_uniform() -> None:
    opt = Adam(0.1, uniform=True)
    opt["c"] = Array3f(0, 0, 0)
    opt["c"].grad = Array3f(1, 2, 4)
    opt.step()
    assert np.allclose(opt["c"].numpy().ravel(), [-0.025, -0.05, -0.1], rtol=1e-5)


class TestDictionary:
    def test_assignment_stores_a_detached_copy_with_gradients(self) -> None:
        x = Float([1, 2])
        ad.enable_grad(x)
        y = x * 2
        opt = SGD(0.1)
        opt["y"] = y
        assert ad.grad_enabled(opt["y"])
        ad.backward(reduce.sum(opt["y"] * 3))
        assert np.all(opt["y"].grad.numpy() == 3)
        assert np.all(x.grad.numpy() == 0)
        y += 1
        assert np.all(opt["y"].numpy() == [2, 4])

    def test_it_is_a_mapping(self) -> None:
        opt = Adam(0.1, {"a": Float(1), "b": Array3f(1, 2, 3)})
        assert list(opt) == list(opt.keys()) == ["a", "b"]
        assert len(opt) == 2 and "a" in opt and "c" not in opt
        assert [k for k, _ in opt.items()] == ["a", "b"]
        assert type(opt["b"]) is Array3f
        del opt["a"]
        assert list(opt) == ["b"]
        with pytest.raises(KeyError):
            opt["a"]
        opt.update(c=Float(4))
        assert float(opt["c"]) == 4

    @pytest.mark.parametrize("value", [1.0, UInt32(1), [Float(1)], namespace("llvm", False).get("Float")(1)])
    def test_what_has_no_gradient_is_refused_with_its_name(self, value: Any) -> None:
        with pytest.raises(TypeError, match='cannot optimise "y"'):
            SGD(0.1)["y"] = value

    def test_state_survives_assignment_of_the_same_size_only(self) -> None:
        opt = SGD(0.1, momentum=0.5)
        opt["x"] = Float([0, 0])
        opt["x"].grad = Float([1, 1])
        opt.step()
        opt["x"] = Float([5, 5])
        opt.step()  # no gradient: only the velocity of 1, halved, moves it
        assert np.allclose(opt["x"].numpy(), 5 - 0.05)
        opt["x"] = Float([5, 5, 5])
        opt.step()
        assert np.all(opt["x"].numpy() == 5)

    def test_reset_forgets_the_state_and_keeps_the_value(self) -> None:
        opt = SGD(0.1, momentum=0.5)
        opt["x"] = Float([1])
        opt["x"].grad = Float([1])
        opt.step()
        opt.reset("x")
        opt.step()
        assert np.allclose(opt["x"].numpy(), 0.9)
        with pytest.raises(KeyError):
            opt.reset("y")

    def test_scene_parameters_that_cannot_be_differentiated_are_left_out(self) -> None:
        class Params:
            def items(self) -> Iterator[tuple[str, Any]]:
                yield from {"a": Float(1), "eta": Float(2), "faces": UInt32(3), "v": Float(4)}.items()

            def flags(self, key: str) -> int:
                return {"a": 0, "eta": 1, "faces": 1, "v": 2}[key]

        assert list(Adam(0.1, Params())) == ["a", "v"]  # type: ignore[arg-type]


class TestLearningRates:
    def test_common_and_own_rates(self) -> None:
        opt = SGD(0.1, {"a": Float(0), "b": Float(0)})
        assert opt.learning_rate() == 0.1 and opt.learning_rate("a") is None
        opt.set_learning_rate({"a": 0.5})
        opt.set_learning_rate(0.2)
        for key in opt:
            opt[key].grad = Float(1)
        opt.step()
        assert np.allclose([float(opt["a"]), float(opt["b"])], [-0.5, -0.2])
        opt.set_learning_rate(a=None)
        assert opt.learning_rate("a") is None

    def test_unknown_names_are_listed(self) -> None:
        with pytest.raises(KeyError, match='no parameter is called "z"; there are a'):
            SGD(0.1, {"a": Float(0)}).set_learning_rate({"z": 1.0})

    @pytest.mark.parametrize("rate", [-0.1, float("nan")])
    def test_negative_rates_are_refused(self, rate: float) -> None:
        with pytest.raises(ValueError, match="learning rate"):
            SGD(rate)

    def test_a_rate_may_be_an_array(self) -> None:
        opt = SGD(Float(0.5), {"a": Float(0)})
        opt["a"].grad = Float(1)
        opt.step()
        assert np.allclose(opt["a"].numpy(), -0.5)


def test_wrong_settings_are_refused() -> None:
    wrong: list[tuple[Any, dict[str, Any]]] = [
        (SGD, {"momentum": 1.0}), (SGD, {"nesterov": True}), (Adam, {"beta_1": 1.0}), (Adam, {"epsilon": 0.0}),
        (RMSProp, {"alpha": 2.0}), (AdamW, {"weight_decay": -1.0}),
    ]  # fmt: skip
    for rule, options in wrong:
        with pytest.raises(ValueError):
            rule(0.1, **options)


def test_scaled_and_inactive_steps() -> None:
    opt = SGD(0.1, {"a": Float([0, 0])})
    opt["a"].grad = Float([4, 8])
    opt.step(grad_scale=0.25)
    assert np.allclose(opt["a"].numpy(), [-0.1, -0.2])
    opt["a"].grad = Float([4, 8])
    opt.step(active=Float(1) > 2)
    assert np.allclose(opt["a"].numpy(), [-0.1, -0.2])


@pytest.mark.parametrize("make", [lambda: Adam(0.1), lambda: Adam(0.1, amsgrad=True), lambda: SGD(0.1, momentum=0.9)])
def test_changing_rates_and_step_counters_need_no_new_kernels(make: Any) -> None:
    opt = make()
    opt["x"], opt["c"] = Float(np.linspace(0, 1, 100)), Array3f(1, 2, 3)
    before = history.hard_misses + history.soft_misses
    for step in range(20):
        opt.set_learning_rate(0.1 / (1 + step))
        opt.set_learning_rate({"c": 0.01 * (step + 1)})
        ad.backward(reduce.sum(f.square(opt["x"])) + reduce.sum(reduce.sum(f.square(opt["c"]))))
        opt.step()
    assert history.hard_misses + history.soft_misses - before <= 3
    assert opt["x"]._n.args == ()  # evaluated: nothing of earlier steps is kept


@pytest.mark.parametrize("rule", [Adam, AdamW, RMSProp, SGD])
def test_a_restored_optimizer_goes_on_exactly(rule: Any) -> None:
    def start() -> Any:
        return rule(0.1, {"x": Float([0.1, 0.2, 0.3]), "c": Array3f(1, 2, 3)})

    def steps(opt: Any, n: int) -> None:
        for _ in range(n):
            ad.backward(reduce.sum(f.square(opt["x"] - 1)) + reduce.sum(reduce.sum(f.sin(opt["c"]))))
            opt.step()

    straight, first, second = start(), start(), start()
    steps(straight, 7)
    steps(first, 3)
    second.load_state_arrays(first.state_arrays())
    steps(second, 4)
    for key in straight:
        assert np.array_equal(straight[key].numpy(), second[key].numpy())
    with pytest.raises(ValueError, match="other parameters"):
        rule(0.1, {"y": Float(1)}).load_state_arrays(first.state_arrays())


def test_the_optimisers_load_without_the_renderer() -> None:
    import subprocess
    import sys

    code = "import sys, luxgrad.optim.adam, luxgrad.optim.losses; print('luxgrad.render' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


def test_printing_shows_the_settings() -> None:
    opt = Adam(0.1, {"x": Float([1, 2])})
    opt.set_learning_rate({"x": 0.5})
    assert "'x': 0.5" in repr(opt) and repr(opt).startswith("Adam[")
