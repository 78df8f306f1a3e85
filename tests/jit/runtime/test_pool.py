"""Memory blocks: alignment, reuse, statistics, errors."""

from __future__ import annotations

import random

import pytest

from luxgrad.jit.dtypes import Float32
from luxgrad.jit.memory.pool import Pool, allocate, block_size


def test_block_sizes_are_close_to_the_request():
    for nbytes in (1, 64, 65, 4096, 5000, 100_000, 1_000_001, 40_000_000):
        size = block_size(nbytes)
        assert size >= nbytes and size % 64 == 0
        assert size <= max(64, nbytes * 1.125 + 64)


def test_random_requests_never_overlap():
    pool = Pool()
    rng = random.Random(7)
    live = []
    for _ in range(3000):
        if live and rng.random() < 0.5:
            live.pop(rng.randrange(len(live)))
        else:
            nbytes = int(2 ** rng.uniform(6, 20))
            ptr = None
            buffer = pool.allocate(nbytes)
            ptr = buffer.ptr
            assert ptr % 64 == 0
            buffer.owner = pool  # not returned to the library's own pool when freed
            live.append(_Held(pool, ptr, buffer.block))
    spans = sorted((h.ptr, h.ptr + h.block) for h in live)
    assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False))
    assert pool.live == sum(h.block for h in live)
    live.clear()
    assert pool.live == 0
    reserved = pool.reserved
    for _ in range(100):
        _Held(pool, pool.allocate(1000).ptr, block_size(1000))
    assert pool.reserved == reserved


class _Held:
    """Returns its block to a pool when dropped."""

    def __init__(self, pool: Pool, ptr: int, block: int) -> None:
        self.pool, self.ptr, self.block = pool, ptr, block

    def __del__(self) -> None:
        self.pool.release(self.ptr, self.block)


def test_flush_returns_large_blocks():
    pool = Pool()
    buffer = pool.allocate(8 << 20)
    buffer.owner = pool
    pool.release(buffer.ptr, buffer.block)
    assert pool.reserved >= 8 << 20 and pool.live == 0
    pool.flush()
    assert pool.reserved < 8 << 20


def test_impossible_request_says_what_is_used():
    with pytest.raises(MemoryError, match="could not allocate .* MiB; live arrays hold"):
        Pool().allocate(1 << 60)


def test_buffers_hold_whole_packets():
    buffer = allocate(Float32, 1)
    assert buffer.nbytes >= 32 * 4 and buffer.ptr % 64 == 0
