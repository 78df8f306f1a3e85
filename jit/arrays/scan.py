"""Running sums, compaction and reductions of blocks: two passes over memory, in an order fixed by the elements."""

from __future__ import annotations

import ctypes
from typing import Any

from ..codegen.reduce import accumulator_type
from ..dtypes import Bool, UInt32
from ..memory.pool import Buffer, allocate
from ..runtime.engine import chunk_limit, runtime
from ..runtime.utilities import run_utility, utility_kernel
from ..trace import data
from .base import hooks
from .create import arange, full
from .flat import Flat
from .functions import select
from .memops import evaluated, gather, scatter_add
from .nested import Nested
from .reduce import operation
from .shape import reverse as reversed_order

_SHORT = 4096  # elements up to which a scan runs in one chunk


def _new_data(cls: Any, size: int, buffer: Buffer) -> Any:
    return cls.wrap(data(cls.dtype, size, buffer))


def _chunks(size: int) -> tuple[int, int]:
    count = 1 if size <= _SHORT else chunk_limit()
    chunk = -(-size // count)
    return chunk, -(-size // chunk)


def _source(x: Any, what: str) -> Buffer:
    buffer: Buffer = evaluated(x._n, f"the argument of {what}()").buf
    return buffer


def prefix_sum(x: Any, exclusive: bool = True, axis: int | None = None, reverse: bool = False) -> Any:
    """Return per element the sum of all elements before it (`exclusive`), or of these and itself.

    Nested arrays are summed component by component. Sums of floats are kept in double precision. Differentiable.
    """
    if isinstance(x, Nested):
        return type(x).of([prefix_sum(c, exclusive, None, reverse) for c in x._c])
    if reverse:
        return reversed_order(prefix_sum(reversed_order(x, axis), exclusive, axis), axis)
    if not isinstance(x, Flat):
        return x.with_array(prefix_sum(x.array, exclusive)) if len(x.shape) == 1 else _prefix_rows(x, exclusive, axis)
    cls, size = type(x), x._n.size
    if x.dtype is Bool:
        raise TypeError("prefix_sum(): not defined for masks; convert to UInt32 first")
    if size == 0:
        return x.__copy__()
    source = _source(x, "prefix_sum")
    chunk, count = _chunks(size)
    kind = accumulator_type(x.dtype, "add")
    totals, target = allocate(kind, count), allocate(x.dtype, size)
    written = "w:whole"
    if count > 1:
        kernel = utility_kernel("chunk_totals", x.dtype, kind)
        run_utility(kernel, size, chunk, [totals, source], ["w:whole", "r:whole"])
        written = "rw:whole"
    kernel = utility_kernel("running_sums", x.dtype, exclusive)
    run_utility(kernel, size, chunk, [totals, source, target], [written, "r:whole", "w:whole"])
    result = _new_data(cls, size, target)
    if x._ad is not None:
        result._ad = hooks.custom("prefix_sum", result, x, exclusive)  # type: ignore[misc]
    return result


def _prefix_rows(x: Any, exclusive: bool, axis: int | None) -> Any:
    from .strides import moved_last

    if axis is None:
        raise ValueError("prefix_sum(): a tensor with several dimensions needs an axis")
    rows, back = moved_last(x, axis)
    length = x.shape[axis]
    return back(block_prefix_sum(rows, length, exclusive))


def block_prefix_sum(x: Any, block_size: int, exclusive: bool = True) -> Any:
    """Return running sums that start anew in each block of so many neighbouring elements. Differentiable."""
    size = x._n.size
    count = -(-size // max(1, block_size))
    if size == 0:
        return x.__copy__()
    source, target = _source(x, "block_prefix_sum"), allocate(x.dtype, size)
    chunk = max(1, _chunks(size)[0] // block_size)
    kernel = utility_kernel("block_running_sums", x.dtype, exclusive)
    run_utility(kernel, count, chunk, [target, source, block_size, size], ["w:whole", "r:whole", "", ""])
    result = _new_data(type(x), size, target)
    if x._ad is not None:
        # The same function of x as the values above, which are more exact than this difference.
        first = arange(x.ns.flat(UInt32), size) // block_size * block_size
        result._ad = (prefix_sum(x, exclusive) - gather(type(x), prefix_sum(x), first))._ad
    return result


def cumsum(x: Any, axis: int | None = None, reverse: bool = False) -> Any:
    """Return per element the sum of all elements up to and including it."""
    return prefix_sum(x, False, axis, reverse)


def compress(mask: Any) -> Any:
    """Return the indices of the elements that are set, in increasing order (UInt32)."""
    if not isinstance(mask, Flat) or mask.dtype is not Bool:
        raise TypeError(f"compress(): a mask is needed, found {type(mask).__name__}")
    cls, size = mask.ns.flat(UInt32), mask._n.size
    if size == 0:
        return full(cls, 0, 0)
    source = _source(mask, "compress")
    chunk, count = _chunks(size)
    counts = allocate(UInt32, count)
    runtime.reading("compress(), whose result has as many elements as are set,")
    run_utility(utility_kernel("chunk_totals", Bool, UInt32), size, chunk, [counts, source], ["w:whole", "r:whole"])
    runtime.sync()
    total = sum((ctypes.c_uint32 * count).from_address(counts.ptr))
    target = allocate(UInt32, total)
    access = ["rw:whole", "r:whole", "w:whole"]
    run_utility(utility_kernel("compact"), size, chunk, [counts, source, target], access)
    return _new_data(cls, total, target)


def block_reduce(op: Any, x: Any, block_size: int, mode: Any = None) -> Any:
    """Return the reduction `op` (as in `reduce`) of each block of so many neighbouring elements.

    The last block may be short. Differentiable; of equal extremes each gets the gradient.
    """
    op = operation(op)
    if isinstance(block_size, bool) or not isinstance(block_size, int):
        raise TypeError(f"block_reduce(): the block size must be an int, found {block_size!r}")
    if block_size < 1:
        raise ValueError(f"block_reduce(): the block size must be positive, found {block_size}")
    if isinstance(x, Nested):
        return type(x).of([block_reduce(op, c, block_size) for c in x._c])
    if not isinstance(x, Flat):
        return block_reduce(op, x.array, block_size)
    cls, size = type(x), x._n.size
    count = -(-size // block_size)
    if block_size == 1 or size == 0:
        return x.__copy__()
    source, target = _source(x, "block_reduce"), allocate(x.dtype, count)
    chunk, _ = _chunks(size)
    kernel, chunk = utility_kernel("block_totals", op, x.dtype), max(1, chunk // block_size)
    run_utility(kernel, count, chunk, [target, source, block_size, size], ["w:whole", "r:whole", "", ""])
    result = _new_data(cls, count, target)
    if x._ad is not None and op in ("add", "mul", "min", "max"):
        result._ad = _block_derivative(op, x, result, block_size)
    return result


def _block_derivative(op: str, x: Any, result: Any, block_size: int) -> Any:
    """Return the derivative node of sums over blocks of x times (d result / d x)."""
    cls, size = type(x), x._n.size
    block = arange(x.ns.flat(UInt32), size) // block_size
    weighted = x
    if op != "add":
        each = gather(cls, result, block)
        plain = cls.wrap(x._n)
        weighted = x * (each / plain if op == "mul" else select(plain == each, cls(1), cls(0)))
    total = full(cls, 0, result._n.size)
    scatter_add(total, weighted, block)
    return total._ad


def block_sum(x: Any, block_size: int, mode: Any = None) -> Any:
    """Return the sum of each block of so many neighbouring elements (the last may be short). Differentiable."""
    return block_reduce("add", x, block_size)
