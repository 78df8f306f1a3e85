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
            buffer = pool.allocate(int(2 ** rng.uniform(6, 20)))
            assert buffer.ptr % 64 == 0
            live.append(buffer)
    spans = sorted((b.ptr, b.ptr + b.block) for b in live)
    assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False))
    assert pool.live == sum(b.block for b in live)
    del buffer
    live.clear()
    assert pool.live == 0
    reserved = pool.reserved
    for _ in range(100):
        pool.allocate(1000)
    assert pool.reserved == reserved


def test_blocks_return_to_the_pool_they_came_from():
    a, b = Pool(), Pool()
    kept = b.allocate(1000)
    ptr = a.allocate(1000).ptr
    assert (a.live, b.live) == (0, kept.block)
    assert a.allocate(1000).ptr == ptr


def test_flush_returns_large_blocks():
    pool = Pool()
    pool.allocate(8 << 20)
    assert pool.reserved >= 8 << 20 and pool.live == 0
    pool.flush()
    assert pool.reserved < 8 << 20


def test_impossible_request_says_what_is_used():
    with pytest.raises(MemoryError, match="could not allocate .* MiB; live arrays hold"):
        Pool().allocate(1 << 60)


def test_buffers_hold_whole_packets():
    buffer = allocate(Float32, 1)
    assert buffer.nbytes >= 32 * 4 and buffer.ptr % 64 == 0
