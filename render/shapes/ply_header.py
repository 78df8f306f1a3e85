"""The header of a PLY file: elements, their properties, and how the numbers after it are stored."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...jit.errors import FileFormatError

__all__ = ["Element", "Header", "Property", "parse_header"]

# Names of number types, old and new, to NumPy's without byte order.
_TYPES = {
    "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
    "float": "f4", "double": "f8", "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2",
    "int32": "i4", "uint32": "u4", "float32": "f4",
    "float64": "f8", "int64": "i8", "uint64": "u8",
}  # fmt: skip
_ORDERS = {"ascii": "=", "binary_little_endian": "<", "binary_big_endian": ">"}


@dataclass(frozen=True)
class Property:
    """One property: its NumPy type with byte order, and for a list also the type of the count."""

    name: str
    dtype: str
    count_dtype: str | None = None


@dataclass
class Element:
    """A table of `count` rows."""

    name: str
    count: int
    properties: list[Property] = field(default_factory=list)


@dataclass
class Header:
    """What a file holds, whether as text, and where its numbers start (in bytes)."""

    ascii: bool
    elements: list[Element]
    start: int


def parse_header(data: bytes, shown: str) -> Header:
    """Return the header at the start of a PLY file. Raises FileFormatError with file and line."""
    end = data.find(b"end_header")
    stop = data.find(b"\n", end) if end >= 0 else -1
    if not data.startswith(b"ply") or end < 0:
        found = "its header does not end" if data.startswith(b"ply") else f"it starts with {data[:8]!r}"
        raise FileFormatError(f"{shown}: not a PLY file: {found}")
    order: str | None = None
    elements: list[Element] = []
    text = data[:end].decode("latin-1")
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0] in ("ply", "comment", "obj_info"):
            continue
        try:
            if words[0] == "format":
                order = _ORDERS[words[1]]
            elif words[0] == "element":
                elements.append(Element(words[1], _count(words[2])))
            elif words[0] == "property":
                elements[-1].properties.append(_property(words, order or "="))
            else:
                raise ValueError
        except (KeyError, IndexError, ValueError):
            raise FileFormatError(f"{shown}:{number}: the header line {line.strip()!r} is not understood") from None
    if order is None:
        raise FileFormatError(f"{shown}: the header names no format")
    return Header(order == "=", elements, stop + 1 if stop >= 0 else len(data))


def _count(word: str) -> int:
    count = int(word)
    if count < 0:
        raise ValueError(word)
    return count


def _property(words: list[str], order: str) -> Property:
    if words[1] == "list":
        return Property(words[4], order + _TYPES[words[3]], order + _TYPES[words[2]])
    return Property(words[2], order + _TYPES[words[1]])
