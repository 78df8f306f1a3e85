"""Sparse grids beside dense textures, and sparse matrices beside SciPy's: milliseconds and bytes.

Run `PYTHONPATH=.link python benchmarks/sparse.py [--lanes 1000000] [--rounds 5]`. A round runs every task once, so
that all see the same state of the machine; medians of the clock are printed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import luxgrad as dr
from luxgrad.llvm import Array3f, Float, TensorXf, Texture3f, UInt32
from luxgrad.llvm import ad as diff

Task = tuple[str, str, int, Callable[[], Any]]  # group, name, bytes of the data, what is timed


def sphere(n: int) -> Any:
    """Return n^3 voxels that are zero but near the surface of a sphere."""
    x = (np.arange(n, dtype=np.float32) + 0.5) / n - 0.5
    radius = np.sqrt(x[:, None, None] ** 2 + x[None, :, None] ** 2 + x[None, None, :] ** 2)
    return np.maximum(0, 1 - np.abs(radius - 0.35) * 32)[..., None]


def grid_tasks(n: int, lanes: int) -> list[Task]:
    """Return reading, growing and differentiating a sphere's surface, dense and sparse."""
    rng = np.random.default_rng(0)
    dense, pos = sphere(n), rng.random((3, lanes)).astype(np.float32)
    points, at = Array3f(pos), [UInt32(rng.integers(0, n, lanes)) for _ in range(3)]
    texture = Texture3f(TensorXf(dense))
    tasks: list[Task] = []
    group = f"{n}^3, interpolate"
    tasks.append((group, "dense texture", dense.nbytes, lambda: dr.eval(texture.eval(points))))
    for index in ("table", "hash"):
        grid = dr.SparseGrid.from_dense(dense, dtype=Float, index=index)
        fresh = dr.SparseGrid(n, dtype=Float, index=index)
        tasks += [
            (group, f"bricks, {index}", grid.memory, lambda g=grid: dr.eval(g.eval(points))),
            (f"{n}^3, read voxels", f"bricks, {index}", grid.memory, lambda g=grid: dr.eval(g.lookup(*at))),
            (f"{n}^3, first touch", f"bricks, {index}", 0, lambda g=fresh: g.copy().touch(points)),
        ]
    flat, place = Float(dense.reshape(-1)), (at[0] * n + at[1]) * n + at[2]
    tasks.append((f"{n}^3, read voxels", "dense gather", dense.nbytes, lambda: dr.eval(dr.gather(Float, flat, place))))
    return tasks + gradient_tasks(dense, pos)


def gradient_tasks(dense: Any, pos: Any) -> list[Task]:
    """Return the gradient of a sum of interpolated values."""
    points, n = diff.Array3f(pos), len(dense)
    grid = dr.SparseGrid.from_dense(dense, dtype=diff.Float)

    def bricks() -> None:
        values = dr.detach(grid.values)
        dr.enable_grad(values)
        g = grid.copy()
        g.values = values
        dr.backward(dr.sum(dr.square(g.eval(points)[0])))
        dr.eval(dr.grad(values))

    def texture() -> None:
        values = diff.Float(dense.reshape(-1))
        dr.enable_grad(values)
        dr.backward(dr.sum(dr.square(diff.Texture3f(diff.TensorXf(values, dense.shape)).eval(points)[0])))
        dr.eval(dr.grad(values))

    group = f"{n}^3, gradient"
    return [(group, "dense texture", dense.nbytes, texture), (group, "bricks, table", grid.memory, bricks)]


def matrix_tasks(rows: int, per_row: int) -> list[Task]:
    """Return products of a square matrix with so many entries in each row."""
    rng = np.random.default_rng(1)
    row, column = np.repeat(np.arange(rows), per_row), rng.integers(0, rows, rows * per_row)
    values, x = rng.random(rows * per_row).astype(np.float32), rng.random(rows).astype(np.float32)
    A = dr.CSRMatrix.from_coo(row, column, Float(values), (rows, rows))
    A.prepare_transpose()
    ours, size = Float(x), A.nnz * 8 + rows * 4
    group = f"matrix of {A.nnz} entries"
    tasks: list[Task] = [
        (f"{group}, A x", "luxgrad", size, lambda: dr.eval(A @ ours)),
        (f"{group}, transposed", "luxgrad", size, lambda: dr.eval(A.rmatvec(ours))),
    ]
    try:
        theirs = A.to_scipy()
    except ImportError:
        return tasks
    return [
        *tasks,
        (f"{group}, A x", "SciPy", size, lambda: theirs @ x),
        (f"{group}, transposed", "SciPy", size, lambda: theirs.T @ x),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lanes", type=int, default=1_000_000, help="positions read in one go")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--edge", type=int, default=256, help="voxels along an edge of the grid")
    parser.add_argument("--rows", type=int, default=200_000)
    options = parser.parse_args()
    tasks = grid_tasks(options.edge, options.lanes) + matrix_tasks(options.rows, 10)
    seconds: list[list[float]] = [[] for _ in tasks]
    for k in range(options.rounds + 1):
        for times, (_, _, _, run) in zip(seconds, tasks, strict=True):
            begin = time.perf_counter()
            run()
            dr.sync_thread()
            if k:  # the first round compiles
                times.append(time.perf_counter() - begin)
    print(f"{dr.thread_count()} threads, {options.lanes} lanes, {options.rounds} rounds")
    print(f"{'task':34} {'system':16} {'ms':>8} {'MiB':>8}")
    for (group, name, size, _), times in sorted(zip(tasks, seconds, strict=True), key=lambda row: row[0][:2]):
        print(f"{group:34} {name:16} {1e3 * statistics.median(times):8.2f} {size / 2**20:8.2f}")


if __name__ == "__main__":
    main()
