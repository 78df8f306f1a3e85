"""Reading flat storage in another order: any combination of dimensions with counts and strides, as traced indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import UInt32
from .create import arange, full
from .memops import gather, scatter

Dims = Sequence[tuple[int, int]]  # per dimension, outermost first: number of elements, step in the storage


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the steps of row-major storage."""
    steps, step = [], 1
    for d in reversed(shape):
        steps.append(step)
        step *= d
    return tuple(reversed(steps))


def merged(dims: Dims) -> list[tuple[int, int]]:
    """Return the same order of elements with as few dimensions as possible."""
    result: list[tuple[int, int]] = []
    for count, step in dims:
        if count == 1:
            continue
        if result and result[-1][1] == count * step:
            result[-1] = (result[-1][0] * count, step)
        else:
            result.append((count, step))
    return result


def positions(ns: Any, dims: Dims, offset: int = 0) -> Any:
    """Return the storage index of every element (UInt32), the last dimension fastest."""
    kind = ns.flat(UInt32)
    total = math.prod(count for count, _ in dims)
    if total == 0:
        return full(kind, 0, 0)
    remaining = arange(kind, total)
    few = merged(dims)
    result = None
    for k in range(len(few) - 1, -1, -1):
        count, step = few[k]
        coordinate = remaining % count if k else remaining
        remaining = remaining // count if k else remaining
        if step:
            term = coordinate * (step % (1 << 32))  # wraps: a negative step counts backwards
            result = term if result is None else term + result
    start = offset % (1 << 32)
    return full(kind, start, total) if result is None else result + start if start else result


def strided(flat: Any, dims: Dims, offset: int = 0) -> Any:
    """Return the elements of flat storage in the order of `dims` (a copy; lazy). Differentiable."""
    total = math.prod(count for count, _ in dims)
    few = merged(dims)
    if offset == 0 and total == flat._n.size and (not few or few == [(total, 1)]):
        return flat.__copy__()
    return gather(type(flat), flat, positions(flat.ns, dims, offset))


def broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape that arrays of these shapes are broadcast to; raises RuntimeError if they do not agree."""
    result: list[int] = []
    for shape in shapes:
        result[:0] = [1] * (len(shape) - len(result))
        for k in range(1, len(shape) + 1):
            if shape[-k] != result[-k] and shape[-k] != 1:
                if result[-k] != 1:
                    listed = ", ".join(map(str, shapes))
                    raise RuntimeError(f"operands have incompatible shapes! (shapes: {listed})")
                result[-k] = shape[-k]
    return tuple(result)


def broadcast(flat: Any, shape: tuple[int, ...], target: tuple[int, ...]) -> Any:
    """Return the storage of an array of `shape` repeated along its dimensions of length 1 up to `target`."""
    steps = contiguous(shape)
    missing = len(target) - len(shape)
    dims = [(count, 0) for count in target[:missing]]
    dims += [(count, 0 if d == 1 else s) for count, d, s in zip(target[missing:], shape, steps, strict=True)]
    return strided(flat, dims)


def transposed(x: Any, order: Sequence[int]) -> Any:
    """Return a tensor with its dimensions in another order."""
    steps = contiguous(x.shape)
    shape = tuple(x.shape[k] for k in order)
    return type(x)(strided(x.array, [(x.shape[k], steps[k]) for k in order]), shape)


def moved_last(x: Any, axis: int) -> tuple[Any, Callable[[Any], Any]]:
    """Return a tensor's storage with one axis innermost, and the function that makes a tensor of such storage again."""
    n = len(x.shape)
    axis %= n
    order = [k for k in range(n) if k != axis] + [axis]
    inverse = sorted(range(n), key=order.__getitem__)
    turned = transposed(x, order)
    return turned.array, lambda flat: transposed(type(x)(flat, turned.shape), inverse)


def ravel_tensor(x: Any, order: str) -> Any:
    """Return a tensor's elements with the last index fastest ("A", "C") or the first ("F")."""
    if order in ("A", "C"):
        return x.array
    if order != "F":
        raise ValueError(f"unknown order '{order}'; use 'A', 'C' or 'F'")
    return transposed(x, range(len(x.shape) - 1, -1, -1)).array


def concat_tensors(parts: list[Any], axis: int) -> Any:
    """Return tensors joined along an existing axis."""
    n = len(parts[0].shape)
    if not -n <= axis < n:
        raise RuntimeError(f"concat(): axis {axis} is out of range for {n} dimensions")
    axis %= n
    rest = [p.shape[:axis] + p.shape[axis + 1 :] for p in parts]
    if any(r != rest[0] for r in rest):
        listed = ", ".join(str(p.shape) for p in parts)
        raise RuntimeError(f"concat(): tensors must agree in all dimensions but axis {axis} (shapes: {listed})")
    total = sum(p.shape[axis] for p in parts)
    shape = (*parts[0].shape[:axis], total, *parts[0].shape[axis + 1 :])
    if axis == 0:
        from .shape import concat

        flat = concat([p.array for p in parts])
        return flat.ns.tensor(flat.dtype)(flat, shape)
    cls = type(max(parts, key=lambda p: (p.dtype.order, p.is_diff)))
    result = full(cls.storage(), 0, math.prod(shape))
    steps = contiguous(shape)
    start = 0
    for p in parts:
        index = positions(result.ns, list(zip(p.shape, steps, strict=True)), start * steps[axis])
        scatter(result, p.array, index)
        start += p.shape[axis]
    return cls(result, shape)


__all__ = [
    "broadcast", "broadcast_shape", "concat_tensors", "contiguous", "merged", "moved_last", "positions", "ravel_tensor",
    "strided", "transposed",
]  # fmt: skip
