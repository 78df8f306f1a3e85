"""Independent uniform random numbers, the same sequence as Mitsuba's sampler of that name."""

from __future__ import annotations

from typing import Any

from ...jit.arrays.create import arange, opaque
from ...jit.arrays.flat import convert
from ...jit.random import sample_tea_32
from ..interfaces.sampler import Sampler
from ..registry import Parameter, register


@register("sampler", "independent")
class Independent(Sampler):
    """One PCG32 stream per lane, seeded by tea32(seed, lane)."""

    parameters = (
        Parameter("sample_count", "int", 4, "samples per pixel"),
        Parameter("seed", "int", 0, "added to the seed of every rendering"),
    )

    def seed(self, seed: Any, wavefront_size: int) -> None:
        """Start `wavefront_size` streams."""
        types = self.types
        self.wavefront_size = wavefront_size
        lane = arange(types.UInt32, wavefront_size)
        start = self.base_seed + seed
        start = opaque(types.UInt32, start & 0xFFFFFFFF) if isinstance(start, int) else convert(types.UInt32, start)
        state, stream = sample_tea_32(start, lane)
        self.rng = types.PCG32(initstate=types.UInt64(state), initseq=types.UInt64(stream))

    def next_1d(self, active: Any = True) -> Any:
        """Return a number in [0, 1) per lane."""
        if self.types.is_double:
            return self.rng.next_float64(active)
        return self.rng.next_float32(active)

    def next_2d(self, active: Any = True) -> Any:
        """Return two numbers in [0, 1) per lane."""
        x = self.next_1d(active)
        return self.types.Point2f(x, self.next_1d(active))
