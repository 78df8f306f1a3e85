"""How many kernels a stream takes: few, however long it is (C7)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import luxgrad as dr
from luxgrad import stream
from luxgrad.llvm import Float, UInt32

CHUNK = 128


def kernels(function: Any, n: int) -> list[set[str]]:
    """Return the distinct kernels over chunks, by the number of results and reductions that they have."""
    dr.kernel_history_clear()
    with dr.scoped_set_flag(dr.JitFlag.KernelHistory):
        stream.evaluate(function, np.ones(n, np.float32), chunk=CHUNK)
    stages: dict[Any, set[str]] = {}
    for record in dr.kernel_history():
        if record["size"] > 1:
            stages.setdefault((record["output_count"], record["operation_count"]), set()).add(record["hash"])
    return list(stages.values())


@pytest.mark.parametrize("n", [CHUNK - 1, CHUNK, CHUNK + 1, 20 * CHUNK, 20 * CHUNK + 1, 20 * CHUNK + 65])
def test_C7_one_kernel_for_full_and_last_chunks(n: int) -> None:
    single = kernels(lambda x: (dr.sin(x) + Float(stream.index()), dr.sum(x)), n)
    assert sum(map(len, single)) == 1
    stages = kernels(lambda x: dr.sum(x - dr.mean(x)), n)
    assert len(stages) == 2 and all(len(s) == 1 for s in stages)


def test_C7_scatters_take_at_most_two_kernels_per_stage() -> None:
    def histogram(x: Any) -> Any:
        bins = dr.zeros(UInt32, 10)
        dr.scatter_add(bins, 1, UInt32(x))
        return bins

    assert all(len(s) <= 2 for s in kernels(histogram, 50 * CHUNK + 7))


def test_C7_lengths_add_no_kernels() -> None:
    def function(x: Any) -> Any:
        return dr.cos(x) * 3.25 + Float(stream.index())

    stream.evaluate(function, np.ones(1000, np.float32), chunk=CHUNK)
    before = dr.launch_stats()[1:]
    for n in (2, 77, 999, 5000):
        report = stream.evaluate(function, np.ones(n, np.float32), chunk=CHUNK).report
        assert report.compiled == 0 and report.launches >= n // CHUNK
    assert dr.launch_stats()[1:] == before
