"""New arrays: zeros, ones, full, empty, arange, linspace, opaque, and their forms for PyTrees and shapes."""

from __future__ import annotations

import math
from typing import Any

from ..dtypes import Bool, UInt32
from ..ops.row import ROWS
from ..runtime.evaluate import materialise
from ..trace import LITERAL, counter, literal
from . import tree
from .base import ArrayBase
from .flat import Flat, cast
from .functions import call
from .nested import Nested


def full(dtype: Any, value: Any, shape: Any = 1) -> Any:
    """Return an array of type `dtype` (or a PyTree type) with `value` everywhere; `shape` is a size or a tuple.

    The shape of a nested type starts with its fixed dimensions; a single number is the number of elements.
    """
    if dtype in (int, float, bool):
        return dtype(value)
    if not (isinstance(dtype, type) and issubclass(dtype, ArrayBase)):
        return tree.construct(dtype, lambda kind: full(kind, value, shape))
    if issubclass(dtype, Flat):
        if dtype.dtype.is_integer:
            value = int(value)
        return dtype.wrap(literal(dtype.dtype, bool(value) if dtype.dtype is Bool else value, _size(shape)))
    if issubclass(dtype, Nested):
        dims = (shape,) if isinstance(shape, int) else tuple(shape)
        fixed = dtype.static_shape if len(dims) > 1 else ()
        if dims[: len(fixed)] != fixed:
            raise TypeError(f"{dtype.__name__} has the shape {(*fixed, 'N')}, asked for {dims}")
        size = dims[len(fixed)] if len(dims) > len(fixed) else 1
        return dtype.of([full(dtype.value_t, value, size) for _ in range(dtype.static_shape[0])])
    kind: Any = dtype  # a tensor type
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    return kind(full(kind.storage(), value, math.prod(dims)), dims)


def _size(shape: Any) -> int:
    if isinstance(shape, int):
        size = shape
    else:
        shape = tuple(shape)
        if len(shape) != 1:
            raise TypeError(f"a flat array needs one size, found shape {shape}")
        size = int(shape[0])
    if size < 0:
        raise ValueError(f"an array cannot have {size} elements")
    return size


def zeros(dtype: Any, shape: Any = 1) -> Any:
    """Return zeros of a type (flat, nested, tensor, or PyTree type); takes no memory until written."""
    return full(dtype, 0, shape)


def ones(dtype: Any, shape: Any = 1) -> Any:
    """Return ones of a type; takes no memory until written."""
    return full(dtype, 1, shape)


def empty(dtype: Any, shape: Any = 1) -> Any:
    """Return an array of unspecified content (zeros here)."""
    return full(dtype, 0, shape)


def arange(dtype: Any, start: Any = None, stop: Any = None, step: Any = 1, size: int | None = None) -> Any:
    """Return start, start + step, ... below `stop`, as `range` counts (one argument: from 0)."""
    if size is not None:
        start, stop, step = 0, size, 1
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("arange(): the step must not be 0")
    if dtype.is_tensor:
        return dtype(arange(dtype.storage(), start, stop, step))
    count = max(0, -int(-(stop - start) // step))
    if count == 0:
        return full(dtype, 0, 0)
    value = cast(dtype, dtype.ns.flat(UInt32).wrap(counter(count)))
    if step != 1:
        value = value * dtype(step)
    return value + dtype(start) if start != 0 else value


def linspace(dtype: Any, start: Any, stop: Any, num: int = 1, endpoint: bool = True) -> Any:
    """Return `num` evenly spaced floats from `start` to `stop` (included if `endpoint`); takes no memory."""
    if not dtype.dtype.is_float:
        raise TypeError(f"linspace(): a floating-point type is needed, found {dtype.__name__}")
    if dtype.is_tensor:
        return dtype(linspace(dtype.storage(), start, stop, num, endpoint))
    if num == 0:
        return full(dtype, 0, 0)
    step = (stop - start) / (num - 1 if endpoint and num > 1 else num)
    index = cast(dtype, dtype.ns.flat(UInt32).wrap(counter(num)))
    return call(ROWS["fma"], index, *(v if isinstance(v, ArrayBase) else float(v) for v in (step, start)))


def opaque(dtype: Any, value: Any = None, shape: Any = 1) -> Any:
    """Return `full(dtype, value, shape)` in memory, or a copy of a PyTree with its literals in memory.

    What is in memory is no part of the generated code.
    """
    if isinstance(dtype, type):
        return tree.map_arrays(_opaque_flat, full(dtype, value, shape))
    return tree.map_arrays(_opaque_flat, dtype)


def _opaque_flat(x: Any) -> Any:
    return type(x).wrap(materialise(x._n), x._ad)


def make_opaque(*args: Any) -> None:
    """Put all literals and unevaluated arrays of PyTrees into memory, in place."""
    for x in tree.arrays(args):
        if x._n.op is LITERAL or x._n.buf is None:
            x._n = materialise(x._n)


def zeros_like(x: Any) -> Any:
    """Return zeros with type and size of `x`."""
    return full_like(x, 0)


def ones_like(x: Any) -> Any:
    """Return ones with type and size of `x`."""
    return full_like(x, 1)


def full_like(x: Any, value: Any) -> Any:
    """Return an array with type and size of `x` and one value."""
    if isinstance(x, Flat):
        return full(type(x), value, x._n.size)
    if isinstance(x, Nested):
        return type(x).of([full_like(c, value) for c in x._c])
    if isinstance(x, ArrayBase):
        return full(type(x), value, x.shape)
    if isinstance(x, (int, float, bool)):
        return type(x)(value)
    return tree.map_arrays(lambda a: full_like(a, value), x)


def empty_like(x: Any) -> Any:
    """Return an array of unspecified content (zeros here) with type and size of `x`."""
    return full_like(x, 0)


__all__ = [
    "arange", "empty", "empty_like", "full", "full_like", "linspace", "make_opaque", "ones", "ones_like", "opaque",
    "zeros", "zeros_like",
]  # fmt: skip
