"""Bit operations on integers and masks."""

from __future__ import annotations

from typing import Any

from ..codegen.emitter import Emitter, Value
from ..dtypes import DType
from .row import Lower, row


def _shift(direction: str) -> Lower:
    def lower(e: Emitter, dtype: DType, x: Value, y: Value) -> Value:
        # LLVM leaves a shift by the width or more undefined; the amount is taken modulo the width.
        amount = y & (dtype.bits - 1)
        return x << amount if direction == "left" else x >> amount

    return lower


def _count(name: str) -> Lower:
    def lower(e: Emitter, dtype: DType, x: Value) -> Value:
        return e.intrinsic(name, dtype, x, extra="" if name == "ctpop" else ", i1 false")

    return lower


def _mul_hi(e: Emitter, dtype: DType, x: Value, y: Value) -> Value:
    wide, op = f"i{2 * dtype.bits}", "sext" if dtype.kind == "i" else "zext"
    vector, lanes = e.vector(wide), e.type(dtype)
    a, b = (e.raw(f"{op} {lanes} {v.name} to {vector}") for v in (x, y))
    product = e.raw(f"mul {vector} {a}, {b}")
    amount = str(dtype.bits) if e.width == 1 else f"splat ({wide} {dtype.bits})"
    high = e.raw(f"lshr {vector} {product}, {amount}")
    return e.op(dtype, f"trunc {vector} {high} to {lanes}")


def _numpy_bits(np: Any, x: Any) -> Any:
    return np.array(
        [[int(b) for b in format(int(v), f"0{8 * x.dtype.itemsize}b")] for v in x.view(f"u{x.dtype.itemsize}").ravel()]
    )


def _numpy_lzcnt(np, x):  # type: ignore[no-untyped-def]
    width = 8 * x.dtype.itemsize
    return np.array([width - int(v).bit_length() for v in x.view(f"u{x.dtype.itemsize}")], dtype=x.dtype)


def _numpy_tzcnt(np, x):  # type: ignore[no-untyped-def]
    width = 8 * x.dtype.itemsize
    values = x.view(f"u{x.dtype.itemsize}")
    return np.array([(int(v) & -int(v)).bit_length() - 1 if v else width for v in values], dtype=x.dtype)


def _numpy_brev(np, x):  # type: ignore[no-untyped-def]
    width = 8 * x.dtype.itemsize
    values = [int(format(int(v), f"0{width}b")[::-1], 2) for v in x.view(f"u{x.dtype.itemsize}")]
    return np.array(values, dtype=f"u{x.dtype.itemsize}").view(x.dtype)


def _numpy_mul_hi(np, x, y):  # type: ignore[no-untyped-def]
    width = 8 * x.dtype.itemsize
    values = [(int(a) * int(b) >> width) & ((1 << width) - 1) for a, b in zip(x, y, strict=True)]
    return np.array(values, dtype=f"u{x.dtype.itemsize}").view(x.dtype)


_wide = (-1000.0, 1000.0)

row("and", "Return the bits set in both x and y.", 2, "biu", lambda np, x, y: x & y, lambda e, t, x, y: x & y,
    domain=(_wide, _wide))  # fmt: skip
row("or", "Return the bits set in x or y.", 2, "biu", lambda np, x, y: x | y, lambda e, t, x, y: x | y,
    domain=(_wide, _wide))  # fmt: skip
row("xor", "Return the bits set in one of x and y.", 2, "biu", lambda np, x, y: x ^ y, lambda e, t, x, y: x ^ y,
    domain=(_wide, _wide))  # fmt: skip
row("not", "Return x with every bit flipped.", 1, "biu", lambda np, x: ~x, lambda e, t, x: ~x, domain=(_wide,))
row("shl", "Return x shifted left by y modulo the width.", 2, "iu",
    lambda np, x, y: x << (y & (8 * x.dtype.itemsize - 1)), _shift("left"), domain=(_wide, (0, 31)))  # fmt: skip
row("shr", "Return x shifted right by y modulo the width, keeping the sign.", 2, "iu",
    lambda np, x, y: x >> (y & (8 * x.dtype.itemsize - 1)), _shift("right"), domain=(_wide, (0, 31)))  # fmt: skip
row("popcnt", "Return the number of bits set.", 1, "iu",
    lambda np, x: _numpy_bits(np, x).sum(1).astype(x.dtype), _count("ctpop"), domain=(_wide,))  # fmt: skip
row("lzcnt", "Return the number of zero bits above the highest bit set.", 1, "iu", _numpy_lzcnt, _count("ctlz"),
    domain=(_wide,))  # fmt: skip
row("tzcnt", "Return the number of zero bits below the lowest bit set.", 1, "iu", _numpy_tzcnt, _count("cttz"),
    domain=(_wide,))  # fmt: skip
row("brev", "Return the bits in reverse order.", 1, "iu", _numpy_brev,
    lambda e, t, x: e.intrinsic("bitreverse", t, x), domain=(_wide,))  # fmt: skip
row("mul_hi", "Return the upper half of the double-width product of x and y.", 2, "iu", _numpy_mul_hi, _mul_hi,
    domain=(_wide, _wide))  # fmt: skip
