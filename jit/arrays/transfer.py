"""Elements in and out: Python sequences, NumPy and DLPack, without copies where the memory allows."""

from __future__ import annotations

import array as _array
import ctypes
from typing import Any

from ..dtypes import BY_NUMPY, DType, pack, unpack
from ..memory.pool import Buffer, allocate, borrow
from ..runtime.engine import runtime
from ..runtime.evaluate import evaluate, materialise
from ..trace import CAST, LITERAL, Node, data, literal, node, value_of

_CODES = {"i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q"}
_CODES |= {"f32": "f", "f64": "d"}


def from_values(dtype: DType, values: list[Any]) -> Node:
    """Return an evaluated node of Python numbers (a literal if there is one only)."""
    if len(values) == 1:
        value = values[0]
        return literal(
            dtype, value if dtype.kind == "b" else integer(dtype, value) if dtype.is_integer else float(value)
        )
    code = _CODES.get(dtype.short)
    if code is not None and dtype.is_float:
        raw = _array.array(code, values).tobytes()
    elif code is not None:
        raw = _array.array(code, [integer(dtype, v, k) for k, v in enumerate(values)]).tobytes()
    else:
        raw = b"".join(pack(dtype, v) for v in values)
    buffer = allocate(dtype, len(values))
    runtime.sync()
    ctypes.memmove(buffer.ptr, raw, len(raw))
    return data(dtype, len(values), buffer)


def integer(dtype: DType, value: Any, index: int | None = None) -> int:
    """Return a number cut to an integer; raises OverflowError, for NaN ValueError, if `dtype` has none for it."""
    low, high = dtype.limits
    if low <= value <= high:
        return int(value)
    if low - 1 < value < high + 1:  # what is cut off decides
        return int(value)
    where = "" if index is None else f" (element {index})"
    kind: type[Exception] = ValueError if value != value else OverflowError
    raise kind(f"{value}{where} does not fit into {dtype} ({low} .. {high})")


def from_any(cls: Any, value: Any) -> Node:
    """Return a node of type `cls` for a sequence, iterator, NumPy-like or DLPack object; raises TypeError if none."""
    dtype: DType = cls.dtype
    if isinstance(value, (str, bytes, dict)) or value is None:
        raise TypeError(f"{cls.__name__}(): cannot convert an object of type {type(value).__name__}")
    if hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__") or hasattr(value, "__array__"):
        return from_numpy(cls, value)
    try:
        items = list(value)
    except TypeError:
        raise TypeError(f"{cls.__name__}(): cannot convert an object of type {type(value).__name__}") from None
    if any(not isinstance(v, (bool, int, float)) for v in items):
        items = [_scalar(cls, v) for v in items]
    return from_values(dtype, items)


def _scalar(cls: Any, value: Any) -> Any:
    if hasattr(value, "item"):
        return value.item()
    if isinstance(value, (bool, int, float)):
        return value
    raise TypeError(f"{cls.__name__}(): elements must be numbers, found {type(value).__name__}")


def from_numpy(cls: Any, value: Any) -> Node:
    """Return a node over a NumPy or DLPack array: its own memory if type and layout fit, else a converted copy."""
    import numpy as np

    if hasattr(value, "__dlpack__") and not hasattr(value, "__array_interface__"):
        value = np.from_dlpack(value)
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{cls.__name__}(): cannot convert an array of type {array.dtype}")
    if array.ndim > 1:
        raise TypeError(
            f"{cls.__name__}(): expected a one-dimensional array, found shape {array.shape}; use .ravel() for its "
            "elements in order, or a nested type or TensorXf to keep the shape"
        )
    source = BY_NUMPY.get(array.dtype.name)
    if source is None:
        raise TypeError(f"{cls.__name__}(): cannot convert an array of type {array.dtype}")
    array = np.ascontiguousarray(array).reshape(-1)
    if source is not cls.dtype and cls.dtype.is_integer:
        _check_range(cls, array, source)
    if array.size == 1:
        return literal(cls.dtype, array.astype(cls.dtype.numpy)[0].item())
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    n = data(source, array.size, borrow(array.ctypes.data, array.nbytes, array))
    if source is cls.dtype:
        return n
    if array.size == 0:
        return data(cls.dtype, 0, allocate(cls.dtype, 0))
    # Converted at once: the array may be a temporary that its owner changes later.
    converted = node(CAST, cls.dtype, array.size, (n,))
    evaluate([converted])
    return converted


def _check_range(cls: Any, array: Any, source: DType) -> None:
    """Raise OverflowError (for NaN ValueError) naming the first element of a NumPy array that `cls` cannot hold."""
    low, high = cls.dtype.limits
    if source.kind == "b" or source.is_integer and low <= source.limits[0] and source.limits[1] <= high:
        return
    if array.size == 0 or low <= array.min().item() and array.max().item() <= high:  # false for NaN
        return
    if source.is_float:  # the fraction is cut off; `high` of wide types is no float, the power of two above it is
        inside = (array > low - 1.0 if low == 0 else array >= float(low)) & (array < float(high + 1))
    else:
        inside = (array >= low) & (array <= high)
    if inside.all():
        return
    first = int(inside.argmin())
    value = array[first].item()
    kind: type[Exception] = ValueError if value != value else OverflowError
    raise kind(
        f"{cls.__name__}(): element {first} of the NumPy array is {value}, which does not fit into {cls.dtype} "
        f"({low} .. {high}); write array.astype(numpy.{cls.dtype.numpy}) if that is meant"
    )


def host_buffer(n: Node) -> Buffer:
    """Return the buffer of a node, computed and ready to be read."""
    runtime.reading("reading values (printing, NumPy, x[i], Python conditions)")
    n = materialise(n) if n.op is LITERAL else n
    evaluate([n])
    buffer: Buffer = n.buf
    runtime.wait_for(buffer.job)  # later launches may still run
    return buffer


def read(n: Node, index: int) -> Any:
    """Return one element as a Python number."""
    if n.op is LITERAL:
        return value_of(n)
    buffer = host_buffer(n)
    item = n.dtype.itemsize
    return unpack(n.dtype, ctypes.string_at(buffer.ptr + index * item, item))


def to_list(n: Node) -> list[Any]:
    """Return all elements as Python numbers."""
    if n.op is LITERAL:
        return [value_of(n)] * n.size
    buffer = host_buffer(n)
    item = n.dtype.itemsize
    raw = ctypes.string_at(buffer.ptr, n.size * item)
    code = _CODES.get(n.dtype.short)
    if code is not None:
        return _array.array(code, raw).tolist()
    return [unpack(n.dtype, raw[k * item : (k + 1) * item]) for k in range(n.size)]


class _Keeper:
    """Holds a buffer for as long as NumPy looks at it."""

    def __init__(self, buffer: Buffer, n: Node) -> None:
        self.buffer = buffer
        self.__array_interface__ = {
            "shape": (n.size,),
            "typestr": {"b": "|b", "i": "<i", "u": "<u", "f": "<f"}[n.dtype.kind] + str(n.dtype.itemsize),
            "data": (buffer.ptr, buffer.owner.__class__ is Buffer),  # a part of another array is not written
            "version": 3,
        }


def to_numpy(n: Node) -> Any:
    """Return a NumPy array over the elements' own memory (a literal is written out)."""
    import numpy as np

    if n.size == 0:
        return np.zeros(0, n.dtype.numpy)
    buffer = host_buffer(n)
    if buffer.foreign and isinstance(buffer.owner, np.ndarray):
        owner = buffer.owner
        if owner.dtype == np.dtype(n.dtype.numpy) and owner.size == n.size:
            return owner
    return np.asarray(_Keeper(buffer, n))
