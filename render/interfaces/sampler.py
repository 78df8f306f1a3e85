"""Samplers: where random numbers come from. State is arrays, so that loops can carry it (`loop_state`)."""

from __future__ import annotations

import copy
from typing import Any

from ...jit.errors import SceneError
from .object import Object


class Sampler(Object):
    """Base of samplers: implement `seed`, `next_1d`, `next_2d`."""

    plugin_kind = "sampler"
    rng: Any = None

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self.sample_count: int = props["sample_count"]
        self.base_seed: int = props["seed"]
        if self.sample_count < 1:
            raise SceneError(f"sample_count must be at least 1, found {self.sample_count}")
        if not 0 <= self.base_seed < 1 << 32:
            raise SceneError(f"seed must lie in 0 .. 2^32 - 1, found {self.base_seed}")
        self.wavefront_size = 0

    def clone(self) -> Any:
        """Return a sampler of the same kind and state that advances on its own."""
        return copy.copy(self)

    fork = clone

    def set_sample_count(self, count: int) -> None:
        """Set the number of samples per pixel."""
        self.sample_count = count

    def seed(self, seed: Any, wavefront_size: int) -> None:
        """Start independent streams for so many lanes; `seed` is an int or a UInt32 array of size 1."""
        raise NotImplementedError(f"{type(self).__name__}.seed()")

    def next_1d(self, active: Any = True) -> Any:
        """Return a number in [0, 1) per lane."""
        raise NotImplementedError(f"{type(self).__name__}.next_1d()")

    def next_2d(self, active: Any = True) -> Any:
        """Return two numbers in [0, 1) per lane."""
        raise NotImplementedError(f"{type(self).__name__}.next_2d()")

    def loop_state(self) -> Any:
        """Return the state that recorded loops must carry."""
        return self.rng

    def set_loop_state(self, state: Any) -> None:
        """Continue from a state that a loop carried."""
        self.rng = state
