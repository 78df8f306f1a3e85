"""Random programs mean the same compiled and interpreted."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from luxgrad.jit import control
from luxgrad.jit.arrays import memops, reduce
from luxgrad.jit.arrays.functions import select
from luxgrad.jit.arrays.namespace import namespace
from luxgrad.jit.interpret import interpret

NS = namespace("llvm", False)
Float, Int, UInt, Bool = (NS.get(name) for name in ("Float", "Int", "UInt", "Bool"))
SIZES = (1, 15, 16, 17, 100)


class Program:
    """Grows expressions over integer-valued floats and integers, where every order of additions is exact."""

    def __init__(self, seed: int, size: int) -> None:
        self.random = random.Random(seed)
        values = np.random.default_rng(seed)
        self.size = size
        self.table = Int(values.integers(-50, 50, 37).astype(np.int32))
        self.inputs = [Int(values.integers(-20, 20, size).astype(np.int32)) for _ in range(2)]
        self.inputs.append(Int(values.integers(-5, 5, 1).astype(np.int32)))
        self.counts = UInt(np.zeros(9, np.uint32))
        self.sums = Float(np.zeros(9, np.float32))

    def expression(self, known: list[Any], depth: int) -> Any:
        """Return a new integer array from arrays that may be used here."""
        pick = self.random.randrange
        a, b = (known[pick(len(known))] for _ in range(2))
        kind = pick(9 if depth else 6)
        if kind == 0:
            return a + b
        if kind == 1:
            return a * 3 - b
        if kind == 2:
            return select(a < b, a, b ^ 5)
        if kind == 3:
            return (a & 15) * (b & 7)
        if kind == 4:
            return memops.gather(Int, self.table, UInt(a & 31), b > -10)
        if kind == 5:
            return Int(Float(a & 255) * 0.5)
        if kind == 6:
            return self.loop(known, depth)
        if kind == 7:
            return self.branch(known, depth)
        memops.scatter_add(self.counts, UInt(1), UInt(a & 7), b > 0)
        memops.scatter_add(self.sums, Float(a & 63), UInt(b & 7))
        return a - 1

    def several(self, known: list[Any], count: int, depth: int) -> list[Any]:
        """Return `known` and `count` more."""
        out = list(known)
        for _ in range(count):
            out.append(self.expression(out, depth))
        return out

    def loop(self, known: list[Any], depth: int) -> Any:
        """Return a value summed over a number of iterations that differs between lanes."""
        bound = known[self.random.randrange(len(known))] & 7

        def body(i: Any, total: Any, same: Any) -> tuple[Any, ...]:
            values = self.several([i, total, same, *known], 3, depth - 1)
            return i + 1, total + (values[-1] & 1023), same

        return control.while_loop((Int(0), known[0] & 1, known[-1]), lambda i, t, s: i < bound, body)[1]

    def branch(self, known: list[Any], depth: int) -> Any:
        """Return one of two values, by lane."""
        a, b = known[0], known[-1]

        def arm(offset: int) -> Any:
            return lambda x: self.several([x, *known], 2, depth - 1)[-1] + offset

        return control.if_stmt((a,), (a & 3) < (b & 3), arm(1), arm(2))


@pytest.mark.cpu
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", range(10))
def test_random_program(seed: int, size: int) -> None:
    """Values, scatter targets and reductions of programs with nested loops and branches agree to the bit."""
    program = Program(1000 * size + seed, size)
    values = program.several(program.inputs, 8, 2)[-4:]
    values += [program.counts, program.sums]
    values += [reduce.sum(values[0]), reduce.max(values[1]), reduce.count(values[2] > 0)]
    nodes = [v._n for v in values]
    expected = interpret(nodes)
    assert any(n.buf is None for n in nodes), "nothing was left to compare"
    for value, reference in zip(values, expected, strict=True):
        np.testing.assert_array_equal(value.numpy(), reference)


@pytest.mark.cpu
def test_evaluated_nodes_are_read() -> None:
    """The interpreter starts from what memory holds."""
    x = Float(np.arange(20, dtype=np.float32))
    y = x + 1.0
    y.numpy()
    np.testing.assert_array_equal(interpret([(y * 2.0)._n])[0], (np.arange(20) + 1) * 2)


@pytest.mark.cpu
def test_plain_scatters_in_order() -> None:
    """Of two scatters to one element the later one wins; untouched elements keep their value."""
    target = Int(np.arange(8, dtype=np.int32))
    index = UInt(np.array([1, 3, 5], np.uint32))
    memops.scatter(target, Int(np.array([10, 30, 50], np.int32)), index)
    memops.scatter(target, Int(np.array([-3, -5], np.int32)), UInt(np.array([3, 5], np.uint32)))
    expected = interpret([target._n])[0]
    np.testing.assert_array_equal(expected, [0, 10, 2, -3, 4, -5, 6, 7])
    np.testing.assert_array_equal(target.numpy(), expected)


@pytest.mark.cpu
def test_deep_chain_does_not_recurse() -> None:
    """A chain of operations deeper than Python's stack is interpreted."""
    x = Int(np.arange(3, dtype=np.int32))
    for _ in range(20000):
        x = x + 1
    np.testing.assert_array_equal(interpret([x._n])[0], np.arange(3) + 20000)
