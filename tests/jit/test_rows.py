"""Every row gives what its NumPy reference says, for every element type it takes, on compiled lanes."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from luxgrad.jit import dtypes
from luxgrad.jit.arrays.base import apply
from luxgrad.jit.arrays.namespace import namespace
from luxgrad.jit.interpret import interpret
from luxgrad.jit.ops.row import ROWS, Row
from luxgrad.jit.precision import corner_values, exact_values, ulp_error

NS = namespace("llvm", False)
CASES = [(r, d) for r in ROWS.values() for d in dtypes.ALL if d.kind in r.kinds]
pytestmark = pytest.mark.cpu


def types_of(row: Row, dtype: dtypes.DType) -> list[dtypes.DType]:
    """Return the type of each argument."""
    return [dtypes.Bool if row.mask_first and k == 0 else dtype for k in range(row.arity)]


def random_values(row: Row, dtype: dtypes.DType, count: int) -> list[np.ndarray[Any, Any]]:
    """Return values from the row's test intervals."""
    generator = np.random.default_rng(row.number)
    out = []
    for kind, (low, high) in zip(types_of(row, dtype), row.domain, strict=True):
        if kind.kind == "b":
            out.append(generator.integers(0, 2, count).astype(bool))
        elif kind.is_integer:
            least, most = kind.limits
            out.append(generator.integers(max(int(low), least), min(int(high), most) + 1, count).astype(kind.numpy))
        else:
            out.append(generator.uniform(low, high, count).astype(kind.numpy))
    return out


def corners(row: Row, dtype: dtypes.DType) -> list[np.ndarray[Any, Any]]:
    """Return all combinations of the types' special values (of three arguments a sample of them)."""
    lists = [list(corner_values(kind)) for kind in types_of(row, dtype)]
    combinations = list(itertools.product(*lists))
    columns = zip(*combinations[:: max(1, len(combinations) // 2000)], strict=True)
    return [np.array(c, kind.numpy) for c, kind in zip(columns, types_of(row, dtype), strict=True)]


def exact_fma(dtype: dtypes.DType, args: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Return x * y + z rounded once; special values as the plain formula gives them."""
    x, y, z = args
    out = x * y + z
    if dtype.is_float:
        for k, (a, b, c) in enumerate(zip(x, y, z, strict=True)):
            if np.isfinite(a) and np.isfinite(b) and np.isfinite(c) and np.isfinite(out[k]):
                total = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
                if total:
                    out[k] = np.array(float(total)).astype(dtype.numpy)
    return out


def check(row: Row, dtype: dtypes.DType, args: list[np.ndarray[Any, Any]]) -> None:
    """Compare the compiled row with its reference."""
    arrays = [NS.flat(kind)(a) for kind, a in zip(types_of(row, dtype), args, strict=True)]
    result = apply(row, tuple(arrays)).numpy()
    with np.errstate(all="ignore"):
        if row.ulp and dtype.is_float and row.name != "fma":
            error = ulp_error(result, exact_values(row, dtype, *args), dtype)
            worst = int(np.argmax(error))
            assert error[worst] <= max(row.ulp, 1.0), f"{[a[worst] for a in args]}: {result[worst]}"
            return
        expected = exact_fma(dtype, args) if row.name == "fma" else np.asarray(row.reference(np, *args))
    if row.result == "bool":
        assert result.dtype == np.bool_
    if row.name == "fma" and dtype.is_float:
        finite = np.isfinite(expected)
        assert (ulp_error(result[finite], expected[finite].astype(np.longdouble), dtype) <= 1.0).all()
        return
    np.testing.assert_array_equal(result, expected.astype(result.dtype))


@pytest.mark.parametrize(("row", "dtype"), CASES, ids=[f"{r.name}-{d.short}" for r, d in CASES])
def test_row(row: Row, dtype: dtypes.DType) -> None:
    """Random values of the row's intervals, then all its special values."""
    check(row, dtype, random_values(row, dtype, 333))
    check(row, dtype, corners(row, dtype))


@pytest.mark.parametrize("size", [0, 1, 2, 15, 16, 17, 1000003])
@pytest.mark.parametrize(
    ("name", "short"), [("add", "f32"), ("sin", "f32"), ("lt", "i32"), ("fma", "f64"), ("xor", "u8")]
)
def test_sizes(name: str, short: str, size: int) -> None:
    """Arrays that fill no packet, exactly one, one and a bit, and many, give every element."""
    row = ROWS[name]
    dtype = next(d for d in dtypes.ALL if d.short == short)
    args = random_values(row, dtype, size)
    if size == 1:  # a literal would be folded
        args = [np.repeat(a, 2) for a in args]
    arrays = [NS.flat(kind)(a) for kind, a in zip(types_of(row, dtype), args, strict=True)]
    result = apply(row, tuple(arrays))
    expected = interpret([result._n])[0]
    if name == "sin":
        np.testing.assert_allclose(result.numpy(), expected, rtol=3e-7, atol=1e-7)
    elif name == "fma":
        np.testing.assert_allclose(result.numpy(), expected, rtol=0, atol=1e-15)
    else:
        np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize(("row", "dtype"), CASES, ids=[f"{r.name}-{d.short}" for r, d in CASES])
def test_folded_literals(row: Row, dtype: dtypes.DType) -> None:
    """A row of literals is worked out while tracing, to the value that code would give."""
    args = [a[:1] for a in random_values(row, dtype, 3)]
    kinds = types_of(row, dtype)
    folded = apply(row, tuple(NS.flat(kind)(a) for kind, a in zip(kinds, args, strict=True)))
    twice = tuple(NS.flat(kind)(np.repeat(a, 2)) for kind, a in zip(kinds, args, strict=True))
    compiled = apply(row, twice).numpy()[:1]
    assert folded._n.buf is None and folded._n.op.name == "literal"
    if dtype.is_float and row.result != "bool":
        assert ulp_error(compiled, folded.numpy().astype(np.longdouble), dtype)[0] <= max(row.ulp, 0.0) + 0.5
    else:
        np.testing.assert_array_equal(folded.numpy(), compiled)
