"""Trying a function out before anything is read: on symbols of two lengths, whose programs must be the same."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..arrays import tree
from ..arrays.base import ArrayBase
from ..arrays.create import SIZE_LIMIT
from ..passes.order import children, walk
from ..runtime.engine import runtime
from ..trace import AFTER, COUNTER, LITERAL, OUT, PHI, REDUCE, SCATTER, Node
from .context import FROM_UNKNOWN, Blocked, Context, stream_node
from .current import running
from .outputs import components, items
from .refusals import not_streamable
from .sources import Source
from .totals import Total

LENGTHS = (96, 160)  # of the symbols: any two will do that a program does not contain by itself
_COMPARED = 1 << 20  # bytes of arrays that a function makes itself up to which they are compared

Call = Callable[[list[Any]], Any]


class Item:
    """One result of the function: what it is made of, whether it has an element per element of the stream."""

    def __init__(self, value: Any, context: Context) -> None:
        self.value = value
        self.nodes = [x._n for x in components(value)] if isinstance(value, ArrayBase) else []
        self.streamed = any(n.size == context.size for n in self.nodes)
        self.ready = not any(context.kind(n) & FROM_UNKNOWN for n in self.nodes)
        self.inner: tuple[int, ...] = tuple(getattr(value, "static_shape", ()))


class Probe:
    """One run of the function on symbols: its results (None if it stopped for a total) and the totals it meets.

    `keep`: arrays that it scatters to are left with the totals.
    """

    def __init__(
        self, call: Call, sources: Sequence[Source], ns: Any, size: int, length: int, totals: Any, keep: bool = False
    ) -> None:
        self.context = Context(size, None, length, ns, dict(totals), probing=True)
        arguments = [symbol(s, k, ns, size) for k, s in enumerate(sources)]
        self.result: Any = None
        self.items: list[Item] | None = None
        with running(self.context):
            try:
                self.result = call(arguments)
                self.items = [Item(v, self.context) for v in items(self.result)]
            except Blocked:
                pass
            except BaseException:
                keep = False
                raise
            finally:
                if not keep:
                    self.context.restore()

    @property
    def totals(self) -> list[Total]:
        """Return the totals in the order in which they were met, each once."""
        return list(dict.fromkeys(self.context.totals.values()))

    def roots(self) -> list[Node]:
        """Return all nodes that results and totals are computed from."""
        found = [n for item in self.items or [] for n in item.nodes]
        return [*found, *self.context.roots.values()]


def symbol(source: Source, number: int, ns: Any, size: int) -> Any:
    """Return an array that stands for a chunk of a source."""
    inner = source.shape[1:]
    kind = ns.flat(source.kind)
    nodes = iter(range(1 << 30))
    if not inner:
        return kind.wrap(stream_node(source.kind, size, (number, 0)))
    template = ns.nested(inner, source.kind)(0)
    return tree.map_arrays(lambda _: kind.wrap(stream_node(source.kind, size, (number, next(nodes)))), template)


def probed(call: Call, sources: Sequence[Source], ns: Any, length: int, totals: Any) -> Probe:
    """Return the first of two probes; raises NotStreamableError if they differ in more than the number of elements."""
    first = Probe(call, sources, ns, LENGTHS[0], length, totals)
    confirm(first, call, sources, ns, length, totals, LENGTHS[1:])
    for item in first.items or []:
        sizes = {n.size for n in item.nodes} - {1}
        if item.streamed and sizes != {LENGTHS[0]}:
            raise not_streamable("return", f"gives components of {sorted(sizes)} elements for a chunk of {LENGTHS[0]}")
    return first


def confirm(
    first: Probe, call: Call, sources: Sequence[Source], ns: Any, length: int, totals: Any, sizes: Iterable[int]
) -> None:
    """Raise NotStreamableError if symbols of other sizes give another program than those of `first`."""
    for size in sizes:
        if size != first.context.size and 1 < size <= SIZE_LIMIT:
            _compare(first, Probe(call, sources, ns, size, length, totals))


def _inputs(n: Node) -> Sequence[Node]:
    return [*children(n), n.args[0]] if n.op is AFTER and n.buf is None else children(n)


def _compare(first: Probe, second: Probe) -> None:
    a, b = first.roots(), second.roots()
    shapes = [([len(i.nodes) for i in p.items or []], list(p.context.totals)) for p in (first, second)]
    plain = [[repr(i.value) for i in p.items or [] if not i.nodes] for p in (first, second)]
    if shapes[0] != shapes[1] or plain[0] != plain[1]:
        raise _length_matters("its results", None)
    x, y = walk(a, _inputs)[0], walk(b, _inputs)[0]
    users: dict[Node, Node] = {}
    for n in x:
        for m in _inputs(n):
            users.setdefault(m, n)
    pair = first.context.size, second.context.size
    for n, m in zip(x, y, strict=False):
        _same(n, m, users, pair)
    if len(x) != len(y):
        raise _length_matters("the number of operations", x[-1].where)


def _same(n: Node, m: Node, users: dict[Node, Node], pair: tuple[int, int]) -> None:
    where = n.where
    user: Node | None = n
    while where is None and user is not None:
        user = users.get(user)
        where = user.where if user is not None else None
    if n.op is not m.op or n.dtype is not m.dtype or len(n.args) != len(m.args):
        raise _length_matters("which operations it takes", where)
    sizes = (n.size, m.size)
    if sizes == pair and n.buf is None and n.op is COUNTER:
        reason = "counts within a chunk; use stream.index() for numbers among all elements"
        raise not_streamable("arange", reason, where)
    if n.buf is not None:
        if sizes == pair:
            raise not_streamable("array", "makes an array with an element per element of the chunk", where)
        if n.buf is not m.buf and (n.size != m.size or not _equal(n, m)):
            raise _length_matters("an array that it makes", where)
        return
    if n.size != m.size and sizes != pair:
        what = f"the size of an array ({n.size} elements for {pair[0]}, {m.size} for {pair[1]})"
        raise _length_matters(what, where)
    if n.op is LITERAL and n.attr != m.attr:
        raise _length_matters("a number", where)
    if n.op in (OUT, PHI, REDUCE) and n.attr != m.attr or n.op is SCATTER and n.attr.op != m.attr.op:
        raise _length_matters("what is computed", where)


def _equal(n: Node, m: Node) -> bool:
    size = n.size * n.dtype.itemsize
    if size > _COMPARED:
        return True
    runtime.sync()
    return ctypes.string_at(n.buf.ptr, size) == ctypes.string_at(m.buf.ptr, size)


def _length_matters(what: str, where: str | None) -> Exception:
    reason = f"makes {what} depend on the number of elements of a chunk; use stream.length() for that of all elements"
    return not_streamable("len", reason, where)


__all__ = ["LENGTHS", "Item", "Probe", "confirm", "probed", "symbol"]
