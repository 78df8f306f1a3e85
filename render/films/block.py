"""Sums of filtered samples per pixel, and the adjoint: what an image's gradient means for each sample."""

from __future__ import annotations

from typing import Any

from ...jit.arrays import functions as f
from ...jit.arrays.create import arange, zeros
from ...jit.arrays.memops import gather, scatter_add
from ..interfaces.rfilter import ReconstructionFilter


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

    def _footprint(self, x: Any, y: Any) -> tuple[Any, list[tuple[int, Any]]]:
        """Return the first pixel a sample at (x, y) may reach, and (offset from it, weight) of each of them.

        Pixels are enumerated by their distance from the sample's own, so that all samples of one pixel write to the
        same pixels, at constant distances: packets of them are added up in registers, with one test for all.
        """
        types, reach = self.types, self.rfilter.border
        # A pixel's number plus a number just below 1 may round up to the next pixel: at the far edges out of the block.
        px, py = (f.min(f.floor(t), float(n + self.margin - 1)) for t, n in zip((x, y), self.size, strict=True))
        start = self.border - (0 if self.rfilter.is_box else reach)
        first = types.UInt32((types.Int32(py) + start) * self.row + (types.Int32(px) + start))
        if self.rfilter.is_box:
            return first, [(0, types.Float(1.0))]
        u, v = x - px, y - py
        wx = [self.rfilter.eval((k + 0.5) - u) for k in range(-reach, reach + 1)]
        wy = [self.rfilter.eval((k + 0.5) - v) for k in range(-reach, reach + 1)]
        return first, [(j * self.row + i, a * b) for j, b in enumerate(wy) for i, a in enumerate(wx)]

    def put(self, x: Any, y: Any, values: list[Any], active: Any = True) -> None:
        """Add samples at (x, y), pixels relative to the block's first one; values per channel, weight 1 each."""
        first, pixels = self._footprint(x, y)
        base = first * self.stride
        for offset, weight in pixels:
            for c, value in enumerate(values):
                scatter_add(self.data, value * weight, base + (offset * self.stride + c), active)
            scatter_add(self.data, weight, base + (offset * self.stride + self.channels), active)

    def put_weights(self, x: Any, y: Any, active: Any = True) -> None:
        """Add only the weights of samples."""
        first, pixels = self._footprint(x, y)
        base = first * self.stride
        for offset, weight in pixels:
            scatter_add(self.data, weight, base + (offset * self.stride + self.channels), active)

    def read(self, x: Any, y: Any, source: Any, active: Any = True) -> list[Any]:
        """Return, per channel, the sum of `source` over the pixels a sample reaches, times its weights.

        The adjoint of `put`: `source` holds `channels` values per pixel of the block, border included.
        """
        totals = [self.types.Float(0.0) for _ in range(self.channels)]
        first, pixels = self._footprint(x, y)
        base = first * self.channels
        for offset, weight in pixels:
            for c in range(self.channels):
                value = gather(self.types.Float, source, base + (offset * self.channels + c), active)
                totals[c] = f.fma(weight, value, totals[c])
        return totals

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
        from ...jit.arrays.memops import scatter

        types = self.types
        pixels = self._pixels()
        weight = gather(types.Float, self.data, pixels * self.stride + self.channels)
        inverse = 1.0 / f.select(weight == 0.0, 1.0, weight)
        source = zeros(types.Float, self.row * self.rows * self.channels)
        for c, g in enumerate(gradients):
            scatter(source, g * inverse, pixels * self.channels + c, mode="permute")
        return source
