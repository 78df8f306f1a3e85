"""Spreading samples over pixels, and its derivatives, for footprints written out and walked in a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from lanes import DOUBLE, load, numbers

from luxgrad.ad import api
from luxgrad.jit.arrays import reduce
from luxgrad.render.films import splat
from luxgrad.render.films.block import Block

pytestmark = pytest.mark.cpu

SIZE, COUNT = (6, 5), 50
FILTERS: dict[str, dict[str, Any]] = {
    "box": {"type": "box"}, "tent": {"type": "tent"}, "wide": {"type": "gaussian", "stddev": 0.9},
}  # fmt: skip
_noise = np.random.default_rng(7)
X, Y = (_noise.random(COUNT) * n for n in SIZE)
VALUES = _noise.random((2, COUNT))
ACTIVE = _noise.random(COUNT) < 0.9
# Changes of x, y, and the values.
STEPS = [_noise.standard_normal(COUNT) for _ in range(4)]


def block_of(name: str) -> Block:
    return Block(DOUBLE, SIZE, 2, load(FILTERS[name], DOUBLE))


def fill(block: Block, inputs: list[Any]) -> Any:
    """Return the weighted sum of a block's image after two rounds of samples, the second without gradients."""
    x, y, *values = inputs
    block.put(x, y, values, DOUBLE.Bool(ACTIVE))
    block.put(DOUBLE.Float(Y), DOUBLE.Float(Y), [DOUBLE.Float(v) for v in VALUES])
    rng = np.random.default_rng(9)
    pixels = SIZE[0] * SIZE[1]
    return sum(reduce.sum(c * c * DOUBLE.Float(rng.random(pixels))) for c in block.channels_of_image())


def inputs_at(shift: float, moving: tuple[int, ...]) -> list[Any]:
    start = [X, Y, *VALUES]
    return [DOUBLE.Float(v + shift * (k in moving) * STEPS[k]) for k, v in enumerate(start)]


@pytest.mark.parametrize("name", ["tent", "wide"])
def test_a_loop_over_pixels_gives_what_writing_them_out_gives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    source = DOUBLE.Float(np.random.default_rng(1).random(block_of(name).row * block_of(name).rows * 2))
    for limit in (1000, 1):
        monkeypatch.setattr(splat, "UNROLLED", limit)
        block, weights = block_of(name), block_of(name)
        x, y, *values = inputs_at(0, ())
        block.put(x, y, values, DOUBLE.Bool(ACTIVE))
        weights.put_weights(x, y)
        read = [numbers(r, COUNT) for r in block.read(x, y, source)]
        results.append([block.data.numpy(), weights.data.numpy(), *read])
    for a, b in zip(*results, strict=True):
        assert np.abs(a).max() > 0
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize("moving", [(2, 3), (0, 1), (0, 1, 2, 3)], ids=["values", "positions", "both"])
@pytest.mark.parametrize(("name", "unrolled"), [("tent", 1000), ("tent", 1), ("wide", 1)])
def test_derivatives_are_central_differences(
    name: str, unrolled: int, moving: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splat, "UNROLLED", unrolled)
    check(name, moving)


def test_derivatives_through_box_filters() -> None:
    check("box", (2, 3))


def check(name: str, moving: tuple[int, ...]) -> None:
    """Compare both modes with central differences by the inputs of the numbers `moving`."""
    size = 1e-6
    sums = [float(fill(block_of(name), inputs_at(s * size, moving)).item()) for s in (1, -1)]
    expected = (sums[0] - sums[1]) / (2 * size)

    def started(prepare: Callable[[int, Any], None]) -> tuple[list[Any], Any]:
        inputs = inputs_at(0, moving)
        for k in moving:
            api.enable_grad(inputs[k])
            prepare(k, inputs[k])
        return inputs, fill(block_of(name), inputs)

    inputs, total = started(lambda k, x: None)
    api.backward(total)
    found = sum(float(numbers(api.grad(inputs[k]), COUNT) @ STEPS[k]) for k in moving)
    assert abs(expected) > 1e-3
    assert found == pytest.approx(expected, rel=1e-6)
    _, total = started(lambda k, x: api.set_grad(x, DOUBLE.Float(STEPS[k])))
    assert float(api.forward_to(total).item()) == pytest.approx(expected, rel=1e-6)
