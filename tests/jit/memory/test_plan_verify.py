"""The check of plans, against a comparison of each buffer with each."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pytest

from luxgrad.jit.memory.plan import plan
from luxgrad.jit.memory.verify import PlanError, verify


@dataclass(frozen=True)
class Layout:
    """A plan as plain data, of which anything may be wrong."""

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    sizes: tuple[int, ...]
    alignments: tuple[int, ...]
    offsets: tuple[int | None, ...]
    blocks: tuple[int, ...]
    block_sizes: tuple[int, ...]


def conflicts(p: Layout) -> bool:
    """Return whether anything is wrong with a plan, by definition: O(n^2)."""
    n = len(p.sizes)
    for i in range(n):
        low = p.offsets[i]
        if low is None or low < 0 or low % p.alignments[i]:
            return True
        if not 0 <= p.blocks[i] < len(p.block_sizes) or low + p.sizes[i] > p.block_sizes[p.blocks[i]]:
            return True
        for j in range(i):
            times = set(range(p.starts[i], p.ends[i])) & set(range(p.starts[j], p.ends[j]))
            other = p.offsets[j]
            assert other is not None
            share = min(low + p.sizes[i], other + p.sizes[j]) > max(low, other)
            if times and share and p.sizes[i] and p.sizes[j] and p.blocks[i] == p.blocks[j]:
                return True
    return False


def random_plan(rng: random.Random) -> Layout:
    n = rng.randint(2, 25)
    starts = [rng.randint(0, 12) for _ in range(n)]
    ends = [s + rng.randint(0, 8) for s in starts]
    sizes = [rng.choice([0, 16, 32, 48, rng.randint(1, 200)]) for _ in range(n)]
    limit = rng.choice([None, max(sizes) + 64])
    p = plan(starts, ends, sizes, 16, effort="low", max_block=limit)
    return Layout(p.starts, p.ends, p.sizes, p.alignments, p.offsets, p.blocks, p.block_sizes)


def mutated(p: Layout, rng: random.Random) -> Layout:
    """Return the plan with one value of one buffer changed."""
    i = rng.randrange(len(p.sizes))
    name = rng.choice(["offsets", "offsets", "offsets", "starts", "ends", "sizes", "blocks"])
    values = list(getattr(p, name))
    if name == "offsets":
        values[i] = rng.choice([16 * rng.randint(0, 20), rng.randint(-20, 300), None])
    elif name == "starts":
        values[i] = rng.randint(0, p.ends[i])
    elif name == "ends":
        values[i] = p.starts[i] + rng.randint(0, 20)
    elif name == "sizes":
        values[i] += rng.randint(1, 100)
    else:
        values[i] = rng.randint(-1, len(p.block_sizes))
    return replace(p, **{name: tuple(values)})


def rejected(p: Layout) -> bool:
    try:
        verify(p)
    except PlanError:
        return True
    return False


def test_B5_a_thousand_mutations_that_conflict_are_rejected_and_the_others_accepted() -> None:
    rng = random.Random(11)
    wrong = right = 0
    while wrong < 1000:
        p = mutated(random_plan(rng), rng)
        expected = conflicts(p)
        assert rejected(p) == expected, p
        wrong += expected
        right += not expected
    assert right > 100  # mutations that change nothing that matters


def test_B5_a_thousand_plans_are_accepted() -> None:
    rng = random.Random(12)
    for _ in range(1000):
        p = random_plan(rng)
        assert not rejected(p)
        assert not conflicts(p)


def layout(offsets: tuple[int | None, ...], sizes: tuple[int, ...] = (64, 64, 64), height: int = 256) -> Layout:
    """Return three buffers of which 0 and 1 as well as 1 and 2 overlap in time."""
    return Layout((0, 1, 2), (2, 3, 4), sizes, (64,) * 3, offsets, (0, 0, 0), (height,))


def test_errors_name_the_buffers() -> None:
    verify(layout((0, 64, 0)))
    with pytest.raises(PlanError, match=r"buffer 0 \(bytes 0 to 64.*\) and buffer 1 \(bytes 0 to 64") as error:
        verify(layout((0, 0, 64)))
    assert error.value.buffers == (0, 1)
    with pytest.raises(PlanError, match="buffer 1 is at offset 32, .* alignment 64"):
        verify(layout((0, 32, 128)))
    with pytest.raises(PlanError, match="buffer 2 ends at 320, outside its block 0 of 256 bytes"):
        verify(layout((0, 64, 256)))
    with pytest.raises(PlanError, match="buffer 1 of 64 bytes is not placed"):
        verify(layout((0, None, 64)))
    with pytest.raises(PlanError, match="3 buffers has 2 offsets"):
        verify(layout((0, 64)))


def test_aliases_may_share_and_only_exactly() -> None:
    shared = layout((0, 0, 64))
    verify(shared, [[1, 0]])
    with pytest.raises(PlanError, match="buffers 0 and 1 are aliases, but one is at offset 0 .* at 64"):
        verify(layout((0, 64, 0)), [[0, 1]])
    with pytest.raises(PlanError, match="buffers 0 and 1 are aliases, but both live at the times 1 and 2"):
        verify(replace(shared, ends=(3, 3, 4)), [[0, 1]])
    # Buffer 2 overlaps buffer 1, not buffer 0: named is the member that lives at that time.
    with pytest.raises(PlanError) as error:
        verify(layout((0, 0, 0)), [[0, 1]])
    assert set(error.value.buffers) == {1, 2}
    # A set is as large as its largest member, though the neighbour in time is smaller.
    with pytest.raises(PlanError):
        verify(layout((0, 0, 64), sizes=(128, 64, 64)), [[0, 1]])
