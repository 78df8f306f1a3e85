"""Memory blocks for array elements: cut from one growing range, kept for reuse, counted and limited.

Blocks hold whole packets of 32 elements, so kernels need no special last packet. Requests up to 4 KiB take a block
of their size class (`slabs`), larger ones the best fitting free interval, which is split and later merged (`heap`).
"""

from __future__ import annotations

import atexit
import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .. import debug
from ..dtypes import DType
from ..errors import OutOfMemoryError
from .heap import Heap, Touched
from .slabs import Slabs
from .source import HostMemory, Source, physical_memory

_PACKET = 32
SMALL = 4096  # bytes up to which a request is served from a size class
_FEED = 1 << 18  # bytes of a large block that is made space for slabs


class Buffer:
    """Elements in memory: a block of a pool, to which it returns with the last reference, or memory of an `owner`.

    An owner that is a buffer itself makes this a view of a part of it: read, never written, and never moved.
    """

    __slots__ = ("ptr", "nbytes", "block", "owner", "pool", "born", "job", "__weakref__")

    def __init__(self, ptr: int, nbytes: int, block: int, owner: Any, pool: Pool | None = None) -> None:
        self.ptr, self.nbytes, self.block, self.owner, self.pool = ptr, nbytes, block, owner, pool
        self.born = pool.serial if pool is not None else 0  # how many blocks the pool had given out by then
        self.job = 0  # the last queued launch that writes it

    @property
    def foreign(self) -> bool:
        """Return whether the memory belongs to somebody else (NumPy, DLPack): never written, not padded."""
        owner = self.owner
        return owner is not None and (owner.__class__ is not Buffer or owner.foreign)

    def __del__(self) -> None:
        if self.pool is not None and not self.pool.closed:
            self.pool.release(self.ptr, self.block)


@dataclass
class Peaks:
    """What a `memory_scope` saw: bytes at its start and end, and the most in between."""

    live_before: int
    reserved_before: int
    live_after: int = 0
    live_peak: int = 0
    reserved_peak: int = 0


class Pool:
    """The blocks of one device. Its kernels run in one order, so a freed block may be given out again at once.

    Blocks that something outside of this order still uses are given back with `park`. `pressure` lists what may free
    memory, called one after the other when a request cannot be served.
    """

    def __init__(self, source: Source | None = None, limit: int | None = None) -> None:
        # The garbage collector may release buffers while a request is being served, in the same thread: the lock lets
        # it in, and what it gives back waits in `returned` until the heap is whole again.
        self.lock = threading.RLock()
        self.busy = False
        self.returned: list[tuple[int, int]] = []
        self.source = source or HostMemory()
        self.alignment = self.source.alignment
        self.limit = limit  # bytes in live blocks at most; None: the machine's memory, asked for at the first request
        self.pressure: list[Callable[[], Any]] = []
        self.heap = Heap()
        self.blocks: dict[int, int] = {}  # live and parked blocks: start -> bytes
        self.slabs = Slabs()
        self.feeds: list[int] = []  # large blocks that became space for slabs, where there is no range
        self.parked: list[tuple[Callable[[], bool], int, int]] = []  # (whether it is free now, start, bytes)
        self.pieces: dict[int, int] = {}
        # Of the reserved range: where slabs and large blocks end so far, where large blocks begin, where all ends.
        self.small_top = self.top = self.base = self.end = 0
        self.ranged: bool | None = None  # None: the source was not asked yet
        self.touched = Touched()  # of the range: what is counted as obtained from the system
        self.cooled = False  # whether anything in the range was given back: until then free blocks are all touched
        self.arenas = 0  # bytes in arenas of frozen functions, part of `live`
        self.live = self.live_peak = self.reserved = self.reserved_peak = 0
        self.n_alloc = self.n_hit = self.n_os = self.n_flush = 0
        self.serial = 0  # blocks given out since the start
        self.closed = False  # at the interpreter's end, when modules lose their names before the last buffers go

    def block_size(self, nbytes: int) -> int:
        """Return the bytes really taken for a request: steps of the alignment, eight per octave below 4 KiB."""
        step = self.alignment
        if nbytes > SMALL:
            return (nbytes + step - 1) // step * step
        coarse = 1 << max(0, (nbytes - 1).bit_length() - 4)
        step = max(step, coarse)
        return max(step, (nbytes + step - 1) // step * step)

    def allocate(self, nbytes: int) -> Buffer:
        """Return a buffer of at least `nbytes`; raises OutOfMemoryError if nothing that can be given up is enough."""
        block = self.block_size(nbytes)
        with self.lock:
            self.busy = True
            try:
                self.n_alloc += 1
                self.serial += 1
                if self.parked:
                    self._drain()
                ptr = self._take(block) if block <= SMALL else self._take_large(block, False)
                if ptr is None:
                    ptr = self._under_pressure(block, nbytes)
                self.blocks[ptr] = block
                self.live += block
                if self.live > self.live_peak:
                    self.live_peak = self.live
            finally:
                self._settle()
        return Buffer(ptr, nbytes, block, None, self)

    def release(self, ptr: int, block: int) -> None:
        """Take a block back."""
        with self.lock:
            if self.busy:
                self.returned.append((ptr, block))
                return
            self.busy = True
            try:
                self._free(ptr, block)
            finally:
                if self.returned:
                    self._settle()
                self.busy = False

    def _free(self, ptr: int, block: int) -> None:
        del self.blocks[ptr]
        self.live -= block
        if block <= SMALL:
            self.slabs.free[block].append(ptr)
        else:
            self.heap.give(ptr, block)

    def _settle(self) -> None:
        """Take back what was released meanwhile, and leave the state in which `release` acts at once."""
        while self.returned:
            self._free(*self.returned.pop())
        self.busy = False

    def park(self, buffer: Buffer, done: Callable[[], bool]) -> None:
        """Take a buffer's block back once `done()`: something outside of the device's order still uses it."""
        with self.lock:
            self.parked.append((done, buffer.ptr, buffer.block))
            buffer.pool = None

    def _drain(self) -> None:
        """Take back the parked blocks that are free by now."""
        waiting, self.parked = self.parked, []
        for done, ptr, block in waiting:
            if done():
                self._free(ptr, block)
            else:
                self.parked.append((done, ptr, block))

    def _take(self, block: int, flushed: bool = False) -> int | None:
        """Return the start of a block, None if there is none; `flushed`: nothing is left that could be given back."""
        if block <= SMALL:
            free = self.slabs.free.get(block)
            if free:
                self.n_hit += 1
                return free.pop()
            return self._new_slab(block, flushed)
        return self._take_large(block, flushed)

    def _take_large(self, block: int, flushed: bool) -> int | None:
        if self.live + block > (self.limit or self.allowed):
            return None
        found = self.heap.take(block)
        if found is None:
            if self.reserved + block > self.allowed and not flushed:  # free blocks must not cause a failure
                return None
            return self._grow(block)
        self.n_hit += 1
        if self.cooled:
            self._reserved(self.touched.add(found, found + block))
        return found

    def _new_slab(self, block: int, flushed: bool) -> int | None:
        if self.live + block > (self.limit or self.allowed):
            return None
        count = self.slabs.next_count(block)
        start = self._slab_space(block * count, flushed)
        if start is None:
            return None
        self.slabs.add(start, block, count)
        return self.slabs.free[block].pop()

    def _slab_space(self, nbytes: int, flushed: bool) -> int | None:
        if self.ranged is None:
            self._open()
        space = self.slabs.space
        found = space.take(nbytes)
        if found is None:
            if self.small_top + nbytes <= self.base:
                self.n_os += 1
                start = self.small_top
                self.small_top += nbytes
                self._reserved(self.touched.add(start, start + nbytes))
                return start
            feed = self._take_large(_FEED, flushed)
            if feed is None:
                return None
            self.feeds.append(feed)
            space.give(feed, _FEED)
            found = space.take(nbytes)
            assert found is not None
        if self.ranged:
            self._reserved(self.touched.add(found, found + nbytes))
        return found

    def _open(self) -> None:
        """Ask for the range, the first part of which is for slabs."""
        span = self.source.reserve()
        self.ranged = span is not None
        if span is not None:
            start, size = span
            self.small_top, self.base, self.end = start, start + size // 64, start + size
            self.top = self.base

    def _grow(self, block: int) -> int | None:
        """Return new memory at the end of the range, or a piece of its own; None if there is none."""
        if self.ranged is None:
            self._open()
        self.n_os += 1
        if self.ranged:
            last = self.heap.starts.get(self.top)
            have = 0 if last is None else self.top - last
            if self.top + block - have > self.end:
                return None
            start = self.top - have
            if last is not None:
                self.heap.remove(last)
            self.top = start + block
            self._reserved(self.touched.add(start, self.top))
            return start
        try:
            start, size = self.source.obtain(block)
        except MemoryError:
            return None
        self.pieces[start] = size
        self._reserved(size)
        if size > block:
            self.heap.give(start + block, size - block)
        return start

    def _reserved(self, more: int) -> None:
        self.reserved += more
        if more and self.reserved > self.reserved_peak:
            self.reserved_peak = self.reserved

    @property
    def allowed(self) -> int:
        """Return how many bytes live blocks may have together."""
        if self.limit is None:
            self.limit = machine_limit()
        return self.limit

    def _under_pressure(self, block: int, nbytes: int) -> int:
        """Return a block after giving up what can be given up, one thing after the other."""
        for step in [*self.pressure, self._drain, gc.collect, self._flush]:
            step()
            while self.returned:
                self._free(*self.returned.pop())
            ptr = self._take(block, step == self._flush)
            if ptr is not None:
                return ptr
        from .report import out_of_memory

        raise out_of_memory(self, nbytes)

    def flush(self) -> None:
        """Give the memory of free blocks back to the system."""
        with self.lock:
            self.busy = True
            try:
                self._drain()
                self._flush()
            finally:
                self._settle()

    def _flush(self) -> None:
        self.n_flush += 1
        self.slabs.trim()
        for feed in [f for f in self.feeds if self.slabs.release(f, _FEED)]:
            self.feeds.remove(feed)
            self.heap.give(feed, _FEED)
        for start, size in list(self.heap.sizes.items()):
            if self.pieces.get(start) == size:
                self.heap.remove(start)
                del self.pieces[start]
                self.source.give_back(start)
                self.reserved -= size
        if self.ranged:
            self.cooled = True
            for heap in (self.heap, self.slabs.space):
                for start, size in heap.sizes.items():
                    self.reserved -= self.touched.discard(*self.source.cool(start, size))

    def clear_statistics(self) -> None:
        """Set the peaks to the present values and the counts to zero."""
        self.live_peak, self.reserved_peak = self.live, self.reserved
        self.n_alloc = self.n_hit = self.n_os = self.n_flush = 0

    def statistics(self) -> dict[str, int]:
        """Return the figures that `memory_stats` documents."""
        with self.lock:
            return {
                "live": self.live, "live_peak": self.live_peak, "reserved": self.reserved,
                "reserved_peak": self.reserved_peak, "cached": self.reserved - self.live, "arenas": self.arenas,
                "parked": sum(block for _, _, block in self.parked), "largest_free": self.heap.largest,
                "n_alloc": self.n_alloc, "n_hit": self.n_hit, "n_os": self.n_os, "n_flush": self.n_flush,
            }  # fmt: skip

    @contextmanager
    def scope(self) -> Iterator[Peaks]:
        """Within the block peaks are counted anew; scopes nest, and the peaks around them stay right."""
        with self.lock:
            seen = Peaks(self.live, self.reserved)
            outer = self.live_peak, self.reserved_peak
            self.live_peak, self.reserved_peak = self.live, self.reserved
        try:
            yield seen
        finally:
            with self.lock:
                seen.live_after, seen.live_peak, seen.reserved_peak = self.live, self.live_peak, self.reserved_peak
                self.live_peak = max(outer[0], self.live_peak)
                self.reserved_peak = max(outer[1], self.reserved_peak)


def machine_limit() -> int:
    """Return LUXGRAD_MEMORY_LIMIT, or the memory this process may use."""
    value: int | None = debug.value("memory_limit")
    return physical_memory() if value is None else value


_pool = Pool()
atexit.register(setattr, _pool, "closed", True)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: setattr(_pool, "lock", threading.RLock()))


def pool() -> Pool:
    """Return the pool of the host."""
    return _pool


def allocate(dtype: DType, size: int) -> Buffer:
    """Return a buffer for `size` elements, padded to whole packets."""
    padded = (size + _PACKET - 1) // _PACKET * _PACKET
    return _pool.allocate(max(padded, _PACKET) * dtype.itemsize)


def view(buffer: Buffer, offset: int, nbytes: int) -> Buffer:
    """Return a view of a part of a buffer, from `offset` in bytes on. What follows the part may be read, too."""
    part = Buffer(buffer.ptr + offset, nbytes, 0, buffer)
    part.job = buffer.job
    return part


def whole(buffer: Buffer) -> tuple[Buffer, int]:
    """Return the buffer that a view is a part of, itself if it is none, and the offset in bytes."""
    found = buffer
    while found.owner.__class__ is Buffer:
        found = found.owner
    return found, buffer.ptr - found.ptr


def borrow(ptr: int, nbytes: int, owner: Any) -> Buffer:
    """Return a buffer over memory that `owner` keeps alive; it is read, never written."""
    return Buffer(ptr, nbytes, 0, owner)


__all__ = ["SMALL", "Buffer", "OutOfMemoryError", "Peaks", "Pool", "allocate", "borrow", "pool", "view", "whole"]
