"""Writing the traversal functions: the compiler's emitter with parameters, memory, variables and structured flow."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from ...jit.codegen.emitter import Emitter, Operand, Value, scalar_constant
from ...jit.codegen.host import CompiledModule, link, target, to_object
from ...jit.dtypes import Bool, DType, Float32, Int32
from ...jit.runtime import cache

__all__ = ["Code", "Value", "Var", "assemble", "compiled", "maximum", "minimum"]


class Part(Emitter):
    """Values of one width in the function of a `Code`."""

    scalar: Part

    def const(self, dtype: DType, value: bool | int | float) -> Value:
        """Return a constant in all lanes, always as a literal: modules mix widths, which shared globals cannot."""
        text = scalar_constant(dtype, value)
        return Value(self, dtype, text if self.width == 1 else f"splat ({dtype.llvm} {text})")

    def at(self, pointer: str, offset: int | Value) -> str:
        """Return the pointer `offset` bytes further on; a `Value` is a scalar of 64 bits."""
        if isinstance(offset, Value):
            return self.raw(f"getelementptr i8, ptr {pointer}, i64 {offset.name}")
        return self.raw(f"getelementptr inbounds i8, ptr {pointer}, i64 {offset}") if offset else pointer

    def load(self, dtype: DType, pointer: str, offset: int | Value = 0, align: int = 4) -> Value:
        """Return the lanes stored one after another at a pointer."""
        return self.op(dtype, f"load {self.type(dtype)}, ptr {self.at(pointer, offset)}, align {align}")

    def store(self, value: Value, pointer: str, offset: int | Value = 0, align: int = 4) -> None:
        """Store the lanes one after another at a pointer."""
        self.line(f"store {self.type(value.dtype)} {value.name}, ptr {self.at(pointer, offset)}, align {align}")

    def pointer(self, pointer: str, offset: int = 0) -> str:
        """Return a pointer that is stored at a pointer."""
        return self.raw(f"load ptr, ptr {self.at(pointer, offset)}, align 8")

    def broadcast(self, dtype: DType, pointer: str, offset: int | Value = 0) -> Value:
        """Return the scalar stored at a pointer in all lanes."""
        return self.splat(dtype, self.scalar.load(dtype, pointer, offset).name)

    def var(self, initial: Value) -> Var:
        """Return a variable; stack slots become registers before code is generated."""
        slot = Var(self, initial.dtype, self.alloca(self.type(initial.dtype)))
        slot.set(initial)
        return slot


class Var:
    """A variable of one function: reading gives its latest value on whichever path was taken."""

    def __init__(self, part: Part, dtype: DType, slot: str) -> None:
        self.part, self.dtype, self.slot = part, dtype, slot

    def get(self) -> Value:
        """Return the present value."""
        return self.part.load(self.dtype, self.slot, align=64)

    def set(self, value: Value) -> None:
        """Give the variable another value."""
        self.part.store(value, self.slot, align=64)


class Loop:
    """An endless loop being written; leave it with `stop_if`, begin the next round early with `again`."""

    def __init__(self, code: Code) -> None:
        self.code, self.head, self.after = code, code.new_label("loop"), code.new_label("after")

    def stop_if(self, condition: str | Value) -> None:
        """Leave the loop if a scalar condition holds."""
        rest = self.code.new_label("go")
        self.code.branch_if(_name(condition), self.after, rest)
        self.code.start(rest)

    def again_if(self, condition: str | Value) -> None:
        """Begin the next round if a scalar condition holds."""
        rest = self.code.new_label("go")
        self.code.branch_if(_name(condition), self.head, rest)
        self.code.start(rest)


def _name(value: str | Value) -> str:
    return value.name if isinstance(value, Value) else value


class Code(Part):
    """One function being written: values of `width` lanes, and scalars through `scalar`."""

    def __init__(self, name: str, params: Sequence[tuple[str, str]], width: int) -> None:
        super().__init__(width)
        self.function, self.params = name, params
        self._parts = 0
        self.scalar = self.part(1)

    def part(self, width: int) -> Part:
        """Return an emitter of values of another width into the same function."""
        self._parts += 1
        part = Part(width)
        part.lines, part.entry, part.declarations = self.lines, self.entry, self.declarations
        part._count = self._parts * 1_000_000  # names of different parts never meet
        part.scalar = part if width == 1 else self.scalar
        return part

    def text(self) -> str:
        """Return the function's definition."""
        params = ", ".join(f"{kind} %{name}" for kind, name in self.params)
        body = "\n".join(["entry:", *self.entry, "  br label %body", "body:", *self.lines, "  ret void"])
        return f"define void @{self.function}({params}) #0 {{\n{body}\n}}\n"

    @contextlib.contextmanager
    def when(self, condition: str | Value) -> Iterator[None]:
        """Write a block that runs if a scalar condition holds."""
        yes, after = self.new_label("yes"), self.new_label("then")
        self.branch_if(_name(condition), yes, after)
        self.start(yes)
        yield
        self.branch(after)
        self.start(after)

    @contextlib.contextmanager
    def loop(self) -> Iterator[Loop]:
        """Write a block that repeats until `stop_if`."""
        loop = Loop(self)
        self.branch(loop.head)
        self.start(loop.head)
        yield loop
        self.branch(loop.head)
        self.start(loop.after)

    def masked_store(self, value: Value, mask: Value, pointer: str, offset: int = 0) -> None:
        """Store the lanes where a mask is set and leave the memory of the others alone."""
        if self.width == 1:
            with self.when(mask):
                self.store(value, pointer, offset)
            return
        vector, masks = self.type(value.dtype), self.type(Bool)
        suffix = f"v{self.width}{'f32' if value.dtype is Float32 else 'i32'}.p0"
        self.declarations[f"declare void @llvm.masked.store.{suffix}({vector}, ptr, i32, {masks})"] = None
        place = self.at(pointer, offset)
        self.line(
            f"call void @llvm.masked.store.{suffix}({vector} {value.name}, ptr {place}, i32 4, {masks} {mask.name})"
        )

    def active(self, valid: str) -> Value:
        """Return the mask of the lanes that are set in a validity array."""
        return self.load(Int32, valid).ne(0)


def minimum(a: Value, b: Operand) -> Value:
    """Return the lesser value; `b` where either is NaN. One instruction on x86."""
    b = a.e.coerce(b, a.dtype)
    return a.e.select(a < b, a, b)


def maximum(a: Value, b: Operand) -> Value:
    """Return the greater value; `b` where either is NaN. One instruction on x86."""
    b = a.e.coerce(b, a.dtype)
    return a.e.select(a > b, a, b)


def assemble(functions: Iterable[Code]) -> str:
    """Return the IR text of a module with these functions."""
    functions = list(functions)
    declarations = dict.fromkeys(line for f in functions for line in f.declarations)
    # Without the width LLVM halves the vectors of processors whose general code prefers 256 bits.
    attributes = f'attributes #0 = {{ {target().attributes} "prefer-vector-width"="512" }}'
    return "\n".join([*(f.text() for f in functions), *declarations, attributes, ""])


def compiled(functions: Sequence[Code], name: str) -> CompiledModule:
    """Return the linked module of these functions, from the kernel cache on disk if it was compiled before."""
    text, symbols = assemble(functions), tuple(f.function for f in functions)
    key = cache.digest((name, text))
    module = cache.load(key, symbols)
    if module is None:
        code = to_object(text, sroa=True)
        module = link(code, symbols, name)
        cache.write(key, code)
    return module
