"""Running programs: kernels found or compiled, buffers bound, jobs handed to the threads.

Every launch is a record (kernel, size, buffers with access modes) before it runs; what replays or plans launches reads
the same records.
"""

from __future__ import annotations

import atexit
import collections
import ctypes
import marshal
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from .. import debug
from ..codegen import bounds, host, scan, utility
from ..codegen.kernel import KernelWriter
from ..codegen.reduce import accumulator_type
from ..dtypes import DType
from ..errors import BoundsError
from ..memory.pool import Buffer, allocate, pool
from ..passes.program import Program
from ..trace import AFTER, DATA, GATHER, LITERAL, REDUCE, Node
from . import cache, watch
from .history import history
from .threads import ThreadPool, default_threads

WIDTH = 16  # lanes: Embree's widest packet; 8 and 32 were no faster on short kernels


@dataclass
class Launch:
    """One kernel run: enough to run it again with other buffers."""

    kernel: cache.Kernel
    size: int
    packets: int
    chunk: int
    chunks: int
    words: Any  # ctypes array: element count, then one word per parameter
    tail: Any | None
    access: list[tuple[str, Buffer]] = field(default_factory=list)  # (load | gather | store | target ..., buffer)
    keep: list[Any] = field(default_factory=list)
    report: Any = None  # under the Debug flag: what the kernel found wrong


class Runtime:
    """The one global state of the engine: threads, kernels in memory, jobs in flight."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.reset()

    def reset(self) -> None:
        """Forget threads and jobs (a forked child has none of its parent's threads)."""
        self._threads: ThreadPool | None = None
        self.thread_count = 0
        self.recorder: Any = None  # what notes launches while a frozen function is recorded
        self.in_flight: collections.deque[tuple[int, Any]] = collections.deque()
        self.kernels: dict[Any, list[cache.Kernel]] = {}
        self.utilities: dict[Any, cache.Kernel] = {}

    @property
    def threads(self) -> ThreadPool:
        """Return the thread pool, started at first use."""
        if self._threads is None:
            with self.lock:
                if self._threads is None:
                    self.thread_count = self.thread_count or default_threads()
                    self._threads = ThreadPool(self.thread_count)
        return self._threads

    def set_threads(self, count: int) -> None:
        """Use `count` threads from now on; running jobs finish first."""
        if count < 1:
            raise ValueError(f"the number of threads must be positive, found {count}")
        self.shutdown()
        self.thread_count = count

    def sync(self) -> None:
        """Return when every launch so far is done."""
        with self.lock:
            if self._threads is not None:
                self._threads.wait(self._threads.submitted)
            self.in_flight.clear()

    def run(self, launch: Launch) -> None:
        """Hand a launch to the threads, or run it at once if it is small and nothing waits before it."""
        with self.lock:
            self._run(launch)

    def _run(self, launch: Launch) -> None:
        threads = self.threads
        args = ctypes.addressof(launch.words)
        tail = ctypes.addressof(launch.tail) if launch.tail is not None else 0
        if launch.chunks == 1 and threads.completed == threads.submitted:
            if launch.packets:
                launch.kernel.call(0, launch.packets, 0, args)
            if tail:
                launch.kernel.call(launch.packets, launch.packets + 1, 1 if launch.packets else 0, tail)
            return
        main = -(-launch.packets // launch.chunk) if launch.packets else 0
        job = threads.submit(launch.kernel.address, args, launch.packets, launch.chunk, main + (tail != 0), tail)
        flights = self.in_flight
        flights.append((job, launch))
        done = threads.completed
        while flights and flights[0][0] <= done:
            flights.popleft()

    def shutdown(self) -> None:
        """Finish all jobs and end the workers: their code must not be unloaded under them."""
        with self.lock:
            if self._threads is not None:
                self._threads.stop()
                self._threads = None
                self.in_flight.clear()


def _after_fork() -> None:
    runtime.lock = threading.RLock()
    runtime.reset()


runtime = Runtime()
pool().pressure.append(runtime.sync)  # launches in flight hold their buffers
atexit.register(runtime.shutdown)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def chunk_limit() -> int:
    """Return how many chunks a kernel is cut into at most: the same for up to four threads, so that results are."""
    threads = runtime.threads.threads
    return 16 if threads <= 4 else 4 * threads


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


def _words(size: int, values: list[int]) -> Any:
    return (ctypes.c_int64 * (1 + len(values)))(size, *values)


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
    launch = Launch(kernel, program.size, packets, chunk, chunks, None, None)
    parts = chunks + (1 if foreign and packets else 0)
    values, tails = [], []
    for kind, payload in program.params:
        pointer = _pointer(program, launch, kind, payload, parts)
        values.append(pointer)
        if foreign:
            tails.append(_tail_pointer(launch, kind, payload, pointer, program.size))
    extra = []
    if kernel.parameters:
        literals = dict(program.literals)
        extra = [int.from_bytes(literals[n], "little") for n in kernel.parameters]
        extra = [v - (1 << 64) if v >> 63 else v for v in extra]
    launch.words = _words(program.size, values + extra)
    if foreign:
        launch.tail = _words(program.size, tails + extra)
    launch.keep.append(program.params)
    return launch


def _pointer(program: Program, launch: Launch, kind: str, payload: Any, parts: int) -> int:
    if kind == "pointer":
        query, position = payload
        launch.keep.append(query.owner)
        return int(query.pointers()[position][1])
    if kind == "extent":
        return int(payload)
    if kind == "report":
        launch.report = (ctypes.c_int64 * bounds.WORDS)()
        return ctypes.addressof(launch.report)
    if kind == "stride":
        return int(copy_stride(payload) * payload.dtype.itemsize) if id(payload) in program.privates else 0
    if kind in ("load", "gather"):
        buffer = payload.buf
    elif kind == "store":
        buffer = allocate(payload.dtype, program.size)
        program.bound[id(payload)] = buffer
    elif kind == "partial":
        buffer = allocate(accumulator_type(payload.args[0].dtype, payload.attr), parts)
        program.bound[id(payload)] = buffer
    else:
        buffer = _target(program, payload)
        copies = program.copies.get(id(payload), 0)
        if copies:
            program.copies[id(payload)] = parts
            stride = copy_stride(payload)
            buffer = pool().allocate(stride * parts * payload.dtype.itemsize)
            program.privates[id(payload)] = buffer
    launch.access.append((kind, buffer))
    return int(buffer.ptr)


def copy_stride(after: Node) -> int:
    """Return the elements from one chunk's copy of a scatter target to the next (whole packets, own cache lines)."""
    return -(-after.size // 64) * 64


def _target(program: Program, after: Node) -> Buffer:
    """Return the memory a scatter writes to: the old array's own if nobody else holds it, else a copy."""
    old = after.args[0]
    if old.op is LITERAL:
        buffer = allocate(old.dtype, after.size)
        fill(buffer, old.dtype, -(-after.size // 16), int.from_bytes(old.attr, "little"))
    # References: the node's argument tuple, `old`, and getrefcount's own argument; the buffer: node and argument.
    elif sys.getrefcount(old) <= 3 and sys.getrefcount(old.buf) <= 2 and not old.buf.foreign:
        buffer = old.buf
    else:
        buffer = allocate(old.dtype, after.size)
        copy(buffer, old.buf, after.size * old.dtype.itemsize)
    program.bound[id(after)] = buffer
    return buffer


def _tail_pointer(launch: Launch, kind: str, payload: Any, pointer: int, size: int) -> int:
    """Return the pointer the last packet uses: for borrowed memory a padded copy, shifted so that indices agree."""
    if kind != "load" or not payload.buf.foreign or payload.size == 1:
        return pointer
    item = payload.dtype.itemsize
    start = size // WIDTH * WIDTH
    spare = allocate(payload.dtype, WIDTH)
    launch.keep.append(spare)
    runtime.sync()
    ctypes.memmove(spare.ptr, pointer + start * item, (size - start) * item)
    return int(spare.ptr - start * item)


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
    parts = launch.chunks + (1 if launch.tail is not None and launch.packets else 0)
    for root in program.outputs:
        if root.op is REDUCE:
            partial = program.bound[id(root)]
            result = allocate(root.dtype, 1)
            source_type = root.args[0].dtype
            kernel = utility_kernel("merge_reduction", root.attr, source_type, root.dtype)
            words = (ctypes.c_int64 * 3)(result.ptr, partial.ptr, parts)
            runtime.run(Launch(kernel, 1, 1, 1, 1, words, None, keep=[partial, result]))
            program.bound[id(root)] = result
    for after in program.targets:
        buffer = program.privates.get(id(after))
        if buffer is not None:
            target = program.bound[id(after)]
            kernel = utility_kernel("merge_copies", after.attr.op, after.dtype)
            copies = program.copies[id(after)]
            words = (ctypes.c_int64 * 4)(target.ptr, buffer.ptr, copy_stride(after), copies)
            _spread(kernel, words, -(-after.size // 16), 16 * copies, [buffer, target])


def _publish(program: Program) -> None:
    for root in [*program.outputs, *program.targets]:
        root.buf = program.bound[id(root)]
        root.op, root.args, root.attr, root.scope = DATA, (), None, None


def utility_kernel(kind: str, *options: Any) -> cache.Kernel:
    """Return one of the kernels of `codegen/utility.py` or `codegen/scan.py`, compiled once per machine."""
    key = (kind, *(o.name if isinstance(o, DType) else o for o in options))
    kernel = runtime.utilities.get(key)
    if kernel is None:
        name = cache.digest(key)
        module = cache.load(name)
        if module is None:
            text = getattr(scan if hasattr(scan, kind) else utility, kind)(host.target().attributes, *options)
            object_code = host.to_object(text, sroa="alloca" in text)
            cache.write(name, object_code)
            module = host.link(object_code, ("kernel",), name)
        kernel = runtime.utilities[key] = cache.Kernel(module, (), (), name)
    return kernel


def _spread(kernel: cache.Kernel, words: Any, packets: int, cost: int, keep: list[Any]) -> None:
    chunks = max(1, min(chunk_limit(), packets * cost // 65536))
    chunk = -(-packets // chunks)
    runtime.run(Launch(kernel, packets, packets, chunk, -(-packets // chunk), words, None, keep=keep))


def fill(buffer: Buffer, dtype: DType, packets: int, word: int) -> None:
    """Write one value into the first `packets` x 16 elements of a buffer, after what runs now."""
    word = word - (1 << 64) if word >> 63 else word
    words = (ctypes.c_int64 * 2)(buffer.ptr, word)
    _spread(utility_kernel("fill", dtype.bits), words, packets, 16, [buffer])


def copy(target: Buffer, source_buffer: Buffer, nbytes: int) -> None:
    """Copy bytes between buffers, after what runs now."""
    if source_buffer.foreign:
        runtime.sync()
        ctypes.memmove(target.ptr, source_buffer.ptr, nbytes)
        return
    words = (ctypes.c_int64 * 2)(target.ptr, source_buffer.ptr)
    _spread(utility_kernel("copy"), words, -(-nbytes // 64), 16, [target, source_buffer])


def is_after(n: Node) -> bool:
    """Return whether the node is a scatter target that still waits for its scatters."""
    return n.op is AFTER and n.buf is None


__all__ = ["WIDTH", "Launch", "Runtime", "runtime", "run_group", "find_kernel", "fill", "copy"]
