"""Small kernels that launches need around the compiled programs: fill, copy, and merging of chunks' results.

They have the kernels' signature; their argument blocks are listed at each function, in words.
"""

from __future__ import annotations

from ..dtypes import DType
from .emitter import Emitter, Value, scalar_constant
from .memory import identity, scalar_combine
from .reduce import accumulator_type

_W = 16


def _module(e: Emitter, attributes: str) -> str:
    head = "define void @kernel(i64 %begin, i64 %end, i64 %chunk, ptr %args) #0 {\nentry:"
    return "\n".join(
        [*e.globals, *e.declarations, head, *e.entry, *e.lines, "}", f"attributes #0 = {{ {attributes} }}", ""]
    )


def _words(e: Emitter, *kinds: str) -> list[str]:
    names = []
    for k, kind in enumerate(kinds):
        address = e.raw(f"getelementptr i64, ptr %args, i64 {k}")
        names.append(e.raw(f"load {kind}, ptr {address}"))
    return names


def _loop(e: Emitter, begin: str, end: str) -> tuple[str, str, str]:
    """Open a loop over [begin, end), which may be empty; return the index and the labels `_end` needs."""
    head, body, done = e.new_label("head"), e.new_label("body"), e.new_label("done")
    before, index = e.label, e.name("i")
    e.branch(head)
    e.start(head)
    e.lines.append(f"  {index} = phi i64 [ {begin}, %{before} ], [ {index}.next, %{body}.end ]")
    e.branch_if(e.raw(f"icmp ult i64 {index}, {end}"), body, done)
    e.start(body)
    return index, f"{head} {body}", done


def _end(e: Emitter, loop: tuple[str, str, str]) -> None:
    index, labels, done = loop
    head, body = labels.split()
    e.branch(f"{body}.end")
    e.start(f"{body}.end")
    e.line(f"{index}.next = add i64 {index}, 1")
    e.branch(head)
    e.start(done)


def fill(attributes: str, bits: int) -> str:
    """Write packets of 16 elements of `bits` bits. args: pointer, value."""
    e = Emitter(_W)
    pointer, word = _words(e, "ptr", "i64")
    scalar = word if bits == 64 else e.raw(f"trunc i64 {word} to i{bits}")
    vector = f"<{_W} x i{bits}>"
    first = e.raw(f"insertelement {vector} poison, i{bits} {scalar}, i32 0")
    splat = e.raw(f"shufflevector {vector} {first}, {vector} poison, <{_W} x i32> zeroinitializer")
    loop = _loop(e, "%begin", "%end")
    address = e.raw(f"getelementptr {vector}, ptr {pointer}, i64 {loop[0]}")
    e.line(f"store {vector} {splat}, ptr {address}, align 8")
    _end(e, loop)
    e.line("ret void")
    return _module(e, attributes)


def copy_bytes(attributes: str) -> str:
    """Copy bytes one by one. args: target, source."""
    e = Emitter(_W)
    target, source = _words(e, "ptr", "ptr")
    loop = _loop(e, "%begin", "%end")
    value = e.raw(f"load i8, ptr {e.raw(f'getelementptr i8, ptr {source}, i64 {loop[0]}')}")
    e.line(f"store i8 {value}, ptr {e.raw(f'getelementptr i8, ptr {target}, i64 {loop[0]}')}")
    _end(e, loop)
    e.line("ret void")
    return _module(e, attributes)


def copy(attributes: str) -> str:
    """Copy packets of 64 bytes. args: target, source."""
    e = Emitter(_W)
    target, source = _words(e, "ptr", "ptr")
    loop = _loop(e, "%begin", "%end")
    a = e.raw(f"getelementptr <16 x i32>, ptr {source}, i64 {loop[0]}")
    value = e.raw(f"load <16 x i32>, ptr {a}, align 1")
    b = e.raw(f"getelementptr <16 x i32>, ptr {target}, i64 {loop[0]}")
    e.line(f"store <16 x i32> {value}, ptr {b}, align 1")
    _end(e, loop)
    e.line("ret void")
    return _module(e, attributes)


def merge_reduction(attributes: str, op: str, dtype: DType, result: DType) -> str:
    """Combine the partial results of all chunks in order. args: result pointer, partials pointer, count."""
    e = Emitter(1)
    kind = accumulator_type(dtype, op)
    step = "add" if op == "count" else op
    target, partials, count = _words(e, "ptr", "ptr", "i64")
    total = e.alloca(kind.memory, 8)
    start = identity(kind, step)
    constant = str(int(start)) if kind.kind == "b" else scalar_constant(kind, start)
    e.line(f"store {kind.memory} {constant}, ptr {total}")
    loop = _loop(e, "0", count)
    value = e.raw(f"load {kind.memory}, ptr {e.raw(f'getelementptr {kind.memory}, ptr {partials}, i64 {loop[0]}')}")
    old = e.raw(f"load {kind.memory}, ptr {total}")
    e.line(f"store {kind.memory} {scalar_combine(e, kind, old, value, step)}, ptr {total}")
    _end(e, loop)
    name = e.raw(f"load {kind.memory}, ptr {total}")
    if kind is not result and kind.kind != "b":
        name = Value(e, kind, name).cast(result).name
    # All lanes of the first packet get the value: readers may load it as a packet.
    for lane in range(_W):
        address = e.raw(f"getelementptr {result.memory}, ptr {target}, i64 {lane}")
        e.line(f"store {result.memory} {name}, ptr {address}")
    e.line("ret void")
    return _module(e, attributes)


def merge_copies(attributes: str, op: str, dtype: DType) -> str:
    """Combine the chunks' copies into a target, packet by packet. args: target, copies, elements per copy, copies."""
    e = Emitter(_W)
    target, copies, stride, count = _words(e, "ptr", "ptr", "i64", "i64")
    kind = dtype.memory
    vector = f"<{_W} x {kind}>"
    total = e.alloca(vector)
    outer = _loop(e, "%begin", "%end")
    address = e.raw(f"getelementptr {vector}, ptr {target}, i64 {outer[0]}")
    start = e.raw(f"load {vector}, ptr {address}, align 8")
    e.line(f"store {vector} {start}, ptr {total}, align 64")
    offset = e.raw(f"mul i64 {outer[0]}, {_W}")
    inner = _loop(e, "0", count)
    base = e.raw(f"mul i64 {inner[0]}, {stride}")
    a = e.raw(f"getelementptr {kind}, ptr {copies}, i64 {e.raw(f'add i64 {base}, {offset}')}")
    value = e.raw(f"load {vector}, ptr {a}, align 8")
    old = e.raw(f"load {vector}, ptr {total}, align 64")
    e.line(f"store {vector} {_combine_lanes(e, dtype, old, value, op)}, ptr {total}, align 64")
    _end(e, inner)
    e.line(f"store {vector} {e.raw(f'load {vector}, ptr {total}, align 64')}, ptr {address}, align 8")
    _end(e, outer)
    e.line("ret void")
    return _module(e, attributes)


def _combine_lanes(e: Emitter, dtype: DType, old: str, value: str, op: str) -> str:
    if dtype.kind == "b":
        return e.raw(f"{op} <{_W} x i8> {old}, {value}")
    a, b = Value(e, dtype, old), Value(e, dtype, value)
    if op in ("min", "max"):
        return e.select(b < a if op == "min" else b > a, b, a).name
    return {"add": a.__add__, "and": a.__and__, "or": a.__or__}[op](b).name
