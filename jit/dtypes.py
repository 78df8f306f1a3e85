"""Element types: one row each, with everything that depends on the type alone."""

from __future__ import annotations

import struct
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class DType:
    """An element type; compare with `is`."""

    name: str  # as arrays are called: "Float32"
    short: str  # as in Dr.Jit's logs and `__meta__`: "f32"
    kind: str  # b(ool), i(nt), u(nsigned), f(loat)
    bits: int  # in memory; a Bool is one byte there
    llvm: str  # register type of one lane
    numpy: str  # NumPy's name
    order: int  # of two types the one that comes later is the type of the result

    @property
    def itemsize(self) -> int:
        """Return the bytes of one element in memory."""
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        """Return whether values are floating point."""
        return self.kind == "f"

    @property
    def is_integer(self) -> bool:
        """Return whether values are signed or unsigned integers."""
        return self.kind in "iu"

    @property
    def is_signed(self) -> bool:
        """Return whether values may be negative."""
        return self.kind in "if"

    @property
    def memory(self) -> str:
        """Return the LLVM type of one element in memory."""
        return "i8" if self.kind == "b" else self.llvm

    @property
    def limits(self) -> tuple[int, int]:
        """Return the least and greatest integer of this type."""
        if self.kind == "i":
            return -(1 << self.bits - 1), (1 << self.bits - 1) - 1
        return 0, (1 << self.bits) - 1

    def __repr__(self) -> str:
        return self.name


Bool = DType("Bool", "bool", "b", 8, "i1", "bool", 0)
Int8 = DType("Int8", "i8", "i", 8, "i8", "int8", 1)
UInt8 = DType("UInt8", "u8", "u", 8, "i8", "uint8", 2)
Int16 = DType("Int16", "i16", "i", 16, "i16", "int16", 3)
UInt16 = DType("UInt16", "u16", "u", 16, "i16", "uint16", 4)
Int32 = DType("Int32", "i32", "i", 32, "i32", "int32", 5)
UInt32 = DType("UInt32", "u32", "u", 32, "i32", "uint32", 6)
Int64 = DType("Int64", "i64", "i", 64, "i64", "int64", 7)
UInt64 = DType("UInt64", "u64", "u", 64, "i64", "uint64", 8)
Float16 = DType("Float16", "f16", "f", 16, "half", "float16", 9)
Float32 = DType("Float32", "f32", "f", 32, "float", "float32", 10)
Float64 = DType("Float64", "f64", "f", 64, "double", "float64", 11)

ALL = (Bool, Int8, UInt8, Int16, UInt16, Int32, UInt32, Int64, UInt64, Float16, Float32, Float64)
BY_NUMPY = {dtype.numpy: dtype for dtype in ALL}
UNSIGNED = {8: UInt8, 16: UInt16, 32: UInt32, 64: UInt64}
SIGNED = {8: Int8, 16: Int16, 32: Int32, 64: Int64}
FLOATS = {16: Float16, 32: Float32, 64: Float64}

_FORMATS = {"b": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q"}
_FORMATS |= {"bool": "?", "f16": "e", "f32": "f", "f64": "d"}


def promote(a: DType, b: DType) -> DType:
    """Return the type of an operation on two types: the later one in `ALL`."""
    return a if a.order >= b.order else b


def pack(dtype: DType, value: object) -> bytes:
    """Return the bytes of one element in memory; floats round, and overflow to infinity."""
    try:
        return struct.pack("<" + _FORMATS[dtype.short], value)
    except struct.error:
        if isinstance(value, int):
            raise OverflowError(f"an integer of {value.bit_length()} bits does not fit into {dtype}") from None
        raise TypeError(f"{dtype} elements must be numbers, found {type(value).__name__}") from None
    except OverflowError:
        return struct.pack("<" + _FORMATS[dtype.short], float("inf") if value > 0 else float("-inf"))  # type: ignore[operator]


def unpack(dtype: DType, data: bytes) -> bool | int | float:
    """Return the Python value of one element's bytes."""
    value: bool | int | float = struct.unpack("<" + _FORMATS[dtype.short], data)[0]
    return value
