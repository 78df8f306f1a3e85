"""Which streamed function runs in this thread, and what it may ask for: the numbers of its elements."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..arrays.base import hooks
from ..arrays.create import arange
from ..arrays.flat import Flat
from ..dtypes import UInt64
from ..runtime.evaluate import choice
from ..trace import recording


class _Current(threading.local):
    context: Any = None
    paused = False


_current = _Current()


def current() -> Any:
    """Return the run of a streamed function in this thread, if there is one."""
    return None if _current.paused else _current.context


@contextmanager
def running(context: Any) -> Iterator[None]:
    """Within the block operations report to `context`; a probe notes the user's lines. Streams may nest."""
    outer, lines = (_current.context, _current.paused, choice.pick), recording.lines
    _current.context, _current.paused, choice.pick = context, False, context.pick
    recording.lines = lines or context.probing
    try:
        yield
    finally:
        _current.context, _current.paused, choice.pick = outer
        recording.lines = lines


@contextmanager
def paused() -> Iterator[None]:
    """Within the block operations do not report."""
    before, _current.paused = _current.paused, True
    try:
        yield
    finally:
        _current.paused = before


def index(like: Any = None) -> Any:
    """Return the number of each element (UInt64): within a streamed function among the elements of all chunks.

    Elsewhere `like` tells how many there are, so that a function that passes its argument also runs in memory.
    """
    context = current()
    if context is not None:
        return context.index()
    if like is None:
        raise RuntimeError("stream.index(): outside of a streamed function pass an array, as in stream.index(x)")
    first = like
    while not isinstance(first, Flat):
        first = first._c[0]
    return arange(first.ns.flat(UInt64), first._n.size)


def length(like: Any = None) -> int:
    """Return the number of elements of all chunks; outside of a streamed function that of the array `like`."""
    context = current()
    if context is not None:
        return int(context.length)
    if like is None:
        raise RuntimeError("stream.length(): outside of a streamed function pass an array, as in stream.length(x)")
    first = like
    while not isinstance(first, Flat):
        first = first._c[0]
    return int(first._n.size)


def _reduce(op: str, x: Any, result: Any) -> Any:
    context = current()
    return None if context is None else context.reduce(op, x, result)


def _elements(x: Any) -> int:
    context = current()
    return int(x._n.size if context is None else context.elements(x))


def _scatter(op: str, target: Any, value: Any, index: Any, active: Any) -> bool:
    context = current()
    return context is not None and bool(context.scatter(op, target, value, index, active))


hooks.reduce, hooks.elements, hooks.scatter = _reduce, _elements, _scatter

__all__ = ["current", "index", "length", "paused", "running"]
