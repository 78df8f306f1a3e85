"""Text of LLVM IR for W lanes at a time (W = 1 on a GPU), written through small value objects with operators."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..dtypes import Bool, DType, UInt32

Operand = Any  # a Value, or a Python number that becomes a constant of the other operand's type


class Value:
    """One SSA value of W lanes: its element type and its name (or constant) in the IR text."""

    __slots__ = ("e", "dtype", "name")

    def __init__(self, e: Emitter, dtype: DType, name: str) -> None:
        self.e, self.dtype, self.name = e, dtype, name

    def _arith(self, other: Operand, float_op: str, int_op: str, swap: bool = False) -> Value:
        other = self.e.coerce(other, self.dtype)
        a, b = (other, self) if swap else (self, other)
        op = float_op if self.dtype.is_float else int_op
        return self.e.op(self.dtype, f"{op} {self.e.type(self.dtype)} {a.name}, {b.name}")

    def __add__(self, other: Operand) -> Value:
        return self._arith(other, "fadd", "add")

    def __radd__(self, other: Operand) -> Value:
        return self._arith(other, "fadd", "add", True)

    def __sub__(self, other: Operand) -> Value:
        return self._arith(other, "fsub", "sub")

    def __rsub__(self, other: Operand) -> Value:
        return self._arith(other, "fsub", "sub", True)

    def __mul__(self, other: Operand) -> Value:
        return self._arith(other, "fmul", "mul")

    def __rmul__(self, other: Operand) -> Value:
        return self._arith(other, "fmul", "mul", True)

    def __truediv__(self, other: Operand) -> Value:
        return self._arith(other, "fdiv", "sdiv" if self.dtype.kind == "i" else "udiv")

    def __rtruediv__(self, other: Operand) -> Value:
        return self._arith(other, "fdiv", "sdiv" if self.dtype.kind == "i" else "udiv", True)

    def __and__(self, other: Operand) -> Value:
        return self._arith(other, "and", "and")

    def __or__(self, other: Operand) -> Value:
        return self._arith(other, "or", "or")

    def __xor__(self, other: Operand) -> Value:
        return self._arith(other, "xor", "xor")

    def __lshift__(self, other: Operand) -> Value:
        return self._arith(other, "shl", "shl")

    def __rshift__(self, other: Operand) -> Value:
        shift = "ashr" if self.dtype.kind == "i" else "lshr"
        return self._arith(other, shift, shift)

    def __invert__(self) -> Value:
        return self ^ (True if self.dtype is Bool else -1)

    def __neg__(self) -> Value:
        if self.dtype.is_float:
            return self.e.op(self.dtype, f"fneg {self.e.type(self.dtype)} {self.name}")
        return self.e.const(self.dtype, 0) - self

    def _compare(self, other: Operand, float_op: str, int_op: str) -> Value:
        other = self.e.coerce(other, self.dtype)
        if self.dtype.is_float:
            op = "fcmp " + float_op
        elif int_op in ("eq", "ne"):
            op = "icmp " + int_op
        else:
            op = f"icmp {'s' if self.dtype.kind == 'i' else 'u'}{int_op}"
        return self.e.op(Bool, f"{op} {self.e.type(self.dtype)} {self.name}, {other.name}")

    def __lt__(self, other: Operand) -> Value:
        return self._compare(other, "olt", "lt")

    def __le__(self, other: Operand) -> Value:
        return self._compare(other, "ole", "le")

    def __gt__(self, other: Operand) -> Value:
        return self._compare(other, "ogt", "gt")

    def __ge__(self, other: Operand) -> Value:
        return self._compare(other, "oge", "ge")

    def eq(self, other: Operand) -> Value:
        """Return the mask of equal lanes (false where either is NaN)."""
        return self._compare(other, "oeq", "eq")

    def ne(self, other: Operand) -> Value:
        """Return the mask of unequal lanes (true where either is NaN)."""
        return self._compare(other, "une", "ne")

    def cast(self, dtype: DType) -> Value:
        """Return the values converted to another element type, as C does (floats truncate towards zero)."""
        return self.e.cast(self, dtype)

    def bits(self, dtype: DType) -> Value:
        """Return the same bits read as another element type of equal width."""
        if dtype is self.dtype:
            return self
        if dtype.llvm == self.dtype.llvm:
            return Value(self.e, dtype, self.name)
        return self.e.op(dtype, f"bitcast {self.e.type(self.dtype)} {self.name} to {self.e.type(dtype)}")


class Emitter:
    """Collects the lines of one function; `width` lanes per value."""

    def __init__(self, width: int, target: str = "host") -> None:
        self.width, self.target = width, target
        self.lines: list[str] = []
        self.entry: list[str] = []  # allocas and constants loaded once, before everything else
        self.declarations: dict[str, None] = {}
        self.globals: dict[str, None] = {}
        self._count = 0
        self._types: dict[str, str] = {}
        self._ones: dict[str, str] = {}
        self._spares: dict[str, str] = {}
        self.label = "entry"  # of the block being written: what a phi must name

    def type(self, dtype: DType) -> str:
        """Return the IR type of one value: a vector of `width` lanes, or the scalar type at width 1."""
        return self.vector(dtype.llvm)

    def vector(self, scalar: str) -> str:
        """Return the IR type of `width` lanes of an IR scalar type."""
        text = self._types.get(scalar)
        if text is None:
            text = self._types[scalar] = scalar if self.width == 1 else f"<{self.width} x {scalar}>"
        return text

    def name(self, hint: str = "v") -> str:
        """Return a fresh name."""
        self._count += 1
        return f"%{hint}{self._count}"

    def op(self, dtype: DType, text: str) -> Value:
        """Append one instruction and return its result."""
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"  {name} = {text}")
        return Value(self, dtype, name)

    def raw(self, text: str) -> str:
        """Append one instruction whose result is no lane value (a pointer, a scalar) and return its name."""
        self._count += 1
        self.lines.append(f"  %v{self._count} = {text}")
        return f"%v{self._count}"

    def line(self, text: str) -> None:
        """Append one instruction without result."""
        self.lines.append("  " + text)

    def new_label(self, hint: str) -> str:
        """Return a fresh block label."""
        self._count += 1
        return f"{hint}{self._count}"

    def start(self, label: str) -> None:
        """Begin the block `label`; the block before it must have ended in a branch."""
        self.lines.append(f"{label}:")
        self.label = label

    def branch(self, label: str) -> None:
        """End the block by a jump."""
        self.line(f"br label %{label}")

    def branch_if(self, condition: str, yes: str, no: str) -> None:
        """End the block by a jump on a scalar i1."""
        self.line(f"br i1 {condition}, label %{yes}, label %{no}")

    def alloca(self, text: str, align: int = 64) -> str:
        """Return the pointer of a stack slot that lives for the whole function."""
        self._count += 1
        self.entry.append(f"  %s{self._count} = alloca {text}, align {align}")
        return f"%s{self._count}"

    def spare(self, memory: str) -> str:
        """Return the pointer of a stack slot for one element, to which goes what must not be written elsewhere."""
        if memory not in self._spares:
            self._spares[memory] = self.alloca(memory)
        return self._spares[memory]

    @contextmanager
    def at_entry(self) -> Iterator[None]:
        """Within the block code goes to the function's first block, where arguments are loaded."""
        kept, self.lines = self.lines, self.entry
        try:
            yield
        finally:
            self.lines = kept

    def const(self, dtype: DType, value: bool | int | float) -> Value:
        """Return a constant in all lanes; floats are rounded to the type."""
        if dtype.is_integer and self.width > 1 and value in (1, -1) and dtype.bits >= 32:
            return Value(self, dtype, self._loaded_ones(dtype.llvm, int(value)))
        text = scalar_constant(dtype, value)
        return Value(self, dtype, text if self.width == 1 else f"splat ({dtype.llvm} {text})")

    def _loaded_ones(self, scalar: str, value: int) -> str:
        # As a literal in a loop LLVM makes these by `vpternlogd`, which waits for the register's last use:
        # 0.89 instead of 0.60 ns per element of sin(x)*exp(x). A load it cannot see through has no such chain.
        key = f"{scalar}.{'one' if value == 1 else 'minus'}"
        if key not in self._ones:
            self.globals[f"@{key} = private global {self.vector(scalar)} splat ({scalar} {value}), align 64"] = None
            self.entry.append(f"  %{key} = load {self.vector(scalar)}, ptr @{key}, align 64")
            self._ones[key] = f"%{key}"
        return self._ones[key]

    def coerce(self, value: Operand, dtype: DType) -> Value:
        """Return `value` itself, or the constant of `dtype` for a Python number."""
        return value if isinstance(value, Value) else self.const(dtype, value)

    def intrinsic(self, name: str, dtype: DType, *args: Value, result: DType | None = None, extra: str = "") -> Value:
        """Return a call of the LLVM intrinsic `llvm.<name>`, overloaded on the lanes of `dtype`; allow-listed."""
        if name not in ALLOWED:
            raise ValueError(f"LLVM intrinsic '{name}' is not on the allow-list of jit/codegen/emitter.py")
        suffix = ("" if self.width == 1 else f"v{self.width}") + _SUFFIX[dtype.llvm]
        types = [self.type(arg.dtype) for arg in args]
        text_args = ", ".join(f"{t} {a.name}" for t, a in zip(types, args, strict=True)) + extra
        result_type = self.type(result or dtype)
        declared = ", ".join(types) + (", i1" if extra else "")
        self.declarations[f"declare {result_type} @llvm.{name}.{suffix}({declared})"] = None
        return self.op(result or dtype, f"call {result_type} @llvm.{name}.{suffix}({text_args})")

    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        """Return a * b + c rounded once."""
        dtype = next(x.dtype for x in (a, b, c) if isinstance(x, Value))
        return self.intrinsic("fma", dtype, *(self.coerce(x, dtype) for x in (a, b, c)))

    def sqrt(self, a: Value) -> Value:
        """Return the correctly rounded square root."""
        return self.intrinsic("sqrt", a.dtype, a)

    def abs(self, a: Value) -> Value:
        """Return the absolute value (of the least signed integer: itself)."""
        if a.dtype.is_float:
            return self.intrinsic("fabs", a.dtype, a)
        return self.intrinsic("abs", a.dtype, a, extra=", i1 false") if a.dtype.kind == "i" else a

    def select(self, mask: Value, a: Operand, b: Operand) -> Value:
        """Return `a` in lanes where `mask` is set, else `b`."""
        dtype = a.dtype if isinstance(a, Value) else b.dtype
        a, b = self.coerce(a, dtype), self.coerce(b, dtype)
        lanes = self.type(dtype)
        return self.op(dtype, f"select {self.type(Bool)} {mask.name}, {lanes} {a.name}, {lanes} {b.name}")

    def cast(self, a: Value, dtype: DType) -> Value:
        """Return lanes converted to `dtype`."""
        source = a.dtype
        if source is dtype:
            return a
        if dtype is Bool:
            return a.ne(0)
        if source.kind != "f" and dtype.kind != "f":
            if source.llvm == dtype.llvm:
                return Value(self, dtype, a.name)
            bits = 1 if source is Bool else source.bits
            op = "trunc" if bits > dtype.bits else ("sext" if source.kind == "i" else "zext")
        elif source.kind == "f" and dtype.kind == "f":
            op = "fptrunc" if source.bits > dtype.bits else "fpext"
        elif source.kind == "f":
            op = "fptosi" if dtype.kind == "i" else "fptoui"
        else:
            op = "sitofp" if source.kind == "i" else "uitofp"
        return self.op(dtype, f"{op} {self.type(source)} {a.name} to {self.type(dtype)}")

    def any(self, mask: Value) -> str:
        """Return a scalar i1: whether any lane of a mask is set."""
        if self.width == 1:
            return mask.name
        packed = self.raw(f"bitcast {self.type(Bool)} {mask.name} to i{self.width}")
        return self.raw(f"icmp ne i{self.width} {packed}, 0")

    def lanes(self) -> Value:
        """Return the lane numbers 0 .. W-1 (UInt32)."""
        if self.width == 1:
            return Value(self, UInt32, "0")
        return Value(self, UInt32, "<" + ", ".join(f"i32 {i}" for i in range(self.width)) + ">")

    def splat(self, dtype: DType, scalar: str) -> Value:
        """Return a scalar (not constant) in all lanes."""
        if self.width == 1:
            return Value(self, dtype, scalar)
        vector = self.type(dtype)
        first = self.raw(f"insertelement {vector} poison, {dtype.llvm} {scalar}, i32 0")
        return self.op(dtype, f"shufflevector {vector} {first}, {vector} poison, <{self.width} x i32> zeroinitializer")

    def extract(self, a: Value, lane: int) -> str:
        """Return one lane as a scalar."""
        return a.name if self.width == 1 else self.raw(f"extractelement {self.type(a.dtype)} {a.name}, i32 {lane}")


_SUFFIX = {"half": "f16", "float": "f32", "double": "f64", "i1": "i1", "i8": "i8", "i16": "i16", "i32": "i32"}
_SUFFIX["i64"] = "i64"

# Everything here has a lowering on both targets; others (llvm.sin, pow, log2 ...) end the process on NVPTX.
ALLOWED = frozenset(
    "fma sqrt fabs abs floor ceil trunc rint roundeven copysign minnum maxnum minimum maximum smin smax umin umax "
    "ctpop ctlz cttz bitreverse bswap fshl fshr ldexp".split()
)


def scalar_constant(dtype: DType, value: bool | int | float) -> str:
    """Return the IR text of one constant; floats in hexadecimal, so that no digit is lost."""
    if dtype is Bool:
        return "true" if value else "false"
    if not dtype.is_float:
        return str(int(value))
    bits, shape = {16: ("e", "H"), 32: ("f", "I"), 64: ("d", "Q")}[dtype.bits]
    try:
        data = struct.pack("<" + bits, value)
    except OverflowError:
        data = struct.pack("<" + bits, float("inf") if value > 0 else float("-inf"))
    if dtype.bits == 16:
        return f"0xH{struct.unpack('<H', data)[0]:04X}"
    # LLVM writes single precision as the double of the same value; NaN payloads widen the same way.
    if dtype.bits == 32:
        word = struct.unpack("<I", data)[0]
        if word & 0x7F800000 == 0x7F800000:
            return f"0x{(word >> 31) << 63 | 0x7FF << 52 | (word & 0x7FFFFF) << 29:016X}"
        data = struct.pack("<d", struct.unpack("<f", data)[0])
    return f"0x{struct.unpack('<Q', data)[0]:016X}"


Lowering = Callable[..., Value]
__all__ = ["Emitter", "Lowering", "Value", "scalar_constant"]
