"""Indices outside of their array: nothing is read or written there, and the Debug flag tells where."""

import pytest

import luxgrad as dr
from luxgrad.jit.errors import BoundsError
from luxgrad.llvm import Array2f, Bool, Float, Int8, Int32, Int64, UInt8, UInt32, UInt64
from luxgrad.llvm.ad import Float as DiffFloat
from luxgrad.llvm.ad import UInt32 as DiffUInt32

FAR = {Int8: -7, UInt8: 200, Int32: -(2**31), UInt32: 2**32 - 1, Int64: -(2**40), UInt64: 2**63}


def source(n=100):
    x = dr.arange(Float, n) + 1
    dr.eval(x)
    return x


@pytest.mark.parametrize("kind", FAR, ids=lambda t: t.__name__)
@pytest.mark.parametrize("width", [1, 15, 33])
def test_far_indices_read_zero_and_write_nothing(kind, width):
    x = source()
    indices = [k % 100 for k in range(width)]
    for lane in range(0, width, 5):
        indices[lane] = FAR[kind]
    index = kind(indices)
    good = [i for i in indices if i != FAR[kind]]
    assert list(dr.gather(Float, x, index)) == [0 if i == FAR[kind] else i + 1 for i in indices]
    for write, expected in (
        (lambda t: dr.scatter(t, 5.0, index), 5.0 * len(set(good))),
        (lambda t: dr.scatter_add(t, 2.0, index), 2.0 * len(good)),
        (lambda t: dr.scatter_reduce(dr.ReduceOp.Max, t, 3.0, index), 3.0 * len(set(good))),
    ):
        target = dr.zeros(Float, 100)
        write(target)
        assert dr.sum(target)[0] == expected


def test_first_index_behind_the_end():
    x = source()
    assert list(dr.gather(Float, x, UInt32([99, 100]))) == [100, 0]
    assert list(dr.gather(Float, dr.full(Float, 4, 100), UInt32([99, 100]))) == [4, 0]


def test_nested_elements_partly_outside():
    target = dr.zeros(Float, 5)
    dr.scatter_add(target, Array2f(1, 2), UInt32([0, 2, 2, 3]))
    assert list(target) == [1, 2, 0, 0, 2]
    read = dr.gather(Array2f, target, UInt32([0, 2]))
    assert (list(read.x), list(read.y)) == ([1, 2], [2, 0])


def test_gradient_of_lanes_outside_is_zero():
    x = DiffFloat([1, 2, 3])
    dr.enable_grad(x)
    y = dr.gather(DiffFloat, x, DiffUInt32([0, 3, 2, 2]))
    dr.backward(dr.sum(y * y))
    assert list(dr.grad(x)) == [2, 0, 12]


def test_inside_a_loop():
    x = source(10)

    def body(i, total):
        return i + 1, total + dr.gather(Float, x, i)

    _, total = dr.while_loop((UInt32([0, 5]), Float([0, 0])), lambda i, t: i < 100, body)
    assert list(total) == [55, 40]


@pytest.mark.parametrize("write", [False, True])
def test_debug_flag_names_index_length_and_line(write):
    x = source()
    with dr.scoped_set_flag(dr.JitFlag.Debug):
        index = Int32([4, 1234567, 5])
        with pytest.raises(BoundsError, match=r"index 1234567 .*array of 100 elements.*test_bounds\.py:\d+"):
            if write:
                dr.scatter_add(x, 1.0, index)
                dr.eval(x)
            else:
                dr.eval(dr.gather(Float, x, index))
        # Masked lanes and good indices are no error, and the program goes on.
        assert list(dr.gather(Float, source(), index, index < 100)) == [5, 0, 6]


def test_debug_flag_finds_the_scatter_of_one_element():
    with dr.scoped_set_flag(dr.JitFlag.Debug):
        target = dr.zeros(Float, 4)
        dr.scatter(target, 1.0, UInt32(4))
        with pytest.raises(BoundsError, match="index 4 is outside of an array of 4"):
            dr.eval(target)
        dr.scatter(target, 1.0, UInt32(4), Bool(False))
        assert list(target) == [0, 0, 0, 0]


def test_parts_of_a_borrowed_array_do_not_add_at_the_same_time():
    """An array of NumPy that is no whole number of packets long is worked on in two parts, also if it is short."""
    import numpy as np

    values = np.ones(5000, np.float32)
    for _ in range(200):
        keep = dr.arange(Float, 100_000) + 1
        dr.eval(keep)  # busy threads: what comes next is not run by this one
        counts = dr.zeros(Float, 4)
        dr.scatter_add(counts, Float(values), dr.arange(UInt32, 5000) % 4)
        assert list(counts) == [1250] * 4
