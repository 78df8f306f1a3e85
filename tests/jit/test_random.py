"""Random numbers are equal, bit for bit, to those of the published generators."""

from __future__ import annotations

import numpy as np
import pytest

import luxgrad as dr
import luxgrad.llvm as plain
import luxgrad.scalar as scalar
from luxgrad.llvm.ad import PCG32, Array2f, Bool, Float, Int, UInt, UInt64

MASK = (1 << 64) - 1


def reference(state: int, stream: int, count: int) -> list[int]:
    """Return draws of the published algorithm, in Python integers."""
    inc = (stream << 1 | 1) & MASK
    value = (0 * 0x5851F42D4C957F2D + inc + state) & MASK
    value = (value * 0x5851F42D4C957F2D + inc) & MASK
    out = []
    for _ in range(count):
        shifted = ((value >> 18 ^ value) >> 27) & 0xFFFFFFFF
        turn = value >> 59
        out.append((shifted >> turn | shifted << (-turn & 31)) & 0xFFFFFFFF)
        value = (value * 0x5851F42D4C957F2D + inc) & MASK
    return out


def test_known_values() -> None:
    for kind in (PCG32, plain.PCG32, scalar.PCG32):
        assert list(kind(1).next_uint32()) == [465482994]
        assert list(kind(1, 42, 54).next_uint32()) == [2707161783]
        assert list(kind(3).next_uint32()) == [465482994, 2293120725, 29396997]


def test_many_draws_of_many_streams() -> None:
    rng = PCG32(1, UInt64(5, 6, 7), UInt64(1, 2, 3))
    draws = np.array([rng.next_uint32().numpy() for _ in range(20)])
    for lane in range(3):
        assert draws[:, lane].tolist() == reference(5 + lane, 1 + lane, 20)


def test_floats_and_wide_words() -> None:
    words = reference(0x853C49E6748FEA9B, 0xDA3E39CB94B95BDB, 2)
    assert PCG32(1).next_float32()[0] == np.float32(words[0] >> 9) / np.float32(1 << 23)
    assert PCG32(1).next_float64()[0] == words[0] / 2**32
    assert PCG32(1).next_uint64()[0] == words[0] | words[1] << 32
    x = PCG32(100_000).next_float32().numpy()
    assert 0 <= x.min() and x.max() < 1 and abs(x.mean() - 0.5) < 0.005


def test_masked_lanes_do_not_advance() -> None:
    rng, other = PCG32(2), PCG32(2)
    first = rng.next_uint32(Bool(True, False))
    second = rng.next_uint32()
    a, b = other.next_uint32(), other.next_uint32()
    assert list(first)[0] == a[0] and list(second) == [b[0], a[1]]


def test_jumps_and_distances() -> None:
    start = PCG32(3)
    rng = PCG32(start)
    for _ in range(5):
        rng.next_uint32()
    assert list(rng - start) == [5, 5, 5] and list(start - rng) == [-5, -5, -5]
    assert list((start + 5).next_uint32()) == list(PCG32(rng).next_uint32())
    assert list((rng - 5).state) == list(start.state)
    assert list((start + UInt(5, 0, 5)).state) == [rng.state[0], start.state[1], rng.state[2]]
    assert list((rng + Int(-5)).state) == list(start.state)
    rng -= 5
    rng += 2
    assert list(rng - start) == [2, 2, 2]


def test_bounded_draws_are_unbiased() -> None:
    x = PCG32(60_000).next_uint32_bounded(6).numpy()
    counts = np.bincount(x, minlength=6)
    assert len(counts) == 6 and abs(counts - 10_000).max() < 400
    with pytest.raises(ValueError, match="1 or more"):
        PCG32(1).next_uint32_bounded(0)


def test_generator_as_loop_state() -> None:
    def body(i: UInt, rng: PCG32, total: Float) -> tuple[UInt, PCG32, Float]:
        total = total + rng.next_float32()
        return i + 1, rng, total

    start = PCG32(1000)
    _, rng, total = dr.while_loop((UInt(0), PCG32(start), Float(0)), lambda i, r, s: i < 100, body)
    assert dr.all(rng - start == 100)[0] and abs(dr.mean(total)[0] - 50) < 0.5


def test_hash_of_two_words() -> None:
    def tea(v0: int, v1: int) -> tuple[int, int]:
        total = 0
        for _ in range(4):
            total = (total + 0x9E3779B9) & 0xFFFFFFFF
            v0 = (v0 + (((v1 << 4) + 0xA341316C) ^ (v1 + total) ^ ((v1 >> 5) + 0xC8013EA4))) & 0xFFFFFFFF
            v1 = (v1 + (((v0 << 4) + 0xAD90777D) ^ (v0 + total) ^ ((v0 >> 5) + 0x7E95761E))) & 0xFFFFFFFF
        return v0, v1

    assert dr.sample_tea_32(1, 2) == tea(1, 2) == (2138415265, 2181802619)
    a, b = dr.sample_tea_32(UInt(7), dr.arange(UInt, 50))
    assert list(zip(a, b, strict=True)) == [tea(7, k) for k in range(50)]
    assert dr.sample_tea_64(1, 2) == dr.sample_tea_64(UInt(1), UInt(2))[0] == 9370770897070563489
    assert np.isclose(dr.sample_tea_float32(1, 2), dr.sample_tea_float32(UInt(1), UInt(2))[0])


def test_generator_is_a_tree() -> None:
    rng = PCG32(2)
    assert dr.width(rng) == 2 and dr.is_struct_v(PCG32)
    dr.eval(rng)
    assert rng.state.state == dr.VarState.Evaluated and "PCG32" in repr(rng)
    assert Array2f(rng.next_float32(), rng.next_float32()).shape == (2, 2)
