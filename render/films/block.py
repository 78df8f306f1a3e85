"""Sums of filtered samples per pixel, and the adjoint: what an image's gradient means for each sample."""

from __future__ import annotations

from typing import Any

from ...ad.custom import custom
from ...jit.arrays import functions as f
from ...jit.arrays.create import arange, zeros
from ...jit.arrays.memops import gather, scatter, scatter_add
from ..interfaces.rfilter import ReconstructionFilter
from .splat import Footprint, Splat


class Block:
    """Accumulates samples of `channels` values into (height, width) pixels plus a border that the filter reaches.

    A pixel holds the weighted sums of the channels and the sum of the weights, next to each other.
    """

    def __init__(
        self, types: Any, size: tuple[int, int], channels: int, rfilter: ReconstructionFilter, margin: int = 0
    ) -> None:
        self.types, self.size, self.channels, self.rfilter, self.margin = types, size, channels, rfilter, margin
        # Samples lie up to `margin` pixels outside, and reach further by the filter.
        self.border = rfilter.border + margin
        self.stride = channels + 1
        self.row = size[0] + 2 * self.border
        self.rows = size[1] + 2 * self.border
        self.data = zeros(types.Float, self.row * self.rows * self.stride)

    def _footprint(self, x: Any, y: Any) -> Footprint:
        return Footprint(self.types, self.rfilter, self.size, self.margin, x, y)

    def put(self, x: Any, y: Any, values: list[Any], active: Any = True) -> None:
        """Add samples at (x, y), pixels relative to the block's first one; values per channel, weight 1 each.

        Differentiable in the values and, but for box filters, the positions.
        """
        number = self.types.Float
        values = [number(v) for v in values]
        self.data = custom(Splat, self.data, self._footprint, number(x), number(y), values, active)

    def put_weights(self, x: Any, y: Any, active: Any = True) -> None:
        """Add only the weights of samples."""
        pixels = self._footprint(x, y)
        base = pixels.first * self.stride + self.channels

        def add(state: list[Any], offset: Any, a: Any, b: Any) -> list[Any]:
            scatter_add(self.data, a * b, base + offset * self.stride, active)
            return state

        pixels.walk([], add)

    def read(self, x: Any, y: Any, source: Any, active: Any = True) -> list[Any]:
        """Return, per channel, the sum of `source` over the pixels a sample reaches, times its weights.

        The adjoint of `put`: `source` holds `channels` values per pixel of the block, border included.
        """
        pixels = self._footprint(x, y)
        base = pixels.first * self.channels

        def add(state: list[Any], offset: Any, a: Any, b: Any) -> list[Any]:
            at = base + offset * self.channels
            return [
                f.fma(a * b, gather(self.types.Float, source, at + c, active), total) for c, total in enumerate(state)
            ]

        return pixels.walk([self.types.Float(0.0) for _ in range(self.channels)], add)

    def _pixels(self) -> Any:
        """Return the block index of every pixel of the image, row by row."""
        types = self.types
        index = arange(types.UInt32, self.size[0] * self.size[1])
        y = index // self.size[0]
        x = index - y * self.size[0]
        return (y + self.border) * self.row + (x + self.border)

    def channels_of_image(self) -> list[Any]:
        """Return the channels of the image, one flat array each: sums divided by weights (0 where nothing fell)."""
        types = self.types
        base = self._pixels() * self.stride
        weight = gather(types.Float, self.data, base + self.channels)
        inverse = 1.0 / f.select(weight == 0.0, 1.0, weight)
        return [gather(types.Float, self.data, base + c) * inverse for c in range(self.channels)]

    def adjoint_image(self, gradients: list[Any]) -> Any:
        """Return the source for `read` from the image's gradient per channel: divided by the weights, with border."""
        types = self.types
        pixels = self._pixels()
        weight = gather(types.Float, self.data, pixels * self.stride + self.channels)
        inverse = 1.0 / f.select(weight == 0.0, 1.0, weight)
        source = zeros(types.Float, self.row * self.rows * self.channels)
        for c, g in enumerate(gradients):
            scatter(source, g * inverse, pixels * self.channels + c, mode="permute")
        return source
