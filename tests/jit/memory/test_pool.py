"""The caching pool: acceptance items A1 to A8 of the memory design."""

from __future__ import annotations

import gc
import random
import statistics
import sys
import time

import pytest

import luxgrad as dr
from luxgrad.jit.dtypes import Float32
from luxgrad.jit.errors import OutOfMemoryError
from luxgrad.jit.memory import pool as pools
from luxgrad.jit.memory.heap import Touched
from luxgrad.jit.memory.pool import Pool, allocate, pool
from luxgrad.jit.memory.source import HostMemory
from luxgrad.llvm import Float, Float64, UInt32

from .traces import FAMILIES


class Driver:
    """A device whose addresses stand for no memory, in pieces as a driver gives them."""

    alignment = 256

    def __init__(self) -> None:
        self.next = 1 << 20
        self.calls = 0

    def reserve(self):
        return None

    def obtain(self, nbytes):
        self.calls += 1
        start, size = self.next, max(64 << 20, -(-nbytes // 256) * 256)
        self.next += size + (1 << 20)
        return start, size

    def cool(self, start, nbytes):
        return start, start

    def give_back(self, start):
        self.calls += 1


class Range(Driver):
    """The same in one range."""

    alignment = 64

    def reserve(self):
        return 1 << 30, 1 << 44

    def cool(self, start, nbytes):
        return start, start + nbytes


def counted(p: Pool) -> int:
    """Return the bytes of all blocks, live and free; checks that none overlap."""
    spans = [(s, s + n) for s, n in p.blocks.items()] + [(s, s + n) for s, n in p.heap.sizes.items()]
    spans += [(s, s + n) for s, n in p.slabs.space.sizes.items()]
    spans += [(s, s + n) for n, stack in p.slabs.free.items() for s in stack]
    spans.sort()
    assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False))
    return sum(b - a for a, b in spans)


@pytest.mark.parametrize("source", [Driver, Range])
def test_A1_random_requests_do_not_overlap_and_merge_again(source):
    p = Pool(source(), limit=1 << 40)
    rng = random.Random(7)
    live = []
    for step in range(100_000):
        if live and (len(live) >= 300 or rng.random() < 0.5):
            k = rng.randrange(len(live))
            live[k], live[-1] = live[-1], live[k]
            live.pop()
        else:
            live.append(p.allocate(int(2 ** rng.uniform(6, 26))))
            assert live[-1].ptr % p.alignment == 0
        if step % 5000 == 0:
            counted(p)
            assert p.live == sum(b.block for b in live)
    live.clear()
    pieces = len(p.pieces)
    p.slabs.trim()
    if source is Driver:
        for feed in p.feeds:
            assert p.slabs.release(feed, 1 << 18)
            p.heap.give(feed, 1 << 18)
    assert p.live == 0 and not p.blocks
    assert len(p.heap.sizes) == (pieces if source is Driver else 1)
    assert len(p.slabs.space.sizes) == (0 if source is Driver else 1)
    p.flush()
    assert p.reserved == 0


def test_A1_canaries_at_both_ends_stay():
    import ctypes

    p = Pool()
    rng = random.Random(3)
    live = {}
    for number in range(1, 3000):
        if len(live) > 50:
            key = rng.choice(list(live))
            b = live.pop(key)
            for place in (b.ptr, b.ptr + b.block - 8):
                assert ctypes.c_int64.from_address(place).value == key
            del b
        b = p.allocate(rng.randrange(1, 1 << 18))
        for place in (b.ptr, b.ptr + b.block - 8):
            ctypes.c_int64.from_address(place).value = number
        live[number] = b


class PowersOfTwo(Pool):
    """The rule of lists by powers of two, for comparison."""

    def block_size(self, nbytes):
        return 1 << max(13, (nbytes - 1).bit_length())


def footprint(kind: type[Pool], starts, ends, sizes) -> int:
    p = kind(Range(), limit=1 << 44)
    held = {}
    for _ in range(2):
        events = [(t, 1, k) for k, t in enumerate(starts)] + [(t, 0, k) for k, t in enumerate(ends)]
        for _, begins, k in sorted(events):
            if begins:
                held[k] = p.allocate(sizes[k])
            else:
                held.pop(k, None)
        held.clear()
    return p.reserved_peak


def lower_bound(starts, ends, sizes) -> int:
    live = most = 0
    changes = [*zip(starts, sizes, strict=True), *((t, -n) for t, n in zip(ends, sizes, strict=True))]
    changes.sort()
    for _, change in changes:
        live += change
        most = max(most, live)
    return most


def test_A2_footprint_is_close_to_what_lives():
    ratios, doubled = [], []
    for family, make in FAMILIES.items():
        if family.startswith("random"):
            continue
        for seed in range(5 if "large" not in family else 1):
            made = make(seed)
            trace = made.starts, made.ends, made.sizes
            least = lower_bound(*trace)
            ratios.append(footprint(Pool, *trace) / least)
            if seed == 0:
                doubled.append(footprint(PowersOfTwo, *trace) / least)
    assert statistics.median(ratios) <= 1.05 and max(ratios) <= 1.35
    assert statistics.median(doubled) > 1.05 or max(doubled) > 1.35


def test_A3_second_identical_step_asks_the_system_for_nothing():
    driver = Driver()
    p = Pool(driver, limit=1 << 40)
    for step in range(3):
        rng = random.Random(1)
        live = []
        for _ in range(400):
            live.append(p.allocate(int(2 ** rng.uniform(6, 24))))
            if len(live) > 40:
                live.pop(rng.randrange(len(live)))
        live.clear()
        if step == 0:
            before = driver.calls, p.n_os
        else:
            assert (driver.calls, p.n_os) == before


def test_A4_statistics_of_a_scripted_sequence():
    p = Pool(Range(), limit=1 << 30)
    a = p.allocate(10_000)  # 10 048 bytes
    b = p.allocate(100)  # 128 bytes, and twice as many blocks in the next slab
    assert p.statistics() == {
        "live": 10_048 + 128, "live_peak": 10_176, "reserved": 10_176, "reserved_peak": 10_176,
        "cached": 0, "arenas": 0, "parked": 0, "largest_free": 0,
        "n_alloc": 2, "n_hit": 0, "n_os": 2, "n_flush": 0,
    }  # fmt: skip
    del a
    assert (p.live, p.live_peak, p.heap.largest) == (128, 10_176, 10_048)
    a = p.allocate(9_000)
    assert (p.n_alloc, p.n_hit, p.n_os, p.heap.largest) == (3, 1, 2, 10_048 - 9_024)
    del b
    p.clear_statistics()
    assert (p.live_peak, p.reserved_peak, p.n_alloc) == (9_024, 10_176, 0)
    del a
    p.flush()
    assert p.statistics()["reserved"] == 0 and p.n_flush == 1 and p.reserved_peak == 10_176
    a = p.allocate(5_000)
    assert p.reserved == a.block == 5_056


def test_A4_scopes_nest():
    p = Pool(Range(), limit=1 << 30)
    with p.scope() as outer:
        a = p.allocate(1 << 20)
        with p.scope() as inner:
            b = p.allocate(2 << 20)
            del b
        c = p.allocate(1 << 19)
    assert (inner.live_before, inner.live_peak, inner.live_after) == (1 << 20, 3 << 20, 1 << 20)
    assert (outer.live_before, outer.live_peak, outer.live_after) == (0, 3 << 20, (1 << 20) + (1 << 19))
    del a, c


def test_A4_whos_agrees_with_the_statistics(capsys):
    x = dr.arange(Float, 100_000) + 1
    dr.set_label(x, "hundred")
    dr.eval(x)
    gc.collect()
    dr.whos()
    out = capsys.readouterr().out
    assert "hundred" in out
    assert f"live together: {dr.memory_stats()['live']};" in out
    assert dr.malloc_watermark() >= dr.memory_stats()["live_peak"]
    snapshot = dr.memory_snapshot()
    assert sum(b["size"] for b in snapshot["blocks"] if b["state"] == "live") == snapshot["statistics"]["live"]
    assert [b["type"] for b in snapshot["blocks"] if b["label"] == "hundred"] == ["Float32"]


@pytest.fixture
def limited():
    gc.collect()
    dr.flush_malloc_cache()
    dr.set_memory_limit(dr.memory_stats()["live"] + (64 << 20))
    yield
    dr.set_memory_limit(None)


def test_A5_limit_is_an_error_that_names_the_largest_array(limited):
    x = dr.arange(Float, 8 << 20) + 0.5  # 32 MiB
    dr.set_label(x, "the culprit")
    dr.eval(x)
    started = time.perf_counter()
    with pytest.raises(OutOfMemoryError, match="could not allocate 40.0 MiB") as caught:
        y = dr.arange(Float, 10 << 20) + 0.5
        dr.eval(y)
    assert time.perf_counter() - started < 1
    error = caught.value
    assert isinstance(error, MemoryError) and error.requested == 40 << 20 and error.limit == pool().limit
    assert error.top[0]["label"] == "the culprit"
    assert f"the limit is {error.limit / 2**20:.1f} MiB" in str(error)
    first = str(error).split("label\n")[1].splitlines()[0]
    assert "the culprit" in first and "8388608" in first
    del caught, error
    z = dr.arange(Float, 1 << 20) * 2  # a smaller request goes on
    dr.eval(z)
    assert z[5] == 10


def test_A5_cached_memory_never_causes_a_failure(limited):
    for n in (3, 5, 7, 9, 11, 13):
        x = dr.arange(Float, n << 20) + 1
        dr.eval(x)
        del x
    parts = [dr.arange(Float, 1 << 18) + k for k in range(40)]
    dr.eval(*parts)
    del parts[::2]
    x = dr.arange(Float, 10 << 20) + 1  # 40 MiB beside 20 live ones of 1 MiB
    dr.eval(x)
    assert x[3] == 4


def test_A5_arrays_in_a_reference_cycle_are_reclaimed(limited):
    gc.disable()
    try:
        cycle = [dr.arange(Float, 10 << 20) + 1]
        dr.eval(cycle)
        cycle.append(cycle)
        del cycle
        x = dr.arange(Float, 11 << 20) + 1
        dr.eval(x)
        assert x[1] == 2
    finally:
        gc.enable()


def test_A5_more_than_the_machine_has_is_refused_at_once():
    with pytest.raises(OutOfMemoryError, match="alone is larger than the limit"):
        Pool().allocate(1 << 60)


def test_A5_pieces_instead_of_a_range():
    p = Pool(HostMemory(reserve=False), limit=1 << 30)
    a, b = p.allocate(80 << 20), p.allocate(1000)
    assert p.reserved >= 144 << 20
    del a
    p.flush()
    assert p.reserved == 64 << 20
    del b
    p.flush()
    assert p.reserved == 0


def test_A6_blocks_freed_right_after_the_launch_are_not_written_too_early():
    for k in range(1000):
        x = dr.arange(UInt32, 40_000) + k
        dr.eval(x)
        y = x * 2
        dr.eval(y)
        del x  # its block goes to the next array while the launch may still run
        z = dr.full(UInt32, 7, 40_000) + dr.arange(UInt32, 40_000)
        dr.eval(z)
        if k % 100 == 0:
            assert dr.all(y == 2 * (dr.arange(UInt32, 40_000) + k))
            assert dr.all(z == dr.arange(UInt32, 40_000) + 7)


def test_A6_parked_blocks_wait_for_their_event():
    p = Pool(Range(), limit=1 << 30)
    done = []
    a = p.allocate(10_000)
    ptr = a.ptr
    p.park(a, lambda: bool(done))
    del a
    assert p.statistics()["parked"] == 10_048
    assert p.allocate(10_000).ptr != ptr
    done.append(1)
    kept = [p.allocate(10_000), p.allocate(10_000)]
    assert ptr in [b.ptr for b in kept] and p.statistics()["parked"] == 0


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/statm, which only Linux has")
def test_A7_flush_returns_memory_to_the_system():
    import ctypes

    p = Pool()
    blocks = [p.allocate(8 << 20) for _ in range(16)]
    for b in blocks:
        ctypes.memset(b.ptr, 1, b.nbytes)
    blocks.clear()
    del b
    before, cached = resident(), p.statistics()["cached"]
    assert cached == 128 << 20
    p.flush()
    assert before - resident() >= 0.95 * cached
    assert p.reserved == 0
    again = p.allocate(8 << 20)
    ctypes.memset(again.ptr, 1, again.nbytes)
    assert p.reserved == 8 << 20


def test_A8_converting_back_and_forth_does_not_grow():
    x = dr.arange(Float, 10_000) + 1
    dr.eval(x)
    for k in range(10_000):
        x = Float(Float64(x))
        dr.eval(x)
        y = Float(x.numpy())
        x = y + 0.0
        dr.eval(x)
        if k == 3:
            reserved = dr.memory_stats()["reserved"]
    assert dr.memory_stats()["reserved"] == reserved


def test_A4_memory_given_back_counts_again_only_when_it_is_used_again():
    p = Pool(Range(), limit=1 << 30)
    a, b = p.allocate(100 << 20), p.allocate(8 << 20)
    del a
    p.flush()
    p.clear_statistics()
    assert p.reserved == 8 << 20
    for _ in range(50):
        c = p.allocate(3 << 20)
        d = p.allocate(1 << 20)
        del c, d
    assert p.reserved_peak == 12 << 20
    del b


def test_touched_intervals_equal_a_set_of_bytes():
    rng = random.Random(5)
    touched, marked = Touched(), set()
    for _ in range(3000):
        a = rng.randrange(200)
        b = a + rng.randrange(1, 40)
        span = set(range(a, b))
        if rng.random() < 0.6:
            assert touched.add(a, b) == len(span - marked)
            marked |= span
        else:
            assert touched.discard(a, b) == len(span & marked)
            marked -= span


def test_blocks_return_to_the_pool_they_came_from():
    a, b = Pool(Range(), limit=1 << 30), Pool(Range(), limit=1 << 30)
    kept = b.allocate(1000)
    ptr = a.allocate(1000).ptr
    assert (a.live, b.live) == (0, kept.block)
    assert a.allocate(1000).ptr == ptr


def test_buffers_released_by_the_collector_within_a_request_wait(monkeypatch):
    p = Pool(Range(), limit=1 << 30)
    kept = [p.allocate(10_000)]
    take = p.heap.take

    def interrupted(size):
        kept.clear()  # as if the garbage collector ran here
        return take(size)

    monkeypatch.setattr(p.heap, "take", interrupted)
    b = p.allocate(20_000)
    assert not p.returned and not p.busy
    assert p.live == b.block and counted(p) == p.top - p.base + p.small_top - (1 << 30)


def test_buffers_hold_whole_packets():
    buffer = allocate(Float32, 1)
    assert buffer.nbytes >= 32 * 4 and buffer.ptr % 64 == 0


@pytest.mark.parametrize("limit", ["8 Gib", "8GiB", "0.25", 0.25, "512M", 1 << 30])
def test_limits_that_can_be_set(limit):
    dr.set_memory_limit(limit)
    try:
        assert pool().limit > 1 << 28
    finally:
        dr.set_memory_limit(None)
    assert pool().allowed == pools.machine_limit()


@pytest.mark.parametrize("limit", [0, -1, "much", 1.5e300, "-3G", [1], True])
def test_limits_that_cannot(limit):
    before = pool().limit
    with pytest.raises((ValueError, TypeError), match="set_memory_limit"):
        dr.set_memory_limit(limit)
    assert pool().limit == before
