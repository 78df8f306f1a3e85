"""What the engine did and holds: launches, kernels, memory, threads, log output."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .memory.pool import pool
from .modes import Choice
from .runtime.history import history
from .runtime.launch import runtime
from .runtime.threads import default_threads
from .trace import LITERAL, Node

__all__ = [
    "JitBackend", "KernelType", "LogLevel", "flush_kernel_cache", "flush_malloc_cache", "kernel_history",
    "kernel_history_clear", "launch_stats", "log_level", "malloc_clear_statistics", "malloc_statistics",
    "malloc_watermark", "scoped_thread_count", "set_log_level", "set_thread_count", "sync_thread", "thread_count",
    "whos",
]  # fmt: skip


class JitBackend(Choice):
    """Where arrays live and programs run; 0 stands for Python numbers."""

    Invalid = 0
    CUDA = 1
    LLVM = 2


class LogLevel(Choice):
    """How much is printed: from `Info` on every launch."""

    Disable = 0
    Error = 1
    Warn = 2
    Info = 3
    InfoSym = 4
    Debug = 5
    Trace = 6


class KernelType(Choice):
    """What an entry of the kernel history is."""

    JIT = 0
    Reduce = 1
    ScanReduce = 2
    Other = 3


def set_log_level(level: LogLevel | int) -> None:
    """Print messages of this level and below (to standard output)."""
    history.level = int(level)


def log_level() -> LogLevel:
    """Return the level that was set."""
    return LogLevel(history.level)


def kernel_history(types: Sequence[KernelType] = ()) -> list[dict[str, Any]]:
    """Return a record of each launch since the last call, and forget them.

    Launches are recorded while `JitFlag.KernelHistory` is on. Keys: backend, type, hash, ir (a text stream), size,
    input_count, output_count, operation_count, cache_hit, cache_disk, codegen_time (milliseconds).
    """
    names = {t.name for t in types}
    found = [r for r in history.records if not names or r["type"] in names]
    history.records.clear()
    return found


def kernel_history_clear() -> None:
    """Forget the recorded launches."""
    history.records.clear()


def launch_stats() -> tuple[int, int, int]:
    """Return how many kernels were launched, loaded from disk (soft misses) and compiled (hard misses) so far."""
    return history.launches, history.soft_misses, history.hard_misses


def flush_kernel_cache() -> None:
    """Forget all kernels in memory; the next launch of each loads it from disk."""
    runtime.sync()
    runtime.kernels.clear()


def flush_malloc_cache() -> None:
    """Give memory that no array uses back to the system."""
    runtime.sync()
    pool().flush()


def malloc_watermark(backend: Any = None) -> int:
    """Return the most bytes obtained from the system at any time since the statistics were cleared."""
    return pool().reserved_peak


def malloc_clear_statistics() -> None:
    """Let the watermark start again from what is allocated now."""
    pool().clear_statistics()


def malloc_statistics() -> dict[str, int]:
    """Return bytes in arrays and obtained from the system, now and at most, and how many requests reused a block."""
    p = pool()
    return {
        "live": p.live, "live_peak": p.live_peak, "reserved": p.reserved, "reserved_peak": p.reserved_peak,
        "allocations": p.allocations, "hits": p.hits,
    }  # fmt: skip


def sync_thread() -> None:
    """Return when everything launched so far is done."""
    runtime.sync()


def thread_count() -> int:
    """Return how many threads run kernels."""
    return runtime.thread_count or default_threads()


def set_thread_count(count: int) -> None:
    """Run kernels on `count` threads from now on."""
    runtime.set_threads(count)


@contextmanager
def scoped_thread_count(count: int) -> Iterator[None]:
    """Within the block kernels run on `count` threads."""
    before = runtime.thread_count
    runtime.set_threads(count)
    try:
        yield
    finally:
        runtime.shutdown()
        runtime.thread_count = before


def whos(simple: bool = False) -> None:
    """Print a table of all live nodes: number, type, elements, state and bytes (`simple`: the totals only)."""
    nodes = sorted((n for n in gc.get_objects() if isinstance(n, Node)), key=lambda n: n.index)
    evaluated = {id(n.buf): n.buf.nbytes for n in nodes if n.buf is not None}
    if not simple:
        print(f"{'node':>8} {'type':<9} {'elements':>11} {'state':<12} {'bytes':>13}")
        for n in nodes:
            kind = "evaluated" if n.buf is not None else "literal" if n.op is LITERAL else "unevaluated"
            size = n.buf.nbytes if n.buf is not None else 0
            print(f"{n.index:>8} {n.dtype.name:<9} {n.size:>11} {kind:<12} {size:>13}")
    total = sum(evaluated.values())
    print(f"{len(nodes)} nodes, {len(evaluated)} in memory: {total} bytes; {pool().reserved} bytes from the system")
