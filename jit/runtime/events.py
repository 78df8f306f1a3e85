"""Events: places in the order of launches that can be waited for and timed."""

from __future__ import annotations

import ctypes
import sys
import time

from ..codegen import host
from ..memory.pool import Buffer, pool
from . import cache
from .engine import Launch, runtime

# A kernel that writes the time, so that events know when they were reached and not when somebody looked.
_CODE = """
declare i32 @clock_gettime(i32, ptr)
define void @kernel(i64 %begin, i64 %end, i64 %chunk, ptr %args) {{
  %p = load ptr, ptr %args
  %r = call i32 @clock_gettime(i32 {clock}, ptr %p)
  ret void
}}
"""
_CLOCKS = {"linux": 1, "darwin": 6}  # CLOCK_MONOTONIC


def _kernel() -> cache.Kernel:
    known = runtime.utilities.get(("event",))
    if known is None:
        text = _CODE.format(clock=_CLOCKS[sys.platform])
        module = host.compile_ir(text, "event", ("kernel",))
        known = runtime.utilities[("event",)] = cache.Kernel(module, (), (), "event")
    return known


class Event:
    """A place in the order of launches: `record()` sets it, `query()` tells whether it is reached, `wait()` waits.

    `start.elapsed_time(end)` returns the milliseconds between two recorded events, waiting for both. With
    `enable_timing=False` no time is kept.

    >>> import luxgrad as dr
    >>> from luxgrad.llvm import Event, Float
    >>> start, end = Event(), Event()
    >>> start.record()
    >>> x = dr.sin(dr.arange(Float, 1_000_000)); _ = dr.eval(x); end.record()
    >>> end.wait()
    >>> end.query(), start.elapsed_time(end) > 0
    (True, True)
    """

    def __init__(self, enable_timing: bool = True) -> None:
        self.enable_timing = enable_timing
        self._job = 0
        self._recorded = False
        self._stamp: Buffer | None = None
        self._seen = 0.0  # where kernels cannot read the clock: when the event was first found reached

    def record(self) -> None:
        """Put the event behind everything launched so far."""
        with runtime.lock:
            self._recorded, self._seen = True, 0.0
            if self.enable_timing and sys.platform in _CLOCKS:
                self._stamp = pool().allocate(16)
                runtime.run(Launch(_kernel(), 1, 1, 1, 1, [self._stamp], ["w:whole"]))
            self._job = runtime.threads.submitted

    def query(self) -> bool:
        """Return whether everything before the event is done (true if it was never recorded)."""
        done = not self._recorded or runtime.threads.completed >= self._job
        if done and not self._seen:
            self._seen = time.perf_counter()
        return done

    def wait(self) -> None:
        """Return when everything before the event is done; raises what replays before it have found wrong."""
        if self._recorded:
            runtime.wait_for(self._job)
        self.query()

    def elapsed_time(self, end: Event) -> float:
        """Return the milliseconds from this event to another one; raises RuntimeError if either has no time."""
        for event in (self, end):
            if not isinstance(event, Event) or not event._recorded or not event.enable_timing:
                raise RuntimeError("elapsed_time(): both events must have been recorded, with enable_timing on")
            event.wait()
        return 1e3 * (end._time() - self._time())

    def _time(self) -> float:
        if self._stamp is None:
            return self._seen
        seconds, nanoseconds = (ctypes.c_int64 * 2).from_address(self._stamp.ptr)
        return float(seconds + 1e-9 * nanoseconds)


__all__ = ["Event"]
