"""The line that shows how far a fit is."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

__all__ = ["FitProgress"]


class FitProgress:
    """A progress bar with loss, time left and samples per second; a context manager that does nothing if not shown."""

    def __init__(self, steps: int, done: int, shown: bool, title: str = "fit") -> None:
        self._bar: Progress | None = None
        if shown:
            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"),
                TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True),
            )  # fmt: skip
            self._task = self._bar.add_task(title, total=steps, completed=done, note="compiling")

    def __enter__(self) -> FitProgress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, loss: float, samples_per_second: float) -> None:
        """Count one step and show its loss."""
        if self._bar is not None:
            note = f"loss {loss:.4g}  {_short(samples_per_second)}samples/s"
            self._bar.update(self._task, advance=1, note=note)


def _short(number: Any) -> str:
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.3g} {name}"
    return f"{number:.3g} "
