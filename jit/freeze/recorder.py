"""Noting launches: what each reads and writes, by slots that stand for the same buffer in every replay."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, field
from typing import Any

from ..errors import FreezeError
from ..memory.pool import Buffer, pool
from ..runtime.engine import Launch, Operand
from ..trace import user_line


@dataclass
class Slot:
    """A buffer of the recording: an input by its number, a constant that is kept, or one that launches make."""

    kind: str  # "input" | "constant" | "made"
    nbytes: int
    itemsize: int = 1
    buffer: Buffer | None = None  # of constants; they stay alive with the recording


@dataclass
class Note:
    """One launch: `words` are pairs of a slot and the bytes to add, or of -1 and a number; `uses` slots and access."""

    kernel: Any
    packets: int
    chunk: int
    chunks: int
    words: list[tuple[int, int]]
    tail: list[tuple[int, int]] | None
    uses: list[tuple[int, str]]
    owners: list[Any] = field(default_factory=list)


class Recorder:
    """Collects the launches of this thread while it is the runtime's recorder."""

    def __init__(self, name: str, inputs: list[Buffer]) -> None:
        self.name = name
        self.thread = threading.get_ident()
        self.started = pool().serial
        self.notes: list[Note] = []
        # Copies of the last packet of borrowed inputs: (slot, copy, where the packet starts in bytes, its bytes).
        self.tails: list[tuple[int, Buffer, int, int]] = []
        self.slots: list[Slot] = [Slot("input", b.nbytes) for b in inputs]
        # Weakly: buffers must be freed, and reused in place, as if nobody looked.
        self.guards: list[tuple[Buffer, str]] = []  # flags that must not be set, and what is wrong if one is
        self._numbers: weakref.WeakKeyDictionary[Buffer, int] = weakref.WeakKeyDictionary()
        for k, b in enumerate(inputs):
            self._numbers[b] = k

    def note(self, launch: Launch) -> None:
        """Enter a launch; raises FreezeError for memory that nothing handed to the function."""
        if launch.report is not None:
            raise FreezeError(
                f"frozen function '{self.name}': kernels made under the Debug flag report to Python and cannot be "
                "replayed; clear the flag, or call the function without freezing"
            )
        assert launch.operands is not None  # it has not run yet
        uses: list[tuple[int, str]] = []
        words = [self._word(o, a, launch, uses) for o, a in zip(launch.operands, launch.access, strict=True)]
        tail = None
        if launch.tail is not None:
            tail = [self._word(o, a, launch, []) for o, a in zip(launch.tail, launch.access, strict=True)]
            self._note_tails(launch, launch.tail)
        self.notes.append(
            Note(launch.kernel, launch.packets, launch.chunk, launch.chunks, words, tail, uses, launch.owners or [])
        )

    def _note_tails(self, launch: Launch, tail: list[Operand]) -> None:
        """Note which copies of last packets must be made again before a replay."""
        for array, end in zip(launch.operands or (), tail, strict=True):
            if isinstance(array, Buffer) and isinstance(end, tuple):
                base, offset = self.nearest(array)
                slot, start = self._numbers[base], -end[1]
                if self.slots[slot].kind == "input":
                    self.tails.append((slot, end[0], offset + start, array.nbytes - start))

    def _word(self, operand: Operand, access: str, launch: Launch, uses: list[tuple[int, str]]) -> tuple[int, int]:
        if isinstance(operand, int):
            return -1, operand
        buffer, offset = operand if isinstance(operand, tuple) else (operand, 0)
        if buffer.owner.__class__ is Buffer and buffer not in self._numbers:
            buffer, more = self.nearest(buffer)
            offset += more
            access = access.replace("own", "whole")  # element k of a view is another one of the whole
        slot = self._slot(buffer, access)
        if access == "r:own" or access == "w:own":
            self.slots[slot].itemsize = max(1, buffer.nbytes // max(32, -(-launch.size // 32) * 32))
        uses.append((slot, access))
        return slot, offset

    def _slot(self, buffer: Buffer, access: str) -> int:
        known = self._numbers.get(buffer)
        if known is not None:
            return known
        fresh = buffer.pool is not None and buffer.born > self.started
        if fresh and access.startswith("w"):
            self.slots.append(Slot("made", buffer.nbytes))
        elif fresh or buffer.owner is not None:
            # Filled by Python within the function: numbers written in the code, a NumPy array.
            self.slots.append(Slot("constant", buffer.nbytes, buffer=buffer))
        else:
            raise FreezeError(
                f"frozen function '{self.name}': an array of {buffer.nbytes} bytes that was computed before the call "
                "is used, but is not among the arguments, closure variables, globals or state of the function, so that "
                "a change of it would go unnoticed; pass it as an argument or return its owner from state_fn"
                + self._line()
            )
        self._numbers[buffer] = len(self.slots) - 1
        return len(self.slots) - 1

    def nearest(self, buffer: Buffer) -> tuple[Buffer, int]:
        """Return what a view is a part of, an input if there is one on the way, and the offset in bytes."""
        found = buffer
        while found not in self._numbers and found.owner.__class__ is Buffer:
            found = found.owner
        return found, buffer.ptr - found.ptr

    def number(self, buffer: Buffer) -> int | None:
        """Return the slot of a buffer, None if no launch used it."""
        return self._numbers.get(buffer)

    def constant(self, buffer: Buffer) -> int:
        """Return the slot of a result that no launch has made, kept as it is."""
        self.slots.append(Slot("constant", buffer.nbytes, buffer=buffer))
        self._numbers[buffer] = len(self.slots) - 1
        return len(self.slots) - 1

    def refuse(self, what: str) -> None:
        """Raise FreezeError for what a recording cannot hold."""
        raise FreezeError(
            f"frozen function '{self.name}': {what} is not possible while it is recorded: replays would not see it. "
            "Move it out of the function" + self._line()
        )

    def _line(self) -> str:
        where = user_line()
        return f" (at {where})" if where else ""


__all__ = ["Note", "Recorder", "Slot"]
