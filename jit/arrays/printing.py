"""How arrays print: `%.6g`, the first and last elements of long ones."""

from __future__ import annotations

from typing import Any

from ..trace import ACTIVE, PHI

_LIMIT = 20


def _number(value: Any) -> str:
    if isinstance(value, bool):
        return str(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _listing(items: list[str], total: int) -> str:
    if total <= _LIMIT:
        return "[" + ", ".join(items) + "]"
    skipped = total - 6
    return "[" + ", ".join(items[:3]) + f", .. {skipped} skipped .., " + ", ".join(items[-3:]) + "]"


def format_flat(x: Any) -> str:
    """Return the text of a flat array; inside a recorded loop or branch only its type and size are known."""
    from .transfer import read, to_list

    if symbolic(x):
        return f"{type(x).__name__}[symbolic, size={x._n.size}]"
    size = x._n.size
    if size > _LIMIT:
        # Of 1e7 elements six are shown: reading all took 18 s.
        shown = [_number(read(x._n, k)) for k in (0, 1, 2, size - 3, size - 2, size - 1)]
        return _listing(shown, size)
    return _listing([_number(v) for v in to_list(x._n)], x._n.size)


def symbolic(x: Any) -> bool:
    """Return whether a flat array's value exists only while a loop or branch being recorded runs."""
    seen: set[int] = set()
    stack = [x._n]
    while stack:
        n = stack.pop()
        if id(n) in seen or n.buf is not None:
            continue
        seen.add(id(n))
        if (n.op is PHI or n.op is ACTIVE) and n.scope is not None and not n.scope.closed:
            return True
        stack.extend(n.args)
    return False


def format_nested(x: Any) -> str:
    """Return the text of a nested array: one row per element (the transpose of the storage)."""
    if x.ns.backend == "scalar":
        return "[" + ", ".join(repr(c) if not isinstance(c, float) else _number(c) for c in x._c) + "]"
    values = x.numpy()
    rows = [_row(values[..., k]) for k in range(values.shape[-1])]
    if len(rows) > _LIMIT:
        rows = [*rows[:3], f".. {len(rows) - 6} skipped ..", *rows[-3:]]
    return "[" + ",\n ".join(rows) + "]"


def format_tensor(x: Any) -> str:
    """Return the text of a tensor: its elements (of long ones the first and last along each dimension) and shape."""
    name = type(x).__name__
    if symbolic(x.array):
        return f"{name}[symbolic, shape={x.shape}]"
    import numpy as np

    numbers: Any = {"all": lambda v: _number(v.item())}
    text = np.array2string(x.numpy(), separator=", ", threshold=200, max_line_width=120, formatter=numbers)
    return f"{name}({text}, shape={x.shape})"


def _row(values: Any) -> str:
    if values.ndim == 0:
        return _number(values.item())
    return "[" + ", ".join(_row(v) for v in values) + "]"


__all__ = ["format_flat", "format_nested", "format_tensor", "symbolic"]
