"""The arena: one block that holds the transients of replayed launches, shared by all recordings of a device.

Replays run one after the other, each writes before it reads: what lies in the arena between two of them is garbage.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from .pool import Buffer, Pool, pool


class Arena:
    """Memory that grows to the largest plan. `generation` counts its addresses: who baked one in looks at it."""

    def __init__(self, owner: Pool) -> None:
        self.pool = owner
        self.generation = 0
        self.block: Buffer | None = None
        owner.pressure.append(self.drop)

    def get(self, nbytes: int) -> int:
        """Return the address of at least `nbytes`; may move the arena."""
        if self.block is None or self.block.nbytes < nbytes:
            self.drop()
            self.block = self.pool.allocate(nbytes)
            self.pool.arenas = self.block.block
            self.generation += 1
        return self.block.ptr

    def drop(self) -> None:
        """Give the arena up; launches in flight that use it run before whatever takes its block next."""
        if self.block is not None:
            self.block = None
            self.pool.arenas = 0
            self.generation += 1


@dataclass
class Modes:
    """How plans are made: `alias` false lets no two buffers share memory, `poison` overwrites what has died."""

    alias: bool = True
    inplace: bool = True
    poison: bool = False


modes = Modes()


@contextmanager
def scoped_modes(alias: bool = True, inplace: bool = True, poison: bool = False) -> Iterator[None]:
    """Within the block plans for recordings are made in another way, to find errors: results must be the same."""
    before = Modes(modes.alias, modes.inplace, modes.poison)
    modes.alias, modes.inplace, modes.poison = alias, inplace, poison
    try:
        yield
    finally:
        modes.alias, modes.inplace, modes.poison = before.alias, before.inplace, before.poison


_arena: list[Arena] = []


def arena() -> Arena:
    """Return the arena of the host."""
    if not _arena:
        _arena.append(Arena(pool()))
    return _arena[0]


__all__ = ["Arena", "arena", "modes", "scoped_modes"]
