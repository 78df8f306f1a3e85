"""Transients in the memory of results."""

from __future__ import annotations

import random

from luxgrad.jit.memory.lifetimes import Buffer, Launch, lifetimes
from luxgrad.jit.memory.tenants import tenants


def test_a_transient_that_ends_early_moves_into_the_result():
    buffers = [Buffer(1000, 4, "input"), Buffer(1000, 4), Buffer(2000, 4, "output"), Buffer(3000, 4)]
    launches = [
        Launch(((0, "whole"),), ((1, "whole"),), 0),
        Launch(((1, "gather"),), ((3, "whole"),), 1),
        Launch(((3, "gather"),), ((2, "whole"),), 2),
    ]
    assert tenants(buffers, lifetimes(launches, buffers)) == {1: 2}  # 3 is too large, and still read when 2 is written


def test_two_that_live_at_once_do_not_share_it():
    buffers = [Buffer(640, 4), Buffer(640, 4), Buffer(640, 4), Buffer(1000, 4, "output")]
    launches = [
        Launch((), ((0, "whole"), (1, "whole")), 0),
        Launch(((0, "whole"), (1, "whole")), ((2, "whole"),), 1),
        Launch((), ((3, "whole"),), 2),
    ]
    assert tenants(buffers, lifetimes(launches, buffers)) == {0: 3}


def test_random_programs_never_overlap():
    rng = random.Random(4)
    moved = 0
    for _ in range(300):
        count = rng.randrange(2, 25)
        kinds = ["transient", "transient", "output"]
        buffers = [Buffer(rng.choice([64, 640, 6400]), 4, rng.choice(kinds)) for _ in range(count)]
        launches, written = [], []
        for k in range(count):
            reads = tuple((i, rng.choice(["own", "gather"])) for i in rng.sample(written, min(len(written), 2)))
            launches.append(Launch(reads, ((k, rng.choice(["own", "whole"])),), k))
            written.append(k)
        spans = lifetimes(launches, buffers)
        found = tenants(buffers, spans)
        moved += len(found)
        for i, o in found.items():
            inside = [k for k in range(count) if spans.homes[k] == o and spans.ends[k] > spans.starts[k]]
            others = [k for k in found if found[k] == o and k != i]
            assert buffers[i].kind == "transient" and buffers[i].nbytes <= buffers[o].nbytes
            assert all(spans.ends[i] <= spans.starts[k] for k in {*inside, o})
            family = next(s for s in spans.sets if i in s)
            strangers = [k for k in others if k not in family]
            assert all(spans.ends[k] <= spans.starts[i] or spans.ends[i] <= spans.starts[k] for k in strangers)
    assert moved > 50
