"""Launches of ready-made kernels: filling, copying, merging, and running any of them over an array."""

from __future__ import annotations

from typing import Any

from ..codegen import host, scan, utility
from ..dtypes import DType
from ..memory.pool import Buffer
from . import cache
from .engine import Launch, Operand, chunk_limit, runtime


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


def run_utility(
    kernel: cache.Kernel, packets: int, chunk: int, operands: list[Operand], access: list[str]
) -> None:
    """Run a kernel over `packets`, `chunk` at a time."""
    runtime.run(Launch(kernel, packets, packets, chunk, -(-packets // chunk), operands, access))


def spread(kernel: cache.Kernel, operands: list[Operand], access: list[str], packets: int, cost: int) -> None:
    """Run a kernel over packets in as many chunks as the work, `cost` elements per packet, is worth."""
    chunks = max(1, min(chunk_limit(), packets * cost // 65536))
    run_utility(kernel, packets, -(-packets // chunks), operands, access)


def fill(buffer: Buffer, dtype: DType, packets: int, word: int) -> None:
    """Write one value into the first `packets` x 16 elements of a buffer, after what runs now."""
    word = word - (1 << 64) if word >> 63 else word
    spread(utility_kernel("fill", dtype.bits), [buffer, word], ["w:whole", ""], packets, 16)


def copy(target: Buffer | tuple[Buffer, int], source: Buffer, nbytes: int) -> None:
    """Copy bytes from a buffer to another one, or to a place within it, after what runs now."""
    access = ["w:whole", "r:whole"]
    rest = nbytes % 64 if source.foreign else 0  # 64 bytes at a time the kernel would read beyond the end
    whole = nbytes - rest
    if whole:
        spread(utility_kernel("copy"), [target, source], access, -(-whole // 64), 16)
    if rest:
        buffer, offset = target if isinstance(target, tuple) else (target, 0)
        access = ["w:whole" if not whole else "rw:whole", "r:whole"]
        run_utility(utility_kernel("copy_bytes"), rest, rest, [(buffer, offset + whole), (source, whole)], access)


__all__ = ["copy", "fill", "run_utility", "spread", "utility_kernel"]
