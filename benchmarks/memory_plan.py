"""How good and how fast the memory planner is: programs shaped like renderers, the MiniMalloc set, large programs.

Run `python benchmarks/memory_plan.py [--seeds 20] [--effort default]`. Ratios are bytes of the arena over the lower
bound; times are milliseconds of processor time of one plan, checked plan included.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from luxgrad.jit.memory.lifetimes import lifetimes
from luxgrad.jit.memory.plan import WORK, Plan, plan
from luxgrad.jit.memory.plan_report import read_csv
from luxgrad.jit.memory.verify import verify

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "jit" / "memory"


def load_traces() -> Any:
    """Return the module that makes up programs; it is test data."""
    spec = importlib.util.spec_from_file_location("memory_traces", FOLDER / "traces.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


def timed(starts: Sequence[int], ends: Sequence[int], sizes: Sequence[int], align: int, effort: Any) -> Any:
    """Return a plan and the milliseconds of processor time it took."""
    begin = time.process_time()
    found = plan(starts, ends, sizes, align, effort=effort)
    return found, 1e3 * (time.process_time() - begin)


def check_time(found: Plan) -> float:
    """Return the milliseconds that checking a plan takes."""
    begin = time.process_time()
    verify(found)
    return 1e3 * (time.process_time() - begin)


def families(traces: Any, seeds: int, effort: str) -> None:
    """Print a line per family: size, ratios, times, which pass found the plan."""
    print(f"{'family':<17}{'buffers':>8}{'groups':>7}   ratio med    max    = bound   ms med    max   found by")
    ratios, times = [], []
    for name, make in traces.FAMILIES.items():
        plans = []
        for seed in range(seeds):
            x = make(seed)
            plans.append(timed(x.starts, x.ends, x.sizes, 256, effort))
        ratio = [p.height / p.lower_bound for p, _ in plans]
        took = [ms for _, ms in plans]
        names: dict[str, int] = {}
        for p, _ in plans:
            names[p.found_by] = names.get(p.found_by, 0) + 1
        found = ", ".join(f"{k} {v}" for k, v in sorted(names.items(), key=lambda e: -e[1])[:3])
        biggest = max((p for p, _ in plans), key=lambda p: len(p.sizes))
        print(
            f"{name:<17}{len(biggest.sizes):>8}{biggest.groups:>7}{statistics.median(ratio):>12.4f}{max(ratio):>8.4f}"
            f"{sum(r == 1 for r in ratio) / seeds:>9.0%}{statistics.median(took):>9.1f}{max(took):>8.1f}   {found}"
        )
        if name in traces.RENDERERS:
            ratios += ratio
            times += took
    print(
        f"renderers: {len(ratios)} plans, worst {max(ratios):.4f}, at the bound {sum(r == 1 for r in ratios)}, "
        f"ms median {statistics.median(times):.1f}, largest {max(times):.1f}\n"
    )


def in_place(traces: Any, seeds: int) -> None:
    """Print how much in-place reuse lowers the most live bytes of each family."""
    print("most live bytes with in-place reuse / without (median)")
    for name, make in traces.PROGRAMS.items():
        ratio = []
        for seed in range(seeds):
            t = make(seed)
            ratio.append(peak(t, True) / peak(t, False))
        print(f"  {name:<17}{statistics.median(ratio):.3f}")
    print()


def peak(trace: Any, inplace: bool) -> int:
    """Return the most live bytes of a program."""
    spans = lifetimes(trace.launches, trace.buffers, inplace=inplace, alignment=256)
    change: dict[int, int] = {}
    for members in spans.sets:
        size = -(-max(trace.buffers[i].nbytes for i in members) // 256) * 256
        for when, sign in ((min(spans.starts[i] for i in members), 1), (max(spans.ends[i] for i in members), -1)):
            change[when] = change.get(when, 0) + sign * size
    live = most = 0
    for _, c in sorted(change.items()):
        live += c
        most = max(most, live)
    return most


def minimalloc() -> None:
    """Print ratios and times of the MiniMalloc set for each effort."""
    print(f"MiniMalloc{'buffers':>9}" + "".join(f"{effort:>9} ms    " for effort in WORK))
    for path in sorted((FOLDER / "data" / "minimalloc" / "challenging").glob("*.csv")):
        t = read_csv(path.read_text("utf-8"))
        cells = []
        for effort in WORK:
            p, ms = timed(t.starts, t.ends, t.sizes, 1, effort)
            cells.append(f"{p.height / p.lower_bound:>8.4f}{ms:>8.1f}")
        print(f"{path.name[0]:<10}{len(t.sizes):>9}{''.join(cells)}")
    print()


def large(traces: Any) -> None:
    """Print times of programs of ten thousand buffers."""
    for name, make, effort in (
        ("wavefront D=110", lambda: traces.wavefront(0, 110), "default"),
        ("multiparam P=1000", lambda: traces.multiparam(0, 1000), "low"),
    ):
        x = make().instance()
        p, ms = timed(x.starts, x.ends, x.sizes, 256, effort)
        print(
            f"{name}: {len(x.sizes)} buffers, {p.groups} groups, ratio {p.height / p.lower_bound:.4f}, {ms:.0f} ms "
            f"(effort {effort}), of which the check takes {check_time(p):.0f} ms"
        )


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="programs per family")
    parser.add_argument("--effort", choices=list(WORK), default="default", help="effort for the families")
    args = parser.parse_args()
    traces = load_traces()
    families(traces, args.seeds, args.effort)
    in_place(traces, min(args.seeds, 6))
    minimalloc()
    large(traces)


if __name__ == "__main__":
    main()
