"""An independent check of a numbered program: what code generation relies on and would otherwise turn into nonsense.

Switched on by `LUXGRAD_VERIFY=1` (see `jit/debug.py`). It shares nothing with the code that builds programs but the
record types, so that a fault there is not repeated here.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ..dtypes import Bool, DType, UInt32
from ..errors import CompileError
from ..ops.row import Row
from ..trace import ACTIVE, BITS, BRANCH, CAST, COUNTER, DATA, GATHER, LITERAL, LOOP, OUT, PHI, SCATTER, TRACE_RAY
from .program import ENTRY, PACKET, Instr, Program


def verify(program: Program) -> None:
    """Return if the program is sound; raises CompileError that names the first instruction that is not."""
    _Checker(program).run()


class _Checker:
    def __init__(self, program: Program) -> None:
        self.program, self.instrs, self.parents = program, program.instrs, program.parents
        self.structures = {i.attr[1]: i for i in self.instrs if i.op is LOOP}  # by the scope of the condition
        self.literals = dict(program.literals)
        self.number = -1

    def fail(self, problem: str) -> NoReturn:
        """Raise the error, with the instruction and the user's line where it is known."""
        where = f"instruction {self.number}"
        if 0 <= self.number < len(self.instrs):
            i = self.instrs[self.number]
            where += f" ({i.op.name}, {i.dtype}, arguments {i.args}, scope {i.scope})"
            where += f" from {i.node.where}" if i.node.where else ""
        raise CompileError(f"the program is broken before code is made from it: {where}: {problem}")

    def run(self) -> None:
        """Check scopes, then every instruction, then results."""
        parents = self.parents
        if parents[:2] != [-1, ENTRY] or any(not 0 <= p < n for n, p in enumerate(parents[1:], 1)):
            self.fail(f"scopes are no tree: parents {parents}")
        for number, instr in enumerate(self.instrs):
            self.number = number
            if not 0 <= instr.scope < len(parents):
                self.fail("its scope does not exist")
            for a in instr.args:
                self.visible(a, instr.scope)
            if isinstance(instr.op, Row):
                self.row(instr, [self.instrs[a].dtype for a in instr.args])
            else:
                check = _CHECKS.get(instr.op)
                if check is None:
                    self.fail("this kind of node has no place in a program")
                check(self, instr)
        self.results()

    def encloses(self, outer: int, inner: int) -> bool:
        """Return whether scope `inner` is `outer` or inside it."""
        while inner != outer and inner >= 0:
            inner = self.parents[inner]
        return inner == outer

    def visible(self, argument: int, scope: int) -> None:
        """Check that an argument comes before the present instruction, in a scope around `scope`."""
        if not 0 <= argument < self.number:
            self.fail(f"its argument {argument} does not precede it")
        if not self.encloses(self.instrs[argument].scope, scope):
            self.fail(f"its argument {argument} lies in scope {self.instrs[argument].scope}, which ends before {scope}")

    def parameter(self, slot: int, *kinds: str) -> Any:
        """Return the payload of a parameter, which must be of one of the kinds."""
        if not 0 <= slot < len(self.program.params) or self.program.params[slot][0] not in kinds:
            self.fail(f"parameter {slot} is not a {' or '.join(kinds)}")
        return self.program.params[slot][1]

    def same(self, found: DType, wanted: DType, what: str) -> None:
        """Check a type."""
        if found is not wanted:
            self.fail(f"{what} is {found}, not {wanted}")

    def row(self, instr: Instr, types: list[DType]) -> None:
        """Check the argument types of a row, and its own type."""
        op = instr.op
        if len(types) != op.arity:
            self.fail(f"it takes {op.arity} arguments")
        if op.mask_first:
            self.same(types[0], Bool, "the mask")
            types = types[1:]
        if len(set(types)) != 1 or types[0].kind not in op.kinds:
            self.fail(f"its arguments are {', '.join(map(str, types))}; it takes one type of the kinds '{op.kinds}'")
        wanted = {"same": types[0], "bool": Bool, "uint": UInt32}.get(op.result)
        if wanted is not None:
            self.same(instr.dtype, wanted, "its type")
        elif op.result == "float" and not instr.dtype.is_float:
            self.fail("its type is not floating point")

    def literal(self, instr: Instr) -> None:
        """Check that the bytes are there."""
        if len(self.literals.get(self.number, b"")) * 8 != instr.dtype.bits or instr.scope != ENTRY:
            self.fail("a constant without its bytes, or not at the start")

    def data(self, instr: Instr) -> None:
        """Check the parameter and where it is loaded."""
        slot, uniform = instr.attr
        self.same(self.parameter(slot, "load").dtype, instr.dtype, "the buffer")
        if instr.scope != (ENTRY if uniform else PACKET):
            self.fail("elements are loaded once per packet, single values at the start")

    def lanes(self, instr: Instr) -> None:
        """Check what differs from lane to lane by itself."""
        self.same(instr.dtype, UInt32 if instr.op is COUNTER else Bool, "its type")
        if instr.scope == ENTRY:
            self.fail("lanes differ, but it is computed once for all")

    def convert(self, instr: Instr) -> None:
        """Check a conversion: one argument, of the type that it names."""
        if len(instr.args) != 1 or self.instrs[instr.args[0]].dtype.order != instr.attr:
            self.fail("its argument is not of the type it converts from")
        if instr.op is BITS and self.instrs[instr.args[0]].dtype.bits != instr.dtype.bits:
            self.fail("bits are read as a type of another size")

    def gather(self, instr: Instr) -> None:
        """Check index, mask and source."""
        self.access(instr.args)
        self.same(self.parameter(instr.attr[0], "gather").dtype, instr.dtype, "the source")
        self.parameter(instr.attr[1], "extent")

    def access(self, args: tuple[int, ...]) -> None:
        """Check the last two arguments: index and mask."""
        if not self.instrs[args[-2]].dtype.is_integer:
            self.fail(f"the index is {self.instrs[args[-2]].dtype}")
        self.same(self.instrs[args[-1]].dtype, Bool, "the mask")

    def scatter(self, instr: Instr) -> None:
        """Check value, index, mask and target."""
        self.access(instr.args)
        self.same(self.parameter(instr.attr[0], "target").dtype, self.instrs[instr.args[0]].dtype, "the target")
        self.parameter(instr.attr[0] + 1, "stride")
        self.parameter(instr.attr[0] + 2, "extent")

    def phi(self, instr: Instr) -> None:
        """Check that the loop carries this state, with this type."""
        scope, position = instr.attr
        loop = self.structures.get(scope)
        if loop is None or position not in loop.attr[0] or instr.scope != scope:
            self.fail("no loop carries this state")
        init = self.instrs[loop.args[loop.attr[0].index(position)]]
        self.same(instr.dtype, init.dtype, "its type")

    def out(self, instr: Instr) -> None:
        """Check that the structure has this output, with this type."""
        base = self.instrs[instr.args[0]]
        if base.op is TRACE_RAY:
            return
        if base.op not in (LOOP, BRANCH) or instr.attr not in base.attr[0]:
            self.fail("an output that nothing has")
        k = base.attr[0].index(instr.attr)
        value = base.args[k] if base.op is LOOP else base.attr[4][k]
        self.same(instr.dtype, self.instrs[value].dtype, "its type")

    def loop(self, instr: Instr) -> None:
        """Check the state, condition and effects of a loop."""
        keep, scope_cond, scope_body, cond, outs, effects = instr.attr
        if self.parents[scope_cond] != instr.scope or self.parents[scope_body] != scope_cond:
            self.fail("its scopes are not nested in its own")
        self.visible(cond, scope_cond)
        self.same(self.instrs[cond].dtype, Bool, "the condition")
        if not len(keep) == len(instr.args) == len(outs):
            self.fail("state before, within and after the loop differ in number")
        for position, before, after in zip(keep, instr.args, outs, strict=True):
            self.visible(after, scope_body)
            self.same(self.instrs[after].dtype, self.instrs[before].dtype, f"state {position} after an iteration")
        self.inside(effects, scope_body)

    def branch(self, instr: Instr) -> None:
        """Check masks, outputs and effects of all arms."""
        keep, scopes, arm_outs, arm_effects, defaults = instr.attr
        if not len(scopes) == len(instr.args) == len(arm_outs) == len(arm_effects) or len(defaults) != len(keep):
            self.fail("masks, arms and outputs differ in number")
        for scope, mask, outs, effects in zip(scopes, instr.args, arm_outs, arm_effects, strict=True):
            if self.parents[scope] != instr.scope:
                self.fail("its scopes are not nested in its own")
            self.same(self.instrs[mask].dtype, Bool, "the mask of an arm")
            for default, out in zip(defaults, outs, strict=True):
                self.visible(default, instr.scope)
                self.visible(out, scope)
                self.same(self.instrs[out].dtype, self.instrs[default].dtype, "an output of an arm")
            self.inside(effects, scope)

    def inside(self, effects: tuple[int, ...], scope: int) -> None:
        """Check side effects: they come before the structure and lie in its scope."""
        for e in effects:
            if not 0 <= e < self.number or self.instrs[e].op not in (SCATTER, LOOP, BRANCH):
                self.fail(f"its side effect {e} is none, or does not precede it")
            if not self.encloses(scope, self.instrs[e].scope):
                self.fail(f"its side effect {e} lies outside")

    def trace(self, instr: Instr) -> None:
        """Check the pointers of a ray query."""
        for slot in instr.attr[-1]:
            self.parameter(slot, "pointer")

    def results(self) -> None:
        """Check what is written at the end of a packet or chunk."""
        self.number = len(self.instrs)
        for slot, operand in self.program.stores:
            self.visible(operand, PACKET)
            self.same(self.parameter(slot, "store").dtype, self.instrs[operand].dtype, "a result")
        for slot, operand, _ in self.program.reductions:
            self.visible(operand, PACKET)
            self.parameter(slot, "partial")
        self.inside(tuple(self.program.effects), PACKET)


_CHECKS: dict[Any, Any] = {
    LITERAL: _Checker.literal,
    DATA: _Checker.data,
    COUNTER: _Checker.lanes,
    ACTIVE: _Checker.lanes,
    CAST: _Checker.convert,
    BITS: _Checker.convert,
    GATHER: _Checker.gather,
    SCATTER: _Checker.scatter,
    PHI: _Checker.phi,
    OUT: _Checker.out,
    LOOP: _Checker.loop,
    BRANCH: _Checker.branch,
    TRACE_RAY: _Checker.trace,
}
