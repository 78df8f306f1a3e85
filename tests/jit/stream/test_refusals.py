"""What cannot be streamed, and budgets that are too small: told before anything is read or written (C5)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luxgrad as dr
from luxgrad import stream
from luxgrad.llvm import PCG32, Float, UInt32

LINE = re.compile(r"test_refusals\.py:\d+")


class Unread:
    """A source that fails the test when it is read."""

    shape, dtype, chunks = (10_000,), np.dtype(np.float32), (1000,)

    def __getitem__(self, key: slice) -> Any:
        raise AssertionError("the source was read")


def scattered(x: Any) -> Any:
    y = dr.zeros(Float, dr.width(x))
    dr.scatter(y, x, UInt32(stream.index(x)))
    return y


def overwritten(x: Any) -> Any:
    y = x + 1
    dr.scatter_add(y, x, UInt32(stream.index(x)))
    return y


def order_counts(x: Any) -> Any:
    bins = dr.zeros(Float, 4)
    dr.scatter_add(bins, x, UInt32(0))
    dr.scatter_reduce("max", bins, x, UInt32(0))
    dr.scatter(bins, x, UInt32(0))
    dr.scatter(bins, x + 1, UInt32(0))
    return bins


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "gather": (lambda x: dr.gather(Float, x, UInt32(0)), "gather"),
    "shifted": (lambda x: x + dr.gather(Float, x, UInt32(stream.index(x)) ^ 1), "gather"),
    "element": (lambda x: x - x[0], r"\[\.\.\.\]"),
    "slice": (lambda x: x[::2], r"\[\.\.\.\]"),
    "prefix sum": (lambda x: dr.prefix_sum(x), "prefix_sum"),
    "cumsum of a result": (lambda x: dr.cumsum(x * 2), "cumsum"),
    "compress": (lambda x: dr.compress(x > 0), "compress"),
    "reverse": (lambda x: dr.reverse(x), "reverse"),
    "block sum": (lambda x: dr.block_sum(x, 4), "block_sum"),
    "numpy": (lambda x: Float(np.sort(x.numpy())), "numpy"),
    "print": (lambda x: print(x), "print"),
    "concat": (lambda x: dr.concat([x, x]), "concat"),
    "scatter to a chunk": (scattered, "scatter"),
    "scatter to a result": (overwritten, "scatter"),
    "evaluated loop": (
        lambda x: dr.while_loop((UInt32(0), x), lambda i, x: i < 3, lambda i, x: (i + 1, x), mode="evaluated"),
        "while_loop",
    ),
}
LENGTH: dict[str, tuple[Callable[[Any], Any], str]] = {
    "number": (lambda x: x / len(x), r"'len'.*stream\.length\(\)"),
    "width": (lambda x: dr.sum(x) * (1.0 / dr.width(x)), r"'len'.*stream\.length\(\)"),
    "arange": (lambda x: x + dr.arange(Float, len(x)), r"stream\.index\(\)"),
    "generator": (lambda x: PCG32(size=len(x)).next_float32(), r"stream\.index\(\)"),
    "array": (lambda x: x + Float(np.ones(len(x))), "array"),
    "result": (lambda x: (x, len(x)), "results"),
    "table": (lambda x: dr.sum(Float(np.arange(len(x) // 2))) + x, "array"),
    "branch": (lambda x: x + 1 if len(x) > 100 else x * 2, "a number|operations"),
    "branch on chunks": (lambda x: dr.sin(x) if len(x) > 1000 else dr.cos(x), "operations"),
    "branch on all": (lambda x: dr.sin(x) if len(x) > 9000 else dr.cos(x), "operations"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_C5_operations_that_need_other_chunks(name: str, tmp_path: Path) -> None:
    function, op = REFUSED[name]
    with pytest.raises(dr.NotStreamableError, match=f"'{op}'") as caught:
        stream.evaluate(function, Unread(), out=tmp_path / "out.npy")
    assert LINE.search(str(caught.value)) and caught.value.line and LINE.search(caught.value.line)
    assert re.fullmatch(op, caught.value.op)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", LENGTH)
def test_C5_results_that_depend_on_the_chunk_length(name: str, tmp_path: Path) -> None:
    function, message = LENGTH[name]
    with pytest.raises(dr.NotStreamableError, match=message):
        stream.evaluate(function, Unread(), out=tmp_path / "out.npy", max_resident=300_000)
    assert not list(tmp_path.iterdir())


def test_C5_scatters_whose_order_counts() -> None:
    with pytest.raises(dr.NotStreamableError, match="order counts"):
        stream.evaluate(order_counts, Unread())


def test_C5_a_budget_too_small_and_the_least_one(tmp_path: Path) -> None:
    x = np.arange(20_000, dtype=np.float32)
    table = dr.opaque(Float, 2, 1000)

    def function(x: Any, t: Any) -> Any:
        bins = dr.zeros(Float, 100)
        dr.scatter_add(bins, x, UInt32(x) % 100)
        return dr.gather(Float, t, UInt32(x) % 1000) * x, bins, dr.sum(x)

    for out in (None, tmp_path / "out.npy"):
        with pytest.raises(dr.MemoryBudgetError) as caught:
            stream.evaluate(function, Unread(), params=(table,), max_resident=1000, out=out)
        assert not list(tmp_path.iterdir()) and caught.value.budget == 1000
        with pytest.raises(dr.MemoryBudgetError) as caught:
            stream.evaluate(function, x, params=(table,), max_resident=1000, out=out)
        least = caught.value.least
        assert str(least) in str(caught.value) and isinstance(caught.value, MemoryError)
        with pytest.raises(dr.MemoryBudgetError):
            stream.evaluate(function, x, params=(table,), max_resident=least - 1, out=out)
        found = stream.evaluate(function, x, params=(table,), max_resident=least, out=out)
        assert found.report.peak <= least and found.report.chunk == 64
        assert np.array_equal(np.load(out) if out else found.value[0].numpy(), 2 * x)
    with pytest.raises(dr.MemoryBudgetError, match="results in memory.*Give a path"):
        stream.evaluate(lambda x: x, np.zeros(1 << 20, np.float32), max_resident="1 MiB")
    with pytest.raises(dr.MemoryBudgetError, match="chunks of 1000000"):
        stream.evaluate(dr.sum, Unread(), max_resident="1 MiB", chunk=1_000_000)


@pytest.mark.parametrize("limit", [0, -1, "much", True, None])
def test_what_is_no_budget(limit: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="max_resident"):
        stream.evaluate(dr.sum, Unread(), max_resident=limit)


def test_arguments_are_checked() -> None:
    x = np.ones(10, np.float32)
    with pytest.raises(ValueError, match="array: 10, array: 9"):
        stream.evaluate(dr.dot, x, x[:9])
    with pytest.raises(ValueError, match="at least one source"):
        stream.evaluate(lambda: 0)
    with pytest.raises(TypeError, match=r"stream\.raw\('x\.bin', dtype\)"):
        stream.evaluate(dr.sum, "x.bin")
    with pytest.raises(TypeError, match="int"):
        stream.evaluate(dr.sum, 3)
    with pytest.raises(TypeError, match="TensorXf"):
        stream.evaluate(lambda x: dr.llvm.TensorXf(x, (len(x),)), x)
    with pytest.raises(ValueError, match=r"out: 1 place\(s\) for 0 result\(s\)"):
        stream.evaluate(dr.sum, x, out="sum.npy")
    with pytest.raises(ValueError, match="chunk must be positive"):
        stream.evaluate(dr.sum, x, chunk=0)
