"""What a streamed evaluation gives back: its value, and an account of chunks, bytes and time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from .budget import text


@dataclass
class Report:
    """How a streamed evaluation went; `print` shows it."""

    elements: int = 0
    chunk: int = 0  # elements per chunk
    chunks: int = 0  # chunks read, all passes together
    passes: int = 0  # times the data was gone through
    budget: int = 0  # bytes that were allowed
    planned: int = 0  # bytes that the plan needs at most
    peak: int = 0  # bytes that arrays and windows took at most
    bytes_read: int = 0
    bytes_written: int = 0
    seconds: float = 0.0
    launches: int = 0  # kernels run
    compiled: int = 0  # kernels compiled or loaded for it
    notes: list[str] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Return the gigabytes (10^9) read and written per second."""
        return (self.bytes_read + self.bytes_written) / max(self.seconds, 1e-9) / 1e9

    def __str__(self) -> str:
        lines = [
            f"{self.elements} elements in {self.chunks} chunks of {self.chunk}, {self.passes} pass(es) over the data",
            f"memory: at most {text(self.peak)} of {text(self.budget)} allowed ({text(self.planned)} planned)",
            f"read {text(self.bytes_read)}, wrote {text(self.bytes_written)} in {self.seconds:.3g} s: "
            f"{self.rate:.3g} GB/s",
            f"{self.launches} kernel launches, {self.compiled} kernels new to the process",
        ]
        return "\n".join([*lines, *self.notes])


@dataclass
class Result:
    """The result of a streamed evaluation.

    `value` has the structure that the function returned: reductions are arrays of the engine; results per element are
    arrays in memory, the array given as `out`, or the path of the file written.
    """

    value: Any
    report: Report


class Progress:
    """Tells how far a stream is: a bar on a terminal, a function of the caller's, or nothing."""

    def __init__(self, shown: bool | Callable[[int, int], Any] | None) -> None:
        self._tell = shown if callable(shown) else None
        self._wanted = bool(sys.stderr.isatty()) if shown is None else shown is True
        self._bar: Any = None
        self._task: Any = None
        self._began = time.perf_counter()
        self._late = shown is None  # what takes less than a second needs no bar

    def update(self, done: int, total: int) -> None:
        """Note that `done` of `total` elements of all passes known so far are finished."""
        if self._tell is not None:
            self._tell(done, total)
        if not self._wanted or self._late and time.perf_counter() - self._began < 1:
            return
        if self._bar is None:
            from rich import progress  # takes longer to load than a short stream to run
            from rich.console import Console

            self._bar = progress.Progress(
                "stream", progress.BarColumn(), progress.TaskProgressColumn(), progress.TimeRemainingColumn(),
                console=Console(stderr=True),
            )  # fmt: skip
            self._bar.start()
            self._task = self._bar.add_task("stream", total=total)
        self._bar.update(self._task, completed=done, total=total)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


__all__ = ["Progress", "Report", "Result"]
