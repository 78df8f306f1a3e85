"""Joining, splitting, reordering and running sums of arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from ..codegen.reduce import accumulator_type
from ..dtypes import Bool, DType, UInt32, promote
from ..memory.pool import Buffer, allocate, pool
from ..runtime.evaluate import evaluate, materialise
from ..runtime.launch import Launch, chunk_limit, copy, runtime, utility_kernel
from ..trace import LITERAL, Node, data, resized
from . import tree
from .base import ArrayBase, hooks
from .create import arange, full
from .flat import Flat, convert
from .functions import select
from .memops import evaluated, gather, scatter, scatter_add
from .nested import Nested

_SHORT = 4096  # elements up to which a scan runs in one chunk


def _new_data(cls: Any, size: int, buffer: Buffer) -> Any:
    return cls.wrap(data(cls.dtype, size, buffer))


def widen(x: Any, size: int) -> Any:
    """Return a flat array with `size` elements: `x` itself, or its one element repeated."""
    if x._n.size == size:
        return x
    if x._n.op is LITERAL and x._ad is None:
        return type(x).wrap(resized(x._n, size))
    return gather(type(x), x, full(x.ns.flat(UInt32), 0, size))


def width(*args: Any) -> int:
    """Return the number of elements of the arrays in PyTrees; raises RuntimeError if they differ (1 goes with any)."""
    sizes = {x._n.size for x in tree.arrays(args)}
    others = sizes - {1}
    if len(others) > 1:
        raise RuntimeError(f"width(): the arrays have incompatible sizes {sorted(others)}")
    return others.pop() if others else 1


def concat(parts: Sequence[Any], axis: int = 0) -> Any:
    """Return the elements of several arrays one after the other.

    Nested arrays are joined component by component, tensors along `axis`. Differentiable.
    """
    parts = list(parts)
    if not parts:
        raise ValueError("concat(): at least one array is needed")
    if all(isinstance(p, Flat) for p in parts):
        return _concat_flat(parts)
    if all(isinstance(p, Nested) for p in parts):
        sizes = [width(p) for p in parts]
        columns = zip(*[[widen(c, n) for c in tree.arrays(p)] for p, n in zip(parts, sizes, strict=True)], strict=True)
        joined = iter([_concat_flat(list(c)) for c in columns])
        return tree.map_arrays(lambda _: next(joined), parts[0])
    if all(isinstance(p, ArrayBase) for p in parts):
        from .strides import concat_tensors

        return concat_tensors([p if not isinstance(p, Flat) else p.ns.tensor(p.dtype)(p) for p in parts], axis)
    raise TypeError(f"concat(): expected arrays of one kind, found {', '.join(type(p).__name__ for p in parts)}")


def _concat_flat(parts: list[Any]) -> Any:
    ns = next((p.ns for p in parts if p.is_diff), parts[0].ns)
    dtype: DType = parts[0].dtype
    for p in parts[1:]:
        dtype = promote(dtype, p.dtype)
    cls = ns.flat(dtype)
    parts = [convert(cls, p) for p in parts if p._n.size or len(parts) == 1]
    if len(parts) == 1:
        return parts[0].__copy__()
    nodes = [evaluated(p._n, "an argument of concat()") if p._n.op is not LITERAL else p._n for p in parts]
    evaluate(nodes)
    size = sum(n.size for n in nodes)
    # Copies move 64 bytes at a time: each may run over its end, into what the next one writes, and the last one more.
    buffer = pool().allocate((size + 64) * dtype.itemsize + 64)
    offsets, offset = [], 0
    for n in nodes:
        nbytes = n.size * dtype.itemsize
        source = n if n.buf is not None else materialise(n)
        copy(Buffer(buffer.ptr + offset * dtype.itemsize, nbytes, 0, buffer), source.buf, nbytes)
        offsets.append(offset)
        offset += n.size
    result = _new_data(cls, size, buffer)
    if any(p._ad is not None for p in parts):
        result._ad = hooks.custom("concat", result, parts, offsets)  # type: ignore[misc]
    return result


def ravel(x: Any, order: str = "A") -> Any:
    """Return all elements as one flat array.

    Order "A" interleaves the components of a nested array (x0 y0 z0 x1 ...) and keeps a tensor's rows; "F" lets the
    first index change fastest, "C" the last. Differentiable.
    """
    if isinstance(x, Flat):
        return x
    if isinstance(x, Nested):
        return _ravel_nested(x, order)
    if isinstance(x, ArrayBase):
        from .strides import ravel_tensor

        return ravel_tensor(x, order)
    raise TypeError(f"ravel(): an array is needed, found {type(x).__name__}")


def _places(shape: tuple[int, ...], order: str, n: int, index: Any) -> list[Any]:
    """Return per component of a nested array (last fixed index fastest) the flat positions of its elements."""
    if order not in ("A", "C", "F"):
        raise ValueError(f"unknown order '{order}'; use 'A', 'C' or 'F'")
    count = 1
    for d in shape:
        count *= d
    places = []
    for k in range(count):
        if order == "C":
            places.append(index + k * n)
            continue
        position, stride, rest, digits = 0, 1, k, []
        for d in reversed(shape):
            digits.append(rest % d)
            rest //= d
        for d, digit in zip(shape, reversed(digits), strict=True):
            position += digit * stride
            stride *= d
        places.append(index * count + position)
    return places


def _ravel_nested(x: Any, order: str) -> Any:
    if x.ns.backend == "scalar":
        return [v for c in x._c for v in (_ravel_nested(c, order) if isinstance(c, Nested) else [c])]
    components = list(tree.arrays(x))
    n = width(x)
    # Before the first scatter: each scatter is a kernel, and would compute what the components share again.
    evaluate([c._n for c in components])
    cls = type(components[0])
    if order == "C":
        return _concat_flat([widen(c, n) for c in components])
    result = full(cls, 0, n * len(components))
    places = _places(x.static_shape, order, n, arange(x.ns.flat(UInt32), n))
    for c, place in zip(components, places, strict=True):
        scatter(result, widen(c, n), place)
    return result


def unravel(dtype: Any, flat: Any, order: str = "A") -> Any:
    """Return a nested array of type `dtype` from its elements in one flat array, the inverse of `ravel`."""
    if not isinstance(flat, Flat):
        flat = flat.array if isinstance(flat, ArrayBase) and not isinstance(flat, Nested) else dtype.ns.flat(dtype.dtype)(flat)
    if issubclass(dtype, Flat):
        return convert(dtype, flat)
    count = 1
    for d in dtype.static_shape:
        count *= d
    size = flat._n.size
    if size % count:
        raise RuntimeError(f"unravel(): {size} elements cannot be divided into {dtype.__name__} of {count} components")
    flat = convert(dtype.ns.flat(dtype.dtype), flat)
    index = arange(flat.ns.flat(UInt32), size // count)
    places = iter(_places(dtype.static_shape, order, size // count, index))
    return _build(dtype, lambda: gather(type(flat), flat, next(places)))


def _build(dtype: Any, leaf: Any) -> Any:
    if issubclass(dtype, Flat):
        return leaf()
    return dtype.of([_build(dtype.value_t, leaf) for _ in range(dtype.static_shape[0])])


def _chunks(size: int) -> tuple[int, int]:
    count = 1 if size <= _SHORT else chunk_limit()
    chunk = -(-size // count)
    return chunk, -(-size // chunk)


def _run(kind: str, options: tuple[Any, ...], size: int, chunk: int, words: list[int], keep: list[Any]) -> None:
    block = (ctypes.c_int64 * len(words))(*words)
    runtime.run(Launch(utility_kernel(kind, *options), size, size, chunk, -(-size // chunk), block, None, keep=keep))


def _source(x: Any, what: str) -> Buffer:
    n: Node = evaluated(x._n, f"the argument of {what}()")
    buffer: Buffer = n.buf
    return buffer


def prefix_sum(x: Any, exclusive: bool = True, axis: int | None = None, reverse: bool = False) -> Any:
    """Return per element the sum of all elements before it (`exclusive`), or of these and itself.

    Nested arrays are summed component by component. Sums of floats are kept in double precision. Differentiable.
    """
    if isinstance(x, Nested):
        return type(x).of([prefix_sum(c, exclusive, None, reverse) for c in x._c])
    if reverse:
        return globals()["reverse"](prefix_sum(globals()["reverse"](x), exclusive))
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
    if count > 1:
        _run("chunk_totals", (x.dtype, kind), size, chunk, [totals.ptr, source.ptr], [totals, source])
    words = [totals.ptr, source.ptr, target.ptr]
    _run("running_sums", (x.dtype, exclusive), size, chunk, words, [totals, source, target])
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
    total = prefix_sum(rows, exclusive)
    return back(block_prefix_sum(rows, length, exclusive))


def block_prefix_sum(x: Any, block_size: int, exclusive: bool = True) -> Any:
    """Return running sums that start anew in each block of so many neighbouring elements. Differentiable."""
    size = x._n.size
    count = -(-size // max(1, block_size))
    if size == 0:
        return x.__copy__()
    source, target = _source(x, "block_prefix_sum"), allocate(x.dtype, size)
    words = [target.ptr, source.ptr, block_size, size]
    chunk = max(1, _chunks(size)[0] // block_size)
    _run("block_running_sums", (x.dtype, exclusive), count, chunk, words, [target, source])
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
    _run("chunk_totals", (Bool, UInt32), size, chunk, [counts.ptr, source.ptr], [counts, source])
    runtime.sync()
    total = sum((ctypes.c_uint32 * count).from_address(counts.ptr))
    target = allocate(UInt32, total)
    _run("compact", (), size, chunk, [counts.ptr, source.ptr, target.ptr], [counts, source, target])
    return _new_data(cls, total, target)


def block_reduce(op: str, x: Any, block_size: int, mode: Any = None) -> Any:
    """Return the reduction ("add", "mul", "min", "max", "and", "or") of each block of so many neighbouring elements.

    The last block may be short. Differentiable; of equal extremes each gets the gradient.
    """
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
    words = [target.ptr, source.ptr, block_size, size]
    _run("block_totals", (op, x.dtype), count, max(1, chunk // block_size), words, [target, source])
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


def _reordered(x: Any, index: Any) -> Any:
    return tree.map_arrays(lambda c: gather(type(c), c, index(c)), x)


def reverse(x: Any, axis: int | None = None) -> Any:
    """Return the elements in reverse order (of a tensor: along `axis`, the first by default)."""
    if isinstance(x, ArrayBase) and not isinstance(x, (Flat, Nested)):
        axis = 0 if axis is None else axis % len(x.shape)
        key: tuple[Any, ...] = (slice_type(None),) * axis + (slice_type(None, None, -1),)
        return x[key]
    return _reordered(x, lambda c: c._n.size - 1 - arange(c.ns.flat(UInt32), c._n.size))


def tile(x: Any, count: int) -> Any:
    """Return the whole array repeated `count` times: x0 x1 x0 x1 ..."""
    return _reordered(x, lambda c: arange(c.ns.flat(UInt32), c._n.size * count) % max(1, c._n.size))


def repeat(x: Any, count: int) -> Any:
    """Return every element repeated `count` times: x0 x0 x1 x1 ..."""
    return _reordered(x, lambda c: arange(c.ns.flat(UInt32), c._n.size * count) // max(1, count))


def take(x: Any, index: Any, axis: int = 0) -> Any:
    """Return the elements of `x` at `index`; of a tensor the slices along `axis`."""
    if isinstance(x, Flat):
        return x[index]
    if isinstance(x, Nested):
        return x[index] if axis == 0 else _reordered(x, lambda c: index)
    return x[(slice_type(None),) * (axis % len(x.shape)) + (index,)]


slice_type = slice


def slice_(value: Any, index: int) -> Any:
    """Return element `index` of every array in a PyTree, as Python numbers and scalar arrays."""
    if isinstance(value, Flat):
        return value[index if value._n.size != 1 else 0]
    if isinstance(value, Nested):
        from .namespace import namespace

        kind = namespace("scalar", False).nested(value.static_shape, value.dtype)
        return kind([slice_(c, index) if isinstance(c, ArrayBase) else c for c in value._c])
    if isinstance(value, ArrayBase):
        return value[index]  # type: ignore[index]
    if type(value) in (list, tuple):
        return type(value)(slice_(v, index) for v in value)
    if type(value) is dict:
        return {k: slice_(v, index) for k, v in value.items()}
    members = tree.fields(value)
    return value if members is None else tree.rebuild_struct(value, {k: slice_(v, index) for k, v in members.items()})


def meshgrid(*args: Any, indexing: str = "xy") -> tuple[Any, ...]:
    """Return flat coordinate arrays of all combinations; "xy": the first argument changes fastest, "ij": the last."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid(): indexing must be 'xy' or 'ij', found '{indexing}'")
    total = 1
    for a in args:
        total *= a._n.size
    order = range(len(args)) if indexing == "xy" else range(len(args) - 1, -1, -1)
    results: dict[int, Any] = {}
    stride = 1
    for k in order:
        size = args[k]._n.size
        index = arange(args[k].ns.flat(UInt32), total)
        results[k] = gather(type(args[k]), args[k], index // stride % size)
        stride *= size
    return tuple(results[k] for k in range(len(args)))


def shape(x: Any) -> tuple[int, ...]:
    """Return the shape of an array or nested sequence."""
    if isinstance(x, ArrayBase):
        return x.shape  # type: ignore[attr-defined, no-any-return]
    if isinstance(x, (list, tuple)):
        return (len(x), *(shape(x[0]) if x else ()))
    return ()
