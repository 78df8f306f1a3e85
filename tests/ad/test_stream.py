"""Gradients of streams equal those of the same function in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luxgrad as dr
from luxgrad import stream
from luxgrad.llvm import Float as PlainFloat
from luxgrad.llvm.ad import Array3f, Float, UInt32

CHUNK = 128
X = np.random.default_rng(0).random(1003, np.float32)
Y = np.random.default_rng(1).random(1003, np.float32)
V = np.random.default_rng(2).random((500, 3), np.float32)


def histogram(x: Any, w: Any) -> Any:
    bins = dr.zeros(Float, 8)
    dr.scatter_add(bins, x * w, UInt32(x * 8))
    dr.scatter_add(bins, w, UInt32(x * 4))
    return dr.sum(bins * bins)


def softmax_entropy(x: Any, w: Any) -> Any:
    e = dr.exp(x * w - dr.max(x * w))
    p = e / dr.sum(e)
    return dr.sum(p * dr.log(p))


def looped(x: Any, w: Any) -> Any:
    state = (UInt32(0), Float(x))
    _, y = dr.while_loop(state, lambda i, y: i < 3, lambda i, y: (i + 1, y * w), max_iterations=3)
    return dr.sum(y)


CASES: dict[str, tuple[Callable[..., Any], list[Any], Any]] = {
    "sum": (lambda x, w: dr.sum(dr.sin(x * w)), [X], 1.5),
    "mean of two": (lambda x, y, w: dr.mean(dr.square(x * w - y)), [X, Y], 0.7),
    "variance": (lambda x, w: dr.mean(dr.square(x * w - dr.mean(x * w))), [X], 1.5),
    "extremes": (lambda x, w: dr.max(x * w) * dr.sum(x) / w + dr.min(x + w), [X], 1.5),
    "softmax": (softmax_entropy, [X], 1.5),
    "per element": (lambda x, y, w: dr.square(x * w - y), [X, Y], 1.5),
    "per element with totals": (lambda x, w: x * w / dr.mean(x * w * w), [X], 1.5),
    "both": (lambda x, w: (x * w, dr.sum(x * x * w)), [X], 1.5),
    "table": (lambda x, w: dr.sum(dr.gather(Float, w, UInt32(x * 8)) * x), [X], list(range(1, 9))),
    "scatter": (histogram, [X], 1.5),
    "components": (lambda v, w: dr.sum(dr.norm(v * w)), [V], 1.5),
    "loop": (looped, [X], 0.9),
    "only parameters": (lambda x, w: w * 2, [X], 1.5),
    "one element": (lambda x, w: dr.sum(x * w) * w, [X[:1]], 1.5),
}


def in_memory(function: Any, sources: list[Any], w: Any) -> tuple[Any, list[Any], Any]:
    """Return result, gradients of the sources in their shapes, gradient of w."""
    arrays = [Float(s) if s.ndim == 1 else Array3f(s.T) for s in sources]
    dr.enable_grad(arrays, w)
    result = function(*arrays, w)
    dr.backward(result)
    shaped = [np.broadcast_to(dr.grad(a).numpy().T, s.shape) for a, s in zip(arrays, sources, strict=True)]
    return result, shaped, dr.grad(w).numpy()


@pytest.mark.parametrize("name", CASES)
def test_gradients_equal_those_in_memory(name: str) -> None:
    function, sources, start = CASES[name]
    result, expected, expected_w = in_memory(function, sources, Float(start))
    w = Float(start)
    dr.enable_grad(w)
    found = [np.empty_like(s) for s in sources]
    value = stream.backward(function, *sources, params=(w,), grad_out=found, chunk=CHUNK).value
    np.testing.assert_allclose(dr.grad(w).numpy(), expected_w, rtol=2e-5)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
    for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (value, result)), strict=True):
        assert a is None and len(b) == len(sources[0]) or a.numpy() == pytest.approx(b.numpy(), rel=1e-5)


def test_gradients_are_added_and_go_on_to_what_arrays_were_computed_from() -> None:
    root = Float(2)
    dr.enable_grad(root)
    w = root * root
    root.grad = 10
    stream.backward(lambda x: dr.sum(x * w), X, chunk=CHUNK)  # w is not among the parameters: found all the same
    assert root.grad[0] == pytest.approx(10 + 4 * X.sum(dtype=float), rel=1e-5)
    leaf = Float(3)
    dr.enable_grad(leaf)
    leaf.grad = 5
    for _ in range(2):
        stream.backward(lambda x, w: dr.sum(x * w), X, params={"w": leaf}, chunk=CHUNK)
    assert leaf.grad[0] == pytest.approx(5 + 2 * X.sum(dtype=float), rel=1e-5)


def test_gradients_of_a_source_go_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, V)
    report = stream.backward(lambda v: dr.sum(v.x * v.y), path, grad_out=tmp_path / "g.npy", chunk=CHUNK).report
    expected = np.stack([V[:, 1], V[:, 0], np.zeros(len(V))], 1)
    assert np.array_equal(np.load(tmp_path / "g.npy"), expected) and report.bytes_written == V.nbytes
    with pytest.raises(TypeError, match="no gradients"):
        stream.backward(lambda i: dr.sum(Float(i)), np.arange(100), grad_out=tmp_path / "h.npy")
    with pytest.raises(ValueError, match="1 place"):
        stream.backward(dr.dot, X, X, grad_out=tmp_path / "h.npy")
    assert not list(tmp_path.glob("h.npy*"))


def test_an_optimisation_over_a_file_finds_its_line(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", 3 * X - 1)
    a, b = Float(0), Float(0)
    for _ in range(150):
        dr.enable_grad(a, b)
        stream.backward(
            lambda x, y, a, b: dr.mean(dr.square(a * x + b - y)), tmp_path / "x.npy", tmp_path / "y.npy", params=(a, b),
            chunk=512,
        )  # fmt: skip
        a, b = (Float(p.item() - 0.6 * p.grad.item()) for p in (a, b))
    assert (a.item(), b.item()) == pytest.approx((3, -1), abs=1e-2)


@pytest.mark.parametrize(
    ("function", "op"),
    [
        (lambda x, w: dr.prod(x * w), "prod"),
        (lambda x, w: dr.sum(dr.cumsum(x * w)), "cumsum"),
    ],
)
def test_what_has_no_streamed_derivative(function: Any, op: str) -> None:
    w = Float(1.5)
    dr.enable_grad(w)
    w.grad = 7
    live = dr.memory_stats()["live"]
    with pytest.raises(dr.NotStreamableError, match=f"'{op}' at .*test_stream.py"):
        stream.backward(function, X, params=(w,), chunk=CHUNK)
    assert w.grad[0] == 7 and dr.memory_stats()["live"] <= live + 256


def test_an_extreme_scatter_has_no_streamed_derivative() -> None:
    w = Float(1.5)
    dr.enable_grad(w)

    def function(x: Any, w: Any) -> Any:
        bins = dr.zeros(Float, 4)
        dr.scatter_reduce("max", bins, x * w, UInt32(x * 4))
        return dr.sum(bins)

    with pytest.raises(dr.NotStreamableError, match="kind 'max'"):
        stream.backward(function, X, params=(w,), chunk=CHUNK)


def test_the_same_bits_on_every_run_and_nothing_kept() -> None:
    bits = set()
    for threads in (1, 2, 4, 2):
        with dr.scoped_thread_count(threads):
            w = Float(1.5)
            dr.enable_grad(w)
            before = dr.memory_stats()["live"]
            report = stream.backward(
                lambda x, w: dr.mean(dr.sin(x * w) / dr.max(x * w)), X, params=(w,), chunk=CHUNK
            ).report
            assert report.peak <= report.planned and dr.memory_stats()["live"] <= before + 256
            bits.add(w.grad.numpy().tobytes())
    assert len(bits) == 1


def test_a_budget_too_small_is_told_before_anything_is_read(tmp_path: Path) -> None:
    class Unread:
        shape, dtype = (100_000,), np.dtype(np.float32)

        def __getitem__(self, key: slice) -> Any:
            raise AssertionError("the source was read")

    table = dr.opaque(Float, 1, 30_000)
    dr.enable_grad(table)

    def function(x: Any) -> Any:
        return dr.sum(x * dr.gather(Float, table, UInt32(x)))

    with pytest.raises(dr.MemoryBudgetError, match="gradients") as caught:
        stream.backward(function, Unread(), max_resident="600 KiB", grad_out=tmp_path / "g.npy")
    x = np.arange(1000, dtype=np.float32)
    report = stream.backward(function, x, max_resident=caught.value.least, grad_out=tmp_path / "g.npy").report
    assert report.peak <= caught.value.least
    assert np.array_equal(dr.grad(table).numpy()[:1001], [*x, 0])


def test_a_trajectory_that_takes_more_than_planned_is_told() -> None:
    w = Float(0.99)
    dr.enable_grad(w)

    def function(x: Any, w: Any) -> Any:
        state = (UInt32(0), Float(x))
        _, y = dr.while_loop(state, lambda i, y: i < 200, lambda i, y: (i + 1, y * w), max_iterations=200)
        return dr.sum(y)

    x = np.ones(20_000, np.float32)
    with pytest.warns(RuntimeWarning, match="more than max_resident"):
        report = stream.backward(function, x, params=(w,), max_resident="2 MiB").report
    assert report.peak > report.budget and "chunk" in str(report)
    assert stream.backward(function, x, params=(w,), max_resident="2 MiB", chunk=1024).report.peak < 2 << 20


def test_evaluate_passes_differentiable_parameters_but_keeps_no_graph() -> None:
    w = Float(2)
    dr.enable_grad(w)
    value = stream.evaluate(lambda x, w: dr.sum(x * w) * w, X, params=(w,), chunk=CHUNK).value
    assert type(value) is Float and not dr.grad_enabled(value)
    assert type(stream.evaluate(dr.sum, X, ad=True).value) is Float
    assert type(stream.evaluate(dr.sum, X).value) is PlainFloat
