"""Streams give what the same function gives in memory: C3, and results, sources and outputs of every kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luxgrad as dr
from luxgrad import stream
from luxgrad.llvm import PCG32, Array3f, Float, Float64, UInt32, UInt64

CHUNK = 128
LENGTHS = (0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 7 * CHUNK + 3)


def numbers(n: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=n).astype(np.float32)


def random_program(seed: int) -> Callable[[Any, Any], Any]:
    """Return a function of two arrays that a random choice of ten operations makes."""
    rng = np.random.default_rng(seed)
    steps = [(int(rng.integers(9)), int(rng.integers(1 << 16)), int(rng.integers(1 << 16))) for _ in range(10)]
    factor = float(rng.normal())

    def program(x: Any, y: Any) -> Any:
        values = [x, y]
        for op, i, j in steps:
            a, b = values[i % len(values)], values[j % len(values)]
            made = [
                lambda a, b: a + b, lambda a, b: a * b - factor, lambda a, b: dr.sin(a) * b,
                lambda a, b: dr.maximum(a, b), lambda a, b: dr.select(a < b, a, b * factor),
                lambda a, b: dr.sqrt(abs(a)) + b, lambda a, b: a / (b * b + 1), lambda a, b: dr.fma(a, b, factor),
                lambda a, b: dr.exp(-abs(a)) - b,
            ]  # fmt: skip
            values.append(made[op](a, b))
        return values[-1]

    return program


@pytest.mark.parametrize("seed", range(20))
def test_C3_elementwise_results_are_bit_identical(seed: int) -> None:
    program = random_program(seed)
    for n in LENGTHS:
        x, y = numbers(n, seed), numbers(n, seed + 100)
        found = stream.evaluate(program, x, y, chunk=CHUNK).value.numpy()
        expected = np.broadcast_to(program(Float(x), Float(y)).numpy(), n)
        assert found.tobytes() == expected.tobytes(), n


@pytest.mark.parametrize("n", LENGTHS)
def test_C3_float_sums_are_as_exact_as_their_type(n: int) -> None:
    for dtype in (np.float32, np.float64):
        x = numbers(n).astype(dtype)
        found = stream.evaluate(lambda x: dr.sum(x), x, chunk=CHUNK).value.numpy()
        exact = math.fsum(x.tolist())
        ulp = np.spacing(dtype(abs(exact))).item() if n else 0.0
        assert found.dtype == dtype and abs(float(found[0]) - exact) <= 2 * ulp * max(1.0, math.log2(max(n, 2)))


def test_C3_runs_and_thread_counts_agree_to_the_bit() -> None:
    x = numbers(40_000, 3)
    index = (np.arange(40_000) * 7919 % 32).astype(np.uint32)

    def function(x: Any, i: Any) -> Any:
        bins = dr.zeros(Float, 32)
        dr.scatter_add(bins, x, i)
        return dr.sum(dr.sin(x)), dr.mean(x * x), bins

    seen = set()
    for threads in (1, 2, 4, 2, 2):
        with dr.scoped_thread_count(threads):
            a, b, bins = stream.evaluate(function, x, index, chunk=9000).value
            seen.add(a.numpy().tobytes() + b.numpy().tobytes() + bins.numpy().tobytes())
    assert len(seen) == 1


def test_all_reductions_and_names() -> None:
    x = numbers(1000)
    plain: dict[str, Callable[[Any], Any]] = {
        "sum": dr.sum, "prod": dr.prod, "min": dr.min, "max": dr.max, "mean": dr.mean,
    }  # fmt: skip
    for name, reduction in plain.items():
        found = stream.evaluate(lambda x: x * 1.01, x, reduce=name, chunk=CHUNK).value
        assert type(found) is Float
        assert found.numpy() == pytest.approx(reduction(Float(x) * 1.01).numpy(), rel=1e-6)
    for name, expected in {"any": True, "all": False, "none": False, "count": int((x > 1).sum())}.items():
        assert stream.evaluate(lambda x: x > 1, x, reduce=name, chunk=CHUNK).value[0] == expected
    assert stream.evaluate(dr.dot, x, x, chunk=CHUNK).value[0] == pytest.approx(float(x.astype(float) @ x), rel=1e-6)
    with pytest.raises(ValueError, match="median"):
        stream.evaluate(lambda x: x, x, reduce="median")


def test_integers_wrap_and_numbers_win_over_nan() -> None:
    i = np.arange(3000, dtype=np.int16)
    assert stream.evaluate(dr.sum, i, chunk=CHUNK).value[0] == i.sum(dtype=np.int16)
    x = np.full(1000, np.nan, np.float32)
    x[700:] = 3
    low, high = stream.evaluate(lambda x: (dr.min(x), dr.max(x)), x, chunk=CHUNK).value
    assert (low[0], high[0]) == (3, 3)


def test_functions_of_totals_go_through_the_data_again() -> None:
    x = numbers(1000)

    def softmax(x: Any) -> Any:
        e = dr.exp(x - dr.max(x))
        return e / dr.sum(e)

    def centred(x: Any) -> Any:
        return dr.mean(dr.square(x - dr.mean(x))), x - dr.mean(x)

    found = stream.evaluate(softmax, x, chunk=CHUNK)
    assert found.report.passes == 3
    assert np.array_equal(found.value.numpy(), softmax(Float(x)).numpy())
    variance, rest = stream.evaluate(centred, x, chunk=CHUNK).value
    assert variance[0] == pytest.approx(x.var(dtype=float), rel=1e-5)
    assert np.array_equal(rest.numpy(), centred(Float(x))[1].numpy())


def test_python_may_look_at_totals() -> None:
    def scaled(x: Any) -> Any:
        return x * 2 if dr.sum(x)[0] > 0 else x * 3

    for sign, expected in ((1, 2), (-1, -3)):
        found = stream.evaluate(scaled, np.full(500, sign, np.float32), chunk=CHUNK).value
        assert np.array_equal(found.numpy(), np.full(500, expected))


def test_accumulators_made_inside_and_outside() -> None:
    x = np.random.default_rng(1).random(2000, np.float32)
    expected = np.bincount((x * 8).astype(int), minlength=8)

    def inside(x: Any) -> Any:
        bins = dr.zeros(UInt32, 8)
        dr.scatter_add(bins, 1, UInt32(x * 8))
        return bins, dr.max(bins)

    bins, most = stream.evaluate(inside, x, chunk=CHUNK).value
    assert np.array_equal(bins.numpy(), expected) and most[0] == expected.max()
    outside = dr.full(UInt32, 5, 8)
    other = UInt32(outside)
    stream.evaluate(lambda x: dr.scatter_add(outside, 1, UInt32(x * 8)), x, chunk=CHUNK)
    assert np.array_equal(outside.numpy(), expected + 5) and np.array_equal(other.numpy(), np.full(8, 5))


def test_accumulators_that_are_read_or_changed_between_scatters() -> None:
    x = np.random.default_rng(2).random(2000, np.float32)

    def twice(x: Any) -> Any:
        bins = dr.zeros(UInt32, 8)
        dr.scatter_add(bins, 1, UInt32(x * 8))
        dr.scatter_add(bins, 2, UInt32(x * 4))
        return bins

    def read(x: Any) -> Any:
        bins = dr.zeros(UInt32, 8)
        dr.scatter_add(bins, 1, UInt32(x * 8))
        first = dr.sum(bins)
        bins *= 3
        dr.scatter_reduce("max", bins, UInt32(x * 4), UInt32(x * 8))
        return bins, first

    def looped(x: Any) -> Any:
        bins = dr.zeros(UInt32, 8)

        def body(i: Any, x: Any) -> Any:
            dr.scatter_add(bins, i + 1, UInt32(x * 8))
            return i + 1, x

        dr.while_loop((UInt32(0), Float(x)), lambda i, x: i < 3, body)
        return bins

    for function in (twice, read, looped):
        found, expected = stream.evaluate(function, x, chunk=CHUNK).value, function(Float(x))
        pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
        assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in pairs)


def test_index_and_random_numbers_are_those_of_all_elements() -> None:
    x = numbers(1000)

    def noisy(x: Any) -> Any:
        index = stream.index(x)
        return x + PCG32(initseq=index).next_float32() + Float(index) / stream.length(x)

    found = stream.evaluate(noisy, x, chunk=CHUNK).value
    assert np.array_equal(found.numpy(), noisy(Float(x)).numpy())
    with pytest.raises(RuntimeError, match="outside of a streamed function"):
        stream.index()


def test_control_flow_and_gathers_from_memory() -> None:
    x = np.random.default_rng(4).random(1000, np.float32)
    table = Float(np.arange(10) ** 2)

    def function(x: Any, t: Any) -> Any:
        y = dr.gather(Float, t, UInt32(x * 10))
        _, y = dr.while_loop((UInt32(0), y), lambda i, y: i < 3, lambda i, y: (i + 1, y * 0.5))
        return dr.if_stmt((x, y), x > 0.5, lambda x, y: x + y, lambda x, y: x - y)

    found = stream.evaluate(function, x, params={"t": table}, chunk=CHUNK).value
    assert np.array_equal(found.numpy(), function(Float(x), table).numpy())


def test_elements_with_components(tmp_path: Path) -> None:
    v = np.random.default_rng(5).random((1000, 3)).astype(np.float32)
    path = tmp_path / "v.npy"
    np.save(path, v)
    found = stream.evaluate(lambda v: (dr.norm(v), v * 2), path, chunk=CHUNK).value
    assert np.array_equal(found[0].numpy(), dr.norm(Array3f(v.T)).numpy())
    assert type(found[1]) is Array3f and np.array_equal(found[1].numpy(), 2 * v.T)
    written = stream.evaluate(lambda v: v * 2, path, out=tmp_path / "w.npy", chunk=CHUNK).value
    assert np.array_equal(np.load(written), 2 * v)
    assert np.allclose(stream.evaluate(lambda v: v, path, reduce="sum", chunk=CHUNK).value.numpy().ravel(), v.sum(0))


class Stored:
    """An array that, like Zarr's, is read in pieces of its own."""

    def __init__(self, values: Any, chunks: tuple[int, ...]) -> None:
        self.values, self.chunks, self.shape, self.dtype = values, chunks, values.shape, values.dtype
        self.asked: list[slice] = []

    def __getitem__(self, key: slice) -> Any:
        self.asked.append(key)
        return self.values[key].copy()


def test_sources_of_every_kind(tmp_path: Path) -> None:
    x = numbers(1003)
    np.save(tmp_path / "x.npy", x)
    x.tofile(tmp_path / "x.bin")
    (tmp_path / "odd.bin").write_bytes(b"abc" + x.tobytes())
    mapped = np.memmap(tmp_path / "x.bin", np.float32, "r")
    stored = Stored(x, (200,))
    sources = [
        x, tmp_path / "x.npy", str(tmp_path / "x.npy"), stream.raw(tmp_path / "x.bin", np.float32), mapped, stored,
        stream.raw(tmp_path / "odd.bin", np.float32, offset=3), x.astype(">f4"), np.repeat(x, 2)[::2], Float(x),
        [x[:5], tmp_path / "x.npy", x[:0]][1:2], np.memmap(tmp_path / "x.bin", np.float32, "c"),
    ]  # fmt: skip
    for source in sources:
        assert np.array_equal(stream.evaluate(lambda x: x + 1, source, chunk=CHUNK).value.numpy(), x + 1)
    assert all(s.stop <= (s.start // 200 + 1) * 200 for s in stored.asked)  # each piece is of one stored chunk
    part = stream.evaluate(lambda x: x, mapped[100:900], chunk=CHUNK).value
    assert np.array_equal(part.numpy(), x[100:900])
    joined = stream.evaluate(lambda x: x, [x[:5], tmp_path / "x.npy", x[:300]], chunk=CHUNK).value
    assert np.array_equal(joined.numpy(), np.concatenate([x[:5], x, x[:300]]))
    wide = Stored(numbers(60_000), (1000,))
    assert stream.evaluate(dr.sum, wide, max_resident=300_000).report.chunk % 1000 == 0


@pytest.mark.parametrize("name", ["bool", "int8", "uint16", "int32", "uint64", "float16", "float64"])
def test_element_types(name: str) -> None:
    x = (np.arange(300) % 100).astype(name)
    found = stream.evaluate(lambda x: x, x, chunk=CHUNK).value
    assert found.numpy().dtype == x.dtype and np.array_equal(found.numpy(), x)
    with pytest.raises(TypeError, match="complex"):
        stream.evaluate(lambda x: x, x.astype(complex))


def test_outputs_of_every_kind(tmp_path: Path) -> None:
    x = numbers(1003)
    raw = stream.evaluate(lambda x: x + 1, x, out=tmp_path / "y.bin", chunk=CHUNK)
    assert raw.value == tmp_path / "y.bin" and np.array_equal(np.fromfile(raw.value, np.float32), x + 1)
    array = np.zeros(1003, np.float32)
    assert stream.evaluate(lambda x: x + 1, x, out=array, chunk=CHUNK).value is array
    assert np.array_equal(array, x + 1)
    mapped = np.memmap(tmp_path / "m.bin", np.float32, "w+", shape=(1003,))
    stream.evaluate(lambda x: x + 1, x, out=mapped, chunk=CHUNK)
    assert np.array_equal(np.fromfile(tmp_path / "m.bin", np.float32), x + 1)
    places = {"a": tmp_path / "a.npy", "b": None}
    found = stream.evaluate(lambda x: {"a": x, "n": dr.sum(x), "b": x > 0}, x, out=[places["a"], None], chunk=CHUNK)
    assert np.array_equal(np.load(tmp_path / "a.npy"), x) and np.array_equal(found.value["b"].numpy(), x > 0)
    assert found.value["n"][0] == pytest.approx(x.sum(dtype=float), abs=1e-4)
    with pytest.raises(ValueError, match=r"shape \(1003,\).*shape \(4,\)"):
        stream.evaluate(lambda x: x, x, out=np.zeros(4, np.float32))
    with pytest.raises(ValueError, match="one file"):
        stream.evaluate(lambda x: (x, x), x, out=(tmp_path / "z", tmp_path / "z"))
    assert np.load(stream.evaluate(lambda x: x, x[:0], out=tmp_path / "e.npy").value).shape == (0,)


def test_report_and_progress(capsys: pytest.CaptureFixture[str]) -> None:
    x = numbers(1000)
    seen: list[tuple[int, int]] = []
    report = stream.evaluate(lambda x: x, x, chunk=CHUNK, progress=lambda a, b: seen.append((a, b))).report
    assert seen[-1] == (1000, 1000) and len(seen) == report.chunks == 8 and report.chunk == CHUNK
    assert report.bytes_read == report.bytes_written == 4000 and report.rate > 0
    assert 0 < report.peak <= report.planned <= report.budget == 1 << 30
    assert "8 chunks of 128" in str(report)
    stream.evaluate(lambda x: x, x, chunk=CHUNK, progress=True)
    assert "stream" in capsys.readouterr().err


def test_counts_beyond_32_bits_change_type() -> None:
    from luxgrad.jit.dtypes import Bool
    from luxgrad.jit.dtypes import UInt32 as Count
    from luxgrad.jit.stream.totals import Total

    total = Total(("reduce", 0), "count", Bool, Count, None)
    for _ in range(3):
        total.partials.add(1 << 31)
    total.finish()
    assert total.value is not None and UInt64.wrap(total.value)[0] == 3 << 31


def test_sums_in_double_precision_for_64_bit_data() -> None:
    x = np.full(1000, 0.1)
    assert type(stream.evaluate(dr.sum, x, chunk=CHUNK).value) is Float64
    assert stream.evaluate(dr.sum, x, chunk=CHUNK).value[0] == pytest.approx(100, rel=1e-15)


def test_frozen_functions_are_streamed_as_what_they_freeze() -> None:
    frozen = dr.freeze(lambda x: dr.sum(x) + x)
    x = numbers(500)
    assert np.array_equal(stream.evaluate(frozen, x, chunk=CHUNK).value.numpy(), (dr.sum(Float(x)) + Float(x)).numpy())
