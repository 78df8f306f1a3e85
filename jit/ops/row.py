"""The record that defines an operation, and the table of all of them.

A row is the only place that knows an operation: its meaning (NumPy), its code (LLVM IR), its derivative (traced
operations) and the intervals it is tested on. Folding, Python functions, documentation, derivatives and tests iterate
over `ROWS`; a new operation is one more row in a file of this folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..codegen.emitter import Emitter, Value
from ..dtypes import DType

Reference = Callable[..., Any]  # (np, *arrays) -> array
Lower = Callable[..., Value]  # (emitter, dtype of the first argument, *values) -> value
Weight = Callable[..., Any] | float | None  # (f, out, *arrays) -> d out / d argument, a constant, or None


@dataclass(frozen=True, eq=False)
class Row:
    """One elementwise operation.

    `kinds` are the element kinds it takes (b, i, u, f); `result` is "same", "bool", "uint" (UInt32) or "float";
    `weights` hold one derivative per argument: a function of (f, out, *args) in traced operations, where `f` holds all
    traced functions, or a number, or None where no gradient passes. `domain` holds one test interval per argument.
    `mask_first`: the first argument is a Bool and the others decide the type.
    """

    name: str
    doc: str
    arity: int
    kinds: str
    reference: Reference
    lower: Lower
    weights: tuple[Weight, ...] | None = None
    domain: tuple[tuple[float, float], ...] = ()
    result: str = "same"
    ulp: float = 0.0  # greatest error against NumPy in units of the last place (single precision)
    mask_first: bool = False
    number: int = field(default_factory=lambda: len(ROWS))

    def __repr__(self) -> str:
        return f"<op {self.name}>"


ROWS: dict[str, Row] = {}


def row(name: str, doc: str, arity: int, kinds: str, reference: Reference, lower: Lower, **rest: Any) -> Row:
    """Return a new row, entered in the table; raises ValueError if the name is taken."""
    if name in ROWS:
        raise ValueError(f"operation '{name}' has two rows")
    entry = Row(name, doc, arity, kinds, reference, lower, **rest)
    ROWS[name] = entry
    return entry


def intrinsic(name: str, integer: str = "") -> Lower:
    """Return a lowering to one LLVM intrinsic; `integer` names another one for integers (`s`/`u` is put before)."""

    def lower(e: Emitter, dtype: DType, *args: Value) -> Value:
        if integer and not dtype.is_float:
            return e.intrinsic(("s" if dtype.kind == "i" else "u") + integer, dtype, *args)
        return e.intrinsic(name, dtype, *args)

    return lower
