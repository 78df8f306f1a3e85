"""`+=` and its kind take over the memory of the old value when nobody else holds it."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import luxgrad as dr
from luxgrad.llvm import Array3f, Float, Int32, UInt32
from luxgrad.llvm.ad import Float as DiffFloat

SIZE = 100_000


def fresh(kind=Float):
    x = kind(dr.arange(kind, SIZE) + 1)
    dr.eval(x)
    return x, np.arange(SIZE, dtype=kind.dtype.numpy) + 1


def peak(work):
    gc.collect()
    dr.sync_thread()
    with dr.memory_scope() as seen:
        kept = work()
    assert kept is None
    return (seen.live_peak - seen.live_before) / (4 * SIZE)


def test_the_only_holder_needs_no_more_memory():
    x, a = fresh()

    def work():
        nonlocal x
        for k in range(5):
            x += 1
            x *= 2.0
            x -= k
            dr.eval(x)

    assert peak(work) < 0.1
    for k in range(5):
        a = (a + 1) * 2 - k
    assert np.allclose(x.numpy(), a)


def test_other_holders_keep_the_old_value():
    x, a = fresh()
    y, view, later = Float(x), x.numpy(), x + 0.5
    x += 1
    dr.eval(x)
    assert np.array_equal(x.numpy(), a + 1)
    assert np.array_equal(y.numpy(), a) and np.array_equal(view, a) and np.array_equal(later.numpy(), a + 0.5)


def test_a_holder_of_what_is_in_between():
    x, a = fresh()
    x += 1
    y = Float(x)
    x *= 2
    dr.eval(x)
    assert np.array_equal(x.numpy(), 2 * (a + 1)) and np.array_equal(y.numpy(), a + 1)
    x, a = fresh()
    x += 1
    z = x * 3
    x *= 2
    dr.eval(x)
    assert np.array_equal(x.numpy(), 2 * (a + 1)) and np.array_equal(z.numpy(), 3 * (a + 1))


def test_both_operands_and_gathers_of_itself():
    x, a = fresh()
    x += x
    dr.eval(x)
    assert np.array_equal(x.numpy(), 2 * a)
    x += dr.gather(Float, x, dr.arange(UInt32, SIZE) ^ 1)
    dr.eval(x)
    swapped = (2 * a).reshape(-1, 2)[:, ::-1].ravel()
    assert np.array_equal(x.numpy(), 2 * a + swapped)


def test_of_another_width_or_type():
    x, a = fresh(Int32)
    x += 1
    y = Float(x) * 0.5
    dr.eval(x, y)
    assert np.array_equal(x.numpy(), a + 1) and np.array_equal(y.numpy(), (a + 1) * np.float32(0.5))
    single = dr.opaque(Float, 2.0)
    single += Float(np.arange(40, dtype=np.float32))
    assert np.array_equal(single.numpy(), 2 + np.arange(40))


def test_numpy_memory_is_not_written():
    a = np.arange(64, dtype=np.float32)
    x = Float(a)
    x += 1
    dr.eval(x)
    assert a[3] == 3 and x[3] == 4


def test_components_of_nested_arrays():
    v = Array3f(*(fresh()[0] for _ in range(3)))
    dr.eval(v)

    def work():
        nonlocal v
        for _ in range(3):
            v += 1
            dr.eval(v)

    work()
    assert v.x[0] == 4 and v.z[10] == 14


def test_values_needed_for_gradients_stay():
    x = DiffFloat([1, 2, 3])
    dr.enable_grad(x)
    y = x * 1
    y *= y
    dr.eval(y)
    y *= 2
    dr.eval(y)
    dr.backward(dr.sum(y))
    assert list(dr.grad(x)) == [4, 8, 12]


@pytest.mark.parametrize("seed", range(10))
def test_random_programs(seed):
    rng = np.random.default_rng(seed)
    arrays = [Float(rng.random(1000).astype(np.float32)) + 1.0 for _ in range(4)]
    dr.eval(arrays)
    plain = [x.numpy().copy() for x in arrays]
    for _ in range(60):
        i, j, what = rng.integers(0, 4, 3)
        if what == 0:
            arrays[i] += arrays[j]
            plain[i] = plain[i] + plain[j]
        elif what == 1:
            arrays[i] *= 0.5
            plain[i] = plain[i] * np.float32(0.5)
        elif what == 2:
            arrays[i] = Float(arrays[j])
            plain[i] = plain[j]
        else:
            dr.eval(arrays[i], *([arrays[j]] if rng.random() < 0.5 else []))
    for x, a in zip(arrays, plain, strict=True):
        assert np.allclose(x.numpy(), a, rtol=1e-6)
