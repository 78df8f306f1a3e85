"""What was launched: counters, the kernel history, log lines and dumps."""

from __future__ import annotations

import collections
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import debug

if TYPE_CHECKING:
    from ..passes.program import Program
    from .cache import Kernel


class History:
    """Counters since the start, and records of launches while recording is on."""

    def __init__(self) -> None:
        self.launches = self.soft_misses = self.hard_misses = 0
        self.recording = False
        self.level = 0  # as Dr.Jit's LogLevel: 0 silent, 3 info, 5 trace
        self.records: collections.deque[dict[str, Any]] = collections.deque(maxlen=100_000)

    def launched(self, kernel: Kernel, program: Program, origin: str, seconds: float) -> None:
        """Note one launch; `origin` tells where the kernel came from."""
        self.launches += 1
        self.soft_misses += origin == "disk"
        self.hard_misses += origin == "compiled"
        inputs = sum(kind in ("load", "gather") for kind, _ in program.params)
        outputs = len(program.outputs) + len(program.targets)
        if self.recording:
            self.records.append(
                {
                    "backend": "llvm",
                    "type": "JIT",
                    "hash": kernel.hash,
                    "ir": io.StringIO(kernel.ir),
                    "cache_hit": origin != "compiled",
                    "cache_disk": origin == "disk",
                    "size": program.size,
                    "input_count": inputs,
                    "output_count": outputs,
                    "operation_count": len(program.instrs),
                    "codegen_time": 1e3 * seconds,
                }
            )
        if self.level >= 3:
            print("jit_eval(): launching 1 kernel.")
            print(
                f"  -> launching {kernel.hash[:16]} (n={program.size}, in={inputs}, out={outputs}, "
                f"ops={len(program.instrs)}, jit={1e6 * seconds:.5g} us):"
            )
            if origin == "compiled":
                size = len(kernel.module.object_code)
                print(f"     cache miss, build: {1e3 * seconds:.6g} ms, {size} B.")
            elif origin == "disk":
                print(f"     cache hit, load: {1e6 * seconds:.6g} us")
            print("jit_eval(): done.")

    def dump(self, name: str, text: str) -> None:
        """Write generated code to the folder LUXGRAD_DUMP names, if it is set: 0001-<hash>.ll and so on."""
        asked = debug.value("dump")
        if asked:
            folder = Path(asked)
            folder.mkdir(parents=True, exist_ok=True)
            taken = [int(p.name[:4]) for p in folder.glob("[0-9][0-9][0-9][0-9]-*.ll")]
            (folder / f"{max(taken, default=0) + 1:04}-{name}.ll").write_text(text, "utf-8")


history = History()
