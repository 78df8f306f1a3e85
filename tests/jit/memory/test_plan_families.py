"""How close plans come to the lower bound: programs shaped like renderers and the MiniMalloc set."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from luxgrad.jit.memory.plan import Plan, plan
from luxgrad.jit.memory.plan_report import read_csv

_spec = importlib.util.spec_from_file_location("memory_traces", Path(__file__).parent / "traces.py")
assert _spec is not None and _spec.loader is not None
traces = importlib.util.module_from_spec(_spec)
sys.modules.setdefault(_spec.name, traces)  # its dataclasses look themselves up
_spec.loader.exec_module(traces)

INSTANCES = sorted((Path(__file__).parent / "data" / "minimalloc" / "challenging").glob("*.csv"))
RECORDED = sorted((Path(__file__).parent / "data" / "recorded").glob("*.csv"))


def family(name: str, seeds: range) -> list[Plan]:
    plans = []
    for seed in seeds:
        x = traces.RENDERERS[name](seed)
        plans.append(plan(x.starts, x.ends, x.sizes, 256))
    return plans


def greedy_by_size(p: Plan) -> int:
    """Return the height of the plain placement by size, buffer by buffer."""
    order = sorted(range(len(p.sizes)), key=lambda i: (-p.sizes[i], p.starts[i] - p.ends[i], p.starts[i]))
    placed: list[tuple[int, int, int, int]] = []
    for i in order:
        at = 0
        for low, high, _, _ in sorted(r for r in placed if r[2] < p.ends[i] and r[3] > p.starts[i]):
            if low - at >= p.sizes[i]:
                break
            at = max(at, high)
        placed.append((at, at + p.sizes[i], p.starts[i], p.ends[i]))
    return max(high for _, high, _, _ in placed)


@pytest.mark.parametrize("name", traces.RENDERERS)
def test_B2_programs_of_renderers(name: str) -> None:
    plans = family(name, range(2))
    assert all(p.lower_bound <= p.height <= 1.05 * p.lower_bound for p in plans)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_B2_programs_that_were_recorded(path: Path) -> None:
    """Steps of our own renderer and others, as frozen functions recorded them (buffers not yet shared in place)."""
    t = read_csv(path.read_text())
    p = plan(t.starts, t.ends, t.sizes)
    assert len(t.sizes) >= 7 and p.height == p.lower_bound


@pytest.mark.slow
def test_B2_programs_of_renderers_all_seeds() -> None:
    plans = [p for name in traces.RENDERERS for p in family(name, range(20))]
    assert len(plans) == 240
    assert all(p.height <= 1.05 * p.lower_bound for p in plans)
    assert sum(p.height == p.lower_bound for p in plans) >= 0.9 * len(plans)


@pytest.mark.parametrize("path", INSTANCES, ids=lambda path: path.name[0])
def test_B3_minimalloc(path: Path) -> None:
    t = read_csv(path.read_text())
    p = plan(t.starts, t.ends, t.sizes, 1)
    assert p.lower_bound <= p.height <= 1.30 * p.lower_bound
    low = plan(t.starts, t.ends, t.sizes, 1, effort="low")
    assert p.height <= low.height <= greedy_by_size(p)


@pytest.mark.slow
@pytest.mark.parametrize("path", INSTANCES, ids=lambda path: path.name[0])
def test_B3_minimalloc_high_effort(path: Path) -> None:
    t = read_csv(path.read_text())
    p = plan(t.starts, t.ends, t.sizes, 1, effort="high")
    assert p.lower_bound <= p.height <= 1.20 * p.lower_bound


def test_B3_all_instances_are_there() -> None:
    assert [path.name[0] for path in INSTANCES] == list("ABCDEFGHIJK")
    assert "Apache License" in (INSTANCES[0].parents[1] / "LICENSE").read_text()


def test_large_programs_take_the_dense_pass() -> None:
    x = traces.multiparam(0, 300).instance()
    low = plan(x.starts, x.ends, x.sizes, 256, effort="low")
    assert low.height == low.lower_bound
    assert len(low.sizes) > 2000
