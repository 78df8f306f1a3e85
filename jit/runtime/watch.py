"""What `LUXGRAD_DEBUG` and `LUXGRAD_VERIFY` do around a launch; nothing of it runs while both are off."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..debug import level, say, verifying
from ..passes.order import topological
from ..passes.program import Program
from ..passes.verify import verify

if TYPE_CHECKING:
    from .cache import Kernel


def program_built(program: Program, seconds: float) -> None:
    """Check a new program if asked to, and print what the passes left and the program itself, by level."""
    shown = level()
    if shown >= 2:
        nodes = topological(program.roots)
        say(f"luxgrad: pass order: {len(nodes)} nodes below {len(program.roots)} roots")
        if shown >= 3:
            say("\n".join(f"  {n!r}" for n in nodes))
        say(
            f"luxgrad: pass number: {len(program.instrs)} instructions in {len(program.parents)} scopes, "
            f"{len(program.params)} parameters, {len(program.literals)} literals, {1e3 * seconds:.3g} ms"
        )
        if shown >= 3:
            say(program_text(program))
    if verifying():
        started = time.perf_counter()
        verify(program)
        if shown >= 2:
            say(f"luxgrad: pass verify: sound, {1e3 * (time.perf_counter() - started):.3g} ms")


def program_text(program: Program) -> str:
    """Return the numbered program, one line per instruction, indented by scope."""
    literals = dict(program.literals)
    lines = []
    for number, i in enumerate(program.instrs):
        args = ", ".join(f"%{a}" for a in i.args)
        detail = literals[number].hex() if number in literals else "" if i.attr is None else repr(i.attr)
        indent = "  " * (1 + program.depths[i.scope])
        lines.append(f"{indent}%{number}: {i.dtype} = {i.op.name}({args}) {detail}".rstrip())
    lines += [f"  store %{number} to parameter {slot}" for slot, number in program.stores]
    lines += [f"  reduce by {op} %{number} to parameter {slot}" for slot, number, op in program.reductions]
    return "\n".join(lines)


def kernel_found(kernel: Kernel, origin: str, text: str) -> None:
    """Print the code of a kernel that has not run before in this process."""
    say(f"luxgrad: code of {kernel.hash[:16]} ({origin})")
    say(text)


def launched(kernel: Kernel, program: Program, origin: str, prepared: float, ran: float) -> None:
    """Print one finished launch: seconds until the kernel was handed over, and until it was done."""
    say(
        f"luxgrad: launch {kernel.hash[:16]} over {program.size}: {len(program.instrs)} instructions, kernel from "
        f"{origin}, prepared in {1e3 * prepared:.3g} ms, ran {1e3 * ran:.3g} ms"
    )
