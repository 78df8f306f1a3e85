"""RMSProp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..jit.arrays import functions as f
from ..jit.arrays.create import opaque
from .base import Flats, Optimizer, States

__all__ = ["RMSProp"]


class RMSProp(Optimizer):
    """Gradient descent scaled by a running mean of squared gradients (Tieleman and Hinton 2012).

    v <- alpha v + (1 - alpha) g^2,  x <- x - lr g / (sqrt(v) + epsilon).
    """

    def __init__(
        self, lr: Any, params: Mapping[str, Any] | None = None, *, alpha: float = 0.99, epsilon: float = 1e-8,
        mask_updates: bool = False,
    ) -> None:
        if not isinstance(alpha, (int, float)) or not 0.0 <= alpha < 1.0:
            raise ValueError(f"RMSProp: alpha must lie in [0, 1), found {alpha!r}")
        if not isinstance(epsilon, (int, float)) or not epsilon > 0.0:
            raise ValueError(f"RMSProp: epsilon must be above 0, found {epsilon!r}")
        self.alpha, self.epsilon = float(alpha), float(epsilon)
        super().__init__(lr, params, mask_updates=mask_updates)

    def _start(self, x: Any) -> tuple[Any, ...]:
        return (opaque(type(x), 0.0, len(x)),)

    def _move(
        self, values: Flats, gradients: Flats, states: States, rate: Any, steps: Any
    ) -> tuple[Flats, States]:
        squares = [self.alpha * v + (1.0 - self.alpha) * (g * g) for (v,), g in zip(states, gradients, strict=True)]
        moved = [
            x - rate * g / (f.sqrt(v) + self.epsilon)
            for x, g, v in zip(values, gradients, squares, strict=True)
        ]
        return moved, [(v,) for v in squares]

    def _describe(self) -> dict[str, Any]:
        return {"alpha": self.alpha, "epsilon": self.epsilon}
