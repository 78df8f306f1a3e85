"""Going through the sources chunk by chunk: windows of files, borrowed or copied arrays, what is read ahead."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..arrays import tree
from ..arrays.memops import gather
from ..dtypes import UInt32
from ..memory.pool import allocate, borrow, pool
from ..runtime.engine import runtime
from ..trace import counter, data
from .report import Progress, Report
from .sources import Source, source

_PACKET = 32


class Chunks:
    """The sources of one streamed evaluation, with as many elements each; a context manager that opens them."""

    def __init__(self, values: Sequence[Any], ns: Any, report: Report, progress: Progress) -> None:
        self.sources: list[Source] = [source(v) for v in values]
        self.length = _common_length(self.sources)
        self.ns, self.report, self.progress = ns, report, progress
        self.peak = self._before = 0  # bytes of arrays and windows at most; of arrays at the start

    def __enter__(self) -> Chunks:
        self._before = pool().live
        try:
            for s in self.sources:
                s.open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        runtime.sync()
        self.close()

    def close(self) -> None:
        """Close all sources."""
        for s in self.sources:
            s.close()

    def ranges(self, chunk: int) -> list[tuple[int, int]]:
        """Return start and end of every chunk; none has a single element, whose program would be another one."""
        found = []
        start = 0
        while start < self.length:
            stop = min(start + chunk, self.length)
            if self.length - stop == 1:
                stop -= _PACKET
            found.append((start, stop))
            start = stop
        return found

    def __call__(self, chunk: int) -> Iterator[tuple[int, int, list[Any]]]:
        """Yield start, end and arrays of every chunk; afterwards check the sources and tell how far it is.

        The list must be emptied before the next chunk is asked for, or its window stays in memory.
        """
        self.report.passes += 1
        passes = self.report.passes
        ranges = self.ranges(chunk)
        for k, (start, stop) in enumerate(ranges):
            mapped = (stop - start) * sum(s.row for s in self.sources if s.mapped)
            with pool().scope() as seen:
                arrays = [self.load(s, start, stop) for s in self.sources]
                for following in ranges[k + 1 : k + 2]:
                    for s in self.sources:
                        s.prefetch(*following)
                try:
                    yield start, stop, arrays
                finally:
                    arrays.clear()
            self.peak = max(self.peak, seen.live_peak - self._before + mapped)
            self.report.chunks += 1
            for s in self.sources:
                s.done(start, stop)
                self.report.bytes_read += (stop - start) * s.row
            self.progress.update((passes - 1) * self.length + stop, passes * self.length)

    def load(self, s: Source, start: int, stop: int) -> Any:
        """Return elements of a source as an array: flat, or nested if they have components."""
        size, inner = stop - start, s.shape[1:]
        kind = self.ns.flat(s.kind)
        if size == 0:
            return kind() if not inner else tree.map_arrays(lambda _: kind(), self.ns.nested(inner, s.kind)(0))
        if size == 1:
            return self._constant(s, start)
        count = s.row // s.dtype.itemsize
        if s.direct:
            window = s.window(start, stop).reshape(-1)
            n = data(s.kind, window.size, borrow(window.ctypes.data, window.nbytes, window))
        else:
            buffer = allocate(s.kind, size * count)
            runtime.sync()  # what ran before may still read the block
            place = (ctypes.c_char * (size * s.row)).from_address(buffer.ptr)
            s.read_into(np.frombuffer(place, s.kind.numpy).reshape(size, *inner), start, stop)
            n = data(s.kind, size * count, buffer)
        flat = kind.wrap(n)
        if not inner:
            return flat
        first = self.ns.flat(UInt32).wrap(counter(size)) * count
        numbers = iter(range(count))
        template = self.ns.nested(inner, s.kind)(0)
        return tree.map_arrays(lambda _: gather(kind, flat, first + next(numbers)), template)

    def _constant(self, s: Source, position: int) -> Any:
        """Return one element, which is a constant as it is when such an array is made in memory."""
        values = np.empty((1, *s.shape[1:]), s.kind.numpy)
        s.read_into(values, position, position + 1)
        kind = self.ns.flat(s.kind)
        if len(s.shape) == 1:
            return kind(values)
        rest = iter(values.reshape(-1))
        return tree.map_arrays(lambda _: kind(next(rest).item()), self.ns.nested(s.shape[1:], s.kind)(0))


def _common_length(sources: list[Source]) -> int:
    if not sources:
        raise ValueError("stream: at least one source is needed; its length is the number of elements")
    if len({len(s) for s in sources}) > 1:
        named = ", ".join(f"{s.name}: {len(s)}" for s in sources)
        raise ValueError(f"stream: all sources need equally many elements, found {named}")
    return len(sources[0])


__all__ = ["Chunks"]
