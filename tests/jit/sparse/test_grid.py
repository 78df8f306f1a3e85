"""Sparse grids against dense NumPy arrays and textures: reading, writing, growing, exchange, memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import luxgrad as dr
import luxgrad.llvm as plain
import luxgrad.llvm.ad as t
from luxgrad import FilterMode, SparseGrid, WrapMode
from luxgrad.llvm import Array3f, Float, UInt32

SHAPES = [(1,), (9,), (5, 7), (1, 1, 1), (20, 13, 17)]


def filled(shape: tuple[int, ...], channels: int = 1, kind: Any = Float, **options: Any) -> tuple[SparseGrid, Any]:
    """Return a grid with values at random voxels, and the same as a dense array."""
    rng = np.random.default_rng(len(shape) + channels)
    options.setdefault("brick", 4)
    grid = SparseGrid(shape, channels, dtype=kind, **options)
    voxels = np.unique([rng.integers(0, n, 40) for n in shape], axis=1)
    values = rng.random((channels, voxels.shape[1])).astype(kind.dtype.numpy)
    grid.scatter([kind(v) for v in values], *[kind.ns.flat(dr.llvm.UInt32.dtype)(i) for i in voxels])
    dense = np.full((*shape, channels), grid.default, kind.dtype.numpy)
    dense[tuple(voxels)] = values.T
    return grid, dense


@pytest.mark.parametrize("index", ["table", "hash"])
@pytest.mark.parametrize("shape", SHAPES)
def test_writing_and_reading_agree_with_a_dense_array(shape: tuple[int, ...], index: str) -> None:
    rng = np.random.default_rng(1)
    for channels, default in ((1, 0.0), (3, 0.5)):
        grid, dense = filled(shape, channels, default=default, index=index)
        assert grid.shape == dense.shape and grid.ndim == len(shape) and grid.channels == channels
        assert (grid.to_dense().numpy() == dense).all()
        at = [rng.integers(-3, n + 3, 300) for n in shape]
        inside = np.all([(i >= 0) & (i < n) for i, n in zip(at, shape, strict=True)], axis=0)
        clipped = tuple(np.clip(i, 0, n - 1) for i, n in zip(at, shape, strict=True))
        found = np.array([c.numpy() for c in grid.lookup(*[plain.Int(i) for i in at])])
        assert (found == np.where(inside, dense[clipped].T, np.float32(default))).all()


@pytest.mark.parametrize("ns", [plain, t], ids=["llvm", "llvm.ad"])
@pytest.mark.parametrize("name", ["Float16", "Float32", "Float64"])
def test_every_float_type(ns: Any, name: str) -> None:
    kind = getattr(ns, name)
    grid, dense = filled((9, 5, 6), 2, kind, index="hash")
    assert type(grid.values) is kind and (grid.to_dense().numpy() == dense).all()
    grid.scatter_add([0.5, 1.0], ns.UInt32([0, 0]), ns.UInt32([4, 4]), ns.UInt32([5, 5]))
    dense[0, 4, 5] += np.array([1, 2], dense.dtype)
    assert np.allclose(grid.to_dense().numpy(), dense, rtol=2e-3)
    assert type(grid.eval(ns.Array3f(0.5))[0]) is ns.Float  # the position decides


@pytest.mark.parametrize("index", ["table", "hash"])
@pytest.mark.parametrize("wrap", list(WrapMode))
@pytest.mark.parametrize("mode", list(FilterMode))
def test_interpolation_is_that_of_a_texture(mode: FilterMode, wrap: WrapMode, index: str) -> None:
    rng = np.random.default_rng(2)
    for shape in ((1,), (5, 7), (6, 9, 5)):
        grid, dense = filled(shape, 2, plain.Float64, filter_mode=mode, wrap_mode=wrap, default=0.25, index=index)
        n = len(shape)
        pos = getattr(plain, f"Array{n}f64")(rng.random((n, 200)) * 4 - 1.5)
        texture = getattr(plain, f"Texture{n}f64")(plain.TensorXf64(dense), filter_mode=mode, wrap_mode=wrap)
        for found, expected in zip(grid.eval(pos), texture.eval(pos), strict=True):
            assert np.array_equal(found.numpy(), expected.numpy())


def test_the_first_component_goes_along_the_last_axis() -> None:
    grid = SparseGrid((2, 4, 8), brick=2, dtype=Float)
    grid.scatter(5.0, 1, 2, 7)
    assert grid.eval(Array3f(7.5 / 8, 2.5 / 4, 1.5 / 2))[0][0] == 5


def test_inactive_lanes_and_strange_positions_read_nothing_wild() -> None:
    grid = SparseGrid(8, default=2.0, dtype=Float)
    mask = plain.Bool([True, False])
    assert list(grid.eval(Array3f(0.5), mask)[0]) == [2, 0]
    assert list(grid.lookup(0, 0, UInt32([1, 1]), active=mask)[0]) == [2, 0]
    grid.allocate(0, 0, 0)
    assert list(grid.eval(Array3f(0.1), mask)[0]) == [2, 0]
    for wrap in WrapMode:
        grid = SparseGrid.from_dense(np.arange(8.0).reshape(2, 2, 2, 1), wrap_mode=wrap, dtype=Float)
        wild = grid.eval(Array3f([float("nan"), float("inf"), -1e30], 0.5, 0.5), True)[0]
        assert len(wild) == 3
        nearest = SparseGrid.from_dense(
            np.arange(8.0).reshape(2, 2, 2, 1), wrap_mode=wrap, filter_mode=FilterMode.Nearest, dtype=Float
        )
        found = nearest.eval(Array3f([float("nan"), float("inf"), -1e30], 0.5, 0.5))[0]
        assert set(found) <= set(range(8))


@pytest.mark.parametrize("index", ["table", "hash"])
def test_growing_keeps_values_and_counts_new_bricks(index: str) -> None:
    grid = SparseGrid((32, 32), brick=8, index=index, dtype=Float, default=1.0)
    assert grid.active_bricks == 0 and len(grid.values) == 0
    assert grid.allocate(UInt32([0, 1, 7, 40]), UInt32([0, 1, 7, 0])) == 1  # one brick; one lane is outside
    grid.scatter_add(2.0, 3, 4)
    before = grid.copy()
    assert grid.allocate(UInt32([0, 31, 8]), UInt32([0, 31, 0]), active=plain.Bool([True, False, True])) == 1
    grid.scatter(UInt32([5, 6]), UInt32([31, 0]), UInt32([31, 31]))
    assert grid.active_bricks == 4 and before.active_bricks == 1
    dense = np.ones((32, 32, 1), np.float32)
    dense[3, 4] = 3
    assert (before.to_dense().numpy() == dense).all()
    dense[31, 31], dense[0, 31] = 5, 6
    assert (grid.to_dense().numpy() == dense).all()
    grid.scatter(9.0, 20, 20, allocate=False)  # nothing is stored there
    assert (grid.to_dense().numpy() == dense).all() and grid.active_bricks == 4


def test_touching_stores_what_interpolation_reads() -> None:
    rng = np.random.default_rng(3)
    for index, wrap in (("table", WrapMode.Clamp), ("hash", WrapMode.Repeat)):
        grid = SparseGrid((40, 30, 20), brick=4, index=index, wrap_mode=wrap, dtype=plain.Float64)
        pos = plain.Array3f64(rng.random((3, 20)) * 1.4 - 0.2)
        count = grid.touch(pos)
        grid.values = np.ones(len(grid.values))
        assert np.allclose(grid.eval(pos)[0].numpy(), 1) and grid.touch(pos) == 0 and grid.active_bricks == count
        assert 20 < count < 20 * 8


def test_no_lanes() -> None:
    none = UInt32([])
    for index in ("table", "hash"):
        grid = SparseGrid((8, 8), dtype=Float, index=index)
        assert len(grid.lookup(none, 0)[0]) == 0 and grid.allocate(none, none) == 0
        grid.scatter(Float([]), none, none)
        grid.allocate(0, 0)
        grid.scatter_add(1.0, none, none)
        assert len(grid.lookup(none, none)[0]) == len(grid.eval(plain.Array2f(Float([]), Float([])))[0]) == 0
        assert (grid.values.numpy() == 0).all() and grid.touch(plain.Array2f(Float([]), Float([]))) == 0


@pytest.mark.parametrize("index", ["table", "hash"])
def test_the_result_does_not_depend_on_the_order_of_growth(index: str) -> None:
    rng = np.random.default_rng(4)
    places = rng.integers(0, 1 << 12, (3, 500))
    at_once = SparseGrid(1 << 12, index="hash", dtype=Float)
    in_parts = SparseGrid(1 << 12, index="hash", dtype=Float)
    at_once.scatter_add(1.0, *[UInt32(i) for i in places])
    for part in np.array_split(places[:, ::-1], 7, axis=1):
        in_parts.scatter_add(1.0, *[UInt32(i) for i in part])
    a, b = at_once.to_index_list(), in_parts.to_index_list()
    assert all(np.array_equal(getattr(a, k), getattr(b, k)) for k in ("origins", "masks", "values"))
    expected, counts = np.unique(places, axis=1, return_counts=True)
    found = at_once.lookup(*[UInt32(i) for i in expected])[0]
    assert np.array_equal(found.numpy(), counts)


def test_a_hash_table_finds_all_of_many_bricks_and_none_else() -> None:
    rng = np.random.default_rng(5)
    for edge in (1 << 10, 1 << 20):  # keys of 32 and of 64 bits
        grid = SparseGrid(edge, brick=1, dtype=Float)
        stored = np.unique(rng.integers(0, edge, (3, 3000)), axis=1)
        line = np.stack([np.full(500, 77), np.full(500, 5), np.arange(500)])  # neighbours
        every = np.unique(np.concatenate([stored, line], axis=1), axis=1)
        grid.allocate(*[UInt32(i) for i in every])
        assert grid.active_bricks == every.shape[1]
        grid.values = np.arange(1, every.shape[1] + 1)
        assert np.array_equal(grid.lookup(*[UInt32(i) for i in every])[0].numpy(), grid.values.numpy())
        others = rng.integers(0, edge, (3, 3000))
        known = {tuple(v) for v in every.T.tolist()}
        absent = others[:, [tuple(v) not in known for v in others.T.tolist()]]
        assert (grid.lookup(*[UInt32(i) for i in absent])[0].numpy() == 0).all()


def test_dense_arrays_go_in_and_out() -> None:
    rng = np.random.default_rng(6)
    dense = np.zeros((17, 9, 12, 2), np.float32)
    dense[3:6, 2, 4:9] = rng.random((3, 5, 2)) - 0.5
    dense[16, 8, 11] = np.nan
    for index in ("table", "hash"):
        grid = SparseGrid.from_dense(dense, brick=4, dtype=Float, index=index)
        assert np.array_equal(grid.to_dense().numpy(), dense, equal_nan=True)
        assert 0 < grid.active_bricks < 10
    assert SparseGrid.from_dense(dense, threshold=1.0, brick=4).active_bricks == 1  # NaN is not below it
    assert SparseGrid.from_dense(np.zeros((3, 3, 1))).active_bricks == 0
    assert type(SparseGrid.from_dense(t.TensorXf64(dense)).values) is t.Float64
    assert type(SparseGrid.from_dense(dense.astype(np.float16)).values) is t.Float16
    with pytest.raises(ValueError, match=r"\(3,\)"):
        SparseGrid.from_dense(np.zeros(3))


@pytest.mark.parametrize("shape", [(9,), (5, 7), (20, 13, 17)])
def test_index_lists_go_out_and_in(shape: tuple[int, ...]) -> None:
    for index in ("table", "hash"):
        grid, dense = filled(shape, 2, plain.Float64, default=0.5, index=index)
        listed = grid.to_index_list()
        where = listed.coordinates()
        assert np.array_equal(np.unique(where, axis=0), np.argwhere((dense != 0.5).any(axis=-1)))
        assert np.array_equal(dense[tuple(where.T)], listed.values)
        assert listed.origins.dtype == np.int32 and (listed.origins % 4 == 0).all()
        again = SparseGrid.from_index_list(listed, dtype=plain.Float64, index=index)
        assert np.array_equal(again.to_dense().numpy(), dense) and again.active_bricks == grid.active_bricks
        for other in (again, SparseGrid.from_index_list(again.to_index_list())):
            second = other.to_index_list()
            assert all(np.array_equal(getattr(second, k), getattr(listed, k)) for k in ("origins", "masks", "values"))
    empty = SparseGrid(shape).to_index_list()
    assert len(empty.coordinates()) == 0 and SparseGrid.from_index_list(empty).active_bricks == 0


def test_voxels_beyond_the_border_are_not_active() -> None:
    grid = SparseGrid((3, 3), brick=4, dtype=Float)
    grid.allocate(0, 0)
    grid.values = np.ones(16)
    listed = grid.to_index_list()
    assert len(listed.values) == 9 and listed.coordinates().max() == 2


def test_wrong_index_lists_are_refused() -> None:
    import dataclasses

    grid, _ = filled((9, 9))
    good = grid.to_index_list()
    for change, message in (
        ({"values": good.values[1:]}, "bits set"),
        ({"origins": good.origins + 1}, r"origins\[0\] is \[1, 1\]"),
        ({"origins": good.origins * 0}, "times"),
        ({"values": good.values[:, 0]}, "channels"),
    ):
        with pytest.raises(ValueError, match=message):
            SparseGrid.from_index_list(dataclasses.replace(good, **change))


@pytest.mark.parametrize("index", ["table", "hash"])
def test_pruning_drops_bricks_near_the_default(index: str) -> None:
    grid = SparseGrid((32, 32, 8), brick=8, dtype=Float, default=1.0, index=index)
    grid.scatter(Float([1.0, 1.25, 3.0, float("nan")]), UInt32([0, 8, 16, 24]), 0, 0)
    dense = grid.to_dense().numpy().copy()
    assert grid.prune() == 1 and np.array_equal(grid.to_dense().numpy(), dense, equal_nan=True)
    assert grid.prune(0.5) == 1 and grid.active_bricks == 2
    dense[8, 0, 0] = 1
    assert np.array_equal(grid.to_dense().numpy(), dense, equal_nan=True)
    assert grid.prune(0.5) == 0 and SparseGrid(8).prune() == 0
    grid.values = np.ones(len(grid.values))
    assert grid.prune() == 2 and len(grid.values) == 0
    grid.scatter(4.0, 1, 1, 1)
    assert grid.lookup(1, 1, 1)[0][0] == 4


def test_memory_grows_with_what_is_stored() -> None:
    dr.eval(UInt32([1]) + 1)
    with dr.memory_scope() as seen:
        grid = SparseGrid(4096, dtype=Float)
        assert grid.memory == 0
        diagonal = UInt32(np.arange(100) * 40)
        grid.scatter(1.0, diagonal, diagonal, diagonal)
        dr.eval(grid.values)
    assert grid.active_bricks == 100
    values = 100 * 512 * 4
    assert values <= grid.memory <= 1.05 * values
    held = dr.memory_stats()["live"]
    assert seen.live_peak - seen.live_before < 3 * values
    size = grid.memory
    del grid
    assert held - dr.memory_stats()["live"] >= 0.9 * size
    assert dr.sum(SparseGrid(512, dtype=Float).eval(Array3f(0.3))[0])[0] == 0


def test_wrong_arguments_are_named() -> None:
    for arguments, error, message in (
        (((4, 0),), ValueError, "axis 1 must be 1 to"),
        (((2,) * 4,), ValueError, "one to three axes"),
        ((8, 0), ValueError, "channels must be 1 to"),
        ((8, 1, 3), ValueError, "power of two"),
        ((8, 1, 128), ValueError, "brick must be 1 to 64"),
        ((8, 1, 8, UInt32), TypeError, "UInt"),
        ((8, 1, 8, plain.TensorXf), TypeError, "TensorXf"),
        (("8",), TypeError, "'8'"),
        ((1 << 29, 1, 1), ValueError, "larger bricks"),
    ):
        with pytest.raises(error, match=message):
            SparseGrid(*arguments)
    with pytest.raises(ValueError, match="'tree'"):
        SparseGrid(8, index="tree")
    grid = SparseGrid((8, 8), 2, dtype=Float)
    with pytest.raises(TypeError, match="2 of them; found 3"):
        grid.lookup(0, 0, 0)
    with pytest.raises(TypeError, match="integers"):
        grid.lookup(0, Float(0.5))
    with pytest.raises(TypeError, match="2 components"):
        grid.eval(Array3f(0))
    with pytest.raises(TypeError, match="floats"):
        grid.eval([UInt32(0), UInt32(1)])
    with pytest.raises(ValueError, match="2 channels, found 3"):
        grid.scatter([1.0, 2.0, 3.0], 0, 0)
    with pytest.raises(RuntimeError, match="0 bricks hold 0 values"):
        grid.values = Float([1, 2])
    with pytest.raises(ValueError, match="values, more than"):
        SparseGrid(4096).to_dense()


def test_the_same_program_gives_the_same_bits() -> None:
    rng = np.random.default_rng(7)
    places, values = rng.integers(0, 64, (3, 5000)), rng.random(5000).astype(np.float32)

    def run() -> bytes:
        grid = SparseGrid(64, dtype=Float, index="hash")
        grid.scatter_add(Float(values), *[UInt32(i) for i in places])
        result: bytes = grid.values.numpy().tobytes()
        return result

    assert run() == run()
