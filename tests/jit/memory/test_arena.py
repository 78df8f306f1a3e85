"""Plans in use: acceptance items B7, B8 and B9 of the memory design, on frozen functions."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import luxgrad as dr
from luxgrad.jit.memory.arena import arena, scoped_modes
from luxgrad.jit.memory.pool import pool
from luxgrad.llvm import Float, UInt32
from luxgrad.llvm.ad import Float as DiffFloat
from luxgrad.optim.adam import Adam


def chain(x, w):
    """Many launches of own elements, with reductions in between."""
    for k in range(12):
        x = x * w + dr.mean(x)
        dr.eval(x)
        x = x - 0.1 * k
        dr.eval(x)
    return x, dr.sum(x)


def tables(x, w):
    """Gathers, scatters, running sums."""
    n = len(x)
    index = (dr.arange(UInt32, n) * 7919) % n
    y = x
    for _ in range(4):
        y = dr.gather(Float, y, index) + w
        counts = dr.zeros(Float, 64)
        dr.scatter_add(counts, y, index % 64)
        y = y + dr.gather(Float, counts, index % 64) * 1e-3
        y = y + dr.prefix_sum(y) * 1e-6
        dr.eval(y)
    return y, dr.max(y), dr.block_sum(y, 256)


def optimise(x, w):
    """Steps of a small fit, gradients included."""
    value = DiffFloat(x)
    opt = Adam(0.01, {"v": value})
    for _ in range(3):
        loss = dr.mean((dr.sin(opt["v"]) * DiffFloat(w) - 0.5) ** 2)
        dr.backward(loss)
        opt.step()
    return dr.detach(opt["v"]), dr.detach(loss)


PROGRAMS = {"chain": chain, "tables": tables, "optimise": optimise}


def inputs(seed, size):
    rng = np.random.default_rng(seed)
    return Float(rng.random(size).astype(np.float32)), dr.opaque(Float, float(rng.random()) + 0.5)


def numbers(results):
    return [r.numpy().copy() for r in results]


@pytest.mark.parametrize("name", PROGRAMS)
def test_B8_same_bits_with_and_without_sharing_memory(name):
    program = PROGRAMS[name]
    modes = ({}, {"alias": False}, {"inplace": False}, {"poison": True}, {"poison": True, "inplace": False})
    frozen = [dr.freeze(program) for _ in modes]
    for k in range(20):
        x, w = inputs(k, 5000 if k % 3 else 20_011)
        expected = numbers(program(x, w))
        for f, mode in zip(frozen, modes, strict=True):
            with scoped_modes(**mode):
                for a, b in zip(numbers(f(x, w)), expected, strict=True):
                    assert np.array_equal(a, b), (mode, k)


@pytest.mark.parametrize("name", PROGRAMS)
def test_B8_the_arena_does_not_raise_the_peak(name):
    program = PROGRAMS[name]
    x, w = inputs(1, 400_000)
    dr.eval(x)

    def peak(call):
        call(x, w), call(x, w)
        gc.collect()
        dr.sync_thread()
        with dr.memory_scope() as seen:
            for _ in range(3):
                call(x, w)
        return seen.live_peak

    plain = peak(program)
    arena().drop()
    frozen = peak(dr.freeze(program))
    assert frozen <= 1.02 * plain


@pytest.mark.parametrize("name", PROGRAMS)
def test_B9_replays_allocate_results_only(name):
    f = dr.freeze(PROGRAMS[name])
    sets = [inputs(k, 30_000) for k in range(4)]
    for x, w in sets:
        dr.eval(x, w)
    f(*sets[0]), f(*sets[1])
    address, before = arena().block.ptr, pool().n_alloc
    for k in range(100):
        results = f(*sets[k % 4])
    assert pool().n_alloc - before == 100 * len(results)
    assert arena().block.ptr == address


def test_B7_a_chain_of_equal_arrays_needs_one_buffer():
    @dr.freeze
    def f(x):
        for k in range(100):
            x = dr.sin(x + k)
            dr.eval(x)
        return x

    x = dr.arange(Float, 10_000) + 1
    f(x)
    (variants,) = f._known.values()
    (recording,) = variants.values()
    assert len(recording.replay.notes) == 100
    assert recording.replay.plan.height == 0  # all of it happens in the memory of the result
    with scoped_modes(inplace=False):
        g = dr.freeze(f.fn)
        g(x)
        (variants,) = g._known.values()
        (recording,) = variants.values()
        assert recording.replay.plan.height == 2 * 40_064


def test_the_report_tells_where_memory_is():
    f = dr.freeze(tables)
    f(*inputs(1, 30_000))
    text = f.report()
    assert "lower bound" in text and "tables, recording 1" in text and "in place" in text


def test_an_arena_given_up_comes_back():
    f = dr.freeze(tables)
    x, w = inputs(3, 30_000)
    expected = numbers(f(x, w))
    f(x, w)
    dr.sync_thread()
    arena().drop()
    assert pool().arenas == 0
    for a, b in zip(numbers(f(x, w)), expected, strict=True):
        assert np.array_equal(a, b)
    assert pool().arenas > 0
