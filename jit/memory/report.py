"""What is in memory: live arrays with type, size, label and line; the error when there is no more."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any

from ..errors import OutOfMemoryError
from ..trace import LITERAL, Node

if TYPE_CHECKING:
    from .pool import Pool

_labels: weakref.WeakKeyDictionary[Node, str] = weakref.WeakKeyDictionary()


def set_label(n: Node, label: str | None) -> None:
    """Give a node a name that reports show; None takes it away."""
    if label is None:
        _labels.pop(n, None)
    else:
        _labels[n] = label


def label_of(n: Node) -> str:
    """Return the name given to a node, "" if there is none."""
    return _labels.get(n, "")


def live_nodes() -> list[Node]:
    """Return all living nodes, oldest first; found by asking the garbage collector, so that nothing lists them."""
    return sorted((n for n in gc.get_objects() if isinstance(n, Node)), key=lambda n: n.index)


def live_arrays(pool: Pool) -> list[dict[str, Any]]:
    """Return a dictionary per block of the pool that a node reads: id, type, width, bytes, label, line, start."""
    found: dict[int, dict[str, Any]] = {}
    for n in live_nodes():
        buffer = n.buf
        if buffer is None or getattr(buffer, "pool", None) is not pool:
            continue
        known = found.get(buffer.ptr)
        if known is None or (not known["label"] and label_of(n)):
            found[buffer.ptr] = {
                "id": n.index, "type": n.dtype.name, "width": n.size, "bytes": buffer.block, "label": label_of(n),
                "line": n.where or "", "start": buffer.ptr,
            }  # fmt: skip
    return sorted(found.values(), key=lambda a: (-a["bytes"], a["id"]))


def state_of(n: Node) -> str:
    """Return "evaluated", "literal" or "unevaluated"."""
    return "evaluated" if n.buf is not None else "literal" if n.op is LITERAL else "unevaluated"


def table(arrays: list[dict[str, Any]]) -> str:
    """Return arrays as lines of text under a heading."""
    lines = [f"{'id':>8} {'type':<8} {'width':>12} {'MiB':>10}  label"]
    for a in arrays:
        name = " ".join(x for x in (a["label"], f"({a['line']})" if a["line"] else "") if x)
        lines.append(f"{a['id']:>8} {a['type']:<8} {a['width']:>12} {a['bytes'] / 2**20:>10.2f}  {name}".rstrip())
    return "\n".join(lines)


def out_of_memory(pool: Pool, requested: int) -> OutOfMemoryError:
    """Return the error for a request that cannot be served, with the figures and the ten largest arrays."""
    top = live_arrays(pool)[:10]
    figures = pool.statistics()
    limit = pool.allowed
    mib = {name: f"{figures[name] / 2**20:.1f} MiB" for name in figures}
    asked = f"{requested / 2**20:.1f} MiB"
    if requested > limit:
        hint = f"the request alone is larger than the limit of {limit / 2**20:.1f} MiB"
    elif figures["arenas"] > requested:
        hint = f"arenas of frozen functions hold {mib['arenas']}: clear() those no longer needed"
    elif figures["live"] + requested <= limit:
        hint = f"fragmented: the largest free piece of {mib['largest_free']} is smaller than the request"
    else:
        hint = "free arrays, evaluate in parts (luxgrad.stream), or raise the limit (set_memory_limit)"
    error = OutOfMemoryError(
        f"could not allocate {asked}: live arrays hold {mib['live']}, free blocks {mib['cached']}, together "
        f"{mib['reserved']} from the system; the limit is {limit / 2**20:.1f} MiB. {hint[0].upper()}{hint[1:]}.\n"
        f"The largest live arrays:\n{table(top) if top else '  none'}"
    )
    error.requested, error.limit, error.top = requested, limit, top
    for name in ("live", "cached", "reserved", "largest_free"):
        setattr(error, name, figures[name])
    return error


def snapshot(pool: Pool) -> dict[str, Any]:
    """Return statistics and all blocks (offset, size, state, and for arrays label and line), for JSON."""
    with pool.lock:
        named = {a["start"]: a for a in live_arrays(pool)}
        parked = {start for _, start, _ in pool.parked}
        rows = []
        for start, size in pool.blocks.items():
            a = named.get(start, {})
            state = "parked" if start in parked else "live"
            rows.append((start, size, state, a.get("type", ""), a.get("label", ""), a.get("line", "")))
        for heap in (pool.heap, pool.slabs.space):
            rows += [(start, size, "free", "", "", "") for start, size in heap.sizes.items()]
        rows += [(start, size, "free", "", "", "") for size, stack in pool.slabs.free.items() for start in stack]
        rows.sort()
        base = rows[0][0] if rows else 0
        names = ("size", "state", "type", "label", "line")
        blocks = [{"offset": row[0] - base, **dict(zip(names, row[1:], strict=True))} for row in rows]
        return {"statistics": pool.statistics(), "blocks": blocks}


__all__ = ["label_of", "live_arrays", "live_nodes", "out_of_memory", "set_label", "snapshot", "state_of", "table"]
