"""Where streamed elements come from: files, memory maps, arrays, Zarr-like objects, and several of them in a row.

A source has a length along its first axis; the other axes are components of an element. It shows a range of its
elements in place (`window`) or copies them (`read_into`), and never holds more of them in memory than that.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.base import ArrayBase
from ..arrays.flat import Flat
from ..arrays.nested import Nested
from ..dtypes import BY_NUMPY, DType
from ..errors import FileFormatError, MissingFileError

Array = NDArray[Any]


class Source:
    """Elements of one type and shape. `direct`: windows show them in place; else they are copied into a buffer."""

    direct = False
    multiple = 1  # chunks should hold a multiple of so many elements
    scratch = 0  # bytes that reading needs besides the elements of the chunk
    mapped = False  # whether a window's pages count as resident memory of the process
    name = "array"

    def __init__(self, shape: Sequence[int], dtype: Any) -> None:
        self.shape = tuple(int(s) for s in shape)
        if not self.shape:
            raise ValueError("a streamed source needs at least one axis, found a single number")
        self.dtype = np.dtype(dtype)
        found = BY_NUMPY.get(self.dtype.newbyteorder("=").name)
        if found is None:
            raise TypeError(f"cannot stream elements of type {self.dtype}; use one of {', '.join(BY_NUMPY)}")
        self.kind: DType = found
        self.row = self.dtype.itemsize * math.prod(self.shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def resident(self) -> int:
        """Return the bytes that each element of a chunk takes in memory while it is used."""
        return (self.row if self.mapped else 0) + (0 if self.direct else self.row)

    def open(self) -> None:
        """Get ready to read."""

    def close(self) -> None:
        """Let go of files."""

    def window(self, start: int, stop: int) -> Array:
        """Return elements in place, to be dropped before the next window is asked for."""
        raise NotImplementedError

    def read_into(self, target: Array, start: int, stop: int) -> None:
        """Copy elements into an array of native byte order."""
        target[...] = self.window(start, stop)

    def prefetch(self, start: int, stop: int) -> None:
        """Tell the system that elements will be needed soon."""

    def done(self, start: int, stop: int) -> None:
        """Check that elements did not change while they were used, and let go of what was kept for them."""


class ArraySource(Source):
    """An array in memory, or a view of a memory map that no window of the file can show."""

    def __init__(self, array: Array) -> None:
        super().__init__(array.shape, array.dtype)
        self.array = array
        self.direct = bool(array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative)
        self._map = getattr(array, "_mmap", None) if isinstance(array, np.memmap) else None
        self.mapped = self._map is not None

    def window(self, start: int, stop: int) -> Array:
        """Return a slice."""
        return np.asarray(self.array[start:stop])

    def done(self, start: int, stop: int) -> None:
        """Drop the pages of a map, which stay in the file's cache."""
        if self._map is not None and getattr(self.array, "mode", "c") != "c" and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)


class FileSource(Source):
    """Elements one after the other in a file, seen through a window that is mapped per chunk."""

    mapped = True

    def __init__(
        self, path: str | os.PathLike[str], dtype: Any, shape: Sequence[int], offset: int = 0, watched: bool = True
    ) -> None:
        super().__init__(shape, dtype)
        self.path, self.offset, self.watched = Path(path), offset, watched
        self.name = str(self.path)
        self.direct = self.dtype.isnative and offset % self.dtype.itemsize == 0
        self._file: Any = None
        self._stamp = 0

    def open(self) -> None:
        """Open the file; raises MissingFileError, or FileFormatError if it is shorter than its elements."""
        self._file = _opened(self.path)
        self._stamp = os.fstat(self._file.fileno()).st_mtime_ns
        self._check(0, len(self), "is truncated")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _check(self, start: int, stop: int, what: str) -> None:
        low, high = self.offset + start * self.row, self.offset + stop * self.row
        status = os.fstat(self._file.fileno())
        if status.st_size < high:
            raise FileFormatError(
                f"{self.path} {what}: elements {start} to {stop - 1} lie at offset {low} to {high}, but the file ends "
                f"at offset {status.st_size}. Write it completely before streaming it."
            )
        if self.watched and status.st_mtime_ns != self._stamp:
            raise FileFormatError(
                f"{self.path} was changed while it was streamed; elements from offset {low} on may be old or new. "
                "Stream it again when nothing writes to it."
            )

    def window(self, start: int, stop: int) -> Array:
        """Return elements in a new mapping of their part of the file."""
        self._check(start, stop, "was truncated while it was streamed")
        low, high = self.offset + start * self.row, self.offset + stop * self.row
        base = low - low % mmap.ALLOCATIONGRANULARITY
        view = mmap.mmap(self._file.fileno(), high - base, access=mmap.ACCESS_READ, offset=base)
        flat = np.frombuffer(view, self.dtype, (high - low) // self.dtype.itemsize, low - base)
        return flat.reshape(stop - start, *self.shape[1:])

    def prefetch(self, start: int, stop: int) -> None:
        """Let the system read a part of the file ahead; its cache is no memory of this process."""
        if stop > start and hasattr(os, "posix_fadvise"):
            low = self.offset + start * self.row
            os.posix_fadvise(self._file.fileno(), low, (stop - start) * self.row, os.POSIX_FADV_WILLNEED)

    def done(self, start: int, stop: int) -> None:
        """Check that the file did not change under the window."""
        self._check(start, stop, "was truncated while it was streamed")


class ChunkedSource(Source):
    """An object with shape, dtype and slices, such as a Zarr array, read one of its own chunks at a time."""

    name = "chunked array"

    def __init__(self, values: Any) -> None:
        super().__init__(values.shape, values.dtype)
        self.values = values
        stored = getattr(values, "shards", None) or getattr(values, "chunks", None)
        if stored and isinstance(stored[0], int):
            self.multiple = max(1, min(stored[0], max(1, len(self))))
        self._piece = self.multiple if self.multiple > 1 else 4096
        self.scratch = 2 * self._piece * self.row  # stored bytes and elements of one of its chunks

    def read_into(self, target: Array, start: int, stop: int) -> None:
        """Copy elements, piece by piece."""
        position = start
        while position < stop:
            end = min(stop, (position // self._piece + 1) * self._piece)
            part = np.asarray(self.values[position:end])
            if part.shape != (end - position, *self.shape[1:]):
                raise FileFormatError(
                    f"the source of shape {self.shape} gave shape {part.shape} for elements {position} to {end - 1} "
                    f"(byte offset {position * self.row}): it is truncated or its slices are not rows"
                )
            target[position - start : end - start] = part
            position = end


class JoinedSource(Source):
    """Several sources in a row."""

    name = "list of sources"

    def __init__(self, parts: list[Source]) -> None:
        first = parts[0]
        for k, part in enumerate(parts):
            if part.kind is not first.kind or part.shape[1:] != first.shape[1:]:
                raise ValueError(
                    f"sources in a list need one type and shape of elements: part 0 ({first.name}) has {first.kind} "
                    f"of shape {first.shape[1:]}, part {k} ({part.name}) {part.kind} of shape {part.shape[1:]}"
                )
        super().__init__((sum(map(len, parts)), *first.shape[1:]), first.dtype.newbyteorder("="))
        self.parts = parts
        self.starts = [0]
        for part in parts:
            self.starts.append(self.starts[-1] + len(part))
        self.multiple = max(p.multiple for p in parts)
        self.scratch = max(p.scratch for p in parts)
        self.mapped = any(p.mapped for p in parts)

    def open(self) -> None:
        """Open all files, so that one that is missing is told before any work."""
        for part in self.parts:
            part.open()

    def close(self) -> None:
        """Close all files."""
        for part in self.parts:
            part.close()

    def _ranges(self, start: int, stop: int) -> list[tuple[Source, int, int, int]]:
        found = []
        for part, first, last in zip(self.parts, self.starts, self.starts[1:], strict=False):
            low, high = max(start, first), min(stop, last)
            if low < high:
                found.append((part, low - first, high - first, low - start))
        return found

    def read_into(self, target: Array, start: int, stop: int) -> None:
        """Copy elements of every part that has some."""
        for part, low, high, at in self._ranges(start, stop):
            part.read_into(target[at : at + high - low], low, high)

    def prefetch(self, start: int, stop: int) -> None:
        """Let the parts that have some of the elements read them ahead."""
        for part, low, high, _ in self._ranges(start, stop):
            part.prefetch(low, high)

    def done(self, start: int, stop: int) -> None:
        """Check the parts that had some of the elements."""
        for part, low, high, _ in self._ranges(start, stop):
            part.done(low, high)


def _opened(path: Path) -> Any:
    try:
        return open(path, "rb", buffering=0)
    except FileNotFoundError:
        raise MissingFileError(f"the streamed file {path} does not exist (working folder: {Path.cwd()})") from None


def raw(
    path: str | os.PathLike[str], dtype: Any, offset: int = 0, shape: int | Sequence[int] | None = None
) -> FileSource:
    """Return a source of elements that lie one after the other in a file without a header.

    `offset` is in bytes. `shape`: the number of elements, or (elements, components, ...); by default all that follow
    the offset, without components. Raises FileFormatError if the file does not hold a whole number of them.
    """
    if shape is None:
        with _opened(Path(path)) as file:
            size = os.fstat(file.fileno()).st_size - offset
        item = np.dtype(dtype).itemsize
        if size < 0 or size % item:
            raise FileFormatError(
                f"{path}: {size} bytes from offset {offset} on are no whole number of elements of {item} bytes "
                f"({np.dtype(dtype)}); the last one would start at offset {offset + max(0, size) // item * item}"
            )
        shape = size // item
    return FileSource(path, dtype, (shape,) if isinstance(shape, int) else shape, offset)


def _npy(path: Path) -> FileSource:
    with _opened(path) as file:
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(file)
        except ValueError as error:
            raise FileFormatError(f"{path} is no .npy file: {error}. For plain elements use stream.raw().") from error
        offset = file.tell()
    if fortran and len(shape) > 1:
        raise FileFormatError(
            f"{path} is stored column by column (Fortran order), so that its first axis {shape} is not contiguous; "
            "save it with numpy.ascontiguousarray()"
        )
    return FileSource(path, dtype, shape, offset)


def _of_map(array: np.memmap[Any, Any]) -> Source:
    """Return windows of the file under a memory map, where the array is one piece of it."""
    base: Any = getattr(array, "_mmap", None)
    if base is None or array.filename is None or array.mode == "c" or not array.flags.c_contiguous:
        return ArraySource(array)
    first = np.frombuffer(base, np.uint8).ctypes.data
    offset = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY + array.ctypes.data - first
    return FileSource(array.filename, array.dtype, array.shape, offset, watched=False)


def source(value: Any) -> Source:
    """Return `value` as a source: a source, path, memory map, array, Zarr-like object, or a list of these."""
    if isinstance(value, Source):
        return value
    if isinstance(value, (str, os.PathLike)):
        path = Path(value)
        if path.suffix != ".npy":
            raise TypeError(
                f"{path}: the type of the elements is not known; write stream.raw({str(path)!r}, dtype) for a file "
                "without a header (a .npy file is known by its name)"
            )
        return _npy(path)
    if isinstance(value, np.memmap):
        return _of_map(value)
    if isinstance(value, np.ndarray):
        return ArraySource(value)
    if isinstance(value, Flat):
        return ArraySource(value.numpy())
    if isinstance(value, Nested):
        return ArraySource(np.ascontiguousarray(np.moveaxis(value.numpy(), -1, 0)))
    if isinstance(value, (list, tuple)):
        if not value or isinstance(value[0], (int, float)):
            raise TypeError("a list of sources needs paths or arrays; make numbers an array with numpy.array()")
        return JoinedSource([source(v) for v in value])
    if not isinstance(value, ArrayBase) and all(hasattr(value, a) for a in ("shape", "dtype", "__getitem__")):
        return ChunkedSource(value)
    raise TypeError(f"cannot stream an object of type {type(value).__name__}")


__all__ = ["ArraySource", "ChunkedSource", "FileSource", "JoinedSource", "Source", "raw", "source"]
