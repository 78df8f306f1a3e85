"""Asynchrony: evaluation returns early, reading waits for what it needs, events mark places in the order."""

from __future__ import annotations

import time

import numpy as np
import pytest

import luxgrad as dr
from luxgrad.jit.runtime.engine import runtime
from luxgrad.llvm import Event, Float, UInt32


def slow(rounds):
    """Return a lazy array that takes a while to compute."""
    x = dr.arange(Float, 200_000)
    _, y = dr.while_loop(
        (UInt32(0), x), lambda i, y: i < dr.opaque(UInt32, rounds), lambda i, y: (i + 1, dr.sin(y) + 1)
    )
    return y


def test_evaluation_returns_before_the_work_is_done():
    dr.eval(slow(2))
    dr.sync_thread()
    y = slow(3000)
    started = time.perf_counter()
    dr.eval(y)
    launched = time.perf_counter() - started
    assert runtime.threads.completed < runtime.threads.submitted
    dr.sync_thread()
    assert launched < 0.5 * (time.perf_counter() - started)


def test_reading_waits_for_its_own_launch_only():
    first = dr.arange(Float, 100_000) + 1
    dr.eval(first)
    later = slow(3000)
    dr.eval(later)
    assert first.numpy()[7] == 8
    assert runtime.threads.completed < runtime.threads.submitted, "reading waited for a launch it does not need"
    assert np.isfinite(later.numpy()).all()


def test_buffers_outlive_queued_kernels():
    before = slow(1000)
    dr.eval(before)
    results = []
    for k in range(50):
        x = dr.arange(Float, 50_000) + k
        dr.eval(x)
        y = x * 2
        dr.eval(y)
        del x
        results.append(y)
    assert [r.numpy()[3] for r in results] == [2 * (3 + k) for k in range(50)]


def test_events():
    start, middle, end = Event(), Event(), Event()
    assert start.query()
    start.record()
    dr.eval(slow(200))
    middle.record()
    dr.eval(slow(2000))
    end.record()
    assert not end.query()
    end.wait()
    assert middle.query() and end.query()
    short, long = start.elapsed_time(middle), middle.elapsed_time(end)
    assert 0 < short < long and abs(start.elapsed_time(end) - short - long) < 1e-6


def test_events_without_a_time():
    a, b = Event(enable_timing=False), Event()
    a.record()
    a.wait()
    with pytest.raises(RuntimeError, match="enable_timing"):
        a.elapsed_time(b)
    b.record()
    with pytest.raises(RuntimeError, match="enable_timing"):
        b.elapsed_time(a)
