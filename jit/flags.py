"""Switches of the compiler, named as Dr.Jit's."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager

from .runtime.history import history
from .trace import state

__all__ = ["JitFlag", "flag", "is_on", "scoped_set_flag", "set_flag"]


class JitFlag(enum.IntFlag):
    """What can be switched on and off.

    `KernelHistory` records launches, `Debug` keeps source lines, `SymbolicLoops`, `SymbolicConditionals` and
    `SymbolicCalls` choose between recording and step-by-step evaluation where no mode is given. The others are kept for
    programs that set them: what they stand for is always on here, or has no counterpart.
    """

    Debug = 1 << 0
    ReuseIndices = 1 << 1
    ConstantPropagation = 1 << 2
    ValueNumbering = 1 << 3
    FastMath = 1 << 4
    SymbolicLoops = 1 << 5
    OptimizeLoops = 1 << 6
    CompressLoops = 1 << 7
    SymbolicCalls = 1 << 8
    MergeFunctions = 1 << 9
    OptimizeCalls = 1 << 10
    SymbolicConditionals = 1 << 11
    PacketOps = 1 << 12
    PrintIR = 1 << 13
    KernelHistory = 1 << 14
    LaunchBlocking = 1 << 15
    ScatterReduceLocal = 1 << 16
    KernelFreezing = 1 << 17
    Deterministic = 1 << 18
    # The names these had in older versions.
    LoopRecord = SymbolicLoops
    LoopOptimize = OptimizeLoops
    VCallRecord = SymbolicCalls
    VCallOptimize = OptimizeCalls
    Default = (
        ReuseIndices | ConstantPropagation | ValueNumbering | SymbolicLoops | OptimizeLoops | SymbolicCalls
        | MergeFunctions | OptimizeCalls | SymbolicConditionals | PacketOps | ScatterReduceLocal | KernelFreezing
    )  # fmt: skip


class _Flags:
    value = JitFlag.Default
    number = int(JitFlag.Default)


def flag(which: JitFlag) -> bool:
    """Return whether a flag is on."""
    return bool(_Flags.value & which)


is_on = flag
_FREEZING = int(JitFlag.KernelFreezing)


def freezing() -> bool:
    """Return whether `KernelFreezing` is on; as plain numbers, for every call of a frozen function asks."""
    return _Flags.number & _FREEZING != 0


def set_flag(which: JitFlag, value: bool = True) -> None:
    """Switch a flag on or off."""
    which = JitFlag(which)
    _Flags.value = _Flags.value | which if value else _Flags.value & ~which
    _Flags.number = int(_Flags.value)
    if which & JitFlag.KernelHistory:
        history.recording = value
    if which & JitFlag.Debug:
        state.record_lines = value


@contextmanager
def scoped_set_flag(which: JitFlag, value: bool = True) -> Iterator[None]:
    """Within the block a flag is on or off."""
    before = flag(which)
    set_flag(which, value)
    try:
        yield
    finally:
        set_flag(which, before)
