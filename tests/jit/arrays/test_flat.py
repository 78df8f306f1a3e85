"""Flat arrays: construction, promotion, operators, indexing, conversion."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import luxgrad as dr
from luxgrad.llvm import Float as PlainFloat
from luxgrad.llvm.ad import Array3f, Bool, Float, Float16, Float64, Int, Int8, Int64, UInt, UInt8, UInt64


def test_one_array_can_be_made_of_many_things() -> None:
    wanted = [1.0, 2.0, 3.0]
    values = [Float(1, 2, 3), Float([1, 2, 3]), Float(k + 1 for k in range(3)), Float(np.array([1, 2, 3.0]))]
    values += [
        Float(np.arange(1, 7, dtype=np.float32)[::2] * 0 + [1, 2, 3]),
        Float(Int(1, 2, 3)),
        Float(Float(1, 2, 3)),
    ]
    for value in values:
        assert list(value) == wanted
    assert len(Float()) == 0 and len(Float(5)) == 1
    with pytest.raises(TypeError, match="shape"):
        Float(np.zeros((2, 3)))
    with pytest.raises(TypeError, match="str"):
        Float("1")


@pytest.mark.parametrize(
    ("a", "b", "kind"),
    [
        (Int(1), UInt(2), UInt), (Int8(1), UInt8(2), UInt8), (Int64(1), Float(2), Float),
        (UInt64(1), Float16(2), Float16),
        (Float(1), Float64(2), Float64), (Int(1), 2.5, Float), (UInt64(1), 0.5, Float), (Float16(1), 0.5, Float16),
        (Float(1), 3, Float), (Bool(True), 1, Int), (PlainFloat(1), Float(2), Float),
    ],
)  # fmt: skip
def test_promotion(a: object, b: object, kind: type) -> None:
    assert type(a + b) is kind  # type: ignore[operator]
    assert type(b + a) is kind  # type: ignore[operator]


def test_integers_that_do_not_fit_are_refused() -> None:
    for build in (lambda: UInt(-1), lambda: UInt(1) + 2**40, lambda: UInt(1) * -1, lambda: Int(2**31)):
        with pytest.raises(OverflowError, match="does not fit"):
            build()


def test_division_and_remainder_of_integers_truncate_and_never_trap() -> None:
    a, b = Int(-7, 7, -7, 7, 5), Int(2, -2, -2, 2, 0)
    assert list(a // b) == [-3, -3, 3, 3, -1]
    assert list(a % b)[:4] == [-1, 1, -1, 1]
    for bad in (lambda: Int(7) / Int(2), lambda: Float(7) // Float(2), lambda: Float(7) % 2, lambda: ~Float(1)):
        with pytest.raises(TypeError):
            bad()


def test_in_place_operators_keep_the_object_and_leave_copies_alone() -> None:
    x = Float(1, 2)
    y, z = x, Float(x)
    x *= 2
    assert y is x and list(y) == [2, 4] and list(z) == [1, 2]
    i = Int(5)
    i += 1.5
    assert type(i) is Float and list(i) == [6.5]


def test_sizes_must_agree() -> None:
    with pytest.raises(RuntimeError, match=r"incompatible sizes! \(sizes: 3, 2\)"):
        Float(1, 2, 3) + Float(1, 2)
    assert list(Float(1, 2, 3) + Float(1)) == [2, 3, 4]


def test_indexing_reads_numbers_slices_and_index_arrays() -> None:
    x = Float(0, 10, 20, 30, 40)
    assert x[1] == 10.0 and x[-1] == 40.0 and type(x[1]) is float
    values = np.arange(5) * 10
    for key in (slice(1, 3), slice(None, None, -1), slice(4, 0, -2), slice(3, 3)):
        assert list(x[key]) == list(values[key])
    assert list(x[UInt(3, 0)]) == [30, 0]
    with pytest.raises(IndexError, match=r"entry 5 is out of bounds \(the array is of size 5\)"):
        x[5]


def test_assignment_by_index_slice_and_mask() -> None:
    x = dr.arange(Float, 5)
    x[1] = 7
    x[2:4] = Float(8, 9)
    x[UInt(0)] = -1
    assert list(x) == [-1, 7, 8, 9, 4]
    x[x > 7] = 0
    assert list(x) == [-1, 7, 0, 0, 4]
    x[x > 3] += 10
    assert list(x) == [-1, 17, 0, 0, 14]
    with pytest.raises(RuntimeError, match="not compacted"):
        x[x > 3] = Float(1, 2)


def test_a_masked_read_is_a_copy() -> None:
    x = Float(1, 2)
    y = x[x > 1]
    y += 1
    assert list(x) == [1, 2]


def test_conversion_shares_memory_with_numpy_until_written() -> None:
    source = np.arange(100, dtype=np.float32)
    x = Float(source)
    assert np.shares_memory(x.numpy(), source)
    dr.scatter(x, Float(-1), UInt(0))
    assert x[0] == -1 and source[0] == 0
    assert np.from_dlpack(Float(1, 2, 3)).tolist() == [1, 2, 3]
    assert list(Float(np.arange(20, dtype=np.float64)[::3])) == list(range(0, 20, 3))


def test_truth_and_numbers() -> None:
    assert bool(Bool(True)) and float(Float(2)) == 2.0 and int(Int(3)) == 3 and [10, 20][Int(1)] == 20
    for bad in (Float(1), Bool(True, False)):
        with pytest.raises(RuntimeError, match="truth value"):
            bool(bad)
    with pytest.raises(RuntimeError, match="size 1"):
        Float(1, 2).item()
    with pytest.raises(RuntimeError, match="cannot compare"):
        Float(1) == None  # noqa: B015, E711


def test_text_shows_the_ends_of_long_arrays() -> None:
    assert repr(Float(1, 2.5)) == "[1, 2.5]"
    assert repr(dr.arange(UInt, 1000)) == "[0, 1, 2, .. 994 skipped .., 997, 998, 999]"


def test_copies_and_pickles() -> None:
    x = Float(1, 2, 3)
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(y) is Float and list(y) == [1, 2, 3]
        y += 1
    assert list(x) == [1, 2, 3]


def test_state_follows_evaluation() -> None:
    x = dr.arange(Float, 8) * 2
    assert x.state == dr.VarState.Unevaluated and Float(1).state == dr.VarState.Literal
    dr.eval(x)
    assert x.state == dr.VarState.Evaluated
    dr.scatter(x, Float(1), UInt(2))
    assert x.state == dr.VarState.Dirty
    assert x[2] == 1


def test_nested_operand_decides() -> None:
    assert type(Float(1) + Array3f(1)) is Array3f
    x = Float(1)
    x += Array3f(1, 2, 3)
    assert type(x) is Array3f


_OUT_OF_RANGE: list[tuple[Any, Any, str]] = [
    (UInt, np.array(2**40, np.uint64), r"element 0 .* is 1099511627776.*\(0 \.\. 4294967295\).*astype\(numpy.uint32"),
    (UInt, np.array([3, 2**40], np.uint64), "element 1 .* 1099511627776"),
    (UInt, np.array([0, 5, -1]), "element 2 .* is -1"),
    (UInt, np.int32(-1), "is -1"),
    (Int, np.array([1, 2**31], np.uint32), "element 1 .* 2147483648"),
    (Int, np.array([-(2.0**31), 1e20]), r"element 1 .* 1e\+20"),
    (Int, np.array([0, np.nan], np.float32), "element 1 .* is nan"),
    (UInt, np.array([0, np.inf]), "element 1 .* is inf"),
    (UInt, np.array([-0.5, -1.0]), r"element 1 .* is -1\.0"),
    (UInt, [1, -1], r"-1 \(element 1\) does not fit into UInt32"),
    (Int, [0, float("nan")], r"nan \(element 1\)"),
    (Int, float("inf"), "inf does not fit into Int32"),
    (Float, 10**400, "1329 bits does not fit into Float32"),
]


@pytest.mark.parametrize(("kind", "value", "message"), _OUT_OF_RANGE)
def test_numbers_that_an_integer_cannot_hold_are_refused(kind: Any, value: Any, message: str) -> None:
    with pytest.raises((OverflowError, ValueError), match=message):
        kind(value)


def test_numbers_at_the_limits_are_taken() -> None:
    assert list(UInt(np.array([0, 2**32 - 1], np.int64))) == [0, 2**32 - 1]
    assert list(UInt(np.array([-0.75, 4294967295.5]))) == [0, 2**32 - 1]
    assert list(Int(np.array([-(2.0**31), 2147483520.0], np.float32))) == [-(2**31), 2147483520]
    assert list(UInt(np.array([-1, 1]).astype(np.uint32))) == [2**32 - 1, 1]
    assert list(Int(np.array([], np.float64))) == [] and list(UInt([0.5, 2.5])) == [0, 2]
    assert list(Int(np.array([True, False]))) == [1, 0]


def test_arrays_of_other_types_do_not_mix() -> None:
    for other in (np.array([1j, 2]), np.array(["a", "b"]), np.longdouble([1, 2])):
        with pytest.raises(TypeError, match="cannot be combined with NumPy arrays of type"):
            Float(1, 2) + other
