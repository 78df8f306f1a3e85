"""The thread pool: compiled code that takes jobs from a ring, chunk by chunk, in order and without the GIL.

A job is one kernel over all packets of an array. Workers enter `worker` once and stay; the calling thread helps while
it waits. Job k + 1 starts when job k is complete, so launches are asynchronous but ordered.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
from typing import Any

from .. import debug
from ..codegen.host import CompiledModule, compile_ir
from ..once import once

RING = 256  # jobs in flight at most
_SLOT = 16  # words per job
_HEAD = 64  # words before the ring; what threads write often lies in cache lines of its own
SUBMITTED, COMPLETED, _STOP, _SLEEPERS = 0, 16, 32, 48
# words of a job
_FN, _ARGS, _PACKETS, _CHUNK, _CHUNKS, _TAIL, _NEXT, _DONE = 0, 1, 2, 3, 4, 5, 8, 9


def _sleep_code() -> tuple[str, str, str]:
    """Return declarations, the code that sleeps until %sub changes, and the code that wakes sleepers."""
    syscalls = {"x86_64": 202, "aarch64": 98}
    number = syscalls.get(platform.machine())
    if sys.platform == "linux" and number is not None:
        call = f"call i64 (i64, ...) @syscall(i64 {number}, ptr %shared"
        return (
            "declare i64 @syscall(i64, ...)",
            f"  %low = trunc i64 %sub to i32\n  %r = {call}, i32 128, i32 %low, ptr null, ptr null, i32 0)",
            f"  %w = {call}, i32 129, i32 2147483647, ptr null, ptr null, i32 0)",
        )
    # Elsewhere idle workers look again every 50 microseconds.
    return "declare i32 @usleep(i32)", "  %r = call i32 @usleep(i32 50)", ""


_CODE = """
declare void @llvm.assume(i1)
{declare}

define internal void @relax() noinline {{
  fence acq_rel
  ret void
}}

define i1 @step(ptr %shared) {{
entry:
  %cp = getelementptr i64, ptr %shared, i64 {COMPLETED}
  %done = load atomic i64, ptr %cp acquire, align 8
  %sub = load atomic i64, ptr %shared acquire, align 8
  %idle = icmp eq i64 %done, %sub
  br i1 %idle, label %none, label %look
look:
  %pos = urem i64 %done, {RING}
  %off = mul i64 %pos, {SLOT}
  %off2 = add i64 %off, {HEAD}
  %slot = getelementptr i64, ptr %shared, i64 %off2
  %np = getelementptr i64, ptr %slot, i64 {NEXT}
  %tag = shl i64 %done, 24
  br label %try
try:
  %word = load atomic i64, ptr %np acquire, align 8
  %wtag = and i64 %word, -16777216
  %same = icmp eq i64 %wtag, %tag
  br i1 %same, label %mine, label %none
mine:
  %chunk = and i64 %word, 16777215
  %ncp = getelementptr i64, ptr %slot, i64 {CHUNKS}
  %nchunks = load i64, ptr %ncp
  %left = icmp ult i64 %chunk, %nchunks
  br i1 %left, label %take, label %none
take:
  %word1 = add i64 %word, 1
  %pair = cmpxchg ptr %np, i64 %word, i64 %word1 acq_rel acquire
  %won = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %won, label %run, label %try
run:
  call void @run_chunk(ptr %slot, i64 %chunk)
  %dp = getelementptr i64, ptr %slot, i64 {DONE}
  %d = atomicrmw add ptr %dp, i64 1 acq_rel
  %d1 = add i64 %d, 1
  %last = icmp eq i64 %d1, %nchunks
  br i1 %last, label %complete, label %some
complete:
  %next = add i64 %done, 1
  store atomic i64 %next, ptr %cp release, align 8
  br label %some
some:
  ret i1 true
none:
  ret i1 false
}}

define internal void @run_chunk(ptr %slot, i64 %chunk) {{
  %fp = getelementptr i64, ptr %slot, i64 {FN}
  %fn = load ptr, ptr %fp
  %pp = getelementptr i64, ptr %slot, i64 {PACKETS}
  %packets = load i64, ptr %pp
  %szp = getelementptr i64, ptr %slot, i64 {CHUNK}
  %size = load i64, ptr %szp
  %ap = getelementptr i64, ptr %slot, i64 {ARGS}
  %tp = getelementptr i64, ptr %slot, i64 {TAIL}
  %begin0 = mul i64 %chunk, %size
  %istail = icmp uge i64 %begin0, %packets
  %begin = select i1 %istail, i64 %packets, i64 %begin0
  %end0 = add i64 %begin, %size
  %over = icmp ugt i64 %end0, %packets
  %end1 = select i1 %over, i64 %packets, i64 %end0
  %tailend = add i64 %packets, 1
  %end = select i1 %istail, i64 %tailend, i64 %end1
  %which = select i1 %istail, ptr %tp, ptr %ap
  %args = load ptr, ptr %which
  call void %fn(i64 %begin, i64 %end, i64 %chunk, ptr %args)
  ret void
}}

define void @worker(ptr %shared, i64 %spin) {{
entry:
  %stp = getelementptr i64, ptr %shared, i64 {STOP}
  %slp = getelementptr i64, ptr %shared, i64 {SLEEPERS}
  %cp = getelementptr i64, ptr %shared, i64 {COMPLETED}
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ 0, %busy ], [ %k1, %again ], [ 0, %woke ]
  %stop = load atomic i64, ptr %stp acquire, align 8
  %stopping = icmp ne i64 %stop, 0
  br i1 %stopping, label %leave, label %work
work:
  %did = call i1 @step(ptr %shared)
  br i1 %did, label %busy, label %idle
busy:
  br label %loop
idle:
  call void @relax()
  %k1 = add i64 %k, 1
  %patient = icmp ult i64 %k1, %spin
  br i1 %patient, label %again, label %tired
again:
  br label %loop
tired:
  %s0 = atomicrmw add ptr %slp, i64 1 seq_cst
  %sub = load atomic i64, ptr %shared seq_cst, align 8
  %done = load atomic i64, ptr %cp seq_cst, align 8
  %quiet = icmp eq i64 %sub, %done
  %stop2 = load atomic i64, ptr %stp seq_cst, align 8
  %on = icmp eq i64 %stop2, 0
  %sleep = and i1 %quiet, %on
  br i1 %sleep, label %rest, label %woke0
rest:
{sleep}
  br label %woke0
woke0:
  %s1 = atomicrmw sub ptr %slp, i64 1 seq_cst
  br label %woke
woke:
  br label %loop
leave:
  ret void
}}

define void @submit(ptr %shared, ptr %fn, ptr %args, i64 %packets, i64 %chunk, i64 %chunks, ptr %tail) {{
entry:
  %sub = load atomic i64, ptr %shared acquire, align 8
  %cp = getelementptr i64, ptr %shared, i64 {COMPLETED}
  %limit = sub i64 %sub, {RINGLESS}
  br label %room
room:
  %done = load atomic i64, ptr %cp acquire, align 8
  %full = icmp slt i64 %done, %limit
  br i1 %full, label %help, label %fill
help:
  %did = call i1 @step(ptr %shared)
  br label %room
fill:
  %pos = urem i64 %sub, {RING}
  %off = mul i64 %pos, {SLOT}
  %off2 = add i64 %off, {HEAD}
  %slot = getelementptr i64, ptr %shared, i64 %off2
  %p0 = getelementptr i64, ptr %slot, i64 {FN}
  store ptr %fn, ptr %p0
  %p1 = getelementptr i64, ptr %slot, i64 {ARGS}
  store ptr %args, ptr %p1
  %p2 = getelementptr i64, ptr %slot, i64 {PACKETS}
  store i64 %packets, ptr %p2
  %p3 = getelementptr i64, ptr %slot, i64 {CHUNK}
  store i64 %chunk, ptr %p3
  %p4 = getelementptr i64, ptr %slot, i64 {CHUNKS}
  store i64 %chunks, ptr %p4
  %p5 = getelementptr i64, ptr %slot, i64 {TAIL}
  store ptr %tail, ptr %p5
  %p9 = getelementptr i64, ptr %slot, i64 {DONE}
  store i64 0, ptr %p9
  %p8 = getelementptr i64, ptr %slot, i64 {NEXT}
  %tag = shl i64 %sub, 24
  store atomic i64 %tag, ptr %p8 release, align 8
  %next = add i64 %sub, 1
  store atomic i64 %next, ptr %shared seq_cst, align 8
  %slp = getelementptr i64, ptr %shared, i64 {SLEEPERS}
  %sleepers = load atomic i64, ptr %slp seq_cst, align 8
  %wake = icmp ne i64 %sleepers, 0
  br i1 %wake, label %call, label %end
call:
{wake}
  br label %end
end:
  ret void
}}

define void @submit_all(ptr %shared, ptr %table, i64 %count) {{
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k1, %body ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %body, label %end
body:
  %at = mul i64 %k, 6
  %row = getelementptr i64, ptr %table, i64 %at
  %fn = load ptr, ptr %row
  %r1 = getelementptr i64, ptr %row, i64 1
  %args = load ptr, ptr %r1
  %r2 = getelementptr i64, ptr %row, i64 2
  %packets = load i64, ptr %r2
  %r3 = getelementptr i64, ptr %row, i64 3
  %chunk = load i64, ptr %r3
  %r4 = getelementptr i64, ptr %row, i64 4
  %chunks = load i64, ptr %r4
  %r5 = getelementptr i64, ptr %row, i64 5
  %tail = load ptr, ptr %r5
  call void @submit(ptr %shared, ptr %fn, ptr %args, i64 %packets, i64 %chunk, i64 %chunks, ptr %tail)
  %k1 = add i64 %k, 1
  br label %loop
end:
  ret void
}}

define void @wait(ptr %shared, i64 %job) {{
entry:
  %cp = getelementptr i64, ptr %shared, i64 {COMPLETED}
  br label %loop
loop:
  %done = load atomic i64, ptr %cp acquire, align 8
  %over = icmp uge i64 %done, %job
  br i1 %over, label %end, label %help
help:
  %did = call i1 @step(ptr %shared)
  br i1 %did, label %loop, label %pause
pause:
  call void @relax()
  br label %loop
end:
  ret void
}}
"""

_SPIN = 4000  # looks of an idle worker before it sleeps


@once
def _module() -> CompiledModule:
    declare, sleep, wake = _sleep_code()
    text = _CODE.format(
        declare=declare, sleep=sleep, wake=wake, RING=RING, SLOT=_SLOT, HEAD=_HEAD, COMPLETED=COMPLETED, STOP=_STOP,
        SLEEPERS=_SLEEPERS, FN=_FN, ARGS=_ARGS, PACKETS=_PACKETS, CHUNK=_CHUNK, CHUNKS=_CHUNKS, TAIL=_TAIL,
        NEXT=_NEXT, DONE=_DONE, RINGLESS=RING - 1,
    )  # fmt: skip
    return compile_ir(text, "threads", ("worker", "submit", "submit_all", "wait"), sroa=False)


class ThreadPool:
    """Worker threads (one less than `threads`, the caller is the last one) and their ring of jobs, `done` before."""

    def __init__(self, threads: int, done: int = 0) -> None:
        module = _module()
        word, pointer = ctypes.c_int64, ctypes.c_void_p
        self.threads = threads
        self._memory: Any = (word * (_HEAD + RING * _SLOT + 16))()
        self.shared = (ctypes.addressof(self._memory) + 63) & ~63
        self._submit = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, word, word, word, pointer)(
            module.address("submit")
        )
        self._submit_all = ctypes.CFUNCTYPE(None, pointer, pointer, word)(module.address("submit_all"))
        self._wait = ctypes.CFUNCTYPE(None, pointer, word)(module.address("wait"))
        self._worker = ctypes.CFUNCTYPE(None, pointer, word)(module.address("worker"))
        self.words = (word * 64).from_address(self.shared)
        # Numbers go on from those of an earlier pool: buffers remember by which job they are written.
        self.words[SUBMITTED] = self.words[COMPLETED] = done
        self._workers = [
            threading.Thread(target=self._worker, args=(self.shared, _SPIN), daemon=True, name=f"luxgrad-{k}")
            for k in range(threads - 1)
        ]
        for thread in self._workers:
            thread.start()

    @property
    def submitted(self) -> int:
        """Return how many jobs were given in so far."""
        return int(self.words[SUBMITTED])

    @property
    def completed(self) -> int:
        """Return how many jobs are done."""
        return int(self.words[COMPLETED])

    def submit(self, fn: int, args: int, packets: int, chunk: int, chunks: int, tail: int) -> int:
        """Give in a job and return its number; `tail`: arguments of one more packet at the end, or 0."""
        self._submit(self.shared, fn, args, packets, chunk, chunks, tail)
        return self.submitted

    def submit_all(self, table: int, count: int) -> int:
        """Give in jobs from a table of rows of six words (as `submit`'s arguments) and return the last one's number."""
        self._submit_all(self.shared, table, count)
        return self.submitted

    def wait(self, job: int) -> None:
        """Return when the first `job` jobs are done, working on them meanwhile."""
        if self.words[COMPLETED] < job:
            self._wait(self.shared, job)

    def stop(self) -> None:
        """Finish all jobs and end the workers."""
        self.wait(self.submitted)
        self.words[_STOP] = 1
        self._submit(self.shared, 0, 0, 0, 1, 0, 0)  # wakes sleepers; a job without chunks never runs
        for thread in self._workers:
            thread.join(timeout=5)


def default_threads() -> int:
    """Return LUXGRAD_THREADS, or the number of processors this process may use."""
    asked: int | None = debug.value("threads")
    if asked is not None:
        return asked
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
