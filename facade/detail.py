"""Diagnostics where Dr.Jit has them, `drjit.detail`; they are in `luxgrad` too."""

from luxgrad.jit.diagnostics import (
    flush_kernel_cache,
    flush_malloc_cache,
    launch_stats,
    malloc_clear_statistics,
    malloc_watermark,
)

__all__ = [
    "flush_kernel_cache", "flush_malloc_cache", "launch_stats", "malloc_clear_statistics", "malloc_watermark",
]  # fmt: skip
