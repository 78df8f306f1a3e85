"""Plans of single instances: golden values, what input is refused, limits of devices, repeated plans."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luxgrad.jit.memory import plan_dense, plan_greedy
from luxgrad.jit.memory.plan import Plan, PlanCache, plan
from luxgrad.jit.memory.plan_report import read_csv, to_csv
from luxgrad.jit.memory.verify import verify

DATA = Path(__file__).parent / "data" / "minimalloc"


def brute_force_overlaps(p: Plan) -> list[tuple[int, int]]:
    """Return all pairs that live at one time and share a byte, by comparing each with each."""
    out = []
    for i in range(len(p.sizes)):
        for j in range(i):
            times = range(max(p.starts[i], p.starts[j]), min(p.ends[i], p.ends[j]))
            low = max(p.offsets[i], p.offsets[j])
            high = min(p.offsets[i] + p.sizes[i], p.offsets[j] + p.sizes[j])
            if len(times) and high > low and p.blocks[i] == p.blocks[j]:
                out.append((j, i))
    return out


@pytest.mark.parametrize("effort", ["low", "default", "high"])
def test_B1_the_layout_vector_of_iree(effort: Any) -> None:
    # Closed intervals there: [0,1] [1,2] [2,3] [0,4] [5,6] [5,8], aligned to 16 bytes.
    p = plan([0, 1, 2, 0, 5, 5], [2, 3, 4, 5, 7, 9], [100, 100, 100, 200, 200, 100], 16, effort=effort)
    assert p.height == p.lower_bound == 432
    assert all(offset % 16 == 0 for offset in p.offsets)
    assert not brute_force_overlaps(p)


def test_B1_the_example_of_minimalloc() -> None:
    t = read_csv((DATA / "examples" / "input.12.csv").read_text())
    p = plan(t.starts, t.ends, t.sizes, 4)
    assert p.height == p.lower_bound == 12
    assert not brute_force_overlaps(p)


def test_nothing_to_place() -> None:
    p = plan([], [], [])
    assert (p.offsets, p.height, p.lower_bound, p.groups) == ((), 0, 0, 0)


def test_no_bytes_and_no_lifetime() -> None:
    p = plan([0, 0, 1, 0], [3, 2, 1, 2], [64, 0, 640, 64])
    assert p.height == p.lower_bound == 640  # the buffer without lifetime still lies inside the arena
    assert sorted((p.offsets[0], p.offsets[3])) == [0, 64]
    assert p.offsets[1] == p.offsets[2] == 0


def test_integers_of_numpy_are_integers() -> None:
    starts, sizes = np.array([0, 1]), np.array([10, 20], np.uint8)
    p = plan(starts, starts + 2, sizes, np.int64(16))  # type: ignore[arg-type]
    assert p == plan([0, 1], [2, 3], [10, 20], 16)
    assert all(type(v) is int for v in (*p.offsets, p.height, *p.sizes))


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (([0, 1], [2], [5]), {}, ["2 starts", "1 ends", "1 sizes"]),
        (([0], [2], [5]), {"alignments": [1, 2]}, ["2 alignments"]),
        (([0, 0], [2, 2], [5, -7]), {}, ["size 1", "-7"]),
        (([0, 4], [2, 3], [5, 5]), {}, ["buffer 1", "ends at 3", "start at 4"]),
        (([0, 0], [2, 2], [5, 2.5]), {}, ["size 1", "2.5", "no integer"]),
        (([0, "a"], [2, 2], [5, 2]), {}, ["start 1", "'a'"]),
        (([0], [None], [5]), {}, ["end 0", "None"]),
        (([0], [1], [5]), {"alignment": 48}, ["alignment is 48", "power of two"]),
        (([0], [1], [5]), {"alignment": 0}, ["alignment is 0"]),
        (([0, 0], [1, 1], [5, 5]), {"alignments": [8, 12]}, ["alignment 1 is 12", "power of two"]),
        (([0], [1], [5]), {"effort": "most"}, ["effort 'most'", "low, default, high"]),
        (([0, 0], [1, 1], [64, 900]), {"max_block": 512}, ["buffer 1", "960", "512"]),
        (([0, 0], [1, 1], [64, 900]), {"max_binding": 512}, ["buffer 1", "900", "512"]),
    ],
)
def test_input_that_is_refused(arguments: Any, options: Any, words: list[str]) -> None:
    with pytest.raises(ValueError) as error:
        plan(*arguments, **options)
    for word in words:
        assert word in str(error.value)


def test_alignments_of_single_buffers() -> None:
    sizes, aligns = [3, 100, 5000, 17, 64, 1], [1, 256, 64, 16, 4096, 2]
    p = plan([0, 0, 1, 1, 2, 2], [3, 2, 4, 3, 5, 5], sizes, alignments=aligns)
    assert all(offset % a == 0 for offset, a in zip(p.offsets, aligns, strict=True))
    assert not brute_force_overlaps(p)
    assert p.lower_bound == 3 + 5056 + 32 + 4096 + 2  # at time 2, each rounded up to its own alignment
    assert p.height >= p.lower_bound


def test_equal_lifetimes_are_placed_as_one() -> None:
    p = plan([0] * 50 + [1] * 50 + [2] * 50, [2] * 50 + [3] * 50 + [4] * 50, list(range(1, 151)), 1)
    assert p.groups == 3
    assert p.height == p.lower_bound == sum(range(51, 151))


def test_times_at_which_nothing_starts_tell_lifetimes_not_apart() -> None:
    assert plan([0, 0, 5], [3, 4, 6], [1, 1, 1]).groups == 2
    assert plan([0, 0, 3], [3, 4, 6], [1, 1, 1]).groups == 3


def place_dense(p: plan_greedy.Problem, order: list[int], cap: int | None, tightest: bool) -> list[int] | None:
    return plan_dense.place(p.first, p.last, p.size, p.align, order, cap, tightest, lambda: False)


@pytest.mark.parametrize("tightest", [False, True])
@pytest.mark.parametrize("mixed", [False, True])
def test_dense_placement_equals_the_one_with_lists(tightest: bool, mixed: bool) -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        n = int(rng.integers(1, 80))
        first = rng.integers(0, 20, n)
        last = first + rng.integers(1, 12, n)
        size, align = 64 * rng.integers(1, 40, n), [int(a) for a in rng.choice([64, 128, 512], n)]
        values = (list(map(int, v)) for v in (first, last, size, last - first))
        p = plan_greedy.Problem(*values, align if mixed else None)
        for order in (plan_greedy.by_size(p), plan_greedy.by_breadth(p), plan_greedy.by_duration(p)):
            lists = plan_greedy.place(p, order, plan_greedy.Budget(0, 60), None, tightest)
            dense = place_dense(p, order, None, tightest)
            assert lists == dense
            assert lists is not None
            height = max(a + b for a, b in zip(lists, p.size, strict=True))
            assert plan_greedy.place(p, order, plan_greedy.Budget(0, 60), height - 1, tightest) is None
            assert place_dense(p, order, height, tightest) == dense
            assert place_dense(p, order, height - 1, tightest) is None


def test_the_busiest_clique_of_each_buffer_gives_the_order_by_breadth() -> None:
    rng = np.random.default_rng(8)
    for _ in range(50):
        n = int(rng.integers(1, 30))
        first = [int(v) for v in rng.integers(0, 12, n)]
        last = [f + int(v) for f, v in zip(first, rng.integers(1, 9, n), strict=True)]
        p = plan_greedy.Problem(first, last, [int(v) for v in rng.integers(1, 50, n)], [1] * n)
        placed: list[int] = []
        for c in sorted(range(p.cliques), key=lambda c: (-p.load[c], c)):
            here = [i for i in range(n) if p.first[i] <= c < p.last[i] and i not in placed]
            placed += sorted(here, key=lambda i: (-p.size[i], i))
        assert plan_greedy.by_breadth(p) == placed


def random_instance(seed: int, n: int) -> tuple[list[int], list[int], list[int]]:
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, n, n)
    ends = starts + rng.integers(1, n // 2, n)
    return starts.tolist(), ends.tolist(), (rng.integers(1, 2000, n) * 64).tolist()


def test_several_blocks_where_one_would_be_too_large() -> None:
    starts, ends, sizes = random_instance(3, 120)
    one = plan(starts, ends, sizes)
    assert len(one.block_sizes) == 1
    assert plan(starts, ends, sizes, max_block=one.height) == one
    for limit in (one.height - 1, one.height // 2, max(sizes)):
        p = plan(starts, ends, sizes, max_block=limit)
        assert len(p.block_sizes) > 1
        assert max(p.block_sizes) <= limit
        assert p.height == sum(p.block_sizes)
        assert not brute_force_overlaps(p)
        assert set(p.blocks) == set(range(len(p.block_sizes)))
    assert p.height < 2 * one.height


def test_a_high_effort_is_never_worse() -> None:
    for seed in range(4):
        x = random_instance(seed, 60)
        low, default = (plan(*x, effort=e) for e in ("low", "default"))
        assert low.lower_bound == default.lower_bound <= default.height <= low.height


def test_orders_are_repeated_for_other_sizes() -> None:
    starts, ends, sizes = random_instance(6, 80)
    first = plan(starts, ends, sizes, effort="high")
    again = plan(starts, ends, sizes, order=first.order, effort="low")
    assert again.height == first.height  # the low effort alone does not find it
    assert plan(starts, ends, sizes, effort="low").height > first.height
    doubled = plan(starts, ends, [2 * s for s in sizes], order=first.order, effort="low")
    assert doubled.height == 2 * first.height
    some = plan(starts, ends, [s if i % 3 else 0 for i, s in enumerate(sizes)], order=first.order, effort="low")
    assert not brute_force_overlaps(some)


def test_a_cache_keeps_the_last_plans_and_starts_from_the_last_order() -> None:
    starts, ends, sizes = random_instance(6, 80)
    cache = PlanCache(2, effort="high")
    first = cache.plan(starts, ends, sizes)
    assert cache.plan(starts, ends, sizes) is first
    assert (cache.hits, cache.misses) == (1, 1)
    cache.effort = "low"
    assert cache.plan(starts, ends, [2 * s for s in sizes]).height == 2 * first.height
    assert cache.plan(starts, ends, sizes) is first  # now the latest used
    cache.plan(starts, ends, [3 * s for s in sizes])
    assert len(cache) == 2
    misses = cache.misses
    cache.plan(starts, ends, sizes)
    assert cache.misses == misses
    cache.plan(starts, ends, [2 * s for s in sizes])
    assert cache.misses == misses + 1
    with pytest.raises(ValueError, match="cache of 0 plans"):
        PlanCache(0)


def test_the_clock_can_stop_a_plan_which_stays_valid() -> None:
    starts, ends, sizes = random_instance(6, 300)
    p = plan(starts, ends, sizes, effort="high", seconds=0.0)
    verify(p)
    assert p.found_by == "size"


def test_tables_are_read_back() -> None:
    p = plan(*random_instance(1, 20))
    t = read_csv(to_csv(p.starts, p.ends, p.sizes, p.offsets, [f"a, {i}" for i in range(20)]))
    assert (t.starts, t.ends, t.sizes, t.offsets) == (p.starts, p.ends, p.sizes, p.offsets)
    assert t.ids[3] == "a, 3"
    assert read_csv(to_csv(p.starts, p.ends, p.sizes)).offsets is None
    with pytest.raises(ValueError, match=r"columns upper, size; it has id, lower"):
        read_csv("id,lower\n1,2\n")
    with pytest.raises(ValueError, match=r"line 3: size is 'x'"):
        read_csv("id,lower,upper,size\na,0,1,2\nb,0,1,x\n")


def test_planning_needs_nothing_of_the_compiler() -> None:
    code = "import sys, luxgrad.jit.memory.plan_launches; print(*(m for m in sys.modules if m.startswith('luxgrad.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    assert "luxgrad.jit.memory.plan" in loaded
    assert {name for name in loaded if ".jit" in name and ".memory" not in name} == {"luxgrad.jit"}
    assert "luxgrad.render" not in loaded
