"""Nodes: what a program recorded by array operations consists of, and the scopes of loops and branches.

A node is immutable but for its storage (`buf`), which evaluation fills in; it is freed by reference counts when no
array and no later node needs it. Nothing global lists nodes.
"""

from __future__ import annotations

import itertools
import math
import sys
import threading
import weakref
from typing import Any

from . import dtypes
from .dtypes import Bool, DType, UInt32
from .ops.row import Row

_new = object.__new__
next_index = itertools.count(1).__next__


class Structural:
    """A kind of node that is not an elementwise row."""

    __slots__ = ("name", "doc", "varying")

    def __init__(self, name: str, doc: str, varying: bool = False) -> None:
        self.name, self.doc, self.varying = name, doc, varying

    def __repr__(self) -> str:
        return f"<op {self.name}>"


LITERAL = Structural("literal", "a constant; attr: its bytes")
DATA = Structural("data", "elements in memory; buf: the buffer")
COUNTER = Structural("counter", "the element's own index (UInt32)", varying=True)
ACTIVE = Structural("active", "the mask of elements that take part here; attr: scope", varying=True)
CAST = Structural("cast", "args[0] converted to the node's type")
BITS = Structural("bits", "the bits of args[0] read as the node's type")
GATHER = Structural("gather", "args: source (evaluated), index, mask")
PHI = Structural("phi", "loop state at the start of an iteration; attr: position", varying=True)
ALIAS = Structural("alias", "args[0]: loop state that the loop never changes")
LOOP = Structural("loop", "args: initial state; attr: LoopBody")
BRANCH = Structural("branch", "args: masks of the arms; attr: BranchBody")
OUT = Structural("out", "output number attr of the loop, branch or ray query args[0]")
SCATTER = Structural("scatter", "args: value, index, mask; attr: (reduction or '', target slot)")
AFTER = Structural("after", "args[0]'s memory once the scatters in attr have happened")
REDUCE = Structural("reduce", "one value from all elements of args[0]; attr: reduction")
TRACE_RAY = Structural("trace", "a ray query; attr: RayQuery", varying=True)


class Node:
    """One operation of a recorded program; `args` are nodes, `size` elements (1: the same for all)."""

    __slots__ = ("op", "dtype", "size", "args", "attr", "buf", "scope", "index", "where", "__weakref__")

    op: Row | Structural
    dtype: DType
    size: int
    args: tuple[Node, ...]
    attr: Any
    buf: Any
    scope: Scope | None
    index: int
    where: str | None

    def __repr__(self) -> str:
        args = ", ".join(f"n{a.index}" for a in self.args)
        state = " (evaluated)" if self.buf is not None else ""
        return f"n{self.index}: {self.dtype}[{self.size}] = {self.op!r}({args}){state}"


class Scope:
    """The inside of a loop's condition or body, or of a branch's arm, while it is recorded and afterwards."""

    __slots__ = ("kind", "parent", "active", "effects", "afters", "rebound", "closed", "__weakref__")

    def __init__(self, kind: str, parent: Scope | None) -> None:
        self.kind, self.parent = kind, parent
        self.active: Node | None = None
        self.effects: list[Node] = []
        self.afters: list[Node] = []  # scatter targets first written in this scope or one inside it
        self.rebound: list[tuple[Any, Node, Any]] = []  # arrays whose node changed, to undo a discarded recording
        self.closed = False

    def encloses(self, other: Scope | None) -> bool:
        """Return whether `other` is this scope or one inside it."""
        while other is not None:
            if other is self:
                return True
            other = other.parent
        return False


class LoopBody:
    """What a LOOP node repeats: state placeholders, condition, next state, side effects."""

    __slots__ = ("scope_cond", "scope_body", "phis", "cond", "outs", "effects", "afters")

    def __init__(self, scope_cond: Scope, scope_body: Scope, phis: tuple[Node, ...]) -> None:
        self.scope_cond, self.scope_body, self.phis = scope_cond, scope_body, phis
        self.cond: Node
        self.outs: tuple[Node, ...] = ()
        self.effects: tuple[Node, ...] = ()
        self.afters: list[weakref.ref[Node]] = []


class BranchBody:
    """What a BRANCH node chooses from: per arm a scope, output values and side effects."""

    __slots__ = ("scopes", "outs", "effects", "defaults", "afters")

    def __init__(self) -> None:
        self.scopes: tuple[Scope, ...] = ()
        self.outs: tuple[tuple[Node, ...], ...] = ()
        self.effects: tuple[tuple[Node, ...], ...] = ()
        self.defaults: tuple[Node, ...] = ()  # values of lanes that no arm takes
        self.afters: list[weakref.ref[Node]] = []


class Recording:
    """What recording an operation looks at first, for all threads: reading a thread's own state costs more."""

    __slots__ = ("scopes", "lines", "lock")

    def __init__(self) -> None:
        self.scopes = 0  # threads that are inside a loop or branch being recorded
        self.lines = False  # whether nodes note the user's line
        self.lock = threading.Lock()


recording = Recording()


class ThreadState(threading.local):
    """Recording state of one thread."""

    inner: Scope | None = None  # what `scope` returns
    mask: Any = None  # condition of a branch that is recorded without a scope (both sides, merged by select)
    replaying: bool = False  # a loop's body runs again for its derivatives: its scatters have happened already

    @property
    def scope(self) -> Scope | None:
        """Return the loop or branch that this thread records."""
        return self.inner

    @scope.setter
    def scope(self, scope: Scope | None) -> None:
        with recording.lock:
            recording.scopes += (scope is not None) - (self.inner is not None)
            self.inner = scope

    @property
    def record_lines(self) -> bool:
        """Return whether nodes note the user's line (in all threads)."""
        return recording.lines

    @record_lines.setter
    def record_lines(self, on: bool) -> None:
        recording.lines = on


state = ThreadState()


def node(op: Any, dtype: DType, size: int, args: tuple[Node, ...], attr: Any = None) -> Node:
    """Return a new node in the current scope."""
    n = _new(Node)
    n.op, n.dtype, n.size, n.args, n.attr, n.buf = op, dtype, size, args, attr, None
    n.scope = state.inner if recording.scopes else None
    n.index = next_index()
    n.where = user_line() if recording.lines else None
    return n


def literal(dtype: DType, value: bool | int | float, size: int = 1) -> Node:
    """Return a constant; floats are rounded to `dtype`. Raises OverflowError for an integer that does not fit."""
    if dtype.is_integer:
        low, high = dtype.limits
        if not low <= value <= high:
            raise OverflowError(f"{value} does not fit into {dtype} ({low} .. {high})")
    n = _new(Node)
    n.op, n.dtype, n.size, n.args, n.attr, n.buf = LITERAL, dtype, size, (), dtypes.pack(dtype, value), None
    n.scope = None
    n.index = next_index()
    n.where = None
    return n


_SCALARS: dict[DType, dict[int | float, Node]] = {dtype: {} for dtype in dtypes.ALL}
_SCALAR_LIMIT = 4096  # constants kept per type


def scalar(dtype: DType, value: int | float) -> Node:
    """Return a constant of size 1 for an operand that is a Python number (no bool): the same node for equal numbers."""
    if not value and math.copysign(1.0, value) < 0:
        return literal(dtype, value)  # equal to 0.0 as a key
    known = _SCALARS[dtype]
    n = known.get(value)
    if n is None:
        n = literal(dtype, value)
        if len(known) >= _SCALAR_LIMIT:
            known.clear()
        known[value] = n
    return n


def resized(source: Node, size: int) -> Node:
    """Return the literal `source` with another number of elements."""
    n = _new(Node)
    n.op, n.dtype, n.size, n.args, n.attr, n.buf = LITERAL, source.dtype, size, (), source.attr, None
    n.scope = None
    n.index = next_index()
    n.where = None
    return n


def data(dtype: DType, size: int, buf: Any) -> Node:
    """Return a node for elements that are in memory already."""
    n = _new(Node)
    n.op, n.dtype, n.size, n.args, n.attr, n.buf = DATA, dtype, size, (), None, buf
    n.scope = None
    n.index = next_index()
    n.where = None
    return n


def counter(size: int) -> Node:
    """Return the indices 0 .. size-1 (UInt32)."""
    if size == 1:
        return literal(UInt32, 0)
    n = node(COUNTER, UInt32, size, ())
    n.scope = None
    return n


def active_mask(scope: Scope | None, size: int) -> Node:
    """Return the mask of elements that take part in `scope` (at the top: those below the array's size)."""
    if scope is None:
        n = node(ACTIVE, Bool, size, ())
        n.scope = None
        return n
    if scope.active is None:
        n = node(ACTIVE, Bool, 1, ())
        n.scope = scope
        scope.active = n
    return scope.active


def value_of(n: Node) -> bool | int | float:
    """Return the Python value of a literal node."""
    return dtypes.unpack(n.dtype, n.attr)


def is_symbolic(n: Node) -> bool:
    """Return whether the node stands for a value that exists only while a loop or branch runs."""
    return n.scope is not None and not n.scope.closed and _depends_on_scope(n)


def _depends_on_scope(n: Node) -> bool:
    seen: set[int] = set()
    stack = [n]
    while stack:
        m = stack.pop()
        if id(m) in seen or m.buf is not None:
            continue
        seen.add(id(m))
        if m.op is PHI or (m.op is ACTIVE and m.scope is not None):
            if m.scope is not None and not m.scope.closed:
                return True
        stack.extend(m.args)
    return False


_PACKAGE = __name__.rsplit(".", 2)[0] + "."


def user_line() -> str | None:
    """Return "file:line" of the innermost caller outside this package."""
    frame = sys._getframe(1)
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith(_PACKAGE):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return None
