"""What the engine did and holds: launches, kernels, memory, threads, log output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from . import debug
from .arrays.tree import leaves
from .memory import report
from .memory.pool import Peaks, pool
from .modes import Choice
from .runtime.engine import runtime
from .runtime.history import history
from .runtime.threads import default_threads

__all__ = [
    "JitBackend", "KernelType", "LogLevel", "flush_kernel_cache", "flush_malloc_cache", "kernel_history",
    "kernel_history_clear", "launch_stats", "log_level", "malloc_clear_statistics", "malloc_watermark", "memory_scope",
    "memory_snapshot", "memory_stats", "scoped_thread_count", "set_label", "set_log_level", "set_memory_limit",
    "set_thread_count", "sync_thread", "thread_count", "whos",
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
    """Give memory that no array uses back to the system; raises RuntimeError while a frozen function is recorded."""
    if runtime.recorder is not None:
        raise RuntimeError("flush_malloc_cache(): not while a frozen function is recorded; call it before or after")
    runtime.sync()
    pool().flush()


def malloc_watermark(backend: Any = None) -> int:
    """Return the most bytes obtained from the system at any time since the statistics were cleared."""
    return pool().reserved_peak


def malloc_clear_statistics() -> None:
    """Let the watermark start again from what is allocated now."""
    pool().clear_statistics()


def memory_stats(backend: Any = None) -> dict[str, int]:
    """Return what memory is used for.

    In bytes: "live" (blocks of arrays) and "live_peak"; "reserved" (obtained from the system) and "reserved_peak";
    "cached" (reserved but not live); "arenas" (of frozen functions, part of live); "parked" (freed, but still read
    outside of the device's order); "largest_free". Counts since `malloc_clear_statistics`: "n_alloc" requests, of which
    "n_hit" took a free block; "n_os" times memory was asked from the system; "n_flush".
    """
    return pool().statistics()


def memory_scope() -> AbstractContextManager[Peaks]:
    """Return a context manager that counts peaks within its block; what it gives has them afterwards. Scopes nest.

    >>> import luxgrad as dr
    >>> with dr.memory_scope() as seen:
    ...     x = dr.arange(dr.llvm.Float, 1_000_000) + 1
    ...     dr.eval(x)
    True
    >>> seen.live_peak - seen.live_before
    4000000
    """
    return pool().scope()


def set_memory_limit(limit: int | float | str | None, backend: Any = None) -> None:
    """Let arrays hold at most `limit` together: bytes, a fraction of the machine's memory (a float up to 1.0), a text
    such as "8 GiB", or None for LUXGRAD_MEMORY_LIMIT or all memory. Raises ValueError for what is none of these.
    """
    if limit is None:
        pool().limit = None
        return
    if isinstance(limit, bool) or not isinstance(limit, (int, float, str)):
        raise TypeError(f"set_memory_limit(): expected bytes, a fraction or a text, found {type(limit).__name__}")
    if isinstance(limit, int):
        if limit <= 0:
            raise ValueError(f"set_memory_limit(): the limit must be positive, found {limit}")
        pool().limit = limit
        return
    try:
        pool().limit = debug.SETTINGS["memory_limit"].read(str(limit))
    except ValueError as error:
        raise ValueError(f"set_memory_limit(): the limit must be {error}, found {limit!r}") from None


def memory_snapshot(backend: Any = None) -> dict[str, Any]:
    """Return `memory_stats` and every block: offset, size, state ("live", "free", "parked"), and for arrays type, label
    and, if recorded under the Debug flag, line. Plain data that `json.dumps` takes."""
    return report.snapshot(pool())


def set_label(x: Any = None, label: str | None = None, /, **named: Any) -> None:
    """Give an array (`set_label(x, "name")` or `set_label(name=x)`) a name that `whos` and errors show.

    Components of nested arrays and members of PyTrees get it with their own name or number added.
    """
    pairs = list(named.items()) if x is None else [(label, x)]
    for name, value in pairs:
        if name is not None and not isinstance(name, str):
            raise TypeError(f"set_label(): a label is a string, found {type(name).__name__}")
        for path, array in leaves(value):
            report.set_label(array._n, None if name is None else f"{name}{path}")


def sync_thread() -> None:
    """Return when everything launched so far is done; raises RuntimeError for what replays of frozen functions found.
    """
    runtime.settle()


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
    """Print a table of all live nodes: number, type, elements, state, bytes and label (`simple`: the totals only).

    Blocks are counted once, however many nodes read them; the total is what `memory_stats()["live"]` tells.
    """
    if not simple:
        print(f"{'node':>8} {'type':<9} {'elements':>11} {'state':<12} {'bytes':>13}  label")
        for n in report.live_nodes():
            size = n.buf.nbytes if n.buf is not None else 0
            row = f"{n.index:>8} {n.dtype.name:<9} {n.size:>11} {report.state_of(n):<12} {size:>13}"
            print(f"{row}  {report.label_of(n)}".rstrip())
    p = pool()
    arrays = report.live_arrays(p)
    held = sum(a["bytes"] for a in arrays)
    print(
        f"{len(arrays)} arrays in memory: {held} bytes; other blocks in use: {p.live - held}; live together: {p.live}; "
        f"free: {p.reserved - p.live}; from the system: {p.reserved}"
    )
