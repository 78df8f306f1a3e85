"""Memory blocks for array elements: obtained from the system, kept for reuse, counted.

Blocks are 64-byte aligned and hold whole packets of 32 elements, so kernels need no special last packet.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
from typing import Any

from ..dtypes import DType

_PACKET = 32
_SLAB = 1 << 20
_HUGE = 1 << 21  # bytes of a huge page


class Buffer:
    """Elements in memory: a block of a pool, to which it returns with the last reference, or memory of an `owner`."""

    __slots__ = ("ptr", "nbytes", "block", "owner", "pool", "__weakref__")

    def __init__(self, ptr: int, nbytes: int, block: int, owner: Any, pool: Pool | None = None) -> None:
        self.ptr, self.nbytes, self.block, self.owner, self.pool = ptr, nbytes, block, owner, pool

    @property
    def foreign(self) -> bool:
        """Return whether the memory belongs to somebody else (NumPy, DLPack): never written, not padded."""
        return self.owner is not None

    def __del__(self) -> None:
        if self.pool is not None:
            self.pool.release(self.ptr, self.block)


def block_size(nbytes: int) -> int:
    """Return the bytes really taken for a request: 64-byte steps, coarser for large ones (at most 12.5 % more)."""
    nbytes = max(64, (nbytes + 63) & ~63)
    if nbytes <= 4096:
        return nbytes
    step = 1 << max(6, nbytes.bit_length() - 4)
    return (nbytes + step - 1) & ~(step - 1)


class Pool:
    """Free blocks by size. Kernels run in one order, so a freed block may be given out again at once."""

    def __init__(self) -> None:
        # Re-entrant: the garbage collector may release buffers while a request is being served.
        self.lock = threading.RLock()
        self.reset()

    def reset(self) -> None:
        """Forget everything (after a fork, or at the start)."""
        self.free: dict[int, list[int]] = {}
        self.maps: dict[int, mmap.mmap] = {}
        self.slab, self.slab_left = 0, 0
        self.live = self.live_peak = self.reserved = self.reserved_peak = 0
        self.allocations = self.hits = 0

    def allocate(self, nbytes: int) -> Buffer:
        """Return a buffer of at least `nbytes`; raises MemoryError with the figures when the system refuses."""
        block = block_size(nbytes)
        with self.lock:
            self.allocations += 1
            stack = self.free.get(block)
            if stack:
                ptr = stack.pop()
                self.hits += 1
            else:
                ptr = self._obtain(block)
            self.live += block
            if self.live > self.live_peak:
                self.live_peak = self.live
        return Buffer(ptr, nbytes, block, None, self)

    def release(self, ptr: int, block: int) -> None:
        """Take a block back."""
        with self.lock:
            self.free.setdefault(block, []).append(ptr)
            self.live -= block

    def _obtain(self, block: int) -> int:
        if block <= _SLAB // 8:
            if self.slab_left < block:
                self.slab, self.slab_left = self._map(_SLAB), _SLAB
            ptr = self.slab
            self.slab += block
            self.slab_left -= block
            return ptr
        return self._map(block)

    def _map(self, nbytes: int) -> int:
        # Huge pages: a random gather from 40 MB takes 35 instead of 50 ms, as it misses the address cache less often.
        huge = nbytes >= _HUGE
        try:
            region = _anonymous(nbytes + (_HUGE if huge else 0))
        except (OSError, ValueError, OverflowError) as error:
            raise MemoryError(
                f"could not allocate {nbytes / 2**20:.1f} MiB; live arrays hold {self.live / 2**20:.1f} MiB, "
                f"free blocks {(self.reserved - self.live) / 2**20:.1f} MiB ({error})"
            ) from error
        ptr = ctypes.addressof(ctypes.c_char.from_buffer(region))
        if huge:
            if hasattr(mmap, "MADV_HUGEPAGE"):
                region.madvise(mmap.MADV_HUGEPAGE)
            ptr = -(-ptr // _HUGE) * _HUGE
        self.maps[ptr] = region
        self.reserved += nbytes
        self.reserved_peak = max(self.reserved_peak, self.reserved)
        return ptr

    def flush(self) -> None:
        """Give free blocks that are mappings of their own back to the system."""
        with self.lock:
            for block, stack in self.free.items():
                kept = []
                for ptr in stack:
                    region = self.maps.get(ptr) if block > _SLAB // 8 else None
                    if region is None:
                        kept.append(ptr)
                    else:
                        del self.maps[ptr]
                        self.reserved -= block
                        _unmap(region)
                self.free[block] = kept

    def clear_statistics(self) -> None:
        """Set the peaks to the present values and the counts to zero."""
        self.live_peak, self.reserved_peak = self.live, self.reserved
        self.allocations = self.hits = 0


def _anonymous(nbytes: int) -> mmap.mmap:
    if hasattr(mmap, "MAP_PRIVATE"):
        # Python's default is a shared mapping, for which the system grants no huge pages.
        return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return mmap.mmap(-1, nbytes)


def _unmap(region: mmap.mmap) -> None:
    try:
        region.close()
    except BufferError:
        # The address was taken through a ctypes view; dropping the last reference unmaps it.
        del region


_pool = Pool()
os.register_at_fork(after_in_child=lambda: setattr(_pool, "lock", threading.RLock())) if hasattr(
    os, "register_at_fork"
) else None


def pool() -> Pool:
    """Return the pool of the host."""
    return _pool


def allocate(dtype: DType, size: int) -> Buffer:
    """Return a buffer for `size` elements, padded to whole packets."""
    padded = (size + _PACKET - 1) // _PACKET * _PACKET
    return _pool.allocate(max(padded, _PACKET) * dtype.itemsize)


def borrow(ptr: int, nbytes: int, owner: Any) -> Buffer:
    """Return a buffer over memory that `owner` keeps alive; it is read, never written."""
    return Buffer(ptr, nbytes, 0, owner)
