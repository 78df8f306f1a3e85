"""Which brick of a sparse grid is stored where: a table with an entry per brick, or a hash table of those there are.

A brick has a key, its number among all bricks in row-major order, and a slot, its place in storage. Lookups return
slot + 1, and 0 for bricks that are not stored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..arrays.create import arange, full
from ..arrays.flat import cast
from ..arrays.functions import select
from ..arrays.memops import gather, scatter, scatter_reduce
from ..arrays.scan import compress
from ..arrays.shape import concat, widen
from ..arrays.transfer import from_numpy
from ..dtypes import Bool, UInt32, UInt64
from ..loops import while_loop
from ..runtime.evaluate import materialise

DENSE_LIMIT = 1 << 21  # bricks up to which each has an entry (8 MiB)
_SPREAD = 4  # cells of a hash table per brick, at least: most lookups then end at their first cell


class BrickTable:
    """The keys of all stored bricks by slot, and the way from keys to slots; changes make a new table."""

    DRJIT_STRUCT = {"keys": Any, "cells": Any, "slots": Any, "bricks": int, "hashed": bool, "bits": int}
    keys: Any  # per slot: the brick's key
    cells: Any  # hash table: the key in each cell, all ones where there is none; else empty
    slots: Any  # per cell, or per brick: slot + 1, 0 for none

    def __init__(self, ns: Any, bricks: int, hashed: bool) -> None:
        """Make a table without entries over so many bricks; `ns` is a namespace of types without gradients."""
        self.bricks, self.hashed, self.bits = bricks, hashed, 0
        kind = ns.flat(UInt64 if bricks >= (1 << 32) - 1 else UInt32)
        self.keys, self.cells = full(kind, 0, 0), full(kind, 0, 0)
        self.slots = full(ns.flat(UInt32), 0, 0 if hashed else bricks)

    @property
    def count(self) -> int:
        """Return the number of bricks stored."""
        return int(self.keys._n.size)

    @property
    def memory(self) -> int:
        """Return the bytes of all arrays."""
        return sum(int(x._n.size * x.dtype.itemsize) for x in (self.keys, self.cells, self.slots))

    def find(self, keys: Sequence[Any], active: Any) -> list[Any]:
        """Return slot + 1 of each of several arrays of keys, 0 where the brick is not stored or `active` is false."""
        if not self.hashed:
            return [gather(type(self.slots), self.slots, k, active) for k in keys]
        kind, empty = type(self.keys), self._empty()
        places = [_home(k, self.bits) for k in keys]
        found = [gather(kind, self.cells, p, active) for p in places]
        unsettled = [active & (c != k) & (c != empty) for c, k in zip(found, keys, strict=True)]
        count = len(places)

        def open_lanes(*state: Any) -> Any:
            some = state[count]
            for mask in state[count + 1 :]:
                some = some | mask
            return some

        def probe(*state: Any) -> tuple[Any, ...]:
            at, masks = [], []
            for place, mask, key in zip(state[:count], state[count:], keys, strict=True):
                place = select(mask, place + 1, place)
                cell = gather(kind, self.cells, place, mask)
                at.append(place)
                masks.append(mask & (cell != key) & (cell != empty))
            return (*at, *masks)

        labels = [f"place{k}" for k in range(count)] + [f"open{k}" for k in range(count)]
        places = list(while_loop((*places, *unsettled), open_lanes, probe, labels))[:count]
        return [gather(type(self.slots), self.slots, p, active) for p in places]

    def missing(self, keys: Sequence[Any], active: Any) -> Any:
        """Return the keys of bricks asked for where `active` is set and not stored yet: sorted, each once."""
        if not self.hashed:
            asked = full(active.ns.flat(Bool), False, self.bricks)
            for k in keys:
                scatter(asked, True, k, active)
            return cast(type(self.keys), compress(asked & (self.slots == 0)))
        slots = self.find(keys, active) if self.count else []
        wanted = [active & (slot == 0) for slot in slots] if self.count else [active] * len(keys)
        return _array(type(self.keys), self._distinct(keys, wanted))

    def _distinct(self, keys: Sequence[Any], wanted: list[Any]) -> Any:
        """Return the keys where `wanted` is set as a sorted NumPy array, each once.

        Sorting all of them would be slow: many lanes want few bricks. So each key is noted in a cell, of those that
        meet there the largest, which takes out nearly all repetitions; what met a larger one is sorted on the host.
        """
        import numpy as np

        kind = type(self.keys)
        sizes = [max(k._n.size, w._n.size) for k, w in zip(keys, wanted, strict=True)]
        bits = min(18, max(4, math.ceil(math.log2(max(1, sum(sizes))))))
        noted, places = full(kind, 0, 1 << bits), [_home(k, bits) for k in keys]
        for key, place, mask in zip(keys, places, wanted, strict=True):
            scatter_reduce("max", noted, key + 1, place, mask)  # 0 stands for none
        found = [(gather(kind, noted, compress(noted != 0)) - 1).numpy()]
        for key, place, mask, size in zip(keys, places, wanted, sizes, strict=True):
            rest = compress(widen(mask & (gather(kind, noted, place) != key + 1), size))
            if len(rest):
                found.append(np.unique(gather(kind, widen(key, size), rest).numpy()))
        return np.unique(np.concatenate(found))

    def with_keys(self, keys: Any) -> BrickTable:
        """Return the table of these bricks, in this order."""
        new = object.__new__(BrickTable)
        new.bricks, new.hashed, new.bits, new.keys, new.cells = self.bricks, self.hashed, 0, keys, self.cells
        kind = type(self.slots)
        if not self.hashed:
            new.slots = full(kind, 0, self.bricks)
            if new.count:
                scatter(new.slots, arange(kind, new.count) + 1, keys, mode="permute")
        else:
            new._fill(kind)
        return new

    def extended(self, keys: Any) -> BrickTable:
        """Return the table with further bricks behind those there are."""
        if not self.count or self.hashed:
            return self.with_keys(concat([self.keys, keys]) if self.count else keys)
        new = object.__new__(BrickTable)
        new.__dict__.update(self.__dict__)
        new.keys, new.slots = concat([self.keys, keys]), self.slots.__copy__()
        kind = type(self.slots)
        scatter(new.slots, arange(kind, keys._n.size) + (self.count + 1), keys, mode="permute")
        return new

    def _fill(self, kind: Any) -> None:
        """Enter all keys into a hash table by linear probing, in the order of their first cells and then of the keys.

        A key sits at its first cell or right behind the key before it. So cell = number + running maximum of
        (first cell - number): no loop, and the result does not depend on the order in which bricks came.
        """
        import numpy as np

        keys = self.keys.numpy()
        count = len(keys)
        self.bits = max(4, math.ceil(math.log2(max(1, count * _SPREAD))))
        home = _home(self.keys, self.bits).numpy().astype(np.int64) if count else np.empty(0, np.int64)
        order = np.lexsort((keys, home))
        number = np.arange(count)
        cell = number + np.maximum.accumulate(home[order] - number) if count else number
        # No wrap-around: cells behind the last first cell take what is pushed there, and one stays empty.
        size = max(1 << self.bits, int(cell[-1]) + 1 if count else 0) + 1
        cells = np.full(size, self._empty(), keys.dtype)
        slots = np.zeros(size, np.uint32)
        cells[cell], slots[cell] = keys[order], order + 1
        self.cells, self.slots = _array(type(self.keys), cells), _array(kind, slots)

    def _empty(self) -> int:
        return (1 << int(self.keys.dtype.bits)) - 1


def _home(key: Any, bits: int) -> Any:
    """Return the first cell of keys (UInt32) of 2^bits: the upper bits of a product with the golden ratio's bits."""
    wide = key.dtype is UInt64
    mixed = (key ^ (key >> 15)) * (0x9E3779B97F4A7C15 if wide else 0x9E3779B9)
    return cast(key.ns.flat(UInt32), mixed >> ((64 if wide else 32) - bits))


def _array(kind: Any, values: Any) -> Any:
    """Return a NumPy array's elements in memory of our own."""
    return owned(kind.wrap(from_numpy(kind, values)))


def owned(x: Any) -> Any:
    """Return a copy of a flat array in memory of its own, so that it is counted and nobody else writes to it."""
    size = x._n.size
    if size <= 1:
        return x
    copy = gather(type(x), x, arange(x.ns.flat(UInt32), size))
    return type(x).wrap(materialise(copy._n))
