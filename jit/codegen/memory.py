"""Loads, stores, gathers and scatters of W lanes."""

from __future__ import annotations

from dataclasses import dataclass

from ..dtypes import Bool, DType
from .emitter import Emitter, Value, scalar_constant


def load(e: Emitter, dtype: DType, pointer: str, base: str | None) -> Value:
    """Return the elements at `base` .. base + W - 1, or element 0 in all lanes if `base` is None."""
    memory = dtype.memory
    if base is None:
        scalar = e.raw(f"load {memory}, ptr {pointer}, align {dtype.itemsize}")
        if dtype is Bool:
            scalar = e.raw(f"icmp ne i8 {scalar}, 0")
        return e.splat(dtype, scalar)
    address = e.raw(f"getelementptr {memory}, ptr {pointer}, i64 {base}")
    text = f"load {e.vector(memory)}, ptr {address}, align {dtype.itemsize}"
    return _from_memory(e, dtype, e.raw(text))


def store(e: Emitter, value: Value, pointer: str, base: str) -> None:
    """Write W elements at `base`; the buffer is padded to whole packets."""
    memory = value.dtype.memory
    address = e.raw(f"getelementptr {memory}, ptr {pointer}, i64 {base}")
    e.line(f"store {e.vector(memory)} {_to_memory(e, value)}, ptr {address}, align {value.dtype.itemsize}")


def store_streaming(e: Emitter, value: Value, pointer: str, base: str) -> None:
    """Write W elements past the caches: for large results of short kernels, which memory bandwidth limits."""
    memory = value.dtype.memory
    address = e.raw(f"getelementptr {memory}, ptr {pointer}, i64 {base}")
    align = e.width * value.dtype.itemsize
    e.line(f"store {e.vector(memory)} {_to_memory(e, value)}, ptr {address}, align {align}, !nontemporal !8")
    e.globals["!8 = !{i32 1}"] = None


def _from_memory(e: Emitter, dtype: DType, name: str) -> Value:
    if dtype is not Bool:
        return Value(e, dtype, name)
    zero = "0" if e.width == 1 else "zeroinitializer"
    return e.op(Bool, f"icmp ne {e.vector('i8')} {name}, {zero}")


def _to_memory(e: Emitter, value: Value) -> str:
    if value.dtype is not Bool:
        return value.name
    return e.raw(f"zext {e.type(Bool)} {value.name} to {e.vector('i8')}")


def _addresses(e: Emitter, memory: str, pointer: str, index: Value, large: bool) -> str:
    lanes = index.name
    kind = e.type(index.dtype)
    if index.dtype.bits == 32 and (large or e.width == 1):
        # A vector of 32-bit indices is sign-extended by the address computation, and the processor gathers with it
        # at once; only sources of 2^31 elements and more need the wider form.
        op = "zext" if index.dtype.kind == "u" else "sext"
        kind = e.vector("i64")
        lanes = e.raw(f"{op} {e.type(index.dtype)} {index.name} to {kind}")
    return e.raw(f"getelementptr {memory}, ptr {pointer}, {kind} {lanes}")


def gather(e: Emitter, dtype: DType, pointer: str, index: Value, mask: Value, large: bool) -> Value:
    """Return the elements at `index`, zero in lanes where `mask` is clear (nothing is read there)."""
    memory = dtype.memory
    if e.width == 1:
        return _gather_one(e, dtype, pointer, index, mask)
    addresses = _addresses(e, memory, pointer, index, large)
    lanes, w = e.vector(memory), e.width
    name = f"llvm.masked.gather.v{w}{_suffix(memory)}.v{w}p0"
    e.declarations[f"declare {lanes} @{name}(<{w} x ptr>, i32, <{w} x i1>, {lanes})"] = None
    where = f"<{w} x ptr> {addresses}, i32 {dtype.itemsize}, <{w} x i1> {mask.name}"
    text = f"call {lanes} @{name}({where}, {lanes} zeroinitializer)"
    return _from_memory(e, dtype, e.raw(text))


def _gather_one(e: Emitter, dtype: DType, pointer: str, index: Value, mask: Value) -> Value:
    read, done = e.new_label("read"), e.new_label("endread")
    before = e.label
    e.branch_if(mask.name, read, done)
    e.start(read)
    address = _addresses(e, dtype.memory, pointer, index, False)
    loaded = e.raw(f"load {dtype.memory}, ptr {address}, align {dtype.itemsize}")
    e.branch(done)
    e.start(done)
    zero = scalar_constant(dtype, 0) if dtype is not Bool else "0"
    merged = e.raw(f"phi {dtype.memory} [ {loaded}, %{read} ], [ {zero}, %{before} ]")
    return _from_memory(e, dtype, merged)


def scatter(e: Emitter, pointer: str, value: Value, index: Value, mask: Value, op: str, exclusive: bool) -> None:
    """Write (`op` empty) or combine (add, min, max, and, or) values into the elements at `index`.

    `exclusive`: nobody else writes this memory meanwhile, so plain loads and stores do; else atomics.
    """
    if not op:
        _scatter_plain(e, pointer, value, index, mask)
    elif e.width == 1:
        _guarded(
            e,
            mask.name,
            lambda: _combine(
                e,
                value.dtype,
                _addresses(e, value.dtype.memory, pointer, index, False),
                _to_memory(e, value),
                op,
                exclusive,
            ),
        )
    else:
        scatter_columns(e, Target(pointer, None, exclusive), [(value, 0)], index, mask, op)


def _scatter_plain(e: Emitter, pointer: str, value: Value, index: Value, mask: Value) -> None:
    memory, w = value.dtype.memory, e.width
    if w == 1:

        def write() -> None:
            address = _addresses(e, memory, pointer, index, False)
            e.line(f"store {memory} {_to_memory(e, value)}, ptr {address}, align {value.dtype.itemsize}")

        _guarded(e, mask.name, write)
        return
    addresses = _addresses(e, memory, pointer, index, False)
    lanes = e.vector(memory)
    name = f"llvm.masked.scatter.v{w}{_suffix(memory)}.v{w}p0"
    e.declarations[f"declare void @{name}({lanes}, <{w} x ptr>, i32, <{w} x i1>)"] = None
    where = f"<{w} x ptr> {addresses}, i32 {value.dtype.itemsize}, <{w} x i1> {mask.name}"
    e.line(f"call void @{name}({lanes} {_to_memory(e, value)}, {where})")


def _guarded(e: Emitter, condition: str, write) -> None:  # type: ignore[no-untyped-def]
    yes, done = e.new_label("write"), e.new_label("endwrite")
    e.branch_if(condition, yes, done)
    e.start(yes)
    write()
    e.branch(done)
    e.start(done)


@dataclass(frozen=True)
class Target:
    """An array that is written to: its address, its length (an i64 in IR; None: every index is known to be inside), and
    whether nobody else writes it meanwhile."""

    pointer: str
    extent: str | None
    exclusive: bool

    def element(self, e: Emitter, dtype: DType, index_type: DType, index: str, offset: int = 0) -> str:
        """Return the address of the element at a scalar index plus offset; a spare place if that is outside."""
        if offset:  # in the index's own width: there `i - 1 + 1` is i again
            index = e.raw(f"add {index_type.llvm} {index}, {offset}")
        if index_type.bits < 64:
            index = e.raw(f"{'zext' if index_type.kind == 'u' else 'sext'} {index_type.llvm} {index} to i64")
        element = e.raw(f"getelementptr {dtype.memory}, ptr {self.pointer}, i64 {index}")
        if self.extent is None:
            return element
        good = e.raw(f"icmp ult i64 {index}, {self.extent}")
        return e.raw(f"select i1 {good}, ptr {element}, ptr {e.spare(dtype.memory)}")


def scatter_columns(
    e: Emitter, target: Target, columns: list[tuple[Value, int]], base: Value, mask: Value, op: str
) -> None:
    """Combine several values, each into the element at `base` plus an offset of its own (W > 1).

    All lanes at one element: reduced in registers, one update per column. Otherwise one lane after the other.
    """
    w, dtype, exclusive = e.width, columns[0][0].dtype, target.exclusive
    bits = e.raw(f"bitcast {e.type(Bool)} {mask.name} to i{w}")
    some, same, each, done = (e.new_label(x) for x in ("some", "same", "each", "scattered"))
    e.branch_if(e.raw(f"icmp ne i{w} {bits}, 0"), some, done)
    e.start(some)
    indices = e.alloca(e.type(base.dtype))
    e.line(f"store {e.type(base.dtype)} {base.name}, ptr {indices}, align 64")
    e.declarations[f"declare i{w} @llvm.cttz.i{w}(i{w}, i1)"] = None
    first = e.raw(f"call i{w} @llvm.cttz.i{w}(i{w} {bits}, i1 true)")
    index = _lane(e, base.dtype.llvm, indices, e.raw(f"zext i{w} {first} to i64"))
    differs = base.ne(e.splat(base.dtype, index)) & mask
    e.branch_if(e.any(differs), each, same)
    e.start(same)
    for value, offset in columns:
        element = target.element(e, dtype, base.dtype, index, offset)
        total = reduce_lanes(e, e.select(mask, value, identity(dtype, op)), op)
        _combine(e, dtype, element, total, op, exclusive)
    e.branch(done)
    e.start(each)
    slots = []
    for value, _ in columns:
        slots.append(e.alloca(e.vector(dtype.memory)))
        e.line(f"store {e.vector(dtype.memory)} {_to_memory(e, value)}, ptr {slots[-1]}, align 64")
    loop = e.new_label("lane")
    e.branch(loop)
    e.start(loop)
    left, following = e.name("left"), e.name("rest")
    e.lines.append(f"  {left} = phi i{w} [ {bits}, %{each} ], [ {following}, %{loop} ]")
    lane = e.raw(f"zext i{w} {e.raw(f'call i{w} @llvm.cttz.i{w}(i{w} {left}, i1 true)')} to i64")
    index = _lane(e, base.dtype.llvm, indices, lane)
    for (_, offset), slot in zip(columns, slots, strict=True):
        element = target.element(e, dtype, base.dtype, index, offset)
        _combine(e, dtype, element, _lane(e, dtype.memory, slot, lane), op, exclusive)
    less = e.raw(f"sub i{w} {left}, 1")
    e.line(f"{following} = and i{w} {left}, {less}")
    e.branch_if(e.raw(f"icmp eq i{w} {following}, 0"), done, loop)
    e.start(done)


def _lane(e: Emitter, kind: str, slots: str, lane: str) -> str:
    return e.raw(f"load {kind}, ptr {e.raw(f'getelementptr {kind}, ptr {slots}, i64 {lane}')}")


_ATOMIC = {"add": ("fadd", "add", "add"), "min": ("fmin", "min", "umin"), "max": ("fmax", "max", "umax")}
_ATOMIC |= {"and": ("", "and", "and"), "or": ("", "or", "or")}


def _combine(e: Emitter, dtype: DType, address: str, value: str, op: str, exclusive: bool) -> None:
    column = 0 if dtype.is_float else 1 if dtype.kind == "i" else 2
    if not exclusive:
        scope = ' syncscope("device")' if e.target == "nvptx" else ""
        e.line(
            f"{e.name('old')} = atomicrmw {_ATOMIC[op][column]} ptr {address}, {dtype.memory} {value}{scope} monotonic"
        )
        return
    old = e.raw(f"load {dtype.memory}, ptr {address}, align {dtype.itemsize}")
    new = scalar_combine(e, dtype, old, value, op)
    e.line(f"store {dtype.memory} {new}, ptr {address}, align {dtype.itemsize}")


def scalar_combine(e: Emitter, dtype: DType, a: str, b: str, op: str) -> str:
    """Return op(a, b) of two scalars in memory form."""
    kind = dtype.memory
    if op in ("min", "max"):
        sign = "l" if op == "min" else "g"
        compare = f"fcmp o{sign}t" if dtype.is_float else f"icmp {'s' if dtype.kind == 'i' else 'u'}{sign}t"
        mask = e.raw(f"{compare} {kind} {b}, {a}")
        return e.raw(f"select i1 {mask}, {kind} {b}, {kind} {a}")
    names = {"add": ("fadd", "add"), "mul": ("fmul", "mul"), "and": ("", "and"), "or": ("", "or")}
    return e.raw(f"{names[op][0 if dtype.is_float else 1]} {kind} {a}, {b}")


def identity(dtype: DType, op: str) -> bool | int | float:
    """Return the value that changes nothing under a reduction."""
    if op == "add" or op == "or":
        return False if dtype is Bool else 0
    if op == "mul":
        return 1
    if op == "and":
        return True if dtype is Bool else (-1 if dtype.kind == "i" else dtype.limits[1])
    if dtype.is_float:
        return float("inf") if op == "min" else float("-inf")
    return dtype.limits[1] if op == "min" else dtype.limits[0]


def reduce_lanes(e: Emitter, value: Value, op: str) -> str:
    """Return the reduction over the lanes of one value, as a scalar in memory form."""
    dtype = value.dtype
    if e.width == 1:
        return _to_memory(e, value)
    lanes, w = e.type(dtype), e.width
    if dtype.is_float and op in ("add", "mul"):
        name = f"llvm.vector.reduce.f{op}.v{w}{_suffix(dtype.llvm)}"
        e.declarations[f"declare {dtype.llvm} @{name}({dtype.llvm}, {lanes})"] = None
        start = scalar_constant(dtype, -0.0 if op == "add" else 1.0)
        # reassoc: lanes are added as a tree, 4 steps instead of 16; the order is the same in every run.
        return e.raw(f"call reassoc {dtype.llvm} @{name}({dtype.llvm} {start}, {lanes} {value.name})")
    prefix = "" if op in ("add", "mul", "and", "or") else "f" if dtype.is_float else "s" if dtype.kind == "i" else "u"
    name = f"llvm.vector.reduce.{prefix}{op}.v{w}{_suffix(dtype.llvm)}"
    e.declarations[f"declare {dtype.llvm} @{name}({lanes})"] = None
    total = e.raw(f"call {dtype.llvm} @{name}({lanes} {value.name})")
    return e.raw(f"zext i1 {total} to i8") if dtype is Bool else total


def _suffix(scalar: str) -> str:
    return {"half": "f16", "float": "f32", "double": "f64"}.get(scalar, scalar)


__all__ = [
    "Target",
    "gather",
    "identity",
    "load",
    "reduce_lanes",
    "scalar_combine",
    "scatter",
    "scatter_columns",
    "store",
]
