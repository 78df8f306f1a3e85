"""New arrays: zeros, ones, full, empty, arange, linspace, opaque, and their forms for PyTrees and shapes."""

from __future__ import annotations

from typing import Any

from ..dtypes import Bool, UInt32, UInt64
from ..runtime.evaluate import materialise
from ..trace import CAST, LITERAL, counter, literal
from . import tree
from .base import ArrayBase, make_node
from .flat import Flat, cast, wrap_literal
from .nested import Nested


def full(dtype: Any, value: Any, shape: Any = 1) -> Any:
    """Return an array of type `dtype` (or a PyTree type) with `value` everywhere; `shape` is a size or a tuple."""
    if isinstance(dtype, type) and issubclass(dtype, Flat):
        size = _size(shape)
        if dtype.dtype.is_integer:
            value = int(value)
        return dtype.wrap(literal(dtype.dtype, bool(value) if dtype.dtype is Bool else value, size))
    if isinstance(dtype, type) and issubclass(dtype, Nested):
        rest = shape if isinstance(shape, int) else tuple(shape)[len(dtype.static_shape) :] or 1
        size = rest if isinstance(rest, int) else _size(rest)
        return _full_nested(dtype, value, size)
    if isinstance(dtype, type) and issubclass(dtype, ArrayBase):
        dims = (shape,) if isinstance(shape, int) else tuple(shape)
        count = 1
        for d in dims:
            count *= d
        return dtype(full(dtype.ns.flat(dtype.dtype), value, count), dims)
    if dtype in (int, float, bool):
        return dtype(value)
    return tree.construct(dtype, lambda kind: full(kind, value, shape))


def _full_nested(dtype: Any, value: Any, size: int) -> Any:
    component = dtype.value_t
    if not (isinstance(component, type) and issubclass(component, ArrayBase)):
        return dtype.of([component(value) for _ in range(dtype.static_shape[0])])
    return dtype.of([full(component, value, size if issubclass(component, Flat) else size) for _ in range(dtype.static_shape[0])]) \
        if issubclass(component, Flat) else dtype.of([_full_nested(component, value, size) for _ in range(dtype.static_shape[0])])


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
    count = max(0, -int(-(stop - start) // step))
    if count == 0:
        return full(dtype, 0, 0)
    index = dtype.ns.flat(UInt32).wrap(counter(count))
    value = cast(dtype, index)
    if dtype.dtype.kind == "i" and step != 1 or step != 1:
        value = value * dtype(step)
    return value + dtype(start) if start != 0 else value


def linspace(dtype: Any, start: Any, stop: Any, num: int = 1, endpoint: bool = True) -> Any:
    """Return `num` evenly spaced floats from `start` to `stop` (included if `endpoint`); takes no memory."""
    if not dtype.dtype.is_float:
        raise TypeError(f"linspace(): a floating-point type is needed, found {dtype.__name__}")
    step = (stop - start) / (num - 1 if endpoint and num > 1 else max(num, 1))
    index = cast(dtype, dtype.ns.flat(UInt32).wrap(counter(num))) if num else full(dtype, 0, 0)
    if num == 0:
        return index
    from .functions import call
    from ..ops.row import ROWS

    return call(ROWS["fma"], index, step if isinstance(step, ArrayBase) else float(step), start if isinstance(start, ArrayBase) else float(start))


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
    return type(x)(value)


__all__ = ["full", "zeros", "ones", "arange", "linspace", "opaque", "CAST", "UInt64", "make_node", "wrap_literal"]
