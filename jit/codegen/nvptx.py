"""PTX from LLVM IR text in this process, and kernels of one element per thread.

LLVM ends the process on combinations and intrinsics that it has no code for, so both are checked before it sees them.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from ..dtypes import Bool, UInt32
from ..errors import CompileError
from ..passes.program import ENTRY, PACKET, Instr, Program
from ..trace import SCATTER, TRACE_RAY
from . import memory
from .emitter import ALLOWED, Emitter
from .kernel import KernelWriter
from .reduce import accumulator_type

TRIPLE = "nvptx64-nvidia-cuda"
# Least version of PTX (times ten) that a processor is known from; with less LLVM ends the process.
MIN_PTX = {
    "sm_70": 60, "sm_75": 63, "sm_80": 70, "sm_86": 71, "sm_87": 74, "sm_89": 78, "sm_90": 78, "sm_100": 86,
    "sm_103": 88, "sm_120": 87,
}  # fmt: skip
MAX_PTX = 90  # LLVM 22 knows no later one
DEFAULT_PTX = 78  # what drivers since 525 accept
STRAIGHT_LIMIT = 5000  # instructions above which code generation at level 1 gets slow

_SREG = ("nvvm.read.ptx.sreg.tid.x", "nvvm.read.ptx.sreg.ntid.x", "nvvm.read.ptx.sreg.ctaid.x")
_DECLARED = re.compile(r"^declare [^@]*@([\w.$]+)\(", re.MULTILINE)
_SUFFIX = re.compile(r"\.(?:[fi]\d+|p\d+)$")


def version(cpu: str, ptx: int | None = None) -> int:
    """Return the PTX version (times ten) to ask for; raises CompileError if `cpu` is unknown or needs a later one."""
    if cpu not in MIN_PTX:
        raise CompileError(f"unknown GPU architecture '{cpu}'; known are {', '.join(MIN_PTX)}")
    least = MIN_PTX[cpu]
    if ptx is None:
        return max(least, DEFAULT_PTX)
    if not least <= ptx <= MAX_PTX:
        raise CompileError(f"PTX {ptx / 10:g} asked for {cpu}: it needs {least / 10:g} to {MAX_PTX / 10:g}")
    return ptx


def check_intrinsics(text: str) -> None:
    """Raise CompileError if the IR text declares a function that is not on the allow-list of this target."""
    for name in _DECLARED.findall(text):
        base = name.removeprefix("llvm.")
        while _SUFFIX.search(base):
            base = _SUFFIX.sub("", base)
        if not name.startswith("llvm.") or not (base in ALLOWED or base in _SREG):
            raise CompileError(f"'{name}' has no code on NVPTX; the allow-list is in jit/codegen/emitter.py")


@functools.cache
def _machine(cpu: str, ptx: int, level: int) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=cpu, features=f"+ptx{ptx}", opt=level)


def to_ptx(text: str, cpu: str = "sm_80", ptx: int | None = None) -> str:
    """Return PTX for LLVM IR text; `ptx` is the version times ten (default: the least that `cpu` and drivers allow).

    Raises CompileError for unknown architectures, versions that do not fit them, functions without code, and IR that
    does not verify.
    """
    import llvmlite.binding as llvm

    from . import host

    wanted = version(cpu, ptx)
    check_intrinsics(text)
    with host._lock:
        try:
            module = llvm.parse_assembly(text)
            module.verify()
        except RuntimeError as error:
            raise CompileError(f"LLVM refused generated code: {error}") from error
        machine = _machine(cpu, wanted, 0 if text.count("\n") > STRAIGHT_LIMIT else 1)
        module.triple = TRIPLE
        module.data_layout = str(machine.target_data)
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
        builder.getModulePassManager().run(module, builder)
        return str(machine.emit_assembly(module))


class ThreadKernelWriter(KernelWriter):
    """Writes one program for one element per thread: `kernel(ptr args)`, with the argument block in global memory.

    Reductions are combined atomically into element 0 of their result, in the accumulator's type; the launch fills it
    with the reduction's identity before. Scatter targets have no private copies.
    """

    def __init__(self, program: Program, parameters: dict[int, int]) -> None:
        super().__init__(program, 1, parameters, Emitter(1, "nvptx"))

    def text(self, attributes: str = "nounwind", name: str = "kernel") -> str:
        """Return the module's text."""
        self._write_body()
        e = self.e
        head = f"define ptx_kernel void @{name}(ptr noalias readonly %args) #0 {{\nentry:"
        body = "\n".join([head, *e.entry, *e.lines, "}"])
        return "\n".join([*e.globals, *e.declarations, body, f"attributes #0 = {{ {attributes} }}", ""])

    def argument(self, slot: int, kind: str) -> str:
        """Return the word of parameter `slot`; pointers are known to be global, which loads need to be fast."""
        if kind != "ptr":
            return super().argument(slot, kind)
        e, name = self.e, self.e.name("g")
        e.entry.append(f"  {name} = addrspacecast ptr addrspace(1) {super().argument(slot, 'ptr addrspace(1)')} to ptr")
        return name

    def _write_body(self) -> None:
        e, program = self.e, self.program
        e.globals["!0 = !{}"] = None
        e.entry.append("  %count = load i64, ptr %args, align 8, !invariant.load !0")
        self._scope(ENTRY)
        wide = []
        for register in _SREG:
            e.declarations[f"declare i32 @llvm.{register}()"] = None
            wide.append(e.raw(f"zext i32 {e.raw(f'call i32 @llvm.{register}()')} to i64"))
        thread, threads, block = wide
        first = e.raw(f"mul i64 {block}, {threads}")
        self.base = e.raw(f"add i64 {first}, {thread}")
        work, done = e.new_label("work"), e.new_label("done")
        e.branch_if(e.raw(f"icmp ult i64 {self.base}, %count"), work, done)
        e.start(work)
        self.actives[PACKET] = e.const(Bool, True)  # threads behind the end have left
        self._scope(PACKET)
        self._stores()
        for slot, number, op in program.reductions:
            self._reduce(slot, number, op)
        e.branch(done)
        e.start(done)
        e.line("ret void")

    def _instr(self, number: int, instr: Instr) -> None:
        if instr.op is TRACE_RAY:
            raise CompileError("ray queries have no code for GPUs")
        if instr.op is SCATTER:
            value, index, mask = (self.values[a] for a in instr.args)
            slot, op, large = instr.attr[0], instr.attr[1], instr.attr[4]
            mask = self.inside(number, index, mask, slot + 2, large)
            memory.scatter(self.e, self.pointer(slot), value, index, mask, op, False)
            return
        super()._instr(number, instr)

    def _reduce(self, slot: int, number: int, op: str) -> None:
        e = self.e
        kind = accumulator_type(self.program.instrs[number].dtype, op)
        value = self.values[number].cast(kind)
        if op != "mul":
            zero, always = e.const(UInt32, 0), e.const(Bool, True)
            memory.scatter(e, self.pointer(slot), value, zero, always, "add" if op == "count" else op, False)
            return
        # No product among the atomics: compare and swap until nobody came between.
        pointer, bits = self.pointer(slot), f"i{kind.bits}"
        before, again, done = e.label, e.new_label("again"), e.new_label("multiplied")
        first = e.raw(f"load {bits}, ptr {pointer}, align {kind.itemsize}")
        e.branch(again)
        e.start(again)
        old, found = e.name("old"), e.name("found")
        e.lines.append(f"  {old} = phi {bits} [ {first}, %{before} ], [ {found}, %{again} ]")
        float_old = e.raw(f"bitcast {bits} {old} to {kind.llvm}")
        product = e.raw(f"{'fmul' if kind.is_float else 'mul'} {kind.llvm} {float_old}, {value.name}")
        new = e.raw(f"bitcast {kind.llvm} {product} to {bits}")
        pair = e.raw(f'cmpxchg ptr {pointer}, {bits} {old}, {bits} {new} syncscope("device") monotonic monotonic')
        e.line(f"{found} = extractvalue {{ {bits}, i1 }} {pair}, 0")
        e.branch_if(e.raw(f"extractvalue {{ {bits}, i1 }} {pair}, 1"), done, again)
        e.start(done)
