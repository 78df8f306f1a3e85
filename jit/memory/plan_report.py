"""Plans as text for people, and as tables in the format of MiniMalloc (columns id, lower, upper, size, offset)."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Protocol

_ROWS = 8  # waves of the map before and after the peak
_TOP = 10  # buffers in the list


class Arena(Protocol):
    """What a report needs to know of a plan."""

    @property
    def height(self) -> int:
        """Bytes of all blocks."""

    @property
    def lower_bound(self) -> int:
        """Most bytes alive at one time."""

    @property
    def block_sizes(self) -> Sequence[int]:
        """Bytes of each block."""

    @property
    def found_by(self) -> str:
        """Name of the pass that found the plan."""


@dataclass(frozen=True)
class Table:
    """Buffers read from a file: names, half-open lifetimes, sizes, and offsets if the file has them."""

    ids: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    sizes: tuple[int, ...]
    offsets: tuple[int, ...] | None


Row = tuple[str, int, int, int, int]  # name, start, end, offset over all blocks, size


def arena_report(
    arena: Arena, rows: Sequence[Row], apart: int, together: int, moved: int, unshared_peak: int, columns: int
) -> str:
    """Return the text of `LaunchPlan.report` for sets of buffers in an arena.

    `apart` are the bytes of all transients, `together` those of all sets, `moved` the number of transients that live
    in the memory of inputs and outputs, `unshared_peak` the most live bytes if nothing were reused in place.
    """
    ratio = arena.height / arena.lower_bound if arena.lower_bound else 1.0
    blocks = f"{len(arena.block_sizes)} block{'' if len(arena.block_sizes) == 1 else 's'}"
    lines = [
        f"arena          {_bytes(arena.height)} in {blocks}, found by: {arena.found_by}",
        f"lower bound    {_bytes(arena.lower_bound)} (arena / bound = {ratio:.4f})",
        f"without reuse  {_bytes(apart)}",
        f"saved          {_bytes(apart - together)} in place ({moved} buffers in memory of inputs and outputs), "
        f"{_bytes(together - arena.height)} by reuse",
        f"live at peak   {_bytes(arena.lower_bound)}; {_bytes(unshared_peak)} without in-place reuse",
    ]
    if rows:
        peak = _busiest(rows)
        live = sorted((r for r in rows if r[1] <= peak < r[2] and r[4]), key=lambda r: (-r[4], r[3]))
        letters = dict(zip(live, ascii_uppercase, strict=False))
        lines += ["", f"map of the arena around wave {peak} (columns of {_bytes(-(-arena.height // columns))})"]
        lines += _map(rows, peak, arena.height, columns, letters)
        lines += ["", f"largest of {len(live)} buffers at the peak"]
        lines += [
            f"  {letters[r]} {_bytes(r[4]):>12}  at {r[3]:<12} waves {r[1]} to {r[2] - 1}  {_shorten(r[0])}"
            for r in live[:_TOP]
        ]
    return "\n".join(lines) + "\n"


def _bytes(n: int) -> str:
    """Return a number of bytes in the unit that keeps it short."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(n) >= size:
            return f"{n / size:.2f} {unit}"
    return f"{n} B"


def _shorten(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:24]}...{name[-13:]}"


def _busiest(rows: Sequence[Row]) -> int:
    change: dict[int, int] = {}
    for _, start, end, _, size in rows:
        change[start] = change.get(start, 0) + size
        change[end] = change.get(end, 0) - size
    live, best, when = 0, -1, 0
    for t, c in sorted(change.items()):
        live += c
        if live > best:
            best, when = live, t
    return when


def _map(rows: Sequence[Row], peak: int, height: int, columns: int, letters: dict[Row, str]) -> list[str]:
    """Return a line per wave; a column shows what covers its middle: a letter, # for others, a dot for free room."""
    last = max(end for _, _, end, _, _ in rows)
    out = []
    for wave in range(max(0, peak - _ROWS), min(last, peak + _ROWS + 1)):
        cells = ["."] * columns
        for row in rows:
            _, start, end, offset, size = row
            if start <= wave < end:
                # Column c has its middle at (c + 1/2) * height / columns.
                low = max(0, -(-(2 * columns * offset - height) // (2 * height)))
                high = max(low, -(-(2 * columns * (offset + size) - height) // (2 * height)))
                for c in range(low, min(high, columns)):
                    cells[c] = letters.get(row, "#")
        out.append(f"{'>' if wave == peak else ' '}{wave:>6} |{''.join(cells)}|")
    return out


def to_csv(
    starts: Sequence[int],
    ends: Sequence[int],
    sizes: Sequence[int],
    offsets: Sequence[int] | None = None,
    ids: Sequence[str] | None = None,
) -> str:
    """Return a table of buffers; without `ids` they are called b0, b1, and so on."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["id", "lower", "upper", "size", *(["offset"] if offsets is not None else [])])
    names = [f"b{i}" for i in range(len(sizes))] if ids is None else ids
    columns = [names, starts, ends, sizes, *([offsets] if offsets is not None else [])]
    writer.writerows(zip(*columns, strict=True))
    return out.getvalue()


def read_csv(text: str) -> Table:
    """Return the buffers of a table; columns other than id, lower, upper, size and offset are passed over.

    Raises:
        ValueError: for a missing column or a value that is no integer, with its line.
    """
    reader = csv.DictReader(io.StringIO(text))
    columns = reader.fieldnames or []
    missing = [name for name in ("id", "lower", "upper", "size") if name not in columns]
    if missing:
        raise ValueError(f"a table of buffers needs the columns {', '.join(missing)}; it has {', '.join(columns)}")
    names = ["lower", "upper", "size", *(["offset"] if "offset" in columns else [])]
    ids: list[str] = []
    values: list[list[int]] = [[] for _ in names]
    for row in reader:
        ids.append(row["id"])
        for name, column in zip(names, values, strict=True):
            try:
                column.append(int(row[name]))
            except (TypeError, ValueError):
                raise ValueError(f"line {reader.line_num}: {name} is {row[name]!r}, which is no integer") from None
    starts, ends, sizes, *offsets = map(tuple, values)
    return Table(tuple(ids), starts, ends, sizes, offsets[0] if offsets else None)
