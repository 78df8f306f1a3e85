"""Python numbers as operands: the short way of recording them gives what the long way gives."""

from __future__ import annotations

import itertools
import threading

import pytest

import luxgrad as dr
from luxgrad.jit import dtypes
from luxgrad.jit.arrays.fold import fold, folding_operands
from luxgrad.jit.ops.row import ROWS
from luxgrad.jit.trace import COUNTER, Scope, literal, node, recording, scalar, state
from luxgrad.llvm import Float, UInt32

BINARY = [r for r in ROWS.values() if r.arity == 2]


@pytest.mark.parametrize("row", BINARY, ids=lambda r: r.name)
def test_what_folds_is_listed(row) -> None:  # type: ignore[no-untyped-def]
    """A constant that `fold` simplifies an operation with, on either side, is in the table operators look at."""
    listed = folding_operands(row)
    for dtype in (d for d in dtypes.ALL if d.kind in row.kinds):
        x = node(COUNTER, dtype, 8, ())
        values = (False, True) if dtype is dtypes.Bool else (0, 1, 2, 3, *((-0.0, 0.5) if dtype.is_float else ()))
        for value, swap in itertools.product(values, (False, True)):
            constant = literal(dtype, value)
            if fold(row, (constant, x) if swap else (x, constant), 8) is not None:
                assert constant.attr in listed[dtype], (row.name, dtype, value, swap)


def test_equal_constants_share_a_node_but_zeros_keep_their_sign() -> None:
    assert scalar(dtypes.Float32, 0.25) is scalar(dtypes.Float32, 0.25)
    assert scalar(dtypes.Float32, 0.0).attr != scalar(dtypes.Float32, -0.0).attr
    assert scalar(dtypes.Float32, 1).attr != scalar(dtypes.UInt32, 1).attr
    x = dr.opaque(Float, 1.0, 3)
    assert (1 / (x * -0.0)).numpy().tolist() == [-float("inf")] * 3
    assert (1 / (x * 0.0)).numpy().tolist() == [float("inf")] * 3


def test_a_number_that_does_not_fit_is_refused_every_time() -> None:
    x = dr.opaque(UInt32, 1, 3)
    for _ in range(2):
        with pytest.raises(OverflowError, match="does not fit"):
            x + (-1)


def test_scopes_are_counted_over_threads() -> None:
    """Another thread's recorded loop changes nothing for this one."""
    inside, leave = threading.Event(), threading.Event()
    seen: list[object] = []

    def other() -> None:
        state.scope = Scope("loop", None)
        seen.append((dr.opaque(Float, 1.0, 3) + 2.0)._n.scope)
        inside.set()
        leave.wait(10)
        state.scope = None

    before = recording.scopes
    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(10)
    assert recording.scopes == before + 1
    assert (dr.opaque(Float, 1.0, 3) + 2.0)._n.scope is None
    leave.set()
    thread.join()
    assert recording.scopes == before and seen[0] is not None
