"""Lifetimes and in-place reuse of recorded launches, and plans for them that do not change what programs compute."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luxgrad.jit.memory.lifetimes import Access, Buffer, Launch, lifetimes
from luxgrad.jit.memory.plan import PlanCache
from luxgrad.jit.memory.plan_launches import LaunchPlan, plan_launches
from luxgrad.jit.memory.plan_report import read_csv

_spec = importlib.util.spec_from_file_location("memory_traces", Path(__file__).parent / "traces.py")
assert _spec is not None and _spec.loader is not None
traces = importlib.util.module_from_spec(_spec)
sys.modules.setdefault(_spec.name, traces)  # its dataclasses look themselves up
_spec.loader.exec_module(traces)

Program = tuple[list[Launch], list[Buffer]]


def chain(n: int, last: str = "transient") -> Program:
    """Return y = f(x) n times, from an input."""
    buffers = [Buffer(4000, 4, "input"), *(Buffer(4000, 4) for _ in range(n))]
    buffers[-1] = replace(buffers[-1], kind=last)  # type: ignore[arg-type]
    return [Launch(((i, "own"),), ((i + 1, "own"),), i) for i in range(n)], buffers


def test_B7_a_chain_takes_one_buffer_in_place_and_two_without() -> None:
    program = chain(100)
    assert plan_launches(*program).height == 4032
    assert plan_launches(*program, inplace=False).height == 2 * 4032
    assert plan_launches(*program, alias=False).height == 100 * 4032
    assert plan_launches(*program, inplace=False).unshared_peak == plan_launches(*program).unshared_peak == 2 * 4032


def test_B7_a_chain_into_an_output_lives_in_the_output() -> None:
    p = plan_launches(*chain(100, "output"))
    assert p.height == 0
    assert set(p.lifetimes.homes[1:]) == {100}
    launches, buffers = chain(100, "output")
    p = plan_launches(launches, [replace(buffers[0], donate=True), *buffers[1:]])
    assert p.height == 0
    assert set(p.lifetimes.homes) == {0}  # all in the memory of the donated input


def pair(
    reads: tuple[tuple[int, Access], ...] = ((0, "own"),),
    writes: tuple[tuple[int, Access], ...] = ((1, "own"),),
    more: Sequence[Launch] = (),
    before: Sequence[Launch] = (),
    **first: Any,
) -> bool:
    """Return whether buffer 1 takes over buffer 0 in a launch between one that fills 0 and one that reads 1."""
    values = {"nbytes": 4000, "itemsize": 4, **first}
    buffers = [Buffer(**values), Buffer(4000, 4), Buffer(4000, 4), Buffer(4000, 4, "output")]
    launches = [
        Launch((), ((0, "whole"), (2, "whole")), 0),
        Launch(reads, writes, 1),
        *more,
        Launch(((1, "own"), (2, "own")), ((3, "own"),), 3),
    ]
    if values.get("kind") == "input":
        launches[0] = Launch((), ((2, "whole"),), 0)
    launches[1:1] = before
    return (0, 1) in {s[:2] for s in lifetimes(launches, buffers).sets}


def test_B7_what_allows_reuse_in_place() -> None:
    assert pair()
    assert pair(reads=((2, "gather"), (0, "own")))  # another buffer may be gathered
    assert pair(kind="input", donate=True)
    assert pair(nbytes=3996)  # 4032 bytes when rounded up, like 4000
    assert pair(more=[Launch(((1, "gather"),), ((1, "scatter"),), 2)])  # later uses of the output are free


def test_B7_a_gather_in_the_same_kernel_forbids_reuse() -> None:
    assert not pair(reads=((0, "gather"),))
    assert not pair(reads=((0, "own"), (0, "gather")))
    assert not pair(reads=((0, "whole"),))


def test_B7_another_item_size_forbids_reuse() -> None:
    assert not pair(itemsize=2)
    assert not pair(itemsize=8)
    assert not pair(nbytes=8000)


def test_B7_a_later_second_reader_forbids_reuse() -> None:
    assert not pair(more=[Launch(((0, "own"),), ((2, "own"),), 2)])


def test_B7_a_reader_or_writer_in_the_same_wave_forbids_reuse() -> None:
    assert not pair(more=[Launch(((0, "own"),), ((2, "own"),), 1)])
    assert not pair(more=[Launch((), ((1, "own"),), 1)])


def test_B7_what_else_forbids_reuse() -> None:
    assert not pair(writes=((1, "scatter"),))
    assert not pair(writes=((1, "whole"),))
    assert not pair(writes=((1, "own"), (1, "scatter")))
    assert not pair(writes=((0, "own"), (1, "own")))  # the input is written too
    assert not pair(before=[Launch((), ((1, "own"),), 0)])  # the output is written before
    assert not pair(kind="input")
    assert not pair(kind="persistent")
    assert not pair(kind="output")


def test_an_input_is_taken_over_once_and_by_one_output() -> None:
    buffers = [Buffer(400, 4), Buffer(400, 4), Buffer(396, 4), Buffer(400, 4), Buffer(400, 4)]
    launches = [
        Launch((), ((0, "own"), (2, "own")), 0),
        Launch(((2, "own"), (0, "own")), ((1, "own"), (3, "own"), (4, "own")), 1),
        Launch(((1, "own"), (3, "own"), (4, "own")), (), 2),
    ]
    assert lifetimes(launches, buffers).sets == ((0, 1), (2, 3), (4,))  # equal bytes first, then equal rounded bytes


def test_memory_of_the_caller_is_not_overrun() -> None:
    # 4000 and 4032 bytes are equal when rounded up, but the input has only 4000.
    buffers = [Buffer(4000, 4, "input", donate=True), Buffer(4032, 4)]
    assert len(lifetimes([Launch(((0, "own"),), ((1, "own"),), 0)], buffers).sets) == 2
    buffers = [Buffer(4032, 4, "input", donate=True), Buffer(4000, 4)]
    assert len(lifetimes([Launch(((0, "own"),), ((1, "own"),), 0)], buffers).sets) == 1


def test_lifetimes_are_half_open_in_waves() -> None:
    buffers = [Buffer(8, 4, k) for k in ("input", "transient", "transient", "transient", "output", "persistent")]
    buffers.append(Buffer(8, 4, "input", donate=True))
    launches = [
        Launch((), ((1, "whole"),), 2),
        Launch(((0, "own"),), ((1, "scatter"), (2, "own")), 2),  # 2 is never read
        Launch(((1, "own"), (6, "own")), ((4, "own"),), 5),
        Launch(((5, "own"),), ((5, "own"),), 9),
    ]
    spans = lifetimes(launches, buffers, inplace=False)
    assert spans.starts == (0, 2, 2, 0, 5, 0, 0)
    assert spans.ends == (10, 6, 3, 0, 10, 10, 6)
    assert spans.homes == (0, -1, -1, -1, 4, 5, 6)
    assert plan_launches(launches, buffers, inplace=False).offsets[3] is None  # nothing touches it


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        (Launch(((3, "own"),), (), 0), ["launch 0", "buffer 3", "2 buffers"]),
        (Launch(((1, "own"),), (), 0), ["launch 0 reads buffer 1 (y) before"]),
        (Launch((), ((0, "own"),), 0), ["launch 0 writes buffer 0 (x), an input", "donate"]),
        (Launch(((0, "scatter"),), (), 0), ["launch 0 reads buffer 0 (x) by 'scatter'", "own, gather, whole"]),
        (Launch((), ((1, "gather"),), 0), ["launch 0 writes buffer 1 (y) by 'gather'", "own, scatter, whole"]),
        (Launch((), (), -1), ["launch 0", "wave -1"]),
    ],
)
def test_launches_that_are_refused(launch: Launch, words: list[str]) -> None:
    with pytest.raises(ValueError) as error:
        plan_launches([launch], [Buffer(4, 4, "input", name="x"), Buffer(4, 4, name="y")])
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("buffer", "words"),
    [
        (Buffer(-4, 4), "-4 bytes"),
        (Buffer(4, 0), "items of 0"),
        (Buffer(4, 4, donate=True), "donated, but is no input"),
        (Buffer(4, 4, "scratch"), "kind 'scratch'"),  # type: ignore[arg-type]
    ],
)
def test_buffers_that_are_refused(buffer: Buffer, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        plan_launches([], [buffer])


def test_waves_ascend() -> None:
    with pytest.raises(ValueError, match="launch 1 is in wave 1, after a launch in wave 2"):
        lifetimes([Launch((), (), 2), Launch((), (), 1)], [])


# What follows runs programs of integers, once with all buffers apart and once in the memory of a plan.


def random_program(rng: random.Random) -> Program:
    """Return launches of two widths with items of 1, 4 and 8 bytes, some of which run in one wave."""
    counts = (48, 30)
    buffers = [Buffer(n * s, s, "input", donate=rng.random() < 0.5) for n in counts for s in (1, 4, 8)]
    buffers += [Buffer(n * 4, 4, "persistent") for n in counts]
    written = list(range(len(buffers)))
    launches: list[Launch] = []
    wave = 0
    for _ in range(rng.randint(5, 40)):
        count = rng.choice(counts)
        # Launches of one wave share nothing that one of them writes.
        same = rng.random() < 0.3 and launches != []
        busy = {i for launch in launches if launch.wave == wave for i, _ in launch.writes} if same else set()
        wave += 0 if same else rng.randint(1, 2)
        known = [i for i in written if i not in busy]
        chosen = rng.sample(known[-12:], min(len(known), rng.randint(1, 3)))
        if rng.random() < 0.3:
            chosen.append(rng.choice(known))
        reads: list[tuple[int, Access]] = []
        for i in chosen:
            own = buffers[i].nbytes // buffers[i].itemsize == count and rng.random() < 0.8
            reads.append((i, "own" if own else rng.choice(["gather", "whole"])))
        writes: list[tuple[int, Access]] = []
        for _ in range(rng.randint(1, 3)):
            size = rng.choice((1, 4, 4, 4, 8))
            buffers.append(Buffer(count * size, size, "output" if rng.random() < 0.1 else "transient"))
            writes.append((len(buffers) - 1, "own"))
        others = {i for launch in launches if launch.wave == wave for i, _ in (*launch.reads, *launch.writes)}
        for i in {*chosen, *rng.sample(known, min(4, len(known)))} - others:
            b = buffers[i]
            if rng.random() < 0.3 and (b.kind != "input" or b.donate):
                own = b.nbytes // b.itemsize == count and rng.random() < 0.5
                writes.append((i, "own" if own else "scatter"))
        launches.append(Launch(tuple(reads), tuple(writes), wave))
        written += [i for i, _ in writes if i not in written]
    return launches, buffers


def run(program: Program, array: Callable[[int], np.ndarray]) -> list[bytes]:
    """Run a program in the memory `array(buffer)` and return the outputs and persistent buffers.

    Each launch runs as two groups of threads; the launches of a wave take turns. A group reads, then writes.
    """
    launches, buffers = program
    for i, b in enumerate(buffers):
        if b.kind in ("input", "persistent"):
            array(i)[:] = np.random.default_rng(i).integers(0, 200, len(array(i)))
    for wave in sorted({launch.wave for launch in launches}):
        for half in range(2):
            for k, launch in enumerate(launches):
                if launch.wave == wave:
                    run_threads(k, launch, half, array)
    return [array(i).tobytes() for i, b in enumerate(buffers) if b.kind in ("output", "persistent")]


def run_threads(k: int, launch: Launch, half: int, array: Callable[[int], np.ndarray]) -> None:
    own = [len(array(i)) for i, access in (*launch.reads, *launch.writes) if access == "own"]
    threads = np.arange(own[0])[half :: 2] if k % 2 else np.array_split(np.arange(own[0]), 2)[half]
    rng = np.random.default_rng([k, half])
    total = np.full(len(threads), k, np.uint64)
    for i, access in launch.reads:
        a = array(i)
        if access == "whole":
            total += a.astype(np.uint64).sum(dtype=np.uint64)
        else:
            total += a[threads if access == "own" else rng.integers(0, len(a), len(threads))].astype(np.uint64)
    for at, (i, access) in enumerate(launch.writes):
        a = array(i)
        where = threads if access == "own" else rng.integers(0, len(a), len(threads))
        a[where] = (total * np.uint64(2 * at + 3) % np.uint64(251)).astype(a.dtype)


TYPES = {1: np.uint8, 4: np.uint32, 8: np.uint64}


def apart(buffers: Sequence[Buffer]) -> Callable[[int], np.ndarray]:
    """Return memory in which every buffer is for itself."""
    arrays = [np.zeros(b.nbytes // b.itemsize, TYPES[b.itemsize]) for b in buffers]
    return lambda i: arrays[i]


def planned(p: LaunchPlan) -> Callable[[int], np.ndarray]:
    """Return memory as planned: blocks of the arena, full of rubbish, and one array per buffer outside."""
    blocks = [np.full(n, 0xAB, np.uint8) for n in p.arena.block_sizes]
    outside = [np.full(b.nbytes, 0xCD, np.uint8) for b in p.buffers]

    def array(i: int) -> np.ndarray:
        b, offset = p.buffers[i], p.offsets[i]
        if offset is not None:
            memory = blocks[p.blocks[i]][offset : offset + b.nbytes]
        else:
            memory = outside[max(p.lifetimes.homes[i], 0)][: b.nbytes]
        assert len(memory) == b.nbytes
        return memory.view(TYPES[b.itemsize])

    return array


def test_plans_do_not_change_results() -> None:
    rng = random.Random(77)
    shared = outside = 0
    for k in range(60):
        program = random_program(rng)
        expected = run(program, apart(program[1]))
        for options in ({}, {"inplace": False}, {"alias": False}, {"max_block": 1024}):
            p = plan_launches(*program, alignment=16, effort="low" if k % 8 else "default", **options)  # type: ignore[arg-type]
            assert run(program, planned(p)) == expected, (k, options)
            if not options:
                shared += sum(len(s) > 1 for s in p.lifetimes.sets)
                homes = zip(p.lifetimes.homes, p.buffers, strict=True)
                outside += sum(home >= 0 and b.kind == "transient" for home, b in homes)
    assert shared > 100 and outside > 15  # in-place reuse does happen


@pytest.mark.parametrize("access", ["gather", "whole"])
def test_the_comparison_of_results_sees_reuse_that_is_wrong(access: Access) -> None:
    buffers = [Buffer(192, 4), Buffer(192, 4), Buffer(192, 4, "output")]
    launches = [
        Launch((), ((0, "own"),), 0),
        Launch(((0, "own"),), ((1, "own"),), 1),
        Launch(((1, "own"),), ((2, "own"),), 2),
    ]
    pretended = plan_launches(launches, buffers)
    assert pretended.height == 0
    launches[1] = Launch(((0, access),), ((1, "own"),), 1)
    expected = run((launches, buffers), apart(buffers))
    assert run((launches, buffers), planned(pretended)) != expected
    assert run((launches, buffers), planned(plan_launches(launches, buffers))) == expected


@pytest.mark.parametrize("name", ["megakernel", "wavefront D=4", "reverse D=8", "multiparam P=30"])
def test_programs_of_renderers_in_place(name: str) -> None:
    t = traces.PROGRAMS[name](1)
    p, without = (plan_launches(t.launches, t.buffers, alignment=256, inplace=v) for v in (True, False))
    assert p.arena.lower_bound <= without.arena.lower_bound == p.unshared_peak
    assert p.height <= 1.05 * p.arena.lower_bound
    if name == "wavefront D=4":
        assert p.arena.lower_bound < 0.75 * without.arena.lower_bound


def test_a_cache_serves_launches() -> None:
    cache = PlanCache(alignment=16)
    t = traces.PROGRAMS["megakernel"](2)
    first = plan_launches(t.launches, t.buffers, cache=cache)
    assert plan_launches(t.launches, t.buffers, cache=cache).arena is first.arena
    assert first.alignment == 16
    twice = [replace(b, nbytes=2 * b.nbytes) for b in t.buffers]
    plan_launches(t.launches, twice, cache=cache)
    assert (cache.hits, cache.misses) == (1, 2)


def test_the_report_names_what_fills_the_arena() -> None:
    buffers = [Buffer(1024, 4, name=n) for n in ("rays", "hits", "light")] + [Buffer(3072, 4, name="states")]
    launches = [
        Launch((), ((0, "own"), (3, "whole")), 0),
        Launch(((0, "own"),), ((1, "own"),), 1),
        Launch(((1, "gather"), (3, "own")), ((2, "own"),), 2),
        Launch(((2, "own"),), (), 3),
    ]
    lines = plan_launches(launches, buffers).report(columns=10).splitlines()
    text = "\n".join(lines)
    assert "arena          5.00 KiB in 1 block" in text
    assert "without reuse  6.00 KiB" in text
    assert "1.00 KiB in place" in text and "0 B by reuse" in text
    assert "live at peak   5.00 KiB; 5.00 KiB without" in text
    rows = {line.split("|")[0].strip(): line.split("|")[1] for line in lines if "|" in line}
    assert set(rows) == {"0", "1", ">     2", "3"}
    assert [sum(c != "." for c in row) for row in rows.values()] == [8, 8, 10, 2]
    peak = rows[">     2"]
    assert (peak.count("A"), peak.count("B"), peak.count("C")) == (6, 2, 2)
    listed = [line.split() for line in lines[lines.index("largest of 3 buffers at the peak") + 1 :]]
    assert listed[0][0] == "A" and listed[0][-1] == "states"
    assert {listed[1][-1], listed[2][-1]} == {"rays=hits", "light"}
    assert plan_launches([], []).report().startswith("arena          0 B in 1 block")


def test_the_table_of_a_plan_holds_the_sets() -> None:
    t = traces.PROGRAMS["reverse D=8"](3)
    p = plan_launches(t.launches, t.buffers, alignment=256)
    table = read_csv(p.to_csv())
    assert len(table.ids) == len(p.sets)
    assert table.offsets == p.arena.offsets
    assert all(size % 256 == 0 for size in table.sizes)
    assert max(a + s for a, s in zip(table.offsets or (), table.sizes, strict=True)) == p.height
