"""What was launched: counters, the kernel history, log lines and dumps."""

from __future__ import annotations

import collections
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
        """Write generated code to the folder LUXGRAD_DUMP names, if it is set."""
        folder = os.environ.get("LUXGRAD_DUMP")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            (Path(folder) / f"{name}.ll").write_text(text)


history = History()
