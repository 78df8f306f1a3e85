"""Joining, splitting and reordering the elements of arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from ..dtypes import DType, UInt32, promote
from ..memory.pool import pool
from ..runtime.evaluate import evaluate, materialise
from ..runtime.utilities import copy
from ..trace import LITERAL, counter, data, resized
from . import tree
from .base import ArrayBase, hooks
from .create import arange, full
from .flat import Flat, convert
from .functions import select
from .memops import evaluated, gather, scatter
from .nested import Nested


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


_FEW = 64  # up to so many single values are chosen by comparisons in one kernel: copies are a launch each


def _join_values(cls: Any, parts: list[Any]) -> Any:
    """Return single values one after the other, unevaluated."""
    index = cls.ns.flat(UInt32).wrap(counter(len(parts)))
    result = cls.wrap(parts[-1]._n)
    for k in range(len(parts) - 2, -1, -1):
        result = select(index < k + 1, cls.wrap(parts[k]._n), result)
    return result


def _concat_flat(parts: list[Any]) -> Any:
    ns = next((p.ns for p in parts if p.is_diff), parts[0].ns)
    dtype: DType = parts[0].dtype
    for p in parts[1:]:
        dtype = promote(dtype, p.dtype)
    cls = ns.flat(dtype)
    parts = [convert(cls, p) for p in parts if p._n.size or len(parts) == 1]
    if len(parts) == 1:
        return parts[0].__copy__()
    if len(parts) <= _FEW and all(p._n.size == 1 for p in parts):
        result = _join_values(cls, parts)
        if any(p._ad is not None for p in parts):
            result._ad = hooks.custom("concat", result, parts, list(range(len(parts))))  # type: ignore[misc]
        return result
    nodes = [evaluated(p._n, "an argument of concat()") if p._n.op is not LITERAL else p._n for p in parts]
    evaluate(nodes)
    size = sum(n.size for n in nodes)
    # Copies move 64 bytes at a time: each may run over its end, into what the next one writes, and the last one more.
    buffer = pool().allocate((size + 64) * dtype.itemsize + 64)
    offsets, offset = [], 0
    for n in nodes:
        nbytes = n.size * dtype.itemsize
        source = n if n.buf is not None else materialise(n)
        copy((buffer, offset * dtype.itemsize), source.buf, nbytes)
        offsets.append(offset)
        offset += n.size
    result = cls.wrap(data(dtype, size, buffer))
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
        is_tensor = isinstance(flat, ArrayBase) and flat.is_tensor
        flat = flat.array if is_tensor else dtype.ns.flat(dtype.dtype)(flat)
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


def _reordered(x: Any, index: Any) -> Any:
    return tree.map_arrays(lambda c: gather(type(c), c, index(c)), x)


def reverse(x: Any, axis: int | None = None) -> Any:
    """Return the elements in reverse order (of a tensor: along `axis`, the first by default)."""
    if isinstance(x, ArrayBase) and not isinstance(x, (Flat, Nested)):
        axis = 0 if axis is None else _axis(axis, x, "reverse")
        key: tuple[Any, ...] = (slice(None),) * axis + (slice(None, None, -1),)
        return x[key]
    return _reordered(x, lambda c: c._n.size - 1 - arange(c.ns.flat(UInt32), c._n.size))


def _axis(axis: Any, x: Any, name: str) -> int:
    rank = len(x.shape)
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise RuntimeError(f"{name}(): axis {axis} is out of range for {rank} dimensions")
    return axis % rank


def _times(count: Any, name: str) -> int:
    try:
        times = operator.index(count)
    except (TypeError, RuntimeError):
        raise TypeError(f"{name}(): the count must be an int, found {count!r} of type {type(count).__name__}") from None
    if times < 0:
        raise ValueError(f"{name}(): the count must not be negative, found {times}")
    return times


def tile(x: Any, count: int) -> Any:
    """Return the whole array repeated `count` times: x0 x1 x0 x1 ..."""
    count = _times(count, "tile")
    return _reordered(x, lambda c: arange(c.ns.flat(UInt32), c._n.size * count) % max(1, c._n.size))


def repeat(x: Any, count: int) -> Any:
    """Return every element repeated `count` times: x0 x0 x1 x1 ..."""
    count = _times(count, "repeat")
    return _reordered(x, lambda c: arange(c.ns.flat(UInt32), c._n.size * count) // max(1, count))


def take(x: Any, index: Any, axis: int = 0) -> Any:
    """Return the elements of `x` at `index`; of a tensor the slices along `axis`."""
    if isinstance(x, Flat):
        return x[index]
    if isinstance(x, Nested):
        return x[index] if axis == 0 else _reordered(x, lambda c: index)
    if not isinstance(x, ArrayBase):
        raise TypeError(f"take(): an array is needed, found {type(x).__name__}")
    return x[(slice(None),) * _axis(axis, x, "take") + (index,)]


def slice_(value: Any, index: int) -> Any:
    """Return element `index` of every array in a PyTree, as Python numbers and scalar arrays."""
    if isinstance(value, Flat):
        return value[index if value._n.size != 1 else 0]
    if isinstance(value, Nested):
        from .namespace import namespace

        kind = namespace("scalar", False).nested(value.static_shape, value.dtype)
        return kind([slice_(c, index) if isinstance(c, ArrayBase) else c for c in value._c])
    if isinstance(value, ArrayBase):
        return value[index]
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
        if not isinstance(a, Flat):
            raise TypeError(f"meshgrid(): flat arrays are needed, found {type(a).__name__}")
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
        found: tuple[int, ...] = x.shape
        return found
    if isinstance(x, (list, tuple)):
        return (len(x), *(shape(x[0]) if x else ()))
    return ()


def reshape(dtype: Any, value: Any, shape: Any, order: str = "A", shrink: bool = False) -> Any:
    """Return the elements of an array in another shape (one entry of it may be -1: whatever remains)."""
    flat = ravel(value, order)
    dims = [shape] if isinstance(shape, int) else list(shape)
    known = math.prod(d for d in dims if d != -1)
    if -1 in dims:
        dims[dims.index(-1)] = flat._n.size // max(1, known)
    if math.prod(dims) != flat._n.size:
        raise RuntimeError(f"reshape(): {flat._n.size} elements cannot take the shape {tuple(dims)}")
    if issubclass(dtype, Flat):
        return convert(dtype, flat)
    return unravel(dtype, flat, order) if issubclass(dtype, Nested) else dtype(flat, tuple(dims))
