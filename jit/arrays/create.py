"""New arrays: zeros, ones, full, empty, arange, linspace, opaque, and their forms for PyTrees and shapes."""

from __future__ import annotations

import math
import operator
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
from .transfer import integer

SIZE_LIMIT = (1 << 32) - 1  # indices are UInt32


def full(dtype: Any, value: Any, shape: Any = 1) -> Any:
    """Return an array of type `dtype` (or a PyTree type) with `value` everywhere; `shape` is a size or a tuple.

    The shape of a nested type starts with its fixed dimensions; a single number is the number of elements. `value` is a
    number, for nested types also one per component. Raises ValueError for sizes below 0 or above 2^32 - 1.
    """
    if dtype in (int, float, bool):
        return dtype(value)
    if not (isinstance(dtype, type) and issubclass(dtype, ArrayBase)):
        return tree.construct(dtype, lambda kind: full(kind, value, shape))
    if issubclass(dtype, Flat):
        return dtype.wrap(literal(dtype.dtype, _element(dtype, value), _size(shape)))
    dims = _dimensions(shape)
    if issubclass(dtype, Nested):
        fixed = dtype.static_shape if len(dims) > 1 else ()
        if dims[: len(fixed)] != fixed or len(dims) > len(fixed) + 1:
            raise TypeError(f"{dtype.__name__} has the shape {(*dtype.static_shape, 'N')}, asked for {dims}")
        size = dims[len(fixed)] if len(dims) > len(fixed) else 1
        values = [value] * dtype.static_shape[0]
        if isinstance(value, (list, tuple, Nested)):
            if len(value) != len(values):
                raise TypeError(f"{dtype.__name__} has {len(values)} components, found {len(value)} values for them")
            values = list(value)
        return dtype.of([full(dtype.value_t, v, size) for v in values])
    kind: Any = dtype  # a tensor type
    return kind(full(kind.storage(), value, math.prod(dims)), dims)


def _element(dtype: Any, value: Any) -> Any:
    """Return the Python value of one element."""
    if not isinstance(value, (int, float)):
        try:
            value = value.item()
        except (AttributeError, ValueError, RuntimeError):
            pass
        if not isinstance(value, (int, float)):
            found = f"{type(value).__name__}{f' of shape {value.shape}' if hasattr(value, 'shape') else ''}"
            raise TypeError(f"the elements of {dtype.__name__} need a number for their value, found {found}")
    if dtype.dtype is Bool:
        return bool(value)
    return integer(dtype.dtype, value) if dtype.dtype.is_integer else value


def _whole(value: Any) -> int:
    """Return a size as an int; raises TypeError or ValueError for what cannot be one."""
    try:
        size = operator.index(value)
    except (TypeError, RuntimeError):
        found = f"{value!r} of type {type(value).__name__}"
        raise TypeError(f"the size of an array must be an int, found {found}") from None
    if size < 0:
        raise ValueError(f"an array cannot have {size} elements")
    return _limited(size)


def _limited(size: int) -> int:
    if size > SIZE_LIMIT:
        raise ValueError(
            f"an array cannot have {size} elements: indices have 32 bits, so that the limit is 2^32 - 1 = {SIZE_LIMIT}"
        )
    return size


def _dimensions(shape: Any) -> tuple[int, ...]:
    dims = tuple(_whole(d) for d in shape) if isinstance(shape, (tuple, list)) else (_whole(shape),)
    _limited(math.prod(dims))
    return dims


def _size(shape: Any) -> int:
    if not isinstance(shape, (tuple, list)):
        return _whole(shape)
    if len(shape) != 1:
        raise TypeError(f"a flat array needs one size, found shape {tuple(shape)}")
    return _whole(shape[0])


def zeros(dtype: Any, shape: Any = 1) -> Any:
    """Return zeros of a type (flat, nested, tensor, or PyTree type); takes no memory until written."""
    return full(dtype, 0, shape)


def ones(dtype: Any, shape: Any = 1) -> Any:
    """Return ones of a type; takes no memory until written."""
    return full(dtype, 1, shape)


def empty(dtype: Any, shape: Any = 1) -> Any:
    """Return an array of unspecified content (zeros here)."""
    return full(dtype, 0, shape)


def _number(value: Any, what: str) -> Any:
    """Return a finite Python number; raises TypeError or ValueError naming `what`."""
    if not isinstance(value, (int, float)):
        try:
            value = value.item()
        except (AttributeError, ValueError, RuntimeError):
            pass
    if not isinstance(value, (int, float)):
        raise TypeError(f"{what} must be a number, found {value!r} of type {type(value).__name__}")
    if not math.isfinite(value):
        raise ValueError(f"{what} must be finite, found {value}")
    return value


def _flat_type(dtype: Any, what: str) -> None:
    if not (isinstance(dtype, type) and issubclass(dtype, Flat)):
        raise TypeError(f"{what}: a flat array or tensor type is needed, found {getattr(dtype, '__name__', dtype)!r}")


def arange(dtype: Any, start: Any = None, stop: Any = None, step: Any = 1, size: int | None = None) -> Any:
    """Return start, start + step, ... below `stop`, as `range` counts (one argument: from 0).

    Raises OverflowError if a number does not fit into an integer type, TypeError for steps that are no whole numbers.
    """
    if getattr(dtype, "is_tensor", False):
        return dtype(arange(dtype.storage(), start, stop, step, size))
    _flat_type(dtype, "arange()")
    if size is not None:
        start, stop, step = 0, _whole(size), 1
    if start is None and stop is None:
        raise TypeError("arange(): where to stop is missing, as in arange(UInt32, 10)")
    if stop is None:
        start, stop = 0, start
    start, stop = _number(0 if start is None else start, "arange(): start"), _number(stop, "arange(): stop")
    step = _number(step, "arange(): the step")
    if step == 0:
        raise ValueError("arange(): the step must not be 0")
    count = _limited(max(0, -int(-(stop - start) // step)))
    if dtype.dtype.is_integer:
        if start != int(start) or step != int(step):
            raise TypeError(f"arange(): {dtype.__name__} counts in whole numbers, found start {start} and step {step}")
        start, step = int(start), int(step)
        for value in (start, start + (count - 1) * step) if count else ():
            integer(dtype.dtype, value)
    if count == 0:
        return full(dtype, 0, 0)
    value = cast(dtype, dtype.ns.flat(UInt32).wrap(counter(count)))
    if step < 0 and not dtype.dtype.is_signed:
        return dtype(start) - value * dtype(-step)
    if step != 1:
        value = value * dtype(step)
    return value + dtype(start) if start != 0 else value


def linspace(dtype: Any, start: Any, stop: Any, num: int = 1, endpoint: bool = True) -> Any:
    """Return `num` evenly spaced floats from `start` to `stop` (included if `endpoint`); takes no memory."""
    if getattr(dtype, "is_tensor", False):
        return dtype(linspace(dtype.storage(), start, stop, num, endpoint))
    _flat_type(dtype, "linspace()")
    if not dtype.dtype.is_float:
        raise TypeError(f"linspace(): a floating-point type is needed, found {dtype.__name__}")
    for name, value in (("start", start), ("stop", stop)):
        if not isinstance(value, ArrayBase):
            _number(value, f"linspace(): {name}")
    num = _whole(num)
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
        if value is None:
            raise TypeError("opaque(): the value is missing, as in opaque(Float, 1)")
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
    if isinstance(x, type) or not (x is None or type(x) in (list, tuple, dict) or tree.fields(x) is not None):
        raise TypeError(f"{type(x).__name__} is neither an array nor a PyTree of arrays")
    return tree.map_arrays(lambda a: full_like(a, value), x)


def empty_like(x: Any) -> Any:
    """Return an array of unspecified content (zeros here) with type and size of `x`."""
    return full_like(x, 0)


__all__ = [
    "arange", "empty", "empty_like", "full", "full_like", "linspace", "make_opaque", "ones", "ones_like", "opaque",
    "zeros", "zeros_like",
]  # fmt: skip
