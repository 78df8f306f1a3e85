"""The engine's one global state: threads, kernels in memory, launches in flight."""

from __future__ import annotations

import atexit
import collections
import ctypes
import os
import threading
from typing import Any

from ..memory.pool import Buffer, pool
from . import cache
from .threads import ThreadPool, default_threads

Operand = Buffer | int | tuple[Buffer, int]  # an address, a number, or an address and the bytes to add


class Launch:
    """One kernel run: enough to run it again with other buffers.

    `operands` are the words of the argument block in order, `access` says for each buffer how it is used: "r" or "w"
    (both for what is changed) and, after a colon, "own" where a thread touches the element of its own index only,
    "gather" or "scatter" for computed indices, "whole" for anything else; "" for numbers. `tail` are the operands of
    the last packet where that needs others. `owners` are kept alive with the launch.
    """

    __slots__ = ("kernel", "size", "packets", "chunk", "chunks", "operands", "access", "tail", "owners", "words",
                 "tail_words", "report")  # fmt: skip

    def __init__(
        self,
        kernel: cache.Kernel,
        size: int,
        packets: int,
        chunk: int,
        chunks: int,
        operands: list[Operand],
        access: list[str],
        tail: list[Operand] | None = None,
        owners: list[Any] | None = None,
    ) -> None:
        self.kernel, self.size, self.packets, self.chunk, self.chunks = kernel, size, packets, chunk, chunks
        self.operands: list[Operand] | None = operands  # None once the launch is queued
        self.access, self.tail, self.owners = access, tail, owners
        self.words = argument_block(operands)
        self.tail_words = argument_block(tail) if tail is not None else None
        self.report: Any = None  # under the Debug flag: what the kernel found wrong

    def borrowed(self) -> list[Buffer]:
        """Return the buffers over memory of somebody else: those must stay alive until the launch is done."""
        found = []
        for o in self.operands or ():
            buffer = o[0] if o.__class__ is tuple else o
            if buffer.__class__ is Buffer and buffer.owner is not None and buffer.foreign:
                found.append(buffer)
        return found


def argument_block(operands: list[Operand]) -> Any:
    """Return the words that a kernel reads its arguments from."""
    words = [address(o) if o.__class__ is not int else o for o in operands]
    return (ctypes.c_int64 * len(words))(*words)


def address(operand: Any) -> int:
    """Return the word that an operand stands for."""
    if operand.__class__ is Buffer:
        return int(operand.ptr)
    if operand.__class__ is tuple:
        return int(operand[0].ptr + operand[1])
    return int(operand)


class Runtime:
    """The one global state of the engine: threads, kernels in memory, jobs in flight."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.jobs_before = 0  # jobs of the pools there were before
        self._threads: ThreadPool | None = None
        self.reset()

    def reset(self) -> None:
        """Forget threads and jobs (a forked child has none of its parent's threads)."""
        if self._threads is not None:
            self.jobs_before = self._threads.submitted
        self._threads = None
        self.thread_count = 0
        self.recorder: Any = None  # what notes launches while a frozen function is recorded
        self.guards: list[tuple[int, Buffer, str]] = []  # (job, flag, what is wrong if it is set) of replays
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
                    self._threads = ThreadPool(self.thread_count, self.jobs_before)
        return self._threads

    def set_threads(self, count: int) -> None:
        """Use `count` threads from now on; running jobs finish first."""
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(f"the number of threads must be an int, found {count!r}")
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
        recorder = self.recorder
        if recorder is not None and recorder.thread == threading.get_ident():
            recorder.note(launch)
        args = ctypes.addressof(launch.words)
        tail = ctypes.addressof(launch.tail_words) if launch.tail_words is not None else 0
        if launch.chunks == 1 and threads.completed == threads.submitted:
            if launch.packets:
                launch.kernel.call(0, launch.packets, 0, args)
            if tail:
                launch.kernel.call(launch.packets, launch.packets + 1, 1 if launch.packets else 0, tail)
            return
        main = -(-launch.packets // launch.chunk) if launch.packets else 0
        job = threads.submit(launch.kernel.address, args, launch.packets, launch.chunk, main + (tail != 0), tail)
        for operand, access in zip(launch.operands or (), launch.access, strict=True):
            if "w" in access[:2]:
                (operand[0] if isinstance(operand, tuple) else operand).job = job  # type: ignore[union-attr]
        flights = self.in_flight
        flights.append((job, (launch, launch.borrowed())))
        # Blocks of the pool need not wait: whatever gets them next runs after this launch.
        launch.operands = launch.tail = None
        self.forget_finished()

    def forget_finished(self) -> None:
        """Let go of what finished launches have kept alive."""
        flights, done = self.in_flight, self.threads.completed
        while flights and flights[0][0] <= done:
            flights.popleft()

    def guard(self, flag: Buffer, message: str) -> None:
        """Raise RuntimeError if the mask in `flag` (evaluated, one element) is set: now, or, for launches that are
        being recorded, when their replays are waited for."""
        recorder = self.recorder
        if recorder is not None and recorder.thread == threading.get_ident():
            recorder.guards.append((flag, message))
            return
        self.guards.append((0, flag, message))
        self.settle()

    def settle(self) -> None:
        """Wait for all launches and raise what their guards have found."""
        self.sync()
        self.check_guards()

    def wait_for(self, job: int) -> None:
        """Wait for a launch and all before it, and raise what their guards have found."""
        if self._threads is not None:
            self._threads.wait(job)
        self.check_guards()

    def check_guards(self) -> None:
        """Raise RuntimeError for the first guard of a finished launch whose flag is set; each tells once."""
        if not self.guards:
            return
        done = self.threads.completed
        waiting, self.guards = self.guards, []
        wrong = None
        for job, flag, message in waiting:
            if job > done:
                self.guards.append((job, flag, message))
            elif ctypes.c_uint8.from_address(flag.ptr).value and wrong is None:
                wrong = message
        if wrong is not None:
            raise RuntimeError(wrong)

    def reading(self, what: str) -> None:
        """Raise if a frozen function is being recorded in this thread: `what` depends on values, which will be others
        when it is replayed."""
        recorder = self.recorder
        if recorder is not None and recorder.thread == threading.get_ident():
            recorder.refuse(what)

    def shutdown(self) -> None:
        """Finish all jobs and end the workers: their code must not be unloaded under them."""
        with self.lock:
            if self._threads is not None:
                self._threads.stop()
                self.jobs_before = self._threads.submitted
                self._threads = None
                self.in_flight.clear()


def _after_fork() -> None:
    runtime.lock = threading.RLock()
    runtime.reset()


runtime = Runtime()
pool().pressure.append(runtime.sync)  # launches in flight hold their buffers
atexit.register(runtime.shutdown)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=runtime.sync, after_in_child=_after_fork)  # a child has no workers to finish launches


def chunk_limit() -> int:
    """Return how many chunks a kernel is cut into at most: the same for up to four threads, so that results are."""
    threads = runtime.threads.threads
    return 16 if threads <= 4 else 4 * threads


__all__ = ["Launch", "Operand", "Runtime", "address", "argument_block", "chunk_limit", "runtime"]
