"""What all optimisers share: named parameters with their state and learning rates, and the step over them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from ..ad import api as ad
from ..jit.arrays import tree
from ..jit.arrays.base import ArrayBase
from ..jit.arrays.create import opaque
from ..jit.arrays.functions import select
from ..jit.arrays.memops import evaluate_all
from ..jit.dtypes import UInt32
from ..jit.trace import LITERAL

__all__ = ["Flats", "Optimizer", "Parameter", "States"]

Flats = list[Any]
States = list[tuple[Any, ...]]


@dataclass
class Parameter:
    """One optimised value: the array users see, its own learning rate if it has one, its state, the steps taken.

    Steps are counted in an array in memory (UInt32, size 1), so that frozen functions that take steps can be replayed.
    `state` holds one tuple per flat array of `value` (a colour has three): what the rule remembers of that array.
    """

    value: Any
    learning_rate: Any = None
    state: States = field(default_factory=list)
    steps: Any = None


class Optimizer(MutableMapping[str, Any], ABC):
    """Named arrays with gradients, moved by `step()` against their gradients.

    Use it like a dictionary: `opt["albedo"] = value` stores a detached copy that tracks gradients, `opt["albedo"]` is
    what to compute with, `params.update(opt)` passes everything to a scene. Values are flat or nested floating-point
    arrays or tensors of a differentiable namespace. Assigning to a known name keeps the rule's state unless the type
    or the size changes. `mask_updates` leaves elements whose gradient is exactly 0 alone, their state too.

    A rule is a class with `_start` and `_move`; see `sgd.py`.
    """

    frozen_skip = ("_numbers",)  # filled anew by every step

    def __init__(self, lr: Any, params: Mapping[str, Any] | None = None, *, mask_updates: bool = False) -> None:
        self._lr = _checked_rate(lr)
        self.mask_updates = mask_updates
        self._parameters: dict[str, Parameter] = {}
        self._numbers: dict[Any, Any] = {}
        if params is not None:
            self.update(params)

    # The dictionary ------------------------------------------------------------------------------------------------

    def __getitem__(self, key: str) -> Any:
        return self._parameter(key).value

    def _parameter(self, key: Any) -> Parameter:
        found = self._parameters.get(key) if isinstance(key, str) else None
        if found is None:
            raise KeyError(f'{self._name}: no parameter is called "{key}"; there are {", ".join(self) or "none"}')
        return found

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"{self._name}: parameters have names, found the key {key!r}")
        if not isinstance(value, ArrayBase) or not getattr(value, "is_diff", False) or not value.dtype.is_float:
            kind = f"{type(value).__module__}.{type(value).__name__}"
            raise TypeError(
                f'{self._name}: cannot optimise "{key}" of type {kind}; a floating-point array of a differentiable '
                "namespace (such as luxgrad.auto.ad) is needed. Register the arrays of a list or dictionary one by one."
            )
        # Constants go to memory: as literals they would be part of the first step's kernels only.
        value = tree.map_arrays(lambda x: opaque(x) if x._n.op is LITERAL else x, ad.detach(value))
        ad.enable_grad(value)
        old = self._parameters.get(key)
        if old is not None and _layout(old.value) == _layout(value):
            old.value = value
        else:
            self._parameters[key] = Parameter(value, None if old is None else old.learning_rate)
            self.reset(key)

    def __delitem__(self, key: str) -> None:
        self._parameter(key)
        del self._parameters[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def __contains__(self, key: object) -> bool:
        return key in self._parameters

    def update(self, params: Any = (), /, **values: Any) -> None:
        """Store all (name, value) pairs; of scene parameters only those that can be differentiated."""
        flags = getattr(params, "flags", None)
        pairs = params.items() if hasattr(params, "items") else params
        try:
            pairs = [(key, value) for key, value in pairs]
        except (TypeError, ValueError):
            raise TypeError(
                f"{self._name}: a dict of arrays, scene parameters or (name, value) pairs are needed, "
                f"found {type(params).__name__}"
            ) from None
        for key, value in pairs:
            if flags is None or (_differentiable(flags(key)) and _is_float(value)):
                self[key] = value
        for key, value in values.items():
            self[key] = value

    # Learning rates --------------------------------------------------------------------------------------------------

    def learning_rate(self, key: str | None = None) -> Any:
        """Return the common learning rate, or that of a parameter: None where it has none of its own."""
        return self._lr if key is None else self._parameter(key).learning_rate

    def set_learning_rate(self, value: Any = None, /, **rates: Any) -> None:
        """Set the common learning rate, or those of the parameters a dictionary or keywords name (None: the common)."""
        if isinstance(value, Mapping):
            rates = {**value, **rates}
        elif value is not None:
            self._lr = _checked_rate(value)
        for key in rates:
            self._parameter(key)
        for key, rate in rates.items():
            self._parameters[key].learning_rate = None if rate is None else _checked_rate(rate)

    # Steps -----------------------------------------------------------------------------------------------------------

    def reset(self, key: str | None = None) -> None:
        """Forget what the rule remembers of one parameter, or of all; values stay."""
        for name in self._parameters if key is None else (key,):
            p = self._parameter(name)
            p.state = [self._start(x) for x in tree.arrays(p.value)]
            p.steps = _count(p.value, 0)

    def step(self, *, eval: bool = True, grad_scale: Any = None, active: Any = None) -> None:
        """Move all parameters against their gradients, which are multiplied by `grad_scale` first and then cleared.

        `active`, a mask of size 1, skips the step where it is not set. New values and states are computed here, in one
        kernel per array size, unless `eval` is False.
        """
        self._numbers.clear()
        for p in self._parameters.values():
            p.steps = p.steps + 1
            self._step(p, grad_scale, active)
        if eval:
            evaluate_all([x for p in self._parameters.values() for x in tree.arrays((p.value, p.state, p.steps))])

    def _step(self, p: Parameter, grad_scale: Any, active: Any) -> None:
        old = list(tree.arrays(ad.detach(p.value)))
        gradients = list(tree.arrays(ad.detach(ad.grad(p.value))))
        if grad_scale is not None:
            gradients = [g * type(g)(grad_scale) for g in gradients]
        rate = self._lr if p.learning_rate is None else p.learning_rate
        kind = type(old[0])
        rate = kind(rate) if isinstance(rate, ArrayBase) else self._number(kind, rate)
        new, states = self._move(old, gradients, p.state, rate, p.steps)
        masks = [active] * len(old) if active is not None else None
        if self.mask_updates:
            changed = [g != 0 for g in gradients]
            masks = changed if masks is None else [c & active for c in changed]
        if masks is not None:
            new = [select(m, a, b) for m, a, b in zip(masks, new, old, strict=True)]
            states = [
                tuple(select(m, a, b) for a, b in zip(after, before, strict=True))
                for m, after, before in zip(masks, states, p.state, strict=True)
            ]
        p.value = _rebuilt(p.value, iter(new))
        p.state = states
        ad.enable_grad(p.value)

    def _number(self, kind: Any, value: float) -> Any:
        """Return a number that changes between steps as a size-1 array in memory: as a literal it would be code."""
        key = (kind, value)
        if key not in self._numbers:
            self._numbers[key] = opaque(kind, value)
        return self._numbers[key]

    # What a rule defines ---------------------------------------------------------------------------------------------

    def _start(self, x: Any) -> tuple[Any, ...]:
        """Return the state of a flat array before its first step: size-n arrays in memory."""
        return ()

    @abstractmethod
    def _move(
        self, values: Flats, gradients: Flats, states: States, rate: Any, steps: Any
    ) -> tuple[Flats, States]:
        """Return the new flat arrays of one parameter and their new states.

        `rate`, the learning rate, is an array of size 1; `steps`, of size 1 and type UInt32, counts from 1.
        """

    def _describe(self) -> dict[str, Any]:
        """Return the settings of the rule, for printing."""
        return {}

    # Saving ----------------------------------------------------------------------------------------------------------

    def state_arrays(self) -> dict[str, Any]:
        """Return everything a later run needs to go on, as NumPy arrays by name: values, states and step counters."""
        import numpy as np

        out: dict[str, Any] = {}
        for key, p in self._parameters.items():
            out[f"{key}|steps"] = np.array(int(p.steps[0]))
            for i, x in enumerate(tree.arrays(p.value)):
                out[f"{key}|value|{i}"] = x.numpy().copy()
            for i, state in enumerate(p.state):
                for j, x in enumerate(state):
                    out[f"{key}|state|{i}|{j}"] = x.numpy().copy()
        return out

    def load_state_arrays(self, arrays: Mapping[str, Any]) -> None:
        """Go on from what `state_arrays` returned; the same parameters, sizes and rule must be there (ValueError)."""
        expected = self.state_arrays()
        wrong = sorted(set(expected) ^ {k for k in arrays if "|" in k})
        wrong += [k for k in expected if k in arrays and expected[k].shape != arrays[k].shape]
        if wrong:
            raise ValueError(f"{self._name}: the saved state belongs to other parameters or another rule ({wrong[0]})")
        for key, p in self._parameters.items():
            p.steps = _count(p.value, int(arrays[f"{key}|steps"]))
            flats = iter([_stored(x, arrays[f"{key}|value|{i}"]) for i, x in enumerate(tree.arrays(p.value))])
            p.value = _rebuilt(p.value, flats)
            ad.enable_grad(p.value)
            p.state = [
                tuple(_stored(x, arrays[f"{key}|state|{i}|{j}"]) for j, x in enumerate(state))
                for i, state in enumerate(p.state)
            ]

    @property
    def _name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        own = {k: p.learning_rate for k, p in self._parameters.items() if p.learning_rate is not None}
        settings = {"parameters": list(self), "lr": {"default": self._lr, **own}, **self._describe()}
        body = ",\n".join(f"  {name} = {value!r}" for name, value in settings.items())
        return f"{self._name}[\n{body}\n]"


def _checked_rate(rate: Any) -> Any:
    if isinstance(rate, ArrayBase):
        return ad.detach(rate)
    try:
        number = float(rate)
    except (TypeError, ValueError):
        raise TypeError(f"a learning rate is a number or a size-1 array, found {rate!r}") from None
    if not number >= 0.0:
        raise ValueError(f"a learning rate must not be negative or NaN, found {number}")
    return number


def _layout(value: Any) -> tuple[Any, ...]:
    return (type(value), *(x.shape for x in tree.arrays(value)), getattr(value, "shape", None))


def _differentiable(flags: Any) -> bool:
    return not int(flags) & int(getattr(type(flags), "NonDifferentiable", 1))


def _is_float(value: Any) -> bool:
    return isinstance(value, ArrayBase) and bool(getattr(value, "is_diff", False)) and value.dtype.is_float


def _rebuilt(value: Any, flats: Iterator[Any]) -> Any:
    """Return a value of the same structure made of other flat arrays."""
    return tree.map_arrays(lambda _: next(flats), value)


def _count(value: Any, steps: int) -> Any:
    """Return a number of steps as an array in memory."""
    first = next(tree.arrays(value))
    return opaque(first.ns.detached.flat(UInt32), steps)


def _stored(like: Any, array: Any) -> Any:
    """Return the numbers as an array in memory of the type of `like`; the NumPy array is copied."""
    return opaque(type(like)(array.copy()))
