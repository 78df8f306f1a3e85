"""Where streamed results go: a file that gets its name when it is complete, an array of the user's, or memory."""

from __future__ import annotations

import ctypes
import math
import mmap
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.base import ArrayBase
from ..arrays.create import SIZE_LIMIT
from ..arrays.flat import Flat
from ..arrays.transfer import to_numpy
from ..dtypes import DType
from ..memory.pool import allocate
from ..runtime.engine import runtime
from ..trace import Node, data

Array = NDArray[Any]


class Output:
    """Takes the elements of one result, chunk by chunk. `inner`: the shape of an element."""

    resident = 0  # bytes of memory for the whole result
    mapped = 0  # bytes of memory per element while a chunk is written

    def __init__(self, length: int, dtype: DType, inner: tuple[int, ...]) -> None:
        self.length, self.dtype, self.inner = length, dtype, inner
        self.complete = False  # whether all elements were written
        self.row = dtype.itemsize * math.prod(inner)

    def open(self) -> None:
        """Get ready to write; nothing has been written before."""

    def write(self, start: int, nodes: Sequence[Node], size: int) -> None:
        """Take `size` elements, each component of which is a node of that many elements or one."""
        self.write_array(start, packed(nodes, size, self.inner))

    def write_array(self, start: int, values: Array) -> None:
        """Take elements as an array of shape (elements, *inner)."""
        raise NotImplementedError

    def finish(self) -> Any:
        """Return the result, which is complete now."""

    def abort(self) -> None:
        """Leave nothing behind that looks complete."""


def packed(nodes: Sequence[Node], size: int, inner: tuple[int, ...]) -> Array:
    """Return components (evaluated nodes) as one array of shape (size, *inner); a single one in its own memory."""
    if not inner:
        values: Array = to_numpy(nodes[0])
        return values if len(values) == size else np.broadcast_to(values, (size,))
    joined = np.empty((size, len(nodes)), nodes[0].dtype.numpy)
    for k, n in enumerate(nodes):
        joined[:, k] = to_numpy(n)
    return joined.reshape(size, *inner)


class FileOutput(Output):
    """A file, .npy by its name or else plain elements; it is called `name.partial` until it is complete."""

    def __init__(self, path: str | os.PathLike[str], keep: bool, *args: Any) -> None:
        super().__init__(*args)
        self.path, self.keep = Path(path), keep
        self.partial = self.path.with_name(self.path.name + ".partial")
        self._file: Any = None
        self._start = 0

    def open(self) -> None:
        """Make the partial file."""
        self._file = open(self.partial, "wb", buffering=0)
        if self.path.suffix == ".npy":
            dtype = np.dtype(self.dtype.numpy)
            header = {"descr": dtype.str, "fortran_order": False, "shape": (self.length, *self.inner)}
            np.lib.format.write_array_header_1_0(self._file, header)
        self._start = self._file.tell()

    def write_array(self, start: int, values: Array) -> None:
        """Write elements at their place."""
        self._file.seek(self._start + start * self.row)
        plain: Any = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        rest = memoryview(plain)
        while rest:
            rest = rest[self._file.write(rest) :]

    def finish(self) -> Path:
        """Give the file its name and return it."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        os.replace(self.partial, self.path)
        self._file = None
        return self.path

    def abort(self) -> None:
        """Remove the partial file, unless it is to be kept."""
        if self._file is not None:
            self._file.close()
            self._file = None
            if not self.keep:
                self.partial.unlink(missing_ok=True)


class ArrayOutput(Output):
    """An array that the caller has made; of a memory map no pages stay in memory."""

    def __init__(self, array: Array, *args: Any) -> None:
        super().__init__(*args)
        wanted = (self.length, *self.inner)
        if array.shape != wanted or array.dtype != np.dtype(self.dtype.numpy) or not array.flags.writeable:
            state = "" if array.flags.writeable else ", read only"
            raise ValueError(
                f"out: the result has shape {wanted} and type {self.dtype.numpy}, the array given for it shape "
                f"{array.shape} and type {array.dtype}{state}"
            )
        self.array = array
        self._map = getattr(array, "_mmap", None) if isinstance(array, np.memmap) and array.mode != "c" else None
        self.mapped = self.row if self._map is not None else 0

    def write_array(self, start: int, values: Array) -> None:
        """Copy elements to their place."""
        self.array[start : start + len(values)] = values
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)  # a shared mapping: its pages stay in the file's cache

    def finish(self) -> Array:
        """Return the array."""
        return self.array


class MemoryOutput(Output):
    """Arrays of the engine, all of whose elements are in memory."""

    def __init__(self, make: Callable[[list[Node]], Any], *args: Any) -> None:
        super().__init__(*args)
        self._make = make
        self._buffers: list[Any] = []
        self.resident = self.length * self.row
        if self.length > SIZE_LIMIT:
            raise ValueError(
                f"out: a result of {self.length} elements is longer than arrays can be (2^32 - 1); give a path or array"
            )

    def open(self) -> None:
        """Allocate the arrays."""
        self._buffers = [allocate(self.dtype, self.length) for _ in range(max(1, math.prod(self.inner)))]

    def write(self, start: int, nodes: Sequence[Node], size: int) -> None:
        """Copy components to their places."""
        item = self.dtype.itemsize
        for buffer, n in zip(self._buffers, nodes, strict=True):
            values = np.ascontiguousarray(np.broadcast_to(to_numpy(n), (size,)))
            ctypes.memmove(buffer.ptr + start * item, values.ctypes.data, size * item)

    def finish(self) -> Any:
        """Return the arrays as what the function returned."""
        runtime.sync()
        nodes = [data(self.dtype, self.length, b) for b in self._buffers]
        self._buffers = []
        return self._make(nodes)

    def abort(self) -> None:
        """Free the arrays."""
        self._buffers = []


def output(
    out: Any, keep: bool, make: Callable[[list[Node]], Any], length: int, dtype: DType, inner: tuple[int, ...]
) -> Output:
    """Return where a result goes: `out` is None (memory), a path or an array."""
    if out is None:
        return MemoryOutput(make, length, dtype, inner)
    if isinstance(out, (str, os.PathLike)):
        return FileOutput(out, keep, length, dtype, inner)
    if isinstance(out, np.ndarray):
        return ArrayOutput(out, length, dtype, inner)
    raise TypeError(f"out: expected a path or a NumPy array, found {type(out).__name__}")


def items(value: Any) -> list[Any]:
    """Return the results in a PyTree of lists, tuples and dicts, in order: flat and nested arrays and other things."""
    if type(value) in (list, tuple):
        return [x for v in value for x in items(v)]
    if type(value) is dict:
        return [x for v in value.values() for x in items(v)]
    return [value]


def replace(value: Any, found: Any) -> Any:
    """Return a PyTree of lists, tuples and dicts with what the iterator `found` gives in place of its results."""
    if type(value) in (list, tuple):
        return type(value)(replace(v, found) for v in value)
    if type(value) is dict:
        return {k: replace(v, found) for k, v in value.items()}
    return next(found)


def components(value: Any) -> list[Flat]:
    """Return the flat arrays of one result; raises TypeError for what cannot be streamed out."""
    if isinstance(value, Flat):
        return [value]
    if isinstance(value, ArrayBase) and hasattr(value, "_c"):
        return [x for c in value._c for x in components(c)]
    raise TypeError(
        f"a streamed function returned a {type(value).__name__}: return flat or nested arrays, alone or in lists, "
        "tuples and dicts"
    )


__all__ = ["ArrayOutput", "FileOutput", "MemoryOutput", "Output", "components", "items", "output", "packed", "replace"]
