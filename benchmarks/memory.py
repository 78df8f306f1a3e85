"""Peak memory of the same programs here and in Dr.Jit / Mitsuba, and of frozen steps; growth over many steps.

    python benchmarks/memory.py --peer /path/to/python-with-mitsuba [--size 4000000] [--steps 10000] [--only prb]

Peaks are what was obtained from the system while a program ran (the watermark of either system), caches emptied and
the program run once before. `--steps` repeats a frozen step and prints what memory is held every tenth of
them; `--pool` times requests for memory.
"""

from __future__ import annotations

import argparse
import gc
import os
import time
from typing import Any

import common
import numpy as np

OURS, PEER = "luxgrad", "Dr.Jit"


class Meter:
    """Runs a program twice and returns the peak of the second run in MiB."""

    def __init__(self, dr: Any, ours: bool) -> None:
        self.dr, self.ours = dr, ours

    def __call__(self, program: Any) -> dict[str, float]:
        """Return {"value": peak in MiB}."""
        dr = self.dr
        for _ in range(2):
            gc.collect()
            dr.sync_thread()
            dr.flush_malloc_cache()
            dr.detail.malloc_clear_statistics()
            kept = program()
            dr.sync_thread()
            peak = dr.detail.malloc_watermark(dr.JitBackend.LLVM)
            del kept
        return {"value": peak / 2**20}


def array_programs(dr: Any, size: int) -> dict[str, Any]:
    """Return programs over arrays of `size` elements, written in the names both systems share."""
    Float, UInt, Diff = dr.llvm.Float, dr.llvm.UInt, dr.llvm.ad.Float

    def filled(kind: Any = Float, n: int = size) -> Any:
        x = kind(dr.arange(UInt, n)) * 1e-6
        dr.eval(x)
        return x

    def shuffled() -> Any:
        i = (dr.arange(UInt, size) * 7919) % size
        dr.eval(i)
        return i

    def elementwise() -> Any:
        x = filled()
        y = dr.sin(x) * dr.exp(-x) + 1
        dr.eval(y)
        return y

    def lazy_sum() -> Any:
        total = dr.sum(dr.sqrt(Float(dr.arange(UInt, size))))
        dr.eval(total)
        return total

    def pipeline() -> Any:
        x = filled()
        for k in range(6):
            x = dr.sin(x) + k
            dr.eval(x)
        return x

    def normalised() -> Any:
        x = filled()
        y = x - dr.mean(x)
        y = y / dr.sqrt(dr.mean(y * y))
        dr.eval(y)
        return y

    def gathered() -> Any:
        y = dr.gather(Float, filled(), shuffled())
        dr.eval(y)
        return y

    def histogram() -> Any:
        bins = dr.zeros(Float, 1024)
        dr.scatter_add(bins, filled(), shuffled() % 1024)
        dr.eval(bins)
        return bins

    def transposed() -> Any:
        target = dr.zeros(Float, size)
        dr.scatter(target, filled(), shuffled())
        dr.eval(target)
        return target

    def running() -> Any:
        y = dr.prefix_sum(filled())
        index = dr.compress(y > 1)
        dr.eval(y, index)
        return y, index

    def mandelbrot() -> Any:
        c, d = dr.meshgrid(dr.linspace(Float, -2, 1, 1024), dr.linspace(Float, -1.5, 1.5, 1024))
        state = (dr.zeros(Float, 1 << 20), dr.zeros(Float, 1 << 20), dr.zeros(UInt, 1 << 20))
        result = dr.while_loop(
            state, lambda a, b, n: (a * a + b * b < 4.0) & (n < 256),
            lambda a, b, n: (a * a - b * b + c, 2.0 * a * b + d, n + 1),
        )[2]  # fmt: skip
        dr.eval(result)
        return result

    def fused_backward() -> Any:
        x = filled(Diff, size // 4)
        dr.enable_grad(x)
        y = x
        for _ in range(100):
            y = dr.sin(y) * 1.01 + 0.01
        dr.backward(dr.sum(y))
        dr.eval(x.grad)
        return x

    def stepwise_backward() -> Any:
        x = filled(Diff, size // 4)
        dr.enable_grad(x)
        y = x
        for _ in range(20):
            y = dr.sin(y) * 1.01 + 0.01
            dr.eval(y)
        dr.backward(dr.sum(y))
        dr.eval(x.grad)
        return x

    def adam() -> Any:
        opt = dr.opt.Adam(lr=0.01, params={"x": filled(Diff)})
        for _ in range(3):
            dr.backward(dr.sum((opt["x"] - 1) ** 2))
            opt.step()
        return opt

    return {
        "sin(x) exp(-x) + 1": elementwise, "sum of a lazy array": lazy_sum, "six evaluated stages": pipeline,
        "mean and deviation": normalised, "gather, shuffled": gathered, "scatter_add to 1024 bins": histogram,
        "scatter, shuffled": transposed, "prefix_sum and compress": running, "Mandelbrot 1024x1024": mandelbrot,
        "backward through 100 operations": fused_backward, "backward through 20 evaluated": stepwise_backward,
        "three steps of Adam": adam,
    }  # fmt: skip


def fit_step(mi: Any, dr: Any, frozen: bool) -> Any:
    """Return a function that takes one prb step of the Cornell box's colours, 256 x 256 x 16 samples."""
    scene = mi.load_dict({**mi.cornell_box(), "integrator": {"type": "prb", "max_depth": 6}})
    params = mi.traverse(scene)
    names = [k for k in params.keys() if k.endswith("reflectance.value")]
    target = dr.full(mi.TensorXf, 0.2, (256, 256, 3))
    dr.eval(target)
    opt = mi.ad.Adam(lr=0.01)
    for name in names:
        opt[name] = params[name]
    params.update(opt)

    def step(seed: Any) -> Any:
        params.update(opt)
        image = mi.render(scene, params, spp=16, seed=seed)
        loss = dr.mean(dr.square(image - target), axis=None)
        dr.backward(loss)
        opt.step()
        return loss

    call = dr.freeze(step) if frozen else step
    number = [0]

    def run() -> Any:
        for _ in range(3):
            number[0] += 1
            loss = call(dr.opaque(mi.UInt32, number[0]))
            dr.eval(loss)
        return loss

    return run


def worker(system: str, size: int) -> None:
    """Serve the tasks of one system."""
    if system == OURS:
        import luxgrad as dr
        from luxgrad import mi
    else:
        import drjit as dr
        import mitsuba as mi
    mi.set_variant("llvm_ad_rgb")
    meter = Meter(dr, system == OURS)
    tasks = {name: (lambda p=p: meter(p)) for name, p in array_programs(dr, size).items()}
    tasks["prb step, Cornell box 256x256x16"] = lambda: meter(fit_step(mi, dr, False))
    if system == OURS:
        tasks["six evaluated stages, frozen"] = lambda: meter(frozen_pipeline(dr, size))
        tasks["prb step, Cornell box, frozen"] = lambda: meter(fit_step(mi, dr, True))
    else:
        tasks["six evaluated stages, frozen"] = tasks["six evaluated stages"]
        tasks["prb step, Cornell box, frozen"] = tasks["prb step, Cornell box 256x256x16"]
    common.serve(tasks)


def frozen_pipeline(dr: Any, size: int) -> Any:
    """Return the evaluated stages as a frozen function of their input."""
    program = array_programs(dr, size)["six evaluated stages"]
    call = dr.freeze(lambda k: program())
    return lambda: [call(1) for _ in range(2)][-1]


def growth(steps: int) -> None:
    """Print what memory is held while a frozen step is replayed `steps` times."""
    import luxgrad as dr

    x = dr.opaque(dr.llvm.Float, 1.0, 100_000)

    @dr.freeze
    def step(x: Any) -> Any:
        return x * 0.999 + dr.mean(dr.sin(x)) * 1e-3

    print(f"{'replays':>10}{'live MiB':>12}{'from system MiB':>18}")
    for k in range(steps + 1):
        if k % max(1, steps // 10) == 0:
            found = dr.memory_stats()
            print(f"{k:>10}{found['live'] / 2**20:>12.3f}{found['reserved'] / 2**20:>18.3f}")
        x = step(x)


def pool_times(live: int = 300, steps: int = 50_000) -> None:
    """Print what a request and its return cost with so many blocks alive (A3: at most 5 microseconds together)."""
    from luxgrad.jit.memory.pool import Pool

    pool, rng = Pool(), np.random.default_rng(1)
    sizes = [int(n) for n in 2 ** rng.uniform(6, 26, 4096)]
    places = [int(n) for n in rng.integers(0, live, 4096)]
    held: list[Any] = [pool.allocate(n) for n in sizes[:live]]
    begin = time.perf_counter()
    for k in range(steps):
        held[places[k & 4095]] = None
        held[places[k & 4095]] = pool.allocate(sizes[k & 4095])
    print(f"A3: {1e6 * (time.perf_counter() - begin) / steps:.2f} us for a request and a return, {live} blocks alive")


def table(rows: common.Rows) -> None:
    """Print peaks and their ratio, the part that this benchmark is about."""
    print(f"\n{'program':<40}{OURS + ' MiB':>16}{PEER + ' MiB':>16}{'ours / theirs':>16}")
    for name, systems in rows.items():
        peaks = [np.median([a["value"] for a in answers]) for answers in systems.values() if answers]
        ratio = f"{peaks[0] / peaks[1]:>16.2f}" if len(peaks) == 2 else ""
        print(f"{name:<40}{''.join(f'{p:>16.1f}' for p in peaks)}{ratio}")


def main() -> None:
    """Run the comparison."""
    options = common.parser(__doc__)
    options.add_argument("--size", type=int, default=4_000_000, help="elements of the arrays (%(default)s)")
    options.add_argument("--steps", type=int, default=0, help="replay a frozen step so often and print what is held")
    options.add_argument("--pool", action="store_true", help="print what requests for memory cost")
    chosen: argparse.Namespace = options.parse_args()
    if chosen.worker:
        worker(chosen.worker, chosen.size)
        return
    if chosen.pool:
        pool_times()
        return
    if chosen.steps:
        growth(chosen.steps)
        return
    chosen.rounds = min(chosen.rounds, 2)
    rows = common.run(chosen, os.path.abspath(__file__), OURS, PEER, ["--size", str(chosen.size)])
    table(rows)


if __name__ == "__main__":
    main()
