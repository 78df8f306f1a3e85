"""Order, repeatability, and what kernels read and write."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from luxgrad.jit.arrays import functions as f
from luxgrad.jit.arrays import reduce
from luxgrad.jit.arrays.create import arange, full, linspace, zeros
from luxgrad.jit.arrays.memops import gather, scatter, scatter_add
from luxgrad.jit.control import while_loop
from luxgrad.jit.errors import CompileError, SymbolicError
from luxgrad.jit.runtime.engine import runtime
from luxgrad.jit.runtime.evaluate import evaluate
from luxgrad.jit.runtime.history import history
from luxgrad.jit.trace import LITERAL

SIZES = [1, 15, 16, 17, 31, 1000, 8192, 8193, 100_003]


def launches(fn) -> int:
    before = history.launches
    fn()
    return history.launches - before


@pytest.mark.parametrize("size", SIZES)
def test_borrowed_memory_of_any_size(t, size):
    data = np.random.default_rng(size).random(size).astype(np.float32)
    x = t.Float(data)
    assert np.array_equal((x * 2 + 1).numpy(), data * np.float32(2) + np.float32(1))
    assert np.isclose(reduce.sum(x).item(), data.sum(dtype=np.float64), rtol=1e-6)
    assert reduce.max(x).item() == data.max() and reduce.min(x).item() == data.min()
    assert reduce.count(x > 0.5).item() == (data > 0.5).sum()


@pytest.mark.parametrize("size", SIZES)
def test_scatter_add_of_any_size(t, size):
    index = np.random.default_rng(size).integers(0, 97, size).astype(np.uint32)
    target = zeros(t.Float, 97)
    scatter_add(target, t.Float(1), t.UInt(index))
    assert np.array_equal(target.numpy(), np.bincount(index, minlength=97))


def test_lazy_until_looked_at(t):
    assert launches(lambda: linspace(t.Float, 0, 1, 1_000_000)) == 0
    x = linspace(t.Float, 0, 1, 1_000_000)
    y = f.sin(x) * f.exp(x) + 1
    assert launches(lambda: evaluate([y._n])) == 1
    assert x._n.buf is None


def test_reduction_shares_the_kernel_of_its_argument(t):
    x = arange(t.Float, 50_000)
    total = reduce.sum(f.sin(x) * 2)
    assert launches(lambda: evaluate([total._n])) == 1
    assert np.isclose(total.item(), (np.sin(np.arange(50_000.0)) * 2).sum(), atol=1e-2)


def test_sum_of_many_ones_is_exact(t):
    x = full(t.Float, 1, 1 << 25) + arange(t.Float, 1 << 25) * 0
    assert reduce.sum(x).item() == 1 << 25


def test_results_repeat_and_do_not_depend_on_the_threads(t):
    data = np.random.default_rng(1).random(300_001).astype(np.float32)
    index = (np.random.default_rng(2).integers(0, 501, 300_001)).astype(np.uint32)

    def run():
        target = zeros(t.Float, 501)
        scatter_add(target, t.Float(data), t.UInt(index))
        return reduce.sum(t.Float(data)).item(), target.numpy().tobytes()

    count = runtime.threads.threads
    try:
        results = set()
        for threads in (1, 2, 3):
            runtime.set_threads(threads)
            results |= {run() for _ in range(4)}
        assert len(results) == 1
    finally:
        runtime.set_threads(count)


def test_launches_are_ordered(t):
    # Freed memory is given to the next launch at once: order alone keeps what earlier ones read.
    for k in range(300):
        x = arange(t.Float, 40_000) + float(k % 7)
        y = x * 2.0
        evaluate([x._n])
        evaluate([y._n])
        del x
        z = y + 1.0
        evaluate([z._n])
        assert z[17] == (17 + k % 7) * 2 + 1


def test_scatter_leaves_other_holders_alone(t):
    x = arange(t.Float, 10)
    evaluate([x._n])
    y = t.Float(x)
    scatter(x, t.Float(99), t.UInt([3]))
    assert x[3] == 99 and y[3] == 3
    outside = np.arange(10, dtype=np.float32)
    z = t.Float(outside)
    z[2] = 55.0
    assert z[2] == 55 and outside[2] == 2


def test_unread_scatter_is_not_run(t):
    def run():
        target = zeros(t.Float, 1000)
        scatter(target, t.Float(1), arange(t.UInt, 1000))

    assert launches(run) == 0


def test_scatters_act_in_program_order(t):
    index = arange(t.UInt, 4)
    out = zeros(t.Float, 4)
    scatter(out, t.Float([1, 2, 3, 4]), index)
    scatter_add(out, t.Float(10), index)
    scatter(out, t.Float(7), t.UInt([2]))
    assert out.numpy().tolist() == [11, 12, 7, 14]


def test_loop_with_scatter_runs_once(t):
    hits = zeros(t.UInt, 8)

    def body(i, s):
        scatter_add(hits, t.UInt(1), i)
        return i + 1, s + i

    i, s = while_loop((t.UInt(0) + arange(t.UInt, 100) * 0, t.UInt(0)), lambda i, s: i < 8, body)
    assert launches(lambda: evaluate([s._n])) == 1
    assert hits.numpy().tolist() == [100] * 8 and s[5] == 28


def test_symbolic_values_cannot_be_looked_at(t):
    def body(i):
        i[0]
        return (i + 1,)

    with pytest.raises(SymbolicError, match="symbolic"):
        while_loop((arange(t.UInt, 10),), lambda i: i < 20, body)
    assert (arange(t.UInt, 3) + 1).numpy().tolist() == [1, 2, 3]  # the failed recording left nothing behind


def test_failed_recording_undoes_its_scatters(t):
    target = zeros(t.Float, 4)

    def body(i):
        scatter_add(target, t.Float(1), i)
        raise KeyError("user error")

    with pytest.raises(KeyError, match="user error"):
        while_loop((arange(t.UInt, 4),), lambda i: i < 3, body)
    assert target.numpy().tolist() == [0, 0, 0, 0]


def test_bad_code_is_an_exception(t):
    from luxgrad.jit.codegen.host import compile_ir

    with pytest.raises(CompileError, match="LLVM refused"):
        compile_ir("define void @kernel() {\n  %x = add i32 1, 2.0\n  ret void\n}", "kernel")
    with pytest.raises(CompileError, match="exports no function"):
        compile_ir("define void @a() {\n  ret void\n}", "a").address("b")
    assert (arange(t.Float, 3) * 2).numpy().tolist() == [0, 2, 4]


def test_unsigned_minimum_with_zero(t):
    # LLVM 22 ends the process on umin(fptoui(x), 0): folded before it gets there.
    x = t.UInt(t.Float([1.5, 2.5]))
    assert f.min(x, 0)._n.op is LITERAL
    assert (x < 0)._n.op is LITERAL
    assert f.select(x < 0, x, 0).numpy().tolist() == [0, 0]


def test_integer_division_never_traps(t):
    x, y = t.UInt([7, 8, 9]), t.UInt([0, 2, 0])
    assert (x // y).numpy().tolist() == [0xFFFFFFFF, 4, 0xFFFFFFFF]
    assert (x % y).numpy().tolist() == [7, 0, 9]


def test_deep_chains(t):
    x = arange(t.Float, 4)
    for _ in range(30_000):
        x = x + 1.0
    y = x._n
    del x
    gc.collect()
    del y  # a hundred thousand nodes are freed without recursion
    x = arange(t.Float, 4)
    for _ in range(3_000):
        x = x + 1.0
    assert x.numpy().tolist() == [3000, 3001, 3002, 3003]


def test_threads_trace_and_evaluate_at_once(t):
    results: dict[int, bool] = {}

    def work(k: int) -> None:
        ok = True
        for n in range(20):
            x = arange(t.Float, 5000 + k) * float(k) + float(n)
            ok &= bool(np.allclose(x.numpy(), np.arange(5000 + k) * k + n))
        results[k] = ok

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(6), True)


def test_empty_arrays(t):
    x = zeros(t.Float, 0)
    assert len(x + x) == 0 and len(gather(t.Float, t.Float([1, 2]), zeros(t.UInt, 0))) == 0
    assert reduce.sum(x).item() == 0 and reduce.max(x).item() == -np.inf
    y = t.Float([1, 2])
    scatter(y, zeros(t.Float, 0), zeros(t.UInt, 0))
    assert y.numpy().tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="incompatible sizes"):
        x + t.Float([1, 2])


def test_sizes_must_agree(t):
    with pytest.raises(RuntimeError, match=r"operands have incompatible sizes! \(sizes: 3, 2\)"):
        t.Float([1, 2, 3]) + t.Float([1, 2])


def test_values_that_leave_their_loop_are_refused(t):
    kept = []

    def body(x):
        kept.append(x * 2)
        return (x + 1,)

    while_loop((t.Float([1, 2]),), lambda x: x < 3, body)
    with pytest.raises(SymbolicError, match="left the loop or branch"):
        (kept[0] + 1).numpy()


@pytest.mark.parametrize("bound", [0, -2, "a"])
def test_bounds_on_iterations_are_checked(t, bound):
    with pytest.raises(ValueError, match="max_iterations must be positive"):
        while_loop((t.Float([1, 2]),), lambda x: x < 3, lambda x: (x + 1,), max_iterations=bound)


def test_reductions_by_name_in_any_case(t):
    assert reduce.reduce("Max", t.Float([1, 5, 3])).item() == 5
    with pytest.raises(ValueError, match="unknown reduction 'median'"):
        reduce.reduce("median", t.Float([1, 5, 3]))
