"""Results computed once per process, also when several threads ask at the same time."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def once(fn: F) -> F:
    """Return a function that remembers its results by arguments and never computes one twice.

    `functools.cache` lets two threads compute the same result and drops one of them: fatal for machine code, whose
    address may be in use already.
    """
    lock = threading.RLock()
    cached = functools.cache(fn)

    @functools.wraps(fn)
    def call(*args: Any) -> Any:
        with lock:
            return cached(*args)

    return call  # type: ignore[return-value]
