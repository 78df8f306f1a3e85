"""Machine code for the processor this runs on: LLVM IR text in, callable addresses out."""

from __future__ import annotations

import itertools
import sys
import threading
from dataclasses import dataclass
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from ..errors import CompileError
from ..once import once

_numbers = itertools.count()
_lock = threading.Lock()  # llvmlite serialises its calls too; this one also keeps a module's steps together


class CompiledModule:
    """A linked module; keeps its code alive for as long as this object lives."""

    __slots__ = ("name", "object_code", "_tracker")

    def __init__(self, name: str, object_code: bytes, tracker: Any) -> None:
        self.name = name
        self.object_code = object_code
        self._tracker = tracker

    def address(self, symbol: str) -> int:
        """Return the address of an exported function; raises CompileError if the module has none of that name."""
        try:
            return int(self._tracker[symbol])
        except KeyError:
            raise CompileError(f"module '{self.name}' exports no function '{symbol}'") from None


@dataclass(frozen=True)
class HostTarget:
    """What the code generator may use on this machine; part of every kernel's key."""

    triple: str
    cpu: str
    features: str
    llvm_version: str

    @property
    def attributes(self) -> str:
        """Return the function attributes that let LLVM use all instructions of this processor."""
        return f'nounwind "target-cpu"="{self.cpu}" "target-features"="{self.features}"'


@once
def target() -> HostTarget:
    """Return the processor's description, with LLVM's code generator for it initialised."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    features = llvm.get_host_cpu_features().flatten()
    version = "llvmlite " + llvmlite.__version__ + " llvm " + ".".join(map(str, llvm.llvm_version_info))
    return HostTarget(llvm.get_default_triple(), llvm.get_host_cpu_name(), features, version)


@once
def _machine(level: int) -> Any:
    host = target()
    return llvm.Target.from_triple(host.triple).create_target_machine(
        cpu=host.cpu, features=host.features, opt=level, reloc="pic", codemodel="small", jit=True
    )


@once
def _lljit() -> Any:
    # LLJIT takes over its target machine, so it gets one of its own.
    host = target()
    machine = llvm.Target.from_triple(host.triple).create_target_machine(
        cpu=host.cpu, features=host.features, opt=2, reloc="pic", codemodel="small", jit=True
    )
    # JITLink puts the sections of a module side by side. LLVM's older linker asks for each by itself and ends the
    # process when they lie more than 2 GiB apart, as they do once large arrays are mapped in between. Not for Windows.
    return llvm.create_lljit_compiler(machine, use_jit_link=sys.platform != "win32")


def to_object(text: str, *, level: int = 2, sroa: bool = False) -> bytes:
    """Return relocatable object code for LLVM IR text.

    `level` is LLVM's code generation level; `sroa` turns stack slots into registers first. Raises CompileError with
    LLVM's own message when the text does not parse or verify: nothing reaches the code generator unverified,
    because malformed IR would end the process there.
    """
    host = target()
    with _lock:
        try:
            module = llvm.parse_assembly(text)
            module.verify()
        except RuntimeError as error:
            raise CompileError(f"LLVM refused generated code: {error}") from error
        module.triple = host.triple
        machine = _machine(level)
        module.data_layout = str(machine.target_data)
        if sroa:
            builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
            passes = llvm.create_new_module_pass_manager()
            passes.add_sroa_pass()
            passes.add_simplify_cfg_pass()
            passes.run(module, builder)
        return bytes(machine.emit_object(module))


def link(object_code: bytes, symbols: tuple[str, ...], name: str) -> CompiledModule:
    """Return a module whose `symbols` can be called, from object code made by `to_object` (also in another process)."""
    target()
    with _lock:
        builder = llvm.JITLibraryBuilder().add_object_img(object_code).add_current_process()
        for symbol in symbols:
            builder.export_symbol(symbol)
        try:
            tracker = builder.link(_lljit(), f"{name}#{next(_numbers)}")
        except RuntimeError as error:
            raise CompileError(f"could not link module '{name}': {error}") from error
    return CompiledModule(name, object_code, tracker)


def compile_ir(
    text: str, name: str, symbols: tuple[str, ...] = (), *, level: int = 2, sroa: bool = False
) -> CompiledModule:
    """Return the linked module of LLVM IR text; `symbols` are the functions to export (default: `name`)."""
    return link(to_object(text, level=level, sroa=sroa), symbols or (name,), name)
