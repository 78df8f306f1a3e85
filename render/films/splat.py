"""The pixels that samples reach, and the derivatives of spreading samples over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ad import api
from ...ad.custom import CustomOp
from ...ad.widen import widened
from ...jit.arrays import functions as f
from ...jit.arrays.memops import gather, scatter_add
from ...jit.control import while_loop
from ..interfaces.rfilter import ReconstructionFilter

# Up to so many pixels per sample the code of each is written out; beyond, compiling takes longer than a loop costs.
UNROLLED = 25

# (state, a pixel's offset from the first one, what `axis` says of its column and of its row) to new state.
Step = Callable[[list[Any], Any, Any, Any], list[Any]]


class Footprint:
    """The pixels that samples at (x, y) reach in a block with rows of `row` pixels and a `border` around `size`.

    Pixels are enumerated by their distance from the sample's own, so that all samples of one pixel write to the same
    pixels, at constant distances: packets of them are added up in registers, with one test for all.
    """

    def __init__(
        self, types: Any, rfilter: ReconstructionFilter, size: tuple[int, int], margin: int, x: Any, y: Any
    ) -> None:
        self.types, self.rfilter, self.reach = types, rfilter, rfilter.border
        border = self.reach + margin
        self.row = size[0] + 2 * border
        # A pixel's number plus a number just below 1 may round up to the next pixel: at the far edges out of the block.
        px, py = (f.min(f.floor(t), float(n + margin - 1)) for t, n in zip((x, y), size, strict=True))
        start = border - (0 if rfilter.is_box else self.reach)
        self.first = types.UInt32((types.Int32(py) + start) * self.row + (types.Int32(px) + start))
        self.u, self.v = x - px, y - py

    def walk(self, state: list[Any], step: Step, axis: Callable[[Any], Any] | None = None) -> list[Any]:
        """Return the state after `step` for every pixel, row by row.

        `axis` is called with the distance along one axis from sample to pixel centre; the filter's weight if absent.
        """
        axis = axis or self.rfilter.eval
        if self.rfilter.is_box:
            one = self.types.Float(1.0)
            return step(state, 0, one, one)
        side = 2 * self.reach + 1
        if side * side <= UNROLLED:
            across = [axis((k - self.reach + 0.5) - self.u) for k in range(side)]
            down = [axis((k - self.reach + 0.5) - self.v) for k in range(side)]
            for j, b in enumerate(down):
                for i, a in enumerate(across):
                    state = step(state, j * self.row + i, a, b)
            return state
        return self._loop(state, step, axis, side)

    def _loop(self, state: list[Any], step: Step, axis: Callable[[Any], Any], side: int) -> list[Any]:
        types, shift = self.types, 0.5 - self.reach

        def body(k: Any, state: list[Any]) -> tuple[Any, list[Any]]:
            j = k // side
            i = k - j * side
            a, b = axis((types.Float(i) + shift) - self.u), axis((types.Float(j) + shift) - self.v)
            return k + 1, step(state, j * self.row + i, a, b)

        start = (types.UInt32(0), state)
        _, state = while_loop(start, lambda k, state: k < side * side, body, labels=("pixel", "sums"))
        return state

    def slope(self, distance: Any) -> tuple[Any, Any]:
        """Return the filter's weight at a distance, and its derivative by the sample's position."""
        with api.resume_grad():
            distance = api.detach(distance)
            api.enable_grad(distance)
            weight = self.rfilter.eval(distance)
            if not api.grad_enabled(weight):
                return weight, self.types.Float(0.0)
            api.set_grad(distance, -1.0)
            rate = api.forward_to(weight)
        return api.detach(weight), api.detach(rate)


class Splat(CustomOp):
    """Adds samples to the pixels of a block, with derivatives by the samples' values and positions.

    In the backward pass a value reads what its pixels receive, in the forward pass tangents are spread like values:
    nothing is kept per pixel that a sample reaches.
    """

    def name(self) -> str:
        """Return the name of the operation."""
        return "film"

    def eval(
        self, data: Any, footprint: Callable[[Any, Any], Footprint], x: Any, y: Any, values: Any, active: Any
    ) -> Any:
        """Return `data`, with (values, 1) times the weights added to the pixels."""
        stride = len(values) + 1

        def add(state: list[Any], offset: Any, a: Any, b: Any) -> list[Any]:
            weight = a * b
            for c, value in enumerate(values):
                scatter_add(data, value * weight, base + (offset * stride + c), active)
            scatter_add(data, weight, base + (offset * stride + len(values)), active)
            return state

        pixels = footprint(x, y)
        base = pixels.first * stride
        pixels.walk([], add)
        return data

    def _moving(self) -> bool:
        return api.grad_enabled(self._args["x"], self._args["y"])

    def backward(self) -> None:
        """Give every sample the sum of its pixels' gradients."""
        gradient = self.grad_out()
        self.set_grad_in("data", gradient)
        x, y, values, active = api.detach([self._args[k] for k in ("x", "y", "values", "active")])
        pixels, n = self._args["footprint"](x, y), len(values)
        base, moving = pixels.first * (n + 1), self._moving()
        number = type(x)

        def read(state: list[Any], offset: Any, a: Any, b: Any) -> list[Any]:
            (a, da), (b, db) = (a, b) if moving else ((a, 0.0), (b, 0.0))
            found = [gather(number, gradient, base + (offset * (n + 1) + c), active) for c in range(n + 1)]
            state = [f.fma(a * b, found[c], state[c]) for c in range(n)] + state[n:]
            if moving:
                change = found[n]
                for value, g in zip(values, found[:n], strict=True):
                    change = f.fma(value, g, change)
                state[n:] = [f.fma(da * b, change, state[n]), f.fma(a * db, change, state[n + 1])]
            return state

        start = [number(0.0) for _ in range(n + 2 * moving)]
        sums = pixels.walk(start, read, pixels.slope if moving else None)
        self.set_grad_in("values", sums[:n])
        if moving:
            self.set_grad_in("x", sums[n])
            self.set_grad_in("y", sums[n + 1])

    def forward(self) -> None:
        """Spread the tangents over the pixels."""
        x, y, values, active = api.detach([self._args[k] for k in ("x", "y", "values", "active")])
        rates = self.grad_in("values")
        tangent = widened(self.grad_in("data"), self._args["data"]._n.size).__copy__()
        pixels, n = self._args["footprint"](x, y), len(values)
        base, moving = pixels.first * (n + 1), self._moving()
        dx, dy = (self.grad_in(k) for k in ("x", "y"))

        def add(state: list[Any], offset: Any, a: Any, b: Any) -> list[Any]:
            (a, da), (b, db) = (a, b) if moving else ((a, 0.0), (b, 0.0))
            weight, change = a * b, da * b * dx + a * db * dy
            for c, (value, rate) in enumerate(zip(values, rates, strict=True)):
                total = rate * weight + value * change if moving else rate * weight
                scatter_add(tangent, total, base + (offset * (n + 1) + c), active)
            if moving:
                scatter_add(tangent, change, base + (offset * (n + 1) + n), active)
            return state

        pixels.walk([], add, pixels.slope if moving else None)
        self.set_grad_out(tangent)
