"""From a numbered program to the text of one kernel, for W lanes on the host.

A kernel is `void kernel(i64 begin, i64 end, i64 chunk, ptr args)` over the packets [begin, end); `args` holds the
element count and then one word per parameter of the program. Code is written scope by scope: what is uniform once per
chunk, the rest once per packet, loops and branches nested as recorded.
"""

from __future__ import annotations

from typing import Any

from ..dtypes import Bool, DType, UInt32, unpack
from ..ops.row import Row
from ..passes.program import ENTRY, PACKET, Instr, Program
from ..trace import ACTIVE, BITS, BRANCH, CAST, COUNTER, DATA, GATHER, LITERAL, LOOP, OUT, PHI, SCATTER, TRACE_RAY
from . import bounds, memory
from .emitter import Emitter, Value
from .reduce import Accumulator

# x + 1 on 1e7 floats: 1.6 ms with stores past the caches, 2.2 ms through them. Results that fit a cache are better kept
# there for the next kernel; long kernels are not limited by memory.
SHORT_INSTRUCTIONS = 16
# A sum over 65 536 floats that lie in the cache: 1.71 ns per packet four at a time with four accumulators and no masks,
# 2.48 ns one by one.
UNROLLED = 4
STREAMING_ELEMENTS = 1 << 22


class KernelWriter:
    """Writes one program; `parameters` are the literals that became kernel arguments (word by instruction)."""

    def __init__(
        self, program: Program, width: int, parameters: dict[int, int], emitter: Emitter | None = None
    ) -> None:
        self.program, self.width, self.parameters = program, width, parameters
        self.e = emitter or Emitter(width)
        self.values: dict[int, Value] = {}
        self.pointers: dict[int, str] = {}
        self.phis: dict[tuple[int, int], Value] = {}
        self.outs: dict[tuple[int, int], Value] = {}
        self.actives: dict[int, Value] = {}
        self.limits: dict[tuple[int, bool], Value] = {}  # lengths of gathered and scattered arrays
        self.base = ""  # index of the first lane's element
        # Reductions into one array at a common index plus constants, by what they share: written together at the end of
        # their scope, with one test of the lanes' indices instead of one each.
        self.waiting: dict[tuple[int, str, int, int, bool], list[tuple[int, int]]] = {}
        self.by_scope: list[list[int]] = [[] for _ in program.parents]
        for number, instr in enumerate(program.instrs):
            self.by_scope[instr.scope].append(number)

    def text(self, attributes: str, name: str = "kernel") -> str:
        """Return the module's text."""
        self._write_body()
        e = self.e
        head = f"define void @{name}(i64 %begin, i64 %end, i64 %chunk, ptr noalias readonly %args) #0 {{\nentry:"
        body = "\n".join([head, *e.entry, *e.lines, "}"])
        return "\n".join([*e.globals, *e.declarations, body, f"attributes #0 = {{ {attributes} }}", ""])

    def pointer(self, slot: int) -> str:
        """Return the pointer that parameter `slot` holds, loaded once in the entry block."""
        if slot not in self.pointers:
            self.pointers[slot] = self.argument(slot, "ptr")
        return self.pointers[slot]

    def own_copy(self, slot: int) -> str:
        """Return the pointer of this chunk's copy of a scatter target (all the same where there is one only)."""
        key = -1 - slot
        if key not in self.pointers:
            base, stride = self.pointer(slot), self.argument(slot + 1, "i64")
            offset, pointer = self.e.name("a"), self.e.name("p")
            self.e.entry.append(f"  {offset} = mul i64 %chunk, {stride}")
            self.e.entry.append(f"  {pointer} = getelementptr i8, ptr {base}, i64 {offset}")
            self.pointers[key] = pointer
        return self.pointers[key]

    def inside(self, number: int, index: Value, mask: Value, extent: int, large: bool) -> Value:
        """Return the mask without the lanes whose index is not below the word of parameter `extent`; under the Debug
        flag instruction `number` tells about them."""
        narrow = index.dtype.bits == 32 and not large
        key = (extent, narrow)
        if key not in self.limits:
            self.limits[key] = bounds.limits(self.e, self.argument(extent, "i64"), narrow)
        good = bounds.inside(index, self.limits[key])
        if self.program.report is not None:
            bounds.report(self.e, self.pointer(self.program.report), number, index, mask & ~good)
        return mask & good

    def argument(self, slot: int, kind: str) -> str:
        """Return the word of parameter `slot` as IR type `kind`, loaded in the entry block."""
        e = self.e
        address, word = e.name("a"), e.name("p")
        e.entry.append(f"  {address} = getelementptr i64, ptr %args, i64 {slot + 1}")
        e.entry.append(f"  {word} = load {kind}, ptr {address}, align 8, !invariant.load !0")
        return word

    def _write_body(self) -> None:
        e, program = self.e, self.program
        e.globals["!0 = !{}"] = None
        e.entry.append("  %count = load i64, ptr %args, align 8, !invariant.load !0")
        self._scope(ENTRY)
        accumulators = [Accumulator(e, self.values, *r, program.instrs[r[1]].dtype) for r in program.reductions]
        begin = "%begin"
        if accumulators and self.short:
            begin = self._packets(begin, self._full_packets(), accumulators, UNROLLED, full=True)
        self._packets(begin, "%end", accumulators, 1, full=False)
        for a in accumulators:
            a.finish(self.pointer(a.slot))
        e.line("ret void")

    @property
    def short(self) -> bool:
        """Return whether the kernel does so little per packet that the loop around it counts."""
        return len(self.program.instrs) <= SHORT_INSTRUCTIONS and len(self.program.kinds) == 2 and self.width > 1

    def _full_packets(self) -> str:
        """Return the end of the packets of this chunk all of whose lanes are below the element count."""
        e = self.e
        full = e.raw(f"udiv i64 %count, {self.width}")
        less = e.raw(f"icmp ult i64 {full}, %end")
        return e.raw(f"select i1 {less}, i64 {full}, i64 %end")

    def _packets(self, begin: str, end: str, accumulators: list[Accumulator], step: int, full: bool) -> str:
        """Write the loop over the packets [begin, end), `step` at a time while so many are left; return where it
        stopped. `full`: no lane lies behind the last element."""
        e = self.e
        head, turn, done = e.new_label("packet"), e.new_label("turn"), e.new_label("done")
        number, following = e.name("i"), e.name("inext")
        before = e.label
        e.branch(head)
        e.start(head)
        line = len(e.lines)
        e.lines.append("")
        for a in accumulators:
            a.begin(before, step)
        e.line(f"{following} = add i64 {number}, {step}")
        e.branch_if(e.raw(f"icmp ule i64 {following}, {end}"), turn, done)
        e.start(turn)
        for k in range(step):
            packet = e.raw(f"add i64 {number}, {k}") if k else number
            self.base = e.raw(f"mul i64 {packet}, {self.width}")
            self.actives[PACKET] = e.const(Bool, True) if full else self._lane_mask()
            self._scope(PACKET)
            self._stores()
            for a in accumulators:
                a.add(None if full else self.valid, k)
        for a in accumulators:
            a.close(e.label)
        e.lines[line] = f"  {number} = phi i64 [ {begin}, %{before} ], [ {following}, %{e.label} ]"
        e.branch(head)
        e.start(done)
        for a in accumulators:
            a.merge()
        return number

    @property
    def valid(self) -> Value:
        """Return the mask of lanes below the element count."""
        if PACKET not in self.actives:
            raise RuntimeError("the mask of valid lanes is used before it is written")
        return self.actives[PACKET]

    def _stores(self) -> None:
        e, program = self.e, self.program
        outputs = [(self.values[number], self.pointer(slot)) for slot, number in program.stores]
        if not self.short or not outputs:
            for value, pointer in outputs:
                memory.store(e, value, pointer, self.base)
            return
        large = e.raw(f"icmp ugt i64 %count, {STREAMING_ELEMENTS}")
        stream, keep, done = e.new_label("stream"), e.new_label("keep"), e.new_label("stored")
        e.branch_if(large, stream, keep)
        for label, write in ((stream, memory.store_streaming), (keep, memory.store)):
            e.start(label)
            for value, pointer in outputs:
                write(e, value, pointer, self.base)
            e.branch(done)
        e.start(done)

    def _scope(self, scope: int) -> None:
        waiting, self.waiting = self.waiting, {}
        for number in self.by_scope[scope]:
            self._instr(number, self.program.instrs[number])
        for (slot, op, mask, base, exclusive), columns in self.waiting.items():
            named = [(self.values[value], offset) for value, offset in columns]
            target = memory.Target(self.own_copy(slot), self.argument(slot + 2, "i64"), exclusive)
            memory.scatter_columns(self.e, target, named, self.values[base], self.values[mask], op)
        self.waiting = waiting

    def _lane_mask(self) -> Value:
        e = self.e
        left = e.raw(f"sub i64 %count, {self.base}")
        few = e.raw(f"icmp ult i64 {left}, {self.width}")
        lanes = e.raw(f"select i1 {few}, i64 {left}, i64 {self.width}")
        narrow = e.raw(f"trunc i64 {lanes} to i32")
        return e.lanes() < e.splat(UInt32, narrow)

    def _instr(self, number: int, instr: Instr) -> None:
        op = instr.op
        values = self.values
        if op.__class__ is Row:
            args = [values[a] for a in instr.args]
            source = args[1].dtype if op.mask_first else args[0].dtype
            values[number] = op.lower(self.e, source, *args)
            return
        values[number] = _WRITERS[op](self, instr, number)

    def _literal(self, instr: Instr, number: int) -> Value:
        dtype = instr.dtype
        slot = self.parameters.get(number)
        if slot is None:
            return self.e.const(dtype, unpack(dtype, instr.node.attr))
        word = self.argument(slot, "i64")
        return self.e.splat(dtype, _from_word(self.e, dtype, word))

    def _data(self, instr: Instr, number: int) -> Value:
        slot, uniform = instr.attr
        pointer = self.pointer(slot)
        return memory.load(self.e, instr.dtype, pointer, None if uniform else self.base)

    def _counter(self, instr: Instr, number: int) -> Value:
        e = self.e
        return e.splat(UInt32, e.raw(f"trunc i64 {self.base} to i32")) + e.lanes()

    def _active(self, instr: Instr, number: int) -> Value:
        return self.actives[instr.scope]

    def _cast(self, instr: Instr, number: int) -> Value:
        return self.values[instr.args[0]].cast(instr.dtype)

    def _bits(self, instr: Instr, number: int) -> Value:
        return self.values[instr.args[0]].bits(instr.dtype)

    def _gather(self, instr: Instr, number: int) -> Value:
        index, mask = (self.values[a] for a in instr.args)
        slot, extent, large = instr.attr
        mask = self.inside(number, index, mask, extent, large)
        return memory.gather(self.e, instr.dtype, self.pointer(slot), index, mask, large)

    def _phi(self, instr: Instr, number: int) -> Value:
        return self.phis[instr.attr]

    def _out(self, instr: Instr, number: int) -> Value:
        return self.outs[instr.args[0], instr.attr]

    def _scatter(self, instr: Instr, number: int) -> None:
        value, index, mask = instr.args
        slot, op, _, exclusive, large = instr.attr
        single = self.program.size == 1 and instr.scope == PACKET
        if op and self.width > 1 and not single and instr.node.attr.commutes():
            if self.program.report is not None:
                self.inside(number, self.values[index], self.values[mask], slot + 2, large)
            base, offset = self._split(index)
            self.waiting.setdefault((slot, op, mask, base, exclusive), []).append((value, offset))
            return
        v, i = self.values[value], self.values[index]
        m = self.inside(number, i, self.values[mask], slot + 2, large)
        if single:
            m = m & self.valid  # nothing else tells the first lane from those behind the end
        memory.scatter(self.e, self.own_copy(slot), v, i, m, op, exclusive)

    def _split(self, index: int) -> tuple[int, int]:
        """Return an index as another value plus a constant >= 0."""
        instr = self.program.instrs[index]
        if instr.op.__class__ is Row and instr.op.name == "add" and instr.dtype.bits == 32:
            for value, constant in (instr.args, instr.args[::-1]):
                literal = self.program.instrs[constant]
                if literal.op is LITERAL and constant not in self.parameters:
                    offset = int(unpack(literal.dtype, literal.node.attr))
                    if 0 <= offset < 1 << 24:
                        return value, offset
        return index, 0

    def _trace(self, instr: Instr, number: int) -> None:
        pointers = [self.pointer(slot) for slot in instr.attr[-1]]
        results = instr.source.emit(self.e, [self.values[a] for a in instr.args], pointers)
        for position, value in enumerate(results):
            self.outs[number, position] = value

    def _loop(self, instr: Instr, number: int) -> None:
        e = self.e
        keep, scope_cond, scope_body, cond, outs, _ = instr.attr
        head, body, done = e.new_label("loop"), e.new_label("body"), e.new_label("endloop")
        active = self._enclosing_mask(instr.scope)
        before = e.label
        e.branch(head)
        e.start(head)
        slots: list[tuple[int, Value, Value]] = []
        for position, init in zip((*keep, -1), (*(self.values[a] for a in instr.args), active), strict=True):
            state = Value(e, init.dtype, e.name("phi"))
            slots.append((len(e.lines), state, init))
            e.lines.append("")
            self.phis[scope_cond, position] = state
        running = slots[-1][1]
        self.actives[scope_cond] = running
        self._scope(scope_cond)
        going = running & self.values[cond]
        self.actives[scope_body] = going
        e.branch_if(e.any(going), body, done)
        e.start(body)
        self._scope(scope_body)
        following = []
        for (_, state, _), out in zip(slots, outs, strict=False):
            new = self.values[out]
            following.append(new if self.width == 1 else e.select(going, new, state))
        following.append(going)
        end = e.label
        e.branch(head)
        for (line, state, init), new in zip(slots, following, strict=True):
            lanes = e.type(state.dtype)
            e.lines[line] = f"  {state.name} = phi {lanes} [ {init.name}, %{before} ], [ {new.name}, %{end} ]"
        e.start(done)
        for position, (_, state, _) in zip(keep, slots, strict=False):
            self.outs[number, position] = state

    def _branch(self, instr: Instr, number: int) -> None:
        e = self.e
        keep, scopes, arm_outs, _, defaults = instr.attr
        active = self._enclosing_mask(instr.scope)
        results = [self.values[d] for d in defaults]
        for scope, condition, outs in zip(scopes, instr.args, arm_outs, strict=True):
            mask = active & self.values[condition]
            arm, after = e.new_label("arm"), e.new_label("endarm")
            before = e.label
            e.branch_if(e.any(mask), arm, after)
            e.start(arm)
            self.actives[scope] = mask
            self._scope(scope)
            chosen = []
            for old, out in zip(results, outs, strict=True):
                new = self.values[out]
                chosen.append(new if self.width == 1 else e.select(mask, new, old))
            end = e.label
            e.branch(after)
            e.start(after)
            merged = []
            for old, new in zip(results, chosen, strict=True):
                lanes = e.type(old.dtype)
                merged.append(e.op(old.dtype, f"phi {lanes} [ {new.name}, %{end} ], [ {old.name}, %{before} ]"))
            results = merged
        for position, value in zip(keep, results, strict=True):
            self.outs[number, position] = value

    def _enclosing_mask(self, scope: int) -> Value:
        while scope not in self.actives:
            scope = self.program.parents[scope]
        return self.actives[scope]


_WRITERS: dict[Any, Any] = {
    LITERAL: KernelWriter._literal,
    DATA: KernelWriter._data,
    COUNTER: KernelWriter._counter,
    ACTIVE: KernelWriter._active,
    CAST: KernelWriter._cast,
    BITS: KernelWriter._bits,
    GATHER: KernelWriter._gather,
    PHI: KernelWriter._phi,
    OUT: KernelWriter._out,
    SCATTER: KernelWriter._scatter,
    TRACE_RAY: KernelWriter._trace,
    LOOP: KernelWriter._loop,
    BRANCH: KernelWriter._branch,
}


def _from_word(e: Emitter, dtype: DType, word: str) -> str:
    if dtype is Bool:
        return e.raw(f"trunc i64 {word} to i1")
    bits = word if dtype.bits == 64 else e.raw(f"trunc i64 {word} to i{dtype.bits}")
    return bits if not dtype.is_float else e.raw(f"bitcast i{dtype.bits} {bits} to {dtype.llvm}")
