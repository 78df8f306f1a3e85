"""Derivatives against central differences, in double precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..jit.arrays import reduce, tree
from ..jit.arrays.flat import convert
from ..jit.dtypes import Float64
from . import api


class GradientError(AssertionError):
    """A derivative disagrees with central differences; the message names the worst entry."""


@dataclass(frozen=True)
class GradientReport:
    """The outcome of `check_grad`: the greatest relative error, where it is, and the two values there."""

    error: float
    entry: str
    derivative: float
    difference: float
    entries: int

    def __str__(self) -> str:
        return (
            f"{self.entries} derivatives, worst at {self.entry}: {self.derivative:.9g} against a central difference of "
            f"{self.difference:.9g} (relative error {self.error:.3g})"
        )


def _names(value: Any, prefix: str) -> list[str]:
    """Return a name per flat array of a PyTree."""
    if type(value) in (list, tuple):
        return [n for k, v in enumerate(value) for n in _names(v, f"{prefix}[{k}]")]
    if type(value) is dict:
        return [n for k, v in value.items() for n in _names(v, f"{prefix}['{k}']")]
    members = None if isinstance(value, type) else tree.fields(value)
    if members is not None:
        return [n for k, v in members.items() for n in _names(v, f"{prefix}.{k}")]
    count = len(list(tree.arrays(value)))
    return [prefix] if count == 1 else [f"{prefix}.{'xyzw'[k] if k < 4 else k}" for k in range(count)]


def check_grad(
    fn: Callable[..., Any],
    *args: Any,
    eps: float = 1e-6,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    mode: str = "backward",
    raise_on_error: bool = True,
    limit: int = 64,
) -> GradientReport:
    """Return how well the derivatives of `fn` agree with central differences.

    Floating-point arrays of the arguments (PyTrees) are converted to double precision; the sum of all elements of the
    result is differentiated with respect to each (of long arrays `limit` elements spread over them). The step is
    eps * max(1, |x|). Raises GradientError naming the worst entry if |derivative - difference| exceeds
    atol + rtol * max of both, unless `raise_on_error` is False.

    >>> import luxgrad as dr
    >>> from luxgrad.llvm.ad import Float
    >>> dr.check_grad(lambda x: x * dr.sin(x), Float([1, 2, 3])).error < 1e-6
    True
    """
    plain = tree.map_arrays(_to_double, args)
    names = _names(plain, "args")
    leaves = [(n, x) for n, x in zip(names, tree.arrays(plain), strict=True) if x.dtype.is_float]
    values = [x.numpy().astype(float).tolist() for _, x in leaves]
    worst = GradientReport(0.0, "", 0.0, 0.0, 0)
    entries = 0
    gradients = _derivatives(fn, plain, mode)
    bad = False
    for position, ((name, _), value) in enumerate(zip(leaves, values, strict=True)):
        for k in _chosen(len(value), limit):
            step = eps * max(1.0, abs(value[k]))
            difference = (
                _total(fn, plain, position, k, value[k] + step) - _total(fn, plain, position, k, value[k] - step)
            ) / (2 * step)
            derivative = float(gradients(position)[k])
            gap, scale = abs(derivative - difference), max(abs(derivative), abs(difference))
            entries += 1
            error = gap / scale if scale > atol else gap
            wrong = not gap <= atol + rtol * scale
            if (wrong, error) > (bad, worst.error) or error != error:
                entry = f"{name}[{k}]" if len(value) > 1 else name
                worst = GradientReport(error, entry, derivative, difference, entries)
                bad = bad or wrong
    report = GradientReport(worst.error, worst.entry, worst.derivative, worst.difference, entries)
    if bad and raise_on_error:
        raise GradientError(f"check_grad: {report}")
    return report


def _to_double(x: Any) -> Any:
    if not x.dtype.is_float:
        return x
    return convert(x.ns.differentiable.flat(Float64), type(x).wrap(x._n))


def _chosen(count: int, limit: int) -> list[int]:
    if count <= limit:
        return list(range(count))
    return sorted({round(k * (count - 1) / (limit - 1)) for k in range(limit)})


def _sum(result: Any) -> Any:
    total = None
    for x in tree.arrays(result):
        if x.dtype.is_float:
            s = reduce.sum(x)
            total = s if total is None else total + s
    if total is None:
        raise TypeError("check_grad: the function returns no floating-point array")
    return total


def _total(fn: Callable[..., Any], args: Any, position: int, k: int, value: float) -> float:
    """Return the sum of the result with one element of one argument replaced."""
    counter = iter(range(1 << 30))
    import numpy as np

    def replace(x: Any) -> Any:
        if not x.dtype.is_float or next(counter) != position:
            return type(x).wrap(x._n)
        data = np.array(x.numpy(), float)
        data[k] = value
        return type(x)(data)

    with api.suspend_grad():
        return float(_sum(fn(*tree.map_arrays(replace, args))).item())


def _derivatives(fn: Callable[..., Any], args: Any, mode: str) -> Callable[[int], Any]:
    copies = tree.map_arrays(lambda x: type(x).wrap(x._n), args)
    floats = [x for x in tree.arrays(copies) if x.dtype.is_float]
    api.enable_grad(*floats)
    if mode == "backward":
        api.backward(_sum(fn(*copies)))
        gradients = [api.grad(x).numpy() for x in floats]
        return lambda position: gradients[position]
    if mode != "forward":
        raise ValueError(f"check_grad: unknown mode '{mode}'; use 'backward' or 'forward'")
    return _forward_derivatives(fn, args)


def _forward_derivatives(fn: Callable[..., Any], args: Any) -> Callable[[int], Any]:
    """Return derivatives computed one element at a time, by forward mode."""
    import numpy as np

    def one(position: int) -> Any:
        size = [x for x in tree.arrays(args) if x.dtype.is_float][position]._n.size
        out = np.zeros(size)
        for k in range(size):
            copies = tree.map_arrays(lambda x: type(x).wrap(x._n), args)
            x = [x for x in tree.arrays(copies) if x.dtype.is_float][position]
            api.enable_grad(x)
            seed = np.zeros(size)
            seed[k] = 1.0
            total = _sum(fn(*copies))
            api.set_grad(x, type(x)(seed))
            api.forward_from(x)
            out[k] = api.grad(total).item()
        return out

    known: dict[int, Any] = {}

    def lookup(position: int) -> Any:
        if position not in known:
            known[position] = one(position)
        return known[position]

    return lookup
