"""Adam and its variants."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..jit.arrays import functions as f
from ..jit.arrays import reduce
from ..jit.arrays.create import opaque
from ..jit.arrays.flat import convert
from ..jit.dtypes import Float64
from .base import Flats, Optimizer, States

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """Gradient descent scaled by running estimates of the gradient's mean and mean square (Kingma and Ba 2015).

    m <- beta_1 m + (1 - beta_1) g,  v <- beta_2 v + (1 - beta_2) g^2,
    x <- x - lr sqrt(1 - beta_2^t) / (1 - beta_1^t) m / (sqrt(v) + epsilon),  t counting steps from 1.

    `uniform` divides by the largest v of the parameter, so that all its elements move at one scale (AdamUniform of
    Nicolet et al. 2021, made for vertices); `amsgrad` divides by the largest v seen so far (Reddi et al. 2018).

    >>> import luxgrad as dr
    >>> from luxgrad.llvm.ad import Float
    >>> from luxgrad.optim.adam import Adam
    >>> opt = Adam(lr=0.1, params={"x": Float(1.0)})
    >>> for _ in range(100):
    ...     dr.backward((opt["x"] - 3) ** 2)
    ...     opt.step()
    >>> dr.allclose(opt["x"], 3, atol=0.1)
    True
    """

    def __init__(
        self, lr: Any, params: Mapping[str, Any] | None = None, *, beta_1: float = 0.9, beta_2: float = 0.999,
        epsilon: float = 1e-8, mask_updates: bool = False, uniform: bool = False, amsgrad: bool = False,
    ) -> None:
        for name, value in (("beta_1", beta_1), ("beta_2", beta_2)):
            if not isinstance(value, (int, float)) or not 0.0 <= value < 1.0:
                raise ValueError(f"{type(self).__name__}: {name} must lie in [0, 1), found {value!r}")
        if not isinstance(epsilon, (int, float)) or not epsilon > 0.0:
            raise ValueError(f"{type(self).__name__}: epsilon must be above 0, found {epsilon!r}")
        self.beta_1, self.beta_2, self.epsilon = float(beta_1), float(beta_2), float(epsilon)
        self.uniform, self.amsgrad = uniform, amsgrad
        super().__init__(lr, params, mask_updates=mask_updates)

    def _start(self, x: Any) -> tuple[Any, ...]:
        return tuple(opaque(type(x), 0.0, len(x)) for _ in range(3 if self.amsgrad else 2))

    def _move(
        self, values: Flats, gradients: Flats, states: States, rate: Any, steps: Any
    ) -> tuple[Flats, States]:
        a, b = self.beta_1, self.beta_2
        scaled = rate * convert(type(rate), f.sqrt(_decayed(b, steps)) / _decayed(a, steps))
        means = [a * s[0] + (1.0 - a) * g for s, g in zip(states, gradients, strict=True)]
        squares = [b * s[1] + (1.0 - b) * (g * g) for s, g in zip(states, gradients, strict=True)]
        scales = self._largest(squares) if self.uniform else squares
        if self.amsgrad:
            scales = [f.max(s[2], v) for s, v in zip(states, scales, strict=True)]
            new: States = list(zip(means, squares, scales, strict=True))
        else:
            new = [pair for pair in zip(means, squares, strict=True)]
        moved = [
            self._decayed(x, rate) - scaled * m / (f.sqrt(v) + self.epsilon)
            for x, m, v in zip(values, means, scales, strict=True)
        ]
        return moved, new

    def _largest(self, squares: Flats) -> Flats:
        total = reduce.max(squares[0])
        for v in squares[1:]:
            total = f.max(total, reduce.max(v))
        return [v * 0.0 + total if self.amsgrad else total for v in squares]

    def _decayed(self, x: Any, rate: Any) -> Any:
        """Return the value that the step starts from."""
        return x

    def _describe(self) -> dict[str, Any]:
        return {"beta": (self.beta_1, self.beta_2), "epsilon": self.epsilon}


def _decayed(beta: float, steps: Any) -> Any:
    """Return 1 - beta^steps in double precision: in single it has no digits left when beta is close to 1."""
    if beta == 0.0:
        return steps.ns.flat(Float64)(1.0)
    return 1.0 - f.exp2(convert(steps.ns.flat(Float64), steps) * math.log2(beta))


class AdamW(Adam):
    """Adam with decoupled weight decay: each step first shrinks values by lr * weight_decay (Loshchilov, Hutter 2019).
    """

    def __init__(
        self, lr: Any, params: Mapping[str, Any] | None = None, *, beta_1: float = 0.9, beta_2: float = 0.999,
        epsilon: float = 1e-8, weight_decay: float = 0.01, mask_updates: bool = False, uniform: bool = False,
        amsgrad: bool = False,
    ) -> None:
        if not weight_decay >= 0.0:
            raise ValueError(f"AdamW: weight_decay must not be negative, found {weight_decay}")
        self.weight_decay = float(weight_decay)
        super().__init__(lr, params, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon, mask_updates=mask_updates,
                         uniform=uniform, amsgrad=amsgrad)  # fmt: skip

    def _decayed(self, x: Any, rate: Any) -> Any:
        return x - (rate * self.weight_decay) * x

    def _describe(self) -> dict[str, Any]:
        return {**super()._describe(), "weight_decay": self.weight_decay}
