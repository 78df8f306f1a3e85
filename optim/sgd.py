"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..jit.arrays.create import opaque
from .base import Flats, Optimizer, States

__all__ = ["SGD"]


class SGD(Optimizer):
    """Gradient descent, with momentum if asked: v <- momentum * v + g, x <- x - lr * v.

    With `nesterov` the step looks ahead: x <- x - lr * (g + momentum * v). Sutskever et al. 2013, in the form in which
    the learning rate multiplies the velocity.
    """

    def __init__(
        self, lr: Any, params: Mapping[str, Any] | None = None, *, momentum: float = 0.0, nesterov: bool = False,
        mask_updates: bool = False,
    ) -> None:
        if not isinstance(momentum, (int, float)) or not 0.0 <= momentum < 1.0:
            raise ValueError(f"SGD: momentum must lie in [0, 1), found {momentum!r}")
        if nesterov and momentum == 0.0:
            raise ValueError("SGD: nesterov=True needs a momentum above 0")
        self.momentum = float(momentum)
        self.nesterov = nesterov
        super().__init__(lr, params, mask_updates=mask_updates)

    def _start(self, x: Any) -> tuple[Any, ...]:
        return (opaque(type(x), 0.0, len(x)),) if self.momentum else ()

    def _move(
        self, values: Flats, gradients: Flats, states: States, rate: Any, steps: Any
    ) -> tuple[Flats, States]:
        if not self.momentum:
            return [x - rate * g for x, g in zip(values, gradients, strict=True)], states
        velocities = [self.momentum * v + g for (v,), g in zip(states, gradients, strict=True)]
        ahead = velocities
        if self.nesterov:
            ahead = [g + self.momentum * v for g, v in zip(gradients, velocities, strict=True)]
        moved = [x - rate * d for x, d in zip(values, ahead, strict=True)]
        return moved, [(v,) for v in velocities]

    def _describe(self) -> dict[str, Any]:
        return {"momentum": self.momentum, "nesterov": self.nesterov}
