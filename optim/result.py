"""What a fit returns: the way of the loss and of the parameters, the pictures, the speed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FULL_HISTORY", "FitResult", "FitStep", "numbers", "summary"]

Numbers = NDArray[np.float64]
FULL_HISTORY = 16  # parameters of at most so many numbers are recorded in full


@dataclass(frozen=True)
class FitStep:
    """One step as a callback sees it: its number from 0, how many there are, the loss, the optimiser after the step."""

    step: int
    steps: int
    loss: float
    optimizer: Any
    image: Any  # the picture of the (last) view, a tensor


@dataclass
class FitResult:
    """The outcome of `fit`.

    `losses` has one number per step. `history[key]` has a row per step and one for the start: all numbers of a
    parameter of at most 16, else mean, minimum and maximum. `values` are the fitted parameters in full, `images` the
    bitmaps "target", "start" and "fitted" (with a number after the name from the second view on).
    """

    keys: list[str]
    losses: list[float] = field(default_factory=list)
    history: dict[str, list[Numbers]] = field(default_factory=dict)
    values: dict[str, Numbers] = field(default_factory=dict)
    images: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    samples: int = 0

    @property
    def steps(self) -> int:
        """The number of steps taken, those before a resume included."""
        return len(self.losses)

    @property
    def loss(self) -> float:
        """The loss of the last step, NaN if there was none."""
        return self.losses[-1] if self.losses else float("nan")

    @property
    def samples_per_second(self) -> float:
        """Camera samples of the forward pictures per second of this run."""
        return self.samples / self.seconds if self.seconds > 0 else 0.0

    def record(self, key: str, value: Any) -> None:
        """Append the state of a parameter to its history."""
        self.history.setdefault(key, []).append(summary(numbers(value)))

    def __repr__(self) -> str:
        first = self.losses[0] if self.losses else float("nan")
        return (
            f"FitResult({self.steps} steps, loss {first:.4g} -> {self.loss:.4g}, {self.seconds:.1f} s, "
            f"{self.samples_per_second:.3g} samples/s, parameters {', '.join(self.keys)})"
        )


def numbers(value: Any) -> Numbers:
    """Return the numbers of an array of any kind in double precision, with its shape."""
    return np.array(value, dtype=np.float64)


def summary(array: Numbers) -> Numbers:
    """Return all numbers of a small array in one row, of a large one mean, minimum and maximum."""
    flat = array.ravel()
    if flat.size <= FULL_HISTORY:
        return flat
    return np.array([flat.mean(), flat.min(), flat.max()])
