"""Replaying recorded launches with other inputs: transients in the arena, results from the pool."""

from __future__ import annotations

import ctypes
from typing import Any

from ..dtypes import UInt32
from ..memory import lifetimes
from ..memory.arena import arena, modes
from ..memory.plan_launches import LaunchPlan, plan_launches
from ..memory.pool import Buffer, pool
from ..memory.tenants import tenants
from ..runtime.engine import runtime
from ..runtime.history import history
from ..runtime.threads import COMPLETED, SUBMITTED
from ..runtime.utilities import utility_kernel
from .recorder import Note, Recorder, Slot

_FRAMES = 4  # argument blocks, one per replay in flight
_POISON = 0x7FC5_7FC5  # NaN as two halves or one single, and no index inside of anything


class Frame:
    """The argument blocks of all launches in one piece of memory, and the table that hands them to the threads."""

    def __init__(self, replay: Replay) -> None:
        count = sum(len(n.words) + len(n.tail or ()) for n in replay.notes)
        self.words = (ctypes.c_int64 * max(1, count))()
        self.table = (ctypes.c_int64 * (6 * max(1, len(replay.notes))))()
        self.address = ctypes.addressof(self.table)
        self.patches: list[tuple[int, int, int]] = []  # (word, number among inputs and results, bytes to add)
        self.arena_words: list[tuple[int, int]] = []  # (word, offset)
        self.generation = -1
        self.job = 0
        self.first = ctypes.addressof(self.words)  # the argument block of the first launch
        base, place = ctypes.addressof(self.words), 0
        for k, note in enumerate(replay.notes):
            starts = []
            for words in (note.words, note.tail):
                starts.append(base + 8 * place if words is not None else 0)
                for slot, value in words or ():
                    self._bake(replay, place, slot, value)
                    place += 1
            chunks = (-(-note.packets // note.chunk) if note.packets else 0) + (note.tail is not None)
            row = (note.kernel.address, starts[0], note.packets, note.chunk, chunks, starts[1])
            self.table[6 * k : 6 * k + 6] = [w if w < 1 << 63 else w - (1 << 64) for w in row]

    def _bake(self, replay: Replay, place: int, slot: int, value: int) -> None:
        if slot < 0:
            self.words[place] = value
            return
        kind, number = replay.homes[slot]
        if kind == "arena":
            self.arena_words.append((place, number + value))
        elif kind == "constant":
            self.words[place] = number + value
        else:
            self.patches.append((place, number, value))


class Replay:
    """Recorded launches for one set of sizes. `run` gives the results their own memory and returns at once."""

    def __init__(self, recorder: Recorder, results: list[int], guards: list[tuple[int, str]]) -> None:
        self.notes: list[Note] = recorder.notes
        self.slots: list[Slot] = recorder.slots
        self.tails = recorder.tails
        self.guards = guards  # (number among results, message)
        slots = self.slots
        self.inputs = sum(s.kind == "input" for s in slots)
        self.results = results
        self.sizes = [slots[r].nbytes for r in results]
        self.tenants: dict[int, int] = {}  # transients in the memory of results that are written later
        self.plan = self._plan()
        self.homes = [self._home(k) for k in range(len(slots))]
        if modes.poison:
            self.notes = self._poisoned()
        self.frames: list[Frame] = []
        self.inline = all(n.chunks == 1 and n.tail is None and n.packets for n in self.notes)
        self.calls = [n.kernel.call for n in self.notes]
        # One small kernel, run right here: no arena, no table, no waiting.
        plain = not (self.tails or self.guards or self.plan.height)
        self.alone = self.inline and len(self.notes) == 1 and plain

    def _plan(self) -> LaunchPlan:
        results = set(self.results)
        kinds = {"input": "input", "constant": "persistent"}
        buffers = [
            lifetimes.Buffer(
                s.nbytes, s.itemsize, kinds.get(s.kind, "output" if k in results else "transient")  # type: ignore[arg-type]
            )
            for k, s in enumerate(self.slots)
        ]
        launches = []
        for wave, note in enumerate(self.notes):
            reads = tuple((s, _reading(a)) for s, a in note.uses if "r" in a.split(":")[0])
            writes = tuple((s, _writing(a)) for s, a in note.uses if "w" in a.split(":")[0])
            launches.append(lifetimes.Launch(reads, writes, wave, note.kernel.hash[:16]))  # type: ignore[arg-type]
        if modes.alias:
            spans = lifetimes.lifetimes(launches, buffers, inplace=modes.inplace)
            self.tenants = tenants(buffers, spans)
            for k in self.tenants:
                buffers[k] = lifetimes.Buffer(buffers[k].nbytes, buffers[k].itemsize, "persistent")
        return plan_launches(launches, buffers, alias=modes.alias, inplace=modes.inplace)

    def _home(self, slot: int) -> tuple[str, int]:
        """Return where a slot lies: in the arena at an offset, at an address, or in an input or result by number."""
        s = self.slots[slot]
        if s.buffer is not None:
            return "constant", s.buffer.ptr
        if s.kind == "input":
            return "given", slot
        home = self.tenants.get(slot, self.plan.lifetimes.homes[slot])
        if slot in self.results or home >= 0:
            return "given", self.inputs + self.results.index(slot if slot in self.results else home)
        offset = self.plan.offsets[slot]
        return "arena", 0 if offset is None else offset

    def _poisoned(self) -> list[Note]:
        """Return the launches with one more behind each that overwrites the transients which died there."""
        ends: dict[int, list[int]] = {}
        for members in self.plan.sets:
            ends.setdefault(max(self.plan.lifetimes.ends[i] for i in members), []).append(members[0])
        kernel, notes = utility_kernel("fill", UInt32.bits), []
        for wave, note in enumerate(self.notes):
            notes.append(note)
            for slot in ends.get(wave + 1, ()):
                packets = self.slots[slot].nbytes // 64
                if packets:
                    notes.append(Note(kernel, packets, packets, 1, [(slot, 0), (-1, _POISON)], None, []))
        return notes

    def run_one(self, inputs: list[Buffer]) -> Buffer:
        """Launch everything and return the buffer of the only result."""
        with runtime.lock:
            words = runtime.threads.words
            if not self.alone or words[SUBMITTED] != words[COMPLETED] or not self.frames:
                return self.run(inputs)[0]
            result = pool().allocate(self.sizes[0])
            frame = self.frames[0]
            block = frame.words
            count = self.inputs
            for word, number, offset in frame.patches:
                block[word] = (inputs[number] if number < count else result).ptr + offset
            history.launches += 1
            self.calls[0](0, self.notes[0].packets, 0, frame.first)
        return result

    def run(self, inputs: list[Buffer]) -> list[Buffer]:
        """Launch everything and return the buffers of the results."""
        allocate = pool().allocate
        with runtime.lock:
            runtime.check_guards()
            if self.tails:
                runtime.sync()  # an earlier replay may still read the copies
                for slot, packet, start, nbytes in self.tails:
                    ctypes.memmove(packet.ptr, inputs[slot].ptr + start, nbytes)
            results = [allocate(n) for n in self.sizes]
            threads = runtime.threads
            frame = self._frame(threads)
            words = frame.words
            given = [b.ptr for b in inputs]
            given += [b.ptr for b in results]
            for word, number, offset in frame.patches:
                words[word] = given[number] + offset
            count = len(self.notes)
            history.launches += count
            if self.inline and threads.completed == threads.submitted:
                table = frame.table
                for k in range(count):
                    self.calls[k](0, table[6 * k + 2], 0, table[6 * k + 1])
            elif count:
                frame.job = threads.submit_all(frame.address, count)
                borrowed = [b for b in inputs if b.owner is not None]
                for result in results:
                    result.job = frame.job
                runtime.in_flight.append((frame.job, (borrowed, frame, self)))
                runtime.forget_finished()
            for number, message in self.guards:
                runtime.guards.append((threads.submitted, results[number], message))
        return results

    def _frame(self, threads: Any) -> Frame:
        """Return a frame that no launch in flight reads, with the arena's present address."""
        done = threads.completed
        frame = next((f for f in self.frames if f.job <= done), None)
        if frame is None:
            if len(self.frames) < _FRAMES:
                frame = Frame(self)
                self.frames.append(frame)
            else:
                frame = min(self.frames, key=lambda f: f.job)
                threads.wait(frame.job)
        if frame.arena_words:
            memory = arena()
            if self.plan.height > (memory.block.nbytes if memory.block is not None else 0):
                memory.get(self.plan.height)
            if frame.generation != memory.generation:
                assert memory.block is not None
                for word, offset in frame.arena_words:
                    frame.words[word] = memory.block.ptr + offset
                frame.generation = memory.generation
        return frame


def _reading(access: str) -> str:
    mode = access.split(":")[1]
    return "gather" if mode == "scatter" else mode


def _writing(access: str) -> str:
    return access.split(":")[1]


__all__ = ["Replay"]
