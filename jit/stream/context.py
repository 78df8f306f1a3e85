"""What a streamed function meets while it runs on one chunk: totals over all chunks instead of the chunk's own.

Reductions, scatters and evaluation report here (`arrays/base.py`, `runtime/evaluate.py`). A total is known by the
number of its reduction or scatter among all that the function records, which is the same for every chunk. As long as
its value is not known, an UNKNOWN node stands for it; what must have the value ends the function with `Blocked`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..arrays.flat import Flat, cast
from ..arrays.memops import scatter_flat
from ..dtypes import UInt32, UInt64
from ..passes.order import children
from ..trace import AFTER, LITERAL, Node, Structural, counter, node, state, user_line
from .current import paused
from .refusals import called, not_streamable, only_computes
from .totals import Total

STREAM = Structural("stream", "elements of a chunk that is not read yet; attr: (source, component)", varying=True)
UNKNOWN = Structural("unknown", "a total over all chunks that is not known yet")
FROM_STREAM, FROM_UNKNOWN = 1, 2  # what a node depends on


class Blocked(BaseException):
    """Ends a streamed function that needs a total which is not known yet; never leaves this package."""


class Context:
    """One run of a streamed function on `size` of `length` elements, from `start`; `probing`: on STREAM nodes."""

    def __init__(
        self, size: int, start: Node | None, length: int, ns: Any, totals: dict[Any, Total], probing: bool
    ) -> None:
        self.size, self.start, self.length, self.ns, self.probing = size, start, length, ns, probing
        self.totals = totals  # by ("reduce" | "scatter", number); a probe adds those it meets
        self.reductions = self.scatters = 0
        self.counts = False  # whether the reduction recorded last was one over all chunks
        self.roots: dict[Any, Node] = {}  # operands of reductions, by key of the total
        self.current: dict[int, Total] = {}  # by id of the array scattered to: what is summed up in it now
        self.bases: dict[int, Node] = {}  # and its node before the first scatter
        self.before: list[tuple[Any, Node, Any]] = []  # arrays scattered to, and what they were
        self.afters: dict[Node, Total] = {}
        self.stored: dict[Node, int] = {}  # bytes per element of what the function itself evaluates
        # While derivatives are taken: (total, arguments) -> what stands for a total that is known.
        self.reduced: Callable[..., Any] | None = None
        self.scattered: Callable[..., Any] | None = None
        self._kinds: dict[Node, int] = {}
        self._joining = False  # whether a further scatter to an array is being recorded

    # What the function may ask for.

    def index(self) -> Any:
        """Return the numbers of the chunk's elements among all."""
        kind = self.ns.flat(UInt64)
        if self.probing:
            return kind.wrap(stream_node(UInt64, self.size, ("index", 0)))
        own = cast(kind, self.ns.flat(UInt32).wrap(counter(self.size)))
        return own + kind.wrap(self.start)

    # Dependence on chunks and totals.

    def kind(self, n: Node) -> int:
        """Return whether a node depends on elements of the stream and on totals not known yet."""
        known = self._kinds
        stack = [n]
        while stack:
            m = stack[-1]
            if m in known:
                stack.pop()
                continue
            if m.op is STREAM:
                known[m] = FROM_STREAM
            elif m.op is UNKNOWN or m in self.afters and self.afters[m].value is None:
                known[m] = FROM_UNKNOWN
            elif m.buf is not None or m.op is LITERAL:
                known[m] = 0
            else:
                below = [*children(m), m.args[0]] if m.op is AFTER else children(m)
                todo = [b for b in below if b not in known]
                if todo:
                    stack += todo
                    continue
                bits = 0
                for b in below:
                    bits |= known[b]
                known[m] = bits
            stack.pop()
        return known[n]

    # Called by array operations.

    def reduce(self, op: str, x: Any, result: Any) -> Any:
        """Return the result of a whole-array reduction over all chunks, None if `x` is no chunk."""
        key = ("reduce", self.reductions)
        self.reductions += 1
        total = self.totals.get(key)
        self.counts = False
        if self.probing:
            if x._n.size != self.size or not self._varies(x._n):
                return None
            if total is None:
                total = self.totals[key] = Total(key, op, x.dtype, result.dtype, user_line())
            total.ready = total.value is not None or not self.kind(x._n) & FROM_UNKNOWN
        elif total is None:
            return None
        self.counts = True
        self.roots[key] = x._n
        if self.reduced is not None and result.dtype.is_float:
            return self.reduced(total, x, result)
        if total.value is not None:
            return result.ns.flat(total.value.dtype).wrap(total.value)
        return result.wrap(node(UNKNOWN, result.dtype, 1, (), key))

    def _varies(self, n: Node) -> bool:
        """Return whether a reduction depends on the chunk; that of a constant depends on the number of elements."""
        return bool(self.kind(n)) or n.op is LITERAL

    def elements(self, x: Any) -> int:
        """Return over how many elements the array just reduced goes, all chunks together."""
        size = int(x._n.size)
        return self.length if self.counts and size == self.size else size

    def scatter(self, op: str, target: Any, value: Any, index: Any, active: Any) -> bool:
        """Scatter from a chunk into a resident array; return False for scatters that have nothing to do with chunks."""
        key = ("scatter", self.scatters)
        self.scatters += 1
        total = self.totals.get(key)
        fresh = self.probing and total is None
        if fresh:
            total = self._total_of(key, op, target, value, index, active)
        if total is None:
            return False
        if id(target) not in self.bases:
            self.bases[id(target)] = target._n
            self.before.append((target, target._n, target._ad))
        if total.value is not None:
            if self.scattered is not None and target.dtype.is_float:
                target.assign(self.scattered(total, op, target, value, index, active))
            else:
                target.assign(type(target).wrap(total.value))
            return True
        if total.key in self.roots:
            # Scatters of one kind join while nobody else holds the array: neither may this object.
            self.afters.pop(self.roots.pop(total.key), None)
            self._kinds.pop(target._n, None)
            self._joining = True
        elif total.running is not None:
            target._n, total.running = total.running, None
        try:
            with paused():
                scatter_flat(op, target, value, index, active)
        except Blocked:  # somebody reads what the array holds between two scatters: the first one's total comes first
            self.roots[total.key] = target._n
            raise
        finally:
            self._joining = False
        if fresh:
            self.totals[key] = total
            self.current[id(target)] = total
        self.afters[target._n] = total
        self.roots[total.key] = target._n
        return True

    def _total_of(self, key: Any, op: str, target: Any, value: Any, index: Any, active: Any) -> Total | None:
        """Return the total that a scatter met for the first time adds to; None if it has nothing to do with chunks."""
        reads = [a._n for a in (value, index, active) if isinstance(a, Flat)]
        bits = 0
        for n in reads:
            bits |= self.kind(n)
        if not bits & FROM_STREAM and all(n.size != self.size for n in reads):
            return None
        base = self.kind(target._n)
        if target._n.size == self.size or base & FROM_STREAM:
            raise not_streamable("scatter", "writes to an array that is streamed itself, perhaps in other chunks")
        known = self.current.get(id(target))
        if known is not None and (target._n in self.afters or target._n is self.bases.get(id(target))):
            if op in ("", "permute") or known.op != op:
                reason = "is one of several to an array that are not all reductions of one kind: their order counts"
                raise not_streamable("scatter", reason)
            return known
        total = Total(key, op, target.dtype, target.dtype, user_line())
        total.width, total.nbytes = target._n.size, target._n.size * target.dtype.itemsize
        # What the state of a loop depends on is not known inside of it.
        waits = state.scope is not None and any(t.value is None for t in self.totals.values())
        total.ready = not (bits | base) & FROM_UNKNOWN and not waits
        return total

    def release(self) -> None:
        """Let go of the arrays scattered to, so that their memory can be written in place."""
        self.afters.clear()
        self.current.clear()
        self.bases.clear()
        self._kinds.clear()

    def restore(self) -> None:
        """Give the arrays scattered to what they were before this run."""
        for target, n, ad in reversed(self.before):
            target._n, target._ad = n, ad
        self.before.clear()

    def pick(self, nodes: Iterable[Node]) -> list[Node]:
        """Return, of the nodes to be evaluated, those that may be; raises what makes a function not streamable."""
        if not self.probing and all(t.value is not None for t in self.totals.values()):
            return list(nodes)
        if not self.probing:
            self._kinds.clear()  # nodes that were evaluated meanwhile
        kept = []
        for n in nodes:
            bits = 0 if n.buf is not None else self.kind(n)
            if not bits or bits == FROM_STREAM and not self.probing:
                kept.append(n)
                continue
            if only_computes():
                self.stored[n] = n.dtype.itemsize * -(-n.size // self.size) if bits & FROM_STREAM else 0
                continue
            op, line = called()
            if bits == FROM_UNKNOWN or self._joining:
                raise Blocked
            raise not_streamable(op, "needs its argument in memory, all chunks of it", line)
        return kept


def stream_node(dtype: Any, size: int, what: tuple[Any, int]) -> Node:
    """Return a node that stands for a chunk's elements before they are read."""
    n = node(STREAM, dtype, size, (), what)
    n.scope = None
    return n


__all__ = ["STREAM", "UNKNOWN", "Blocked", "Context", "stream_node"]
