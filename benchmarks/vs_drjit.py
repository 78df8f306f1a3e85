"""Array programs beside Dr.Jit: throughput at ten million elements, tracing, derivatives, compilation.

    python benchmarks/vs_drjit.py --peer /path/to/python-with-drjit [--size 10000000] [--rounds 7] [--only scatter]

Dr.Jit needs a system LLVM: set DRJIT_LIBLLVM_PATH, it is passed on. Both systems run the same functions, written in
the names they share. A "hard miss" compiles a kernel never seen before, a "soft miss" loads it from disk.
"""

from __future__ import annotations

import os
import random
import tempfile
from typing import Any

import common
import numpy as np

CHAIN = 10_000


def tasks(dr: Any, size: int) -> dict[str, common.Task]:
    """Return the tasks of a system, given its array library."""
    ad = dr.llvm.ad
    Float, UInt = dr.llvm.Float, dr.llvm.UInt
    made: dict[str, common.Task] = {}
    rng = np.random.default_rng(0)
    x = Float(np.linspace(0, 1, size, dtype=np.float32))
    order = UInt(np.arange(size, dtype=np.uint32))
    shuffled = UInt(rng.permutation(size).astype(np.uint32))
    bins = UInt(rng.integers(0, 1024, size, dtype=np.uint32))
    dr.eval(x, order, shuffled, bins)

    def done(*arrays: Any) -> None:
        dr.eval(*arrays)
        dr.sync_thread()

    def scatter_add(target_size: int, index: Any) -> None:
        target = dr.zeros(Float, target_size)
        dr.scatter_add(target, x, index)
        done(target)

    made["sin(x) exp(-x)"] = lambda: done(dr.sin(x) * dr.exp(-x))
    made["gather, in order"] = lambda: done(dr.gather(Float, x, order))
    made["gather, random"] = lambda: done(dr.gather(Float, x, shuffled))
    made["scatter_add to 1024 bins"] = lambda: scatter_add(1024, bins)
    made["scatter_add, random"] = lambda: scatter_add(size, shuffled)
    made["sum(x)"] = lambda: done(dr.sum(x))
    made["sum(sin(x))"] = lambda: done(dr.sum(dr.sin(x)))
    made["Mandelbrot 1024x1024, 256 rounds"] = lambda: mandelbrot(dr, Float, UInt, done)
    made[f"tracing {CHAIN} operations"] = lambda: trace(Float, size, False, dr)
    made[f"tracing {CHAIN} operations with derivatives"] = lambda: trace(ad.Float, size, True, dr)
    made[f"backward through {CHAIN // 10} operations, 1000 lanes"] = lambda: differentiate(ad.Float, dr, done)
    frozen = dr.freeze(lambda y: long_chain(y))
    small = dr.opaque(Float, 0.5, 16)

    def replays() -> None:
        for _ in range(1000):
            frozen(small)
        dr.sync_thread()

    made["1000 frozen replays of 1000 operations"] = replays
    made["hard miss, 2000 operations"] = lambda: done(chain(Float, random.random()))
    soft = chain_number = random.random()

    def soft_miss() -> None:
        dr.flush_kernel_cache()
        done(chain(Float, chain_number))

    done(chain(Float, soft))
    made["soft miss, 2000 operations"] = soft_miss
    return made


def long_chain(y: Any) -> Any:
    """Return 1000 operations on an array."""
    for k in range(500):
        y = y * 1.0001 + 0.001 * k
    return y


def mandelbrot(dr: Any, Float: Any, UInt: Any, done: Any) -> None:
    """Count the rounds that stay bounded over 1024 x 1024 points, in one recorded loop."""
    x, y = dr.meshgrid(dr.linspace(Float, -2, 1, 1024), dr.linspace(Float, -1.5, 1.5, 1024))

    def going(a: Any, b: Any, n: Any) -> Any:
        return (a * a + b * b < 4.0) & (n < 256)

    def body(a: Any, b: Any, n: Any) -> Any:
        return a * a - b * b + x, 2.0 * a * b + y, n + 1

    zero = dr.zeros(Float, 1024 * 1024)
    done(dr.while_loop((zero, zero + 0.0, dr.zeros(UInt, 1024 * 1024)), going, body)[2])


def trace(Float: Any, size: int, differentiate: bool, dr: Any) -> None:
    """Record operations without computing them."""
    x = dr.opaque(Float, 0.5, size)
    if differentiate:
        dr.enable_grad(x)
    y, a = x, x + 1.0
    for _ in range(CHAIN // 2):
        y = y * a
        y = y + x


def differentiate(Float: Any, dr: Any, done: Any) -> None:
    """Record, differentiate and compute."""
    x = dr.opaque(Float, 0.5, 1000)
    dr.enable_grad(x)
    y = x
    for _ in range(CHAIN // 20):
        y = y * x
        y = y + x
    dr.backward(dr.sum(y))
    done(dr.grad(x))


def chain(Float: Any, seed: float) -> Any:
    """Return the result of 2000 operations in an order that depends on the seed, over 1024 lanes."""
    rng = random.Random(seed)
    x = Float([0.25, 0.5, 0.75, 1.0] * 256)
    y, z = x, x + 1.0
    for _ in range(1000):
        y = y * z if rng.random() < 0.5 else y + z
        z = z - x if rng.random() < 0.5 else z * x
    return y + z


def main() -> None:
    """Run the comparison, or one worker of it, with a kernel cache of its own."""
    parser = common.parser(__doc__)
    parser.add_argument("--size", type=int, default=10_000_000)
    options = parser.parse_args()
    if options.worker == "drjit":
        import drjit

        common.serve(tasks(drjit, options.size))
    elif options.worker:
        import luxgrad

        common.serve(tasks(luxgrad, options.size))
    else:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["LUXGRAD_CACHE_DIR"] = os.environ["DRJIT_CACHE_DIR"] = folder
            common.run(options, __file__, "luxgrad", "drjit", ["--size", str(options.size)])


if __name__ == "__main__":
    main()
