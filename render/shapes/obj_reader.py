"""Wavefront OBJ meshes, read by bulk conversion of whole columns so that large files take little time."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ...jit.errors import FileFormatError
from ..file_access import read_bytes
from .mesh_data import MeshData, complete_normals, fan_triangles

__all__ = ["parse_obj", "read_obj"]

Ints = npt.NDArray[np.int64]


@dataclass
class _Table:
    """The lines of one kind: their words after the keyword, and their numbers in the file."""

    rows: list[list[bytes]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


def read_obj(path: str | os.PathLike[str], flip_tex_coords: bool = True) -> MeshData:
    """Return the mesh of an OBJ file; groups, objects and materials are not told apart.

    Corners that share position, texture coordinate and normal become one vertex, numbered by first use; unused
    positions are left out. Polygons are cut into fans. Negative indices count back from their own line. Corners with a
    normal of length 0 or none where others have one get a computed normal. `flip_tex_coords` stores 1 - v instead of v.

    Raises MissingFileError, and FileFormatError with file and line for anything that cannot be read.
    """
    return parse_obj(read_bytes(path, "mesh file"), os.fspath(path), flip_tex_coords)


def parse_obj(data: bytes, shown: str, flip_tex_coords: bool = True) -> MeshData:
    """Return the mesh that the contents of an OBJ file describe, as `read_obj`; `shown` is the path for messages."""
    tables, seen = _split(data)
    position = _columns(tables[b"v"], 3, shown, "vertex position")
    texcoord = _columns(tables[b"vt"], 2, shown, "texture coordinate")
    normal = _columns(tables[b"vn"], 3, shown, "vertex normal", repair=True)
    faces = tables[b"f"]
    if not faces.rows:
        raise FileFormatError(f"{shown}: the file holds no faces")
    sizes = np.array([len(row) for row in faces.rows], dtype=np.int64)
    if sizes.min() < 3:
        row = int(np.argmin(sizes))
        raise FileFormatError(f"{shown}:{faces.lines[row]}: a face needs at least 3 corners, this one has {sizes[row]}")
    corners = _corners(faces, shown)
    counts = [len(position), len(texcoord), len(normal)]
    indices = _resolve(corners, np.array(seen, dtype=np.int64), sizes, counts, faces, shown)
    vertices, where = _merge(indices, counts)
    triangles = where[fan_triangles(sizes)].astype(np.uint32)
    mesh = MeshData(
        os.path.splitext(os.path.basename(shown))[0], position[vertices[:, 0]].astype(np.float32), triangles
    )
    if (vertices[:, 1] >= 0).any():
        mesh.texcoords = _gather(texcoord, vertices[:, 1])
        if flip_tex_coords:
            mesh.texcoords[:, 1] = 1 - mesh.texcoords[:, 1]
    if (vertices[:, 2] >= 0).any():
        mesh.normals = complete_normals(_gather(normal, vertices[:, 2]), mesh, shown)
    return mesh


def _split(data: bytes) -> tuple[dict[bytes, _Table], list[tuple[int, int, int]]]:
    """Return the tables of v, vt, vn and f, and for each face how many of the first three came before it."""
    tables = {key: _Table() for key in (b"v", b"vt", b"vn", b"f")}
    positions, texcoords, normals = (tables[key].rows for key in (b"v", b"vt", b"vn"))
    seen: list[tuple[int, int, int]] = []
    for number, line in _logical_lines(data):
        words = line.split()
        if words and words[0] in tables:
            if b"#" in line:
                words = line.partition(b"#")[0].split()
            table = tables[words[0]]
            if words[0] == b"f":
                seen.append((len(positions), len(texcoords), len(normals)))
            table.lines.append(number)
            del words[0]
            table.rows.append(words)
    return tables, seen


def _logical_lines(data: bytes) -> Any:
    """Return an iterable of (line number from 1, line); a backslash at the end of a line joins the next one to it."""
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines()
    if b"\\" not in data:
        return enumerate(lines, 1)
    joined: list[tuple[int, bytes]] = []
    pending, start = b"", 0
    for number, line in enumerate(lines, 1):
        start = start or number
        stripped = line.rstrip()
        # File names of other statements may hold backslashes, but only in their middle.
        if stripped.endswith(b"\\"):
            pending += stripped[:-1] + b" "
        else:
            joined.append((start, pending + line))
            pending, start = b"", 0
    if pending:
        joined.append((start, pending))
    return joined


def _columns(table: _Table, count: int, shown: str, what: str, repair: bool = False) -> npt.NDArray[np.float64]:
    """Return the first `count` numbers of each row (n, count); a texture coordinate of one number gets v = 0.

    Further numbers (weights, colours) are ignored. Rows that are not finite become 0 with `repair`, else they raise.
    Raises FileFormatError for short rows and for what is not a number.
    """
    rows = table.rows
    lengths = set(map(len, rows))
    if lengths and lengths != {count}:
        if count == 2:
            rows = [[*row, b"0"] if len(row) == 1 else row for row in rows]
        rows = [row[:count] for row in rows]
        for row, line in zip(rows, table.lines, strict=True):
            if len(row) < count:
                raise FileFormatError(f"{shown}:{line}: a {what} needs {count} numbers, this one has {len(row)}")
    try:
        flat = np.array(list(map(float, chain.from_iterable(rows))), dtype=np.float64).reshape(-1, count)
    except ValueError:
        _find_bad_word(rows, table.lines, float, shown, f"{what}: a number was expected")
    finite = np.isfinite(flat).all(axis=1)
    if repair:
        # Exporters write these for faces without area.
        flat[~finite] = 0
    elif not finite.all():
        bad = int(np.argmin(finite))
        raise FileFormatError(f"{shown}:{table.lines[bad]}: the {what} is {flat[bad].tolist()}, which is not finite")
    return flat


def _find_bad_word(
    rows: list[list[bytes]], lines: list[int], reader: Callable[[bytes], object], shown: str, what: str
) -> NoReturn:
    """Raise the error for the first word that the reader does not take."""
    for row, line in zip(rows, lines, strict=True):
        for word in row:
            try:
                reader(word)
            except ValueError:
                text = word.decode("latin-1")
                raise FileFormatError(f"{shown}:{line}: {what}, found {text!r}") from None
    raise FileFormatError(f"{shown}: {what}")


def _corner(word: bytes) -> tuple[int, int, int]:
    """Return position, texture coordinate and normal index of one corner, 0 where one is left out."""
    parts = word.split(b"/")
    if len(parts) > 3:
        raise ValueError(word)
    numbers = [int(parts[0]), *(int(part) if part else 0 for part in parts[1:]), 0, 0]
    return numbers[0], numbers[1], numbers[2]


def _corners(faces: _Table, shown: str) -> Ints:
    """Return the indices (corners, 3) as written; whole files of one style are converted at once."""
    words = list(chain.from_iterable(faces.rows))
    what = "a corner of a face is v, v/vt, v//vn or v/vt/vn with whole numbers"
    slashes = {word.count(b"/") for word in words}
    text = b" ".join(words)
    try:
        # Corners like 1/ or /1 would change the number of columns.
        whole = b"/ " not in text and b" /" not in text and not text.endswith(b"/") and not text.startswith(b"/")
        if whole and len(slashes) == 1 and b"//" not in text:
            width = slashes.pop() + 1
            if width <= 3:
                found = np.array(list(map(int, text.replace(b"/", b" ").split())), dtype=np.int64).reshape(-1, width)
                return np.concatenate([found, np.zeros((len(found), 3 - width), dtype=np.int64)], axis=1)
        if whole and slashes == {2} and text.count(b"//") == len(words):
            found = np.array(list(map(int, text.replace(b"//", b" ").split())), dtype=np.int64).reshape(-1, 2)
            return np.stack([found[:, 0], np.zeros(len(found), dtype=np.int64), found[:, 1]], axis=1)
        return np.array([_corner(word) for word in words], dtype=np.int64)
    except (ValueError, OverflowError):
        _find_bad_word(faces.rows, faces.lines, _checked_corner, shown, what)


def _checked_corner(word: bytes) -> None:
    """Raise ValueError unless the word is a corner whose indices fit 64 bits."""
    if max(map(abs, _corner(word))) >= 2**63:
        raise ValueError(word)


def _resolve(corners: Ints, seen: Ints, sizes: Ints, counts: list[int], faces: _Table, shown: str) -> Ints:
    """Return indices (corners, 3) from 0, -1 for what is left out; negative ones count back from their line."""
    before = np.repeat(seen, sizes, axis=0) if (corners < 0).any() else np.zeros_like(corners)
    indices = np.where(corners < 0, before + corners, corners - 1)
    bad = (indices >= counts) | ((indices < 0) & (corners != 0))
    bad[:, 0] |= corners[:, 0] == 0
    if bad.any():
        corner, kind = (int(i) for i in np.argwhere(bad)[0])
        line = faces.lines[int(np.searchsorted(np.cumsum(sizes), corner, side="right"))]
        name = ("vertices", "texture coordinates", "normals")[kind]
        raise FileFormatError(
            f"{shown}:{line}: a face refers to number {corners[corner, kind]} of the {name}, "
            f"the file holds {counts[kind]}"
        )
    return indices


def _merge(indices: Ints, counts: list[int]) -> tuple[Ints, Ints]:
    """Return the distinct triples (V, 3) in the order of their first use, and for each corner which one it is."""
    if (counts[0] + 1.0) * (counts[1] + 1.0) * (counts[2] + 1.0) < 2**62:
        key = (indices[:, 0] * (counts[1] + 1) + indices[:, 1] + 1) * (counts[2] + 1) + indices[:, 2] + 1
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    else:
        _, first, inverse = np.unique(indices, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return indices[first[order]], rank[inverse.reshape(-1)]


def _gather(values: npt.NDArray[np.float64], index: Ints) -> npt.NDArray[np.float32]:
    """Return values[index], 0 where the index is -1."""
    return np.where(index[:, None] >= 0, values[np.maximum(index, 0)], 0).astype(np.float32)
