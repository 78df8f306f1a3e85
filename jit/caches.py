"""The caches as users see them: what each holds, how often it helped, and how to empty it.

    >>> import luxgrad as dr
    >>> sorted(dr.cache_stats())
    ['data', 'kernels', 'memory']
    >>> dr.clear_cache("data")
    >>> dr.cache_stats()["data"]["bytes"]
    0
"""

from __future__ import annotations

from typing import Any

from . import diagnostics
from .memory.pool import pool
from .runtime import cache
from .runtime.engine import runtime
from .runtime.history import history

__all__ = ["CACHES", "cache_stats", "clear_cache"]

CACHES = ("kernels", "memory", "data")


def cache_stats() -> dict[str, dict[str, Any]]:
    """Return what the caches hold and did in this process, by cache.

    "kernels": "entries" in memory; "hits" (launches whose kernel was in memory), "soft_misses" (loaded from disk),
    "hard_misses" (compiled), and "disk", the files of the folder. "memory": blocks kept for arrays to come, as in
    `memory_stats`: "bytes" are free ones, "hits" requests that took one, "misses" those that did not, "evictions" how
    often free blocks went back to the system. "data": "entries", "bytes", "limit", "hits" (from memory or disk),
    "misses", "evictions", bytes by kind in "kinds", and "disk". "disk" has "folder" (None: none is used), "files",
    "bytes", "limit", "hits", "misses", "written", "evicted", "damaged" and "failed" (could not be written).
    """
    from .datacache import data_cache

    memory, data = pool().statistics(), data_cache()
    kernels = {
        "entries": sum(map(len, runtime.kernels.values())) + len(runtime.utilities),
        "hits": history.launches - history.soft_misses - history.hard_misses,
        "soft_misses": history.soft_misses, "hard_misses": history.hard_misses, "disk": _disk(cache.STORE),
    }  # fmt: skip
    blocks = {
        "bytes": memory["cached"], "hits": memory["n_hit"], "misses": memory["n_alloc"] - memory["n_hit"],
        "evictions": memory["n_flush"],
    }  # fmt: skip
    return {"kernels": kernels, "memory": blocks, "data": {**data.statistics(), "disk": _disk(data.store)}}


def _disk(store: Any) -> dict[str, Any]:
    folder = store.folder()
    return {
        "folder": None if folder is None else str(folder), "limit": store.limit(), **store.statistics(),
    }  # fmt: skip


def clear_cache(which: str = "all", *, disk: bool = False) -> None:
    """Empty the cache "kernels", "memory" or "data", or "all" of them; with `disk` also its folder.

    What is in use stays with its users. Raises ValueError for other names, and RuntimeError if the memory of blocks is
    to be given back while a frozen function is recorded.
    """
    from .datacache import STAMPS, data_cache

    if which not in (*CACHES, "all"):
        raise ValueError(f"clear_cache(): there are {', '.join(CACHES)} and all, found '{which}'")
    if which in ("data", "all"):
        data_cache().clear()
        STAMPS.clear()
        if disk:
            data_cache().store.clear()
    if which in ("kernels", "all"):
        diagnostics.flush_kernel_cache()
        if disk:
            cache.STORE.clear()
    if which in ("memory", "all"):
        diagnostics.flush_malloc_cache()
