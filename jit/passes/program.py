"""From nodes to a numbered program: placement in scopes, value numbering, parameters, and the key of the kernel."""

from __future__ import annotations

from typing import Any

from ..errors import SymbolicError
from ..ops.row import Row
from ..trace import (
    ACTIVE,
    AFTER,
    ALIAS,
    BITS,
    BRANCH,
    CAST,
    COUNTER,
    DATA,
    GATHER,
    LITERAL,
    LOOP,
    OUT,
    PHI,
    REDUCE,
    SCATTER,
    TRACE_RAY,
    Node,
    Scope,
    recording,
)
from .order import Live, live_effects, walk

ENTRY, PACKET = 0, 1  # scopes that every kernel has: once per chunk, once per packet
GRAIN = 8192  # elements per chunk at least: below, handing over costs more than it gains
GRAIN_HEAVY = 512  # likewise for kernels with loops or rays
PRIVATE_LIMIT = 16 << 20  # bytes of a scatter target up to which every chunk gets its own copy


class Instr:
    """One numbered operation: what is computed, from which numbers, in which scope."""

    __slots__ = ("op", "dtype", "args", "attr", "scope", "node", "source")

    def __init__(self, op: Any, dtype: Any, args: tuple[int, ...], attr: Any, scope: int, node: Node) -> None:
        self.op, self.dtype, self.args, self.attr, self.scope, self.node = op, dtype, args, attr, scope, node
        self.source: Any = None  # for code generation: the node's original attribute


class Program:
    """The content of one kernel over `size` elements.

    `params` lists the words of the argument block after the element count: ("load" | "gather" | "target" | "stride" |
    "extent" | "store" | "partial" | "pointer" | "report", payload). Equal keys mean equal code but for the bytes of
    `literals`.
    """

    def __init__(
        self, roots: list[Node], size: int, chunk_limit: int = 64, walked: tuple[list[Node], list[Node]] | None = None
    ) -> None:
        self.size = size
        self.chunk_limit = chunk_limit
        self.roots = roots
        # Per instruction: what the key of the kernel holds of it, and the node it was made for. `instrs` has the rest.
        self._entries: list[tuple[str, int, tuple[int, ...], Any, int]] = []
        self._nodes: list[Node] = []
        self._scope_of: list[int] = []
        self._table: dict[Any, int] = {}
        self._sources: dict[int, Any] = {}
        self._instrs: list[Instr] | None = None
        self.params: list[tuple[str, Any]] = []
        self.literals: list[tuple[int, bytes]] = []  # (instruction, bytes)
        self.parents: list[int] = [-1, ENTRY]
        self.kinds: list[str] = ["entry", "loop"]
        self.depths: list[int] = [0, 1]
        self._scope_ids: dict[int, int] = {}
        self._scopes: list[Scope] = []
        self._arms: set[int] = set()  # ids of the scopes of branches in this program
        self._number: dict[Node, int] = {}
        self._buffers: dict[tuple[Any, ...], int] = {}
        # Under the Debug flag: where the kernel notes the first index outside of an array.
        self.report = self._param("report", None) if recording.lines else None
        self.targets: list[Node] = [r for r in roots if r.op is AFTER]
        self.bound: dict[int, Any] = {}  # results by id of their node, while a launch is prepared
        self.copies: dict[int, int] = {}  # targets that every chunk has a copy of -> number of copies
        self.privates: dict[int, Any] = {}  # their memory
        self._build(*(walk(roots) if walked is None else walked))
        self._number.clear()  # nodes must not live longer than what reads them: scatters reuse memory nobody holds

    @property
    def instrs(self) -> list[Instr]:
        """Return the instructions in order, each after what it uses; to be read before the results are published."""
        if self._instrs is None:
            self._instrs = [
                Instr(n.op, n.dtype, args, attr, scope, n)
                for n, (_, _, args, attr, scope) in zip(self._nodes, self._entries, strict=True)
            ]
            for number, source in self._sources.items():
                self._instrs[number].source = source
            if "arm" in self.kinds:
                self._refuse_escaped()
        return self._instrs

    def _refuse_escaped(self) -> None:
        """Raise SymbolicError if something outside of a branch uses what one of its sides computed."""
        for scope, entry in zip(self._scope_of, self._entries, strict=True):
            if entry[0] not in ("loop", "branch", "out"):
                for a in entry[2]:
                    self._visible(a, scope)
        for _, number in self.stores:
            self._visible(number, PACKET)
        for _, number, _ in self.reductions:
            self._visible(number, PACKET)

    def _visible(self, number: int, scope: int) -> None:
        owner = self._scope_of[number] if number >= 0 else ENTRY
        while owner != scope and self.depths[scope] > self.depths[owner]:
            scope = self.parents[scope]
        if owner != scope and self.kinds[owner] == "arm":
            raise _escaped(self._nodes[number])

    def _build(self, order: list[Node], special: list[Node]) -> None:
        self.live: Live | None = None
        heavy = any(n.op is LOOP or n.op is TRACE_RAY for n in special)
        self.chunks = max(1, min(self.chunk_limit, self.size // (GRAIN_HEAVY if heavy else GRAIN)))
        # The last packet of a borrowed array is read elsewhere, by a part of its own that may run beside the others.
        self.borrows = bool(self.targets) and any(
            n.buf is not None and n.size == self.size and n.buf.foreign for n in order
        )
        if any(n.op is LOOP or n.op is BRANCH for n in special):
            self._arms = {id(s) for n in special if n.op is BRANCH for s in n.attr.scopes}
            self.live = Live(self.roots)
            order = walk(self.roots, self.live.children)[0]
        numbers, entries, nodes = self._number, self._entries, self._nodes
        scope_of, table = self._scope_of, self._table
        entry: tuple[str, int, tuple[int, ...], None, int]
        for n in order:
            op = n.op
            if op.__class__ is not Row or n.buf is not None:
                if op is not AFTER or n.buf is not None:
                    numbers[n] = self._visit(n)
                continue
            if n.scope is not None:
                args = tuple([numbers[a] for a in n.args])
                numbers[n] = self._add(n, op, args, None, *self._place(n, args, ENTRY))
                continue
            # A row outside of recorded scopes, as `_visit` would do it: most nodes of most programs.
            below = n.args
            if len(below) == 2:
                x, y = numbers[below[0]], numbers[below[1]]
                place = PACKET if scope_of[x] or scope_of[y] else ENTRY
                entry = (op.name, n.dtype.order, (x, y), None, place)
            else:
                args = tuple([numbers[a] for a in below])
                place = ENTRY
                for x in args:
                    if scope_of[x]:
                        place = PACKET
                entry = (op.name, n.dtype.order, args, None, place)
            number = len(entries)
            found = table.setdefault(entry, number)
            numbers[n] = found
            if found == number:
                entries.append(entry)
                nodes.append(n)
                scope_of.append(place)
        self.stores: list[tuple[int, int]] = []  # (parameter, instruction)
        self.reductions: list[tuple[int, int, str]] = []  # (parameter, instruction of the operand, reduction)
        self.outputs: list[Node] = []
        for root in self.roots:
            if root.op is AFTER:
                continue
            if root.op is REDUCE:
                operand = self._number[root.args[0]]
                self.reductions.append((self._param("partial", root), operand, root.attr))
            else:
                self.stores.append((self._param("store", root), self._number[root]))
            self.outputs.append(root)
        self.effects = [
            self._number[e] for root in self.roots if root.op is AFTER for e in root.attr.effects if e.op is SCATTER
        ]

    def structure(self) -> tuple[Any, ...]:
        """Return the key without the literals' values."""
        return (
            tuple(self._entries),
            tuple(self.parents),
            tuple(self.kinds),
            tuple(kind for kind, _ in self.params),
            tuple(self.stores),
            tuple(self.reductions),
            self.size == 1,
        )

    def _param(self, kind: str, payload: Any) -> int:
        self.params.append((kind, payload))
        return len(self.params) - 1

    def _buffer(self, kind: str, n: Node) -> int:
        key = (kind, id(n.buf))
        if key not in self._buffers:
            self._buffers[key] = self._param(kind, n)
        return self._buffers[key]

    def _extent(self, source: Node) -> int:
        key = ("extent", id(source.buf), source.size)
        if key not in self._buffers:
            self._buffers[key] = self._param("extent", source.size)
        return self._buffers[key]

    def scope_id(self, scope: Scope | None) -> int:
        """Return the number of a recorded scope; parents are numbered first."""
        if scope is None:
            return PACKET
        known = self._scope_ids.get(id(scope))
        if known is not None:
            return known
        if scope.kind == "arm" and scope.closed and id(scope) not in self._arms:
            raise _escaped(None)
        if scope.kind != "loop" and id(scope) not in self._arms:
            return self.scope_id(scope.parent)  # still being recorded: only what lanes have in common is computed now
        parent = self.scope_id(scope.parent)
        number = len(self.parents)
        self.parents.append(parent)
        self.kinds.append(scope.kind)
        self.depths.append(self.depths[parent] + 1)
        self._scope_ids[id(scope)] = number
        self._scopes.append(scope)
        return number

    def _place(self, n: Node, args: tuple[int, ...], least: int) -> tuple[int, int]:
        """Return the outermost scope where `n` may be computed (loops are left if nothing inside is needed), and the
        depth from which on its arguments exist: equal operations cannot be further out."""
        depths, scope_of = self.depths, self._scope_of
        deepest, depth = least, depths[least]
        for a in args:
            scope = scope_of[a]
            if depths[scope] > depth:
                deepest, depth = scope, depths[scope]
        scoped = n.scope
        place = PACKET if scoped is None else self._scope_ids.get(id(scoped)) or self.scope_id(scoped)
        while place != deepest and depths[place] > depth and self.kinds[place] == "loop":
            place = self.parents[place]
        return place, depth

    def _add(self, n: Node, op: Any, args: tuple[int, ...], attr: Any, place: int, depth: int = 0) -> int:
        name, order, table, depths = op.name, n.dtype.order, self._table, self.depths
        scope = place
        while scope >= 0 and depths[scope] >= depth:
            found = table.get((name, order, args, attr, scope))
            if found is not None:
                return found
            scope = self.parents[scope]
        return self._append(n, (name, order, args, attr, place))

    def _append(self, n: Node, entry: tuple[str, int, tuple[int, ...], Any, int]) -> int:
        number = self._table[entry] = len(self._entries)
        self._entries.append(entry)
        self._nodes.append(n)
        self._scope_of.append(entry[4])
        return number

    def _visit(self, n: Node) -> int:
        op = n.op
        if n.buf is not None:
            return self._visit_data(n)
        numbers = self._number
        if op is LITERAL:
            return self._visit_literal(n)
        if op is LOOP or op is BRANCH:
            return self._visit_structure(n)
        if op is PHI:
            return self._add(n, op, (), (self.scope_id(n.scope), n.attr), self.scope_id(n.scope))
        if op is COUNTER:
            return self._add(n, op, (), None, PACKET)
        if op is ACTIVE:
            # The scope is part of the key: the mask of a loop is another one than that around it.
            return self._add(n, op, (), self.scope_id(n.scope), self.scope_id(n.scope))
        if op is OUT:
            base = numbers[n.args[0]]
            return self._add(n, op, (base,), n.attr, self._scope_of[base])
        if op is GATHER:
            source, index, mask = n.args
            args: tuple[int, ...] = (numbers[index], numbers[mask])
            attr: Any = (self._buffer("gather", source), self._extent(source), source.size >= 1 << 31)
            return self._add(n, op, args, attr, *self._place(n, args, ENTRY))
        args = tuple(numbers[a] for a in n.args)
        if op is SCATTER:
            after = n.attr.after()
            # The same scatter twice happens twice: the number of instructions so far makes the key unique.
            exclusive = n.attr.op != "" and self._exclusive(after)
            attr = (self._target(after), n.attr.op, len(self._entries), exclusive, after.size >= 1 << 31)
            return self._add(n, op, args, attr, self.scope_id(n.scope))
        if op is TRACE_RAY:
            number = self._add(n, op, args, self._visit_trace(n), *self._place(n, args, PACKET))
            self._sources[number] = n.attr
            return number
        if op is REDUCE or op is ALIAS:
            return args[0]
        attr = n.args[0].dtype.order if op is CAST or op is BITS else n.attr
        return self._add(n, op, args, attr, *self._place(n, args, ENTRY))

    def _visit_data(self, n: Node) -> int:
        if n.size not in (1, self.size):
            return -1  # only the source of a gather
        uniform = n.size == 1
        key = ("load", id(n.buf))
        if key in self._buffers:
            slot = self._buffers[key]
        else:
            slot = self._buffer("load", n)
        return self._add(n, DATA, (), (slot, uniform), ENTRY if uniform else PACKET)

    def _visit_literal(self, n: Node) -> int:
        # Values take part in value numbering, but not in the structure: there a literal is only its position.
        key = (n.dtype, n.attr)
        found = self._table.get(key)
        if found is None:
            found = self._append(n, ("literal", n.dtype.order, (), None, ENTRY))
            self._table[key] = found
            self.literals.append((found, n.attr))
        return found

    def _visit_structure(self, n: Node) -> int:
        assert self.live is not None
        keep = self.live.positions(n)
        numbers = self._number
        if n.op is LOOP:
            body = n.attr
            init = tuple(numbers[n.args[k]] for k in keep)
            attr: Any = (
                tuple(keep),
                self.scope_id(body.scope_cond),
                self.scope_id(body.scope_body),
                numbers[body.cond],
                tuple(numbers[body.outs[k]] for k in keep),
                tuple(numbers[e] for e in live_effects(body.effects)),
            )
        else:
            arms = n.attr
            init = tuple(numbers[a] for a in n.args)
            attr = (
                tuple(keep),
                tuple(self.scope_id(s) for s in arms.scopes),
                tuple(tuple(numbers[outs[k]] for k in keep) for outs in arms.outs),
                tuple(tuple(numbers[e] for e in live_effects(effects)) for effects in arms.effects),
                tuple(numbers[arms.defaults[k]] for k in keep),
            )
        return self._add(n, n.op, init, attr, self.scope_id(n.scope))

    def _exclusive(self, after: Node) -> bool:
        """Return whether each chunk adds into a copy of its own, merged in chunk order, instead of atomically."""
        if after.attr.op == "mixed":
            return False
        if self.chunks == 1 and not self.borrows:
            return True
        nbytes = after.size * after.dtype.itemsize
        private = nbytes <= PRIVATE_LIMIT and after.size <= max(self.size // 4, 4096)
        if private:
            self.copies[id(after)] = 1
        return private

    def _target(self, after: Node) -> int:
        key = ("target", id(after))
        if key not in self._buffers:
            self._buffers[key] = self._param("target", after)
            self._param("stride", after)  # bytes from one chunk's copy to the next, in the word behind
            self._param("extent", after.size)
        return self._buffers[key]

    def _visit_trace(self, n: Node) -> tuple[Any, ...]:
        query = n.attr
        slots = []
        for position in range(len(query.pointers())):
            key = (f"{query.kind}{position}", id(query.owner))
            if key not in self._buffers:
                self._buffers[key] = self._param("pointer", (query, position))
            slots.append(self._buffers[key])
        return (query.kind, query.width, tuple(slots))


def _escaped(n: Node | None) -> SymbolicError:
    where = f" (recorded at {n.where})" if n is not None and n.where else ""
    return SymbolicError(
        f"a value{where} left the side of the branch that it was computed in, and is used outside: it exists only in "
        "lanes that take this side. Return it as a result instead of keeping it in a Python object."
    )
