"""Derivatives of sparse grids against central differences, and grids in loops, frozen functions and optimisers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import luxgrad as dr
from luxgrad import SparseGrid, SymbolicError
from luxgrad.llvm.ad import Array3f64, Float64, TensorXf64, UInt32

BOTH = pytest.mark.parametrize("index", ["table", "hash"])
MODES = pytest.mark.parametrize("index, mode", [("table", "backward"), ("hash", "backward"), ("hash", "forward")])


def some_bricks(index: str, channels: int = 2) -> SparseGrid:
    grid = SparseGrid((4, 5, 6), channels, 2, Float64, 0.25, index=index)
    grid.allocate(UInt32([0, 1]), UInt32([0, 4]), UInt32([5, 0]))
    grid.values = np.random.default_rng(0).random(len(grid.values))
    return grid


@MODES
def test_interpolation(index: str, mode: str) -> None:
    rng, start = np.random.default_rng(1), some_bricks(index)

    def f(values: Float64, x: Float64, y: Float64, z: Float64) -> Any:
        grid = start.copy()
        grid.values = values
        a, b = grid.eval(Array3f64(x, y, z))
        return a * b

    dr.check_grad(f, start.values, *[Float64(rng.random(3)) for _ in range(3)], mode=mode)


@MODES
def test_lookups_and_writing(index: str, mode: str) -> None:
    start = some_bricks(index)
    voxels = UInt32([0, 1, 1, 2]), UInt32([0, 4, 4, 3]), UInt32([5, 0, 0, 2])

    def f(values: Float64, added: Float64) -> Any:
        grid = start.copy()
        grid.values = values
        grid.scatter_add([added, added * added], *voxels)
        grid.scatter([added * 2.0, added], UInt32([0, 1, 2, 3]), UInt32([0, 0, 0, 0]), UInt32([5, 0, 0, 2]))
        a, b = grid.lookup(*voxels)
        return a * b + dr.sum(dr.square(grid.to_dense().array))

    dr.check_grad(f, start.values, Float64([0.3, 0.6, 0.2, 0.9]), mode=mode)


@BOTH
def test_dense_and_pruned(index: str) -> None:
    def f(values: Float64) -> Any:
        grid = SparseGrid.from_dense(TensorXf64(values, (3, 2, 5, 1)), 0.5, 2, index=index)
        grid.prune(0.7)
        return dr.square(grid.values)

    assert dr.check_grad(f, Float64(np.random.default_rng(2).random(30) * 0.8)).entries == 30


def test_the_gradient_lives_on_the_bricks() -> None:
    grid = some_bricks("hash", 1)
    dr.enable_grad(grid.values)
    dr.backward(dr.sum(grid.lookup(UInt32([1, 2, 0]), UInt32([4, 0, 0]), UInt32([0, 5, 5]))[0]))
    gradient = grid.values.grad.numpy()
    assert gradient.shape == (16,) and gradient.sum() == 2  # one of the voxels is not stored
    dr.enable_grad(grid.values)
    grid.scatter_add(1.0, 2, 0, 5)  # grows
    assert len(grid.values) == 24 and dr.grad_enabled(grid.values)


@BOTH
def test_positions_without_gradient_types_keep_those_of_the_values(index: str) -> None:
    grid = some_bricks(index, 1)
    dr.enable_grad(grid.values)
    result = grid.eval(dr.llvm.Array3f64(0.1, 0.9, 0.3))[0]
    assert dr.grad_enabled(result)


@BOTH
def test_reading_in_a_loop(index: str) -> None:
    def run(symbolic: bool) -> tuple[Any, Any, Any]:
        grid, x = some_bricks(index, 1), Float64([0.1, 0.5, 0.8])
        dr.enable_grad(x, grid.values)

        def body(i: UInt32, y: Float64) -> tuple[UInt32, Float64]:
            return i + 1, y * 0.5 + grid.eval(Array3f64(y, 0.3, 0.6))[0] * 0.1

        y = x
        if symbolic:
            y = dr.while_loop((UInt32(0), x), lambda i, y: i < 3, body, max_iterations=3)[1]
        else:
            for _ in range(3):
                y = body(UInt32(0), y)[1]
        dr.backward(dr.sum(y * y))
        return y.numpy(), x.grad.numpy(), grid.values.grad.numpy()

    for a, b in zip(run(True), run(False), strict=True):
        assert np.allclose(a, b, rtol=1e-12, atol=0) and np.abs(b).sum() > 0


@BOTH
def test_writing_in_a_recorded_loop_needs_bricks(index: str) -> None:
    kind = dr.llvm.Float
    grid = SparseGrid((8, 8), brick=4, dtype=kind, index=index)
    lanes = dr.llvm.UInt32([0, 1, 2])

    def body(i: Any, allocate: bool) -> Any:
        grid.scatter_add(1.0, 3, i, allocate=allocate)
        return i + 1

    with pytest.raises(SymbolicError, match=r"scatter_add.*touch\(points\)"):
        dr.while_loop((lanes,), lambda i: i < 6, lambda i: body(i, True))
    with pytest.raises(SymbolicError, match="allocate=False"):
        dr.while_loop((lanes,), lambda i: i < 6, lambda i: (grid.allocate(3, i), i + 1)[1])
    grid.allocate(3, dr.llvm.UInt32([0, 3]))
    dr.while_loop((lanes,), lambda i: i < 6, lambda i: body(i, False))
    dense = np.zeros((8, 8, 1), np.float32)
    dense[3, :4, 0] = [1, 2, 3, 3]  # the brick beyond is not stored
    assert np.array_equal(grid.to_dense().numpy(), dense)


@BOTH
def test_frozen_functions_take_grids(index: str) -> None:
    rng, grid = np.random.default_rng(3), some_bricks(index)

    @dr.freeze
    def read(grid: SparseGrid, pos: Any) -> Any:
        return grid.eval(pos)

    @dr.freeze
    def write(grid: SparseGrid, i: Any, j: Any, k: Any) -> None:
        grid.scatter_add([1.0, 2.0], i, j, k, allocate=False)

    for size in (5, 6, 7):
        grid.values, pos = rng.random(len(grid.values)), Array3f64(rng.random((3, size)))
        for a, b in zip(read(grid, pos), grid.eval(pos), strict=True):
            assert np.array_equal(a.numpy(), b.numpy())
        voxels = [UInt32(rng.integers(0, 4, 9)) for _ in range(3)]
        expected = grid.copy()
        expected.scatter_add([1.0, 2.0], *voxels, allocate=False)
        write(grid, *voxels)
        assert np.array_equal(grid.values.numpy(), expected.values.numpy())
    assert read.n_recordings == 1
    other = some_bricks(index)
    other.scatter(1.0, 2, 2, 2)
    assert np.array_equal(read(other, pos)[0].numpy(), other.eval(pos)[0].numpy())  # more bricks


def test_an_optimiser_fits_the_values() -> None:
    rng = np.random.default_rng(4)
    points = Array3f64(rng.random((3, 400)))
    target = points.x * 2.0 - points.y + 0.5
    grid = SparseGrid(4, brick=2, dtype=Float64)
    grid.touch(points)
    optimiser = dr.opt.Adam(lr=0.05, params={"values": grid.values})
    losses = []
    for _ in range(60):
        grid.values = optimiser["values"]
        loss = dr.mean(dr.square(grid.eval(points)[0] - target))
        dr.backward(loss)
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.02 * losses[0]
