"""Running programs: kernels found or compiled, buffers bound, results published.

Every launch is a record (kernel, size, operands with access modes) before it runs; what replays or plans launches reads
the same records.
"""

from __future__ import annotations

import ctypes
import marshal
import sys
import time
from typing import Any

from .. import debug
from ..codegen import bounds, host
from ..codegen.kernel import KernelWriter
from ..codegen.reduce import accumulator_type
from ..errors import BoundsError
from ..memory.pool import Buffer, allocate, pool
from ..ops.row import Row
from ..passes.program import Program
from ..references import LOCAL
from ..trace import AFTER, DATA, GATHER, LITERAL, REDUCE, Node
from . import cache, watch
from .engine import Launch, Operand, chunk_limit, runtime
from .history import history
from .utilities import copy, fill, run_utility, spread, utility_kernel

WIDTH = 16  # lanes: Embree's widest packet; 8 and 32 were no faster on short kernels


def run_group(roots: list[Node], size: int, walked: tuple[list[Node], list[Node]] | None = None) -> None:
    """Compute `roots` (values of `size` elements, reductions over so many, scatters by so many) in one kernel.

    `walked`: what `walk` returns for these roots, if it is known.
    """
    started = time.perf_counter()
    program = Program(roots, size, chunk_limit(), walked)
    shown = debug.level()
    if shown >= 2 or debug.verifying():
        watch.program_built(program, time.perf_counter() - started)
    kernel, cached = find_kernel(program)
    if shown >= 4 and cached != "memory":
        watch.kernel_found(kernel, cached, source(program, kernel.parameters))
    launch = _bind(program, kernel)
    if history.recording and not kernel.ir:
        kernel.ir = source(program, kernel.parameters)  # a kernel from disk came without its text
    history.launched(kernel, program, cached, time.perf_counter() - started)
    _fill_targets(program, launch)
    if shown:
        runtime.sync()
        handed = time.perf_counter()
    runtime.run(launch)
    if shown:
        runtime.sync()
        watch.launched(kernel, program, cached, handed - started, time.perf_counter() - handed)
    _finish(program, launch)
    wrong = _outside(program, launch) if launch.report is not None else None
    _publish(program)
    if wrong is not None:
        raise BoundsError(wrong)


def _outside(program: Program, launch: Launch) -> str | None:
    """Return the message about an index outside of its array that the kernel met, waiting for it."""
    runtime.sync()
    claimed, number, index = launch.report
    if not claimed:
        return None
    n = program.instrs[number].node
    gathers = n.op is GATHER
    array = n.args[0] if gathers else n.attr.after()
    what, then = ("gather", "read zero") if gathers else ("scatter", "were not written")
    return (
        f"{what}(): index {index} is outside of an array of {array.size} elements of type {array.dtype}, "
        f"recorded at {n.where or 'an unknown line (set the Debug flag before recording)'}; lanes outside {then}. "
        "Mask them off, or mend the index."
    )


def find_kernel(program: Program) -> tuple[cache.Kernel, str]:
    """Return the kernel of a program and where it was found: "memory", "disk" or "compiled".

    Kernels that differ in literals only share a structure. The second one is compiled with the literals that differ as
    arguments, so that a number that changes at every step costs two compilations, not one per step.
    """
    structure = program.structure()
    variants = runtime.kernels.setdefault(marshal.dumps(structure, 2), [])  # version 2: equal values give equal bytes
    given = tuple(program.literals)
    for kernel in variants:
        if kernel.fixed == given:  # then it has no parameters
            return kernel, "memory"
    literals = dict(given)
    for kernel in variants:
        if all(literals[number] == value for number, value in kernel.fixed):
            return kernel, "memory"
    parameters: set[int] = set()
    if variants:
        last = variants[-1]
        parameters = set(last.parameters) | {n for n, value in last.fixed if literals[n] != value}
    fixed = tuple((n, value) for n, value in program.literals if n not in parameters)
    ordered = tuple(n for n, _ in program.literals if n in parameters)
    name = cache.digest((structure, fixed, ordered, WIDTH))
    module = cache.load(name)
    origin = "disk"
    if module is None:
        origin = "compiled"
        module = _compile(program, ordered, name)
    kernel = cache.Kernel(module, ordered, fixed, name)
    kernel.instructions = len(program.instrs)
    variants.append(kernel)
    return kernel, origin


def source(program: Program, ordered: tuple[int, ...]) -> str:
    """Return the LLVM IR of a program whose literals `ordered` are arguments."""
    slots = {number: len(program.params) + k for k, number in enumerate(ordered)}
    return KernelWriter(program, WIDTH, slots).text(host.target().attributes)


def _compile(program: Program, ordered: tuple[int, ...], name: str) -> host.CompiledModule:
    straight = len(program.kinds) == 2
    text = source(program, ordered)
    history.dump(name, text)
    # Level 0 compiles straight-line code 3.6 times faster at 10 000 operations and runs it as fast (codegen.md 1b);
    # loops need the register allocator of level 2.
    level = 0 if straight and len(program.instrs) > 5000 else 2
    object_code = host.to_object(text, level=level, sroa="alloca" in text)
    cache.write(name, object_code)
    return host.link(object_code, ("kernel",), name)


def _bind(program: Program, kernel: cache.Kernel) -> Launch:
    packets = -(-program.size // WIDTH)
    chunk = -(-packets // program.chunks)
    chunks = -(-packets // chunk)
    foreign = program.size % WIDTH != 0 and any(
        kind == "load" and n.buf.foreign and n.size > 1 for kind, n in program.params
    )
    if foreign:
        packets -= 1
        chunk = max(1, -(-packets // program.chunks))
        chunks = -(-packets // chunk) if packets else 1
    parts = chunks + (1 if foreign and packets else 0)
    operands: list[Operand] = [program.size]
    access = [""]
    owners: list[Any] = []
    for kind, payload in program.params:
        operand, mode = _operand(program, kind, payload, parts, owners, operands)
        operands.append(operand)
        access.append(mode)
        del operand  # `_inherited` counts references
    tail = None
    if foreign:
        params = [("count", None), *program.params]
        tail = [_tail_operand(k, p, o, program.size) for (k, p), o in zip(params, operands, strict=True)]
    if kernel.parameters:
        literals = dict(program.literals)
        extra = [int.from_bytes(literals[n], "little") for n in kernel.parameters]
        extra = [v - (1 << 64) if v >> 63 else v for v in extra]
        operands += extra
        access += [""] * len(extra)
        if tail is not None:
            tail += extra
    launch = Launch(kernel, program.size, packets, chunk, chunks, operands, access, tail, owners)
    if program.report is not None:
        launch.report = owners[0]
    return launch


def _operand(
    program: Program, kind: str, payload: Any, parts: int, owners: list[Any], before: list[Operand]
) -> tuple[Operand, str]:
    """Return the word of a parameter and how it is accessed; memory for results is allocated here."""
    if kind == "load":
        return payload.buf, "r:own" if payload.size == program.size else "r:whole"
    if kind == "gather":
        return payload.buf, "r:gather"
    if kind == "extent":
        return int(payload), ""
    if kind == "store":
        buffer = _inherited(payload, program.size, before) or allocate(payload.dtype, program.size)
        program.bound[id(payload)] = buffer
        return buffer, "w:own"
    if kind == "partial":
        buffer = allocate(accumulator_type(payload.args[0].dtype, payload.attr), parts)
        program.bound[id(payload)] = buffer
        return buffer, "w:whole"
    if kind == "stride":
        return int(copy_stride(payload) * payload.dtype.itemsize) if id(payload) in program.privates else 0, ""
    if kind == "pointer":
        query, position = payload
        owners.append(query.owner)
        return int(query.pointers()[position][1]), ""
    if kind == "report":  # the first parameter
        block = (ctypes.c_int64 * bounds.WORDS)()
        owners.append(block)
        return ctypes.addressof(block), ""
    buffer = _target(program, payload)
    if program.copies.get(id(payload), 0):
        program.copies[id(payload)] = parts
        buffer = pool().allocate(copy_stride(payload) * parts * payload.dtype.itemsize)
        program.privates[id(payload)] = buffer
    return buffer, "rw:scatter"


def _inherited(root: Node, size: int, operands: list[Operand]) -> Buffer | None:
    """Return the memory of an old value that only this result is computed from (`x += 1` by the array's only holder),
    None if there is none. Kernels read all elements of a packet before they write it."""
    n = root
    while n.op.__class__ is Row and n.attr is not None:
        n = n.args[n.attr]
    buffer: Buffer | None = n.buf
    if n is root or buffer is None or buffer.owner is not None or n.size != size:
        return None
    if n.dtype.itemsize != root.dtype.itemsize:
        return None
    # References: `buffer`, the node, and the launch's operands, where it is loaded.
    known = LOCAL + 1 + sum(o is buffer for o in operands)
    return buffer if sys.getrefcount(buffer) <= known else None


def copy_stride(after: Node) -> int:
    """Return the elements from one chunk's copy of a scatter target to the next (whole packets, own cache lines)."""
    return -(-after.size // 64) * 64


def _target(program: Program, after: Node) -> Buffer:
    """Return the memory a scatter writes to: the old array's own if nobody else holds it, else a copy."""
    old = after.args[0]
    if old.op is LITERAL:
        buffer = allocate(old.dtype, after.size)
        fill(buffer, old.dtype, -(-after.size // 16), int.from_bytes(old.attr, "little"))
    # References: `old` and the node's argument tuple; of the buffer: its node, and the argument.
    elif sys.getrefcount(old) <= LOCAL + 1 and sys.getrefcount(old.buf) <= 2 and old.buf.owner is None:
        buffer = old.buf
    else:
        buffer = allocate(old.dtype, after.size)
        copy(buffer, old.buf, after.size * old.dtype.itemsize)
    program.bound[id(after)] = buffer
    return buffer


def _tail_operand(kind: str, payload: Any, operand: Operand, size: int) -> Operand:
    """Return what the last packet reads: for borrowed memory a padded copy, shifted so that indices agree."""
    if kind != "load" or not payload.buf.foreign or payload.size == 1:
        return operand
    item = payload.dtype.itemsize
    start = size // WIDTH * WIDTH
    spare = allocate(payload.dtype, WIDTH)
    runtime.sync()
    ctypes.memmove(spare.ptr, payload.buf.ptr + start * item, (size - start) * item)
    return spare, -start * item


def _fill_targets(program: Program, launch: Launch) -> None:
    if not program.privates:
        return
    from ..codegen.memory import identity
    from ..dtypes import pack

    for after in program.targets:
        buffer = program.privates.get(id(after))
        if buffer is not None:
            value = pack(after.dtype, identity(after.dtype, after.attr.op))
            count = copy_stride(after) * program.copies[id(after)]
            fill(buffer, after.dtype, -(-count // 16), int.from_bytes(value, "little"))


def _finish(program: Program, launch: Launch) -> None:
    parts = launch.chunks + (1 if launch.tail_words is not None and launch.packets else 0)
    for root in program.outputs:
        if root.op is REDUCE:
            partial = program.bound[id(root)]
            result = allocate(root.dtype, 1)
            source_type = root.args[0].dtype
            kernel = utility_kernel("merge_reduction", root.attr, source_type, root.dtype)
            run_utility(kernel, 1, 1, [result, partial, parts], ["w:whole", "r:whole", ""])
            program.bound[id(root)] = result
    for after in program.targets:
        buffer = program.privates.get(id(after))
        if buffer is not None:
            target = program.bound[id(after)]
            kernel = utility_kernel("merge_copies", after.attr.op, after.dtype)
            copies = program.copies[id(after)]
            operands: list[Operand] = [target, buffer, copy_stride(after), copies]
            spread(kernel, operands, ["rw:own", "r:whole", "", ""], -(-after.size // 16), 16 * copies)


def _publish(program: Program) -> None:
    for root in [*program.outputs, *program.targets]:
        root.buf = program.bound[id(root)]
        root.op, root.args, root.attr, root.scope = DATA, (), None, None


def is_after(n: Node) -> bool:
    """Return whether the node is a scatter target that still waits for its scatters."""
    return n.op is AFTER and n.buf is None


__all__ = ["WIDTH", "find_kernel", "is_after", "run_group", "source"]
