"""The numbers of a PLY file, binary or text, sorted by element and property."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...jit.errors import FileFormatError
from .ply_header import Element, Header

__all__ = ["Columns", "Table", "read_binary", "read_text"]

Columns = dict[str, npt.NDArray[Any]]


@dataclass
class Table:
    """The rows of an element: single numbers by name, and lists by name as (sizes, all values in one row)."""

    columns: Columns = field(default_factory=dict)
    lists: dict[str, tuple[npt.NDArray[np.int64], npt.NDArray[Any]]] = field(default_factory=dict)


def _truncated(shown: str, element: Element, row: int) -> FileFormatError:
    return FileFormatError(
        f"{shown}: the file ends in element {element.name}, row {row} of {element.count}: it is truncated or damaged"
    )


def read_binary(data: bytes, header: Header, shown: str) -> dict[str, Table]:
    """Return the elements of a binary file by name. Raises FileFormatError where the file ends early."""
    tables: dict[str, Table] = {}
    cursor = header.start
    for element in header.elements:
        tables[element.name], cursor = _binary_element(data, cursor, element, shown)
    return tables


def _row_type(element: Element, sizes: dict[str, int], shown: str) -> np.dtype[Any]:
    """Return the packed row of an element whose lists have the given sizes; the count of list x is named `#x`."""
    fields: list[Any] = []
    for p in element.properties:
        if p.count_dtype:
            fields += [("#" + p.name, p.count_dtype), (p.name, p.dtype, (sizes[p.name],))]
        else:
            fields.append((p.name, p.dtype))
    try:
        return np.dtype(fields)
    except ValueError as error:
        raise FileFormatError(f"{shown}: element {element.name}: {error}") from None


def _binary_element(data: bytes, cursor: int, element: Element, shown: str) -> tuple[Table, int]:
    """Return an element and the position after it; rows with lists of one size are read at once."""
    if not element.count or not element.properties:
        empty = Table({p.name: np.zeros(0, p.dtype) for p in element.properties if not p.count_dtype})
        nothing = np.zeros(0, np.int64)
        empty.lists = {p.name: (nothing, nothing) for p in element.properties if p.count_dtype}
        return empty, cursor
    lists = [p for p in element.properties if p.count_dtype]
    sizes = _first_sizes(data, cursor, element, shown) if lists else {}
    row_type = _row_type(element, sizes, shown)
    if len(data) - cursor >= row_type.itemsize * element.count:
        rows = np.frombuffer(data, dtype=row_type, count=element.count, offset=cursor)
        if all((rows["#" + p.name] == sizes[p.name]).all() for p in lists):
            table = Table({p.name: rows[p.name] for p in element.properties if not p.count_dtype})
            for p in lists:
                table.lists[p.name] = np.full(element.count, sizes[p.name], np.int64), rows[p.name].reshape(-1)
            return table, cursor + row_type.itemsize * element.count
    if not lists:
        raise _truncated(shown, element, (len(data) - cursor) // row_type.itemsize)
    return _binary_rows(data, cursor, element, shown)


def _first_sizes(data: bytes, cursor: int, element: Element, shown: str) -> dict[str, int]:
    """Return the sizes of the lists of the first row."""
    sizes: dict[str, int] = {}
    for p in element.properties:
        if p.count_dtype:
            count = np.dtype(p.count_dtype)
            if cursor + count.itemsize > len(data):
                raise _truncated(shown, element, 0)
            sizes[p.name] = max(0, int(np.frombuffer(data, count, 1, cursor)[0]))
            cursor += count.itemsize + sizes[p.name] * np.dtype(p.dtype).itemsize
            # A damaged count must not become a request for memory.
            if cursor > len(data):
                raise _truncated(shown, element, 0)
        else:
            cursor += np.dtype(p.dtype).itemsize
    return sizes


def _binary_rows(data: bytes, cursor: int, element: Element, shown: str) -> tuple[Table, int]:
    """Return an element with lists of different sizes, and the position after it.

    One pass finds where every value lies, then each property is gathered at once.
    """
    kinds = [
        (p.name, np.dtype(p.count_dtype) if p.count_dtype else None, np.dtype(p.dtype).itemsize)
        for p in element.properties
    ]
    starts: dict[str, list[int]] = {name: [] for name, _, _ in kinds}
    sizes: dict[str, list[int]] = {name: [] for name, count, _ in kinds if count}
    for row in range(element.count):
        for name, count, size in kinds:
            if count is None:
                starts[name].append(cursor)
                cursor += size
            else:
                raw = data[cursor : cursor + count.itemsize]
                order = "big" if count.str[0] == ">" else "little"
                length = int.from_bytes(raw, order, signed=count.kind == "i")  # type: ignore[arg-type]
                cursor += count.itemsize
                starts[name].append(cursor)
                sizes[name].append(length)
                cursor += max(0, length) * size
        if cursor > len(data):
            raise _truncated(shown, element, row)
    raw_bytes = np.frombuffer(data, np.uint8)
    table = Table()
    for p in element.properties:
        dtype = np.dtype(p.dtype)
        lengths = np.maximum(np.array(sizes.get(p.name, [1] * element.count), dtype=np.int64), 0)
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        at = np.repeat(np.array(starts[p.name], dtype=np.int64), lengths) + within * dtype.itemsize
        values = raw_bytes[at[:, None] + np.arange(dtype.itemsize)].reshape(-1).view(dtype)
        if p.count_dtype:
            table.lists[p.name] = lengths, values
        else:
            table.columns[p.name] = values
    return table, cursor


def read_text(data: bytes, header: Header, shown: str) -> dict[str, Table]:
    """Return the elements of a text file by name. Raises FileFormatError where it ends early or holds no number."""
    words = data[header.start :].split()
    tables: dict[str, Table] = {}
    cursor = 0
    for element in header.elements:
        tables[element.name], cursor = _text_element(words, cursor, element, shown)
    return tables


def _text_element(words: list[bytes], cursor: int, element: Element, shown: str) -> tuple[Table, int]:
    """Return an element and the position after it; the words are sorted by property, then converted at once."""
    if not element.properties:
        return Table(), cursor
    found: dict[str, list[bytes]] = {p.name: [] for p in element.properties}
    sizes: dict[str, list[int]] = {p.name: [] for p in element.properties if p.count_dtype}
    try:
        if not sizes:
            width = len(element.properties)
            end = cursor + width * element.count
            if end > len(words):
                raise _truncated(shown, element, (len(words) - cursor) // width)
            for column, p in enumerate(element.properties):
                found[p.name] = words[cursor + column : end : width]
            cursor = end
        else:
            for row in range(element.count):
                for p in element.properties:
                    length = 1
                    if p.count_dtype:
                        length = int(words[cursor])
                        cursor += 1
                        sizes[p.name].append(length)
                    found[p.name] += words[cursor : cursor + length]
                    cursor += max(0, length)
                if cursor > len(words):
                    raise _truncated(shown, element, row)
    except IndexError:
        raise _truncated(shown, element, len(next(iter(sizes.values())))) from None
    except ValueError as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(
            f"{shown}: element {element.name}: a list size was expected, found {words[cursor]!r}"
        ) from None
    table = Table()
    for p in element.properties:
        values = _numbers(found[p.name], np.dtype(p.dtype), f"{shown}: element {element.name}, property {p.name}")
        if p.count_dtype:
            table.lists[p.name] = np.maximum(np.array(sizes[p.name], dtype=np.int64), 0), values
        else:
            table.columns[p.name] = values
    return table, cursor


def _numbers(words: list[bytes], dtype: np.dtype[Any], where: str) -> npt.NDArray[Any]:
    """Return the words as numbers; integers may be written as 3.0. Raises FileFormatError naming the row."""
    try:
        if dtype.kind == "f":
            return np.array(list(map(float, words)), dtype=dtype)
        try:
            whole = np.array(list(map(int, words)), dtype=np.int64)
        except ValueError:
            real = np.array(list(map(float, words)), dtype=np.float64)
            if not (real == np.floor(real)).all():
                raise OverflowError from None
            whole = real.astype(np.int64)
        if whole.size and not np.iinfo(dtype).min <= whole.min() <= whole.max() <= np.iinfo(dtype).max:
            raise OverflowError
        return whole.astype(dtype)
    except (ValueError, OverflowError):
        for row, word in enumerate(words):
            try:
                float(word)
            except ValueError:
                text = word.decode("latin-1")
                raise FileFormatError(f"{where}, row {row}: a number was expected, found {text!r}") from None
        raise FileFormatError(f"{where}: a number does not fit its type {dtype.name}") from None
