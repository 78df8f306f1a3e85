"""Dimensions of tensors: new ones, removed ones, another order; and search in sorted order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import UInt32
from ..ops.row import ROWS
from . import linear
from .functions import call, select
from .nested import Nested
from .shape import concat
from .strides import transposed

__all__ = ["binary_search", "expand_dims", "moveaxis", "squeeze", "stack", "swapaxes", "transpose"]


def _axis(axis: int, rank: int, name: str) -> int:
    if not -rank <= axis < rank:
        raise RuntimeError(f"{name}(): axis {axis} is out of range for {rank} dimensions")
    return axis % rank


def _tensor(x: Any, name: str) -> Any:
    if not getattr(x, "is_tensor", False):
        raise TypeError(f"{name}(): a tensor is needed, found {type(x).__name__}")
    return x


def expand_dims(x: Any, axis: int) -> Any:
    """Return a tensor with a new dimension of length 1 before `axis` of the result."""
    shape = list(_tensor(x, "expand_dims").shape)
    shape.insert(_axis(axis, len(shape) + 1, "expand_dims"), 1)
    return type(x)(x.array, shape)


def squeeze(x: Any, axis: int | Sequence[int] | None = None) -> Any:
    """Return a tensor without its dimensions of length 1, or those named; raises RuntimeError for longer ones."""
    shape = _tensor(x, "squeeze").shape
    rank = len(shape)
    if axis is None:
        gone = {k for k in range(rank) if shape[k] == 1}
    else:
        gone = {_axis(a, rank, "squeeze") for a in ((axis,) if isinstance(axis, int) else axis)}
    for k in gone:
        if shape[k] != 1:
            raise RuntimeError(f"squeeze(): axis {k} of shape {shape} has not the length 1")
    return type(x)(x.array, [d for k, d in enumerate(shape) if k not in gone])


def transpose(x: Any, axes: Sequence[int] | None = None) -> Any:
    """Return a tensor with its dimensions in the order `axes` (reversed by default), or the transpose of a matrix."""
    if isinstance(x, Nested):
        return linear.transpose(x)
    rank = len(_tensor(x, "transpose").shape)
    order = list(range(rank - 1, -1, -1)) if axes is None else [_axis(a, rank, "transpose") for a in axes]
    if sorted(order) != list(range(rank)):
        raise RuntimeError(f"transpose(): {axes} is no order of {rank} dimensions")
    return transposed(x, order)


def moveaxis(x: Any, source: int, destination: int) -> Any:
    """Return a tensor with one dimension moved to another place."""
    rank = len(_tensor(x, "moveaxis").shape)
    source, destination = _axis(source, rank, "moveaxis"), _axis(destination, rank, "moveaxis")
    order = [k for k in range(rank) if k != source]
    order.insert(destination, source)
    return transposed(x, order)


def swapaxes(x: Any, a: int, b: int) -> Any:
    """Return a tensor with two dimensions exchanged."""
    rank = len(_tensor(x, "swapaxes").shape)
    a, b = _axis(a, rank, "swapaxes"), _axis(b, rank, "swapaxes")
    order = list(range(rank))
    order[a], order[b] = b, a
    return transposed(x, order)


def stack(parts: Sequence[Any], axis: int = 0) -> Any:
    """Return tensors of one shape joined along a new dimension."""
    if not parts:
        raise ValueError("stack(): at least one tensor is needed")
    shapes = {_tensor(p, "stack").shape for p in parts}
    if len(shapes) > 1:
        raise RuntimeError(f"stack(): tensors must have one shape, found {sorted(shapes)}")
    axis = _axis(axis, len(parts[0].shape) + 1, "stack")
    return concat([expand_dims(p, axis) for p in parts], axis)


def binary_search(start: Any, end: Any, pred: Callable[[Any], Any]) -> Any:
    """Return per lane the first index in [start, end) where `pred` is false, `end` if there is none (UInt32).

    `pred` takes an index and returns a mask that is true below some index and false from there on. As many steps are
    recorded as the range needs: 32 if its bounds are arrays, else the logarithm of its length.
    """
    if not callable(pred):
        raise TypeError(f"binary_search(): pred must be a function of an index, found {type(pred).__name__}")
    steps = max(0, end - start).bit_length() if isinstance(start, int) and isinstance(end, int) else 32
    low, high = start, end
    for _ in range(steps):
        middle = low + ((high - low) >> 1)
        # A finished search looks at `end` otherwise, which nobody promised to exist.
        below = pred(call(ROWS["min"], middle, end - 1))
        if isinstance(low, int) and isinstance(high, int) and not isinstance(below, bool):
            kind = below.ns.flat(UInt32)
            low, high = kind(low), kind(high)
        inside = low < high
        moves = below & inside
        low, high = select(moves, middle + 1, low), select(inside & (moves != inside), middle, high)
    return low
