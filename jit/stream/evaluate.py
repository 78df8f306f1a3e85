"""`stream.evaluate`: a function of arrays over data larger than memory, chunk by chunk."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..arrays import reduce as reductions
from ..arrays import tree
from ..arrays.base import hooks
from ..arrays.memops import gather
from ..arrays.namespace import namespace
from ..arrays.transfer import read
from ..dtypes import UInt32, UInt64
from ..memory.pool import allocate, borrow, pool
from ..runtime.evaluate import evaluate as compute
from ..runtime.evaluate import materialise
from ..runtime.history import history
from ..runtime.launch import runtime
from ..trace import REDUCE, Node, counter, data, literal, node
from .budget import Need, chunk_size, nbytes, text
from .context import Blocked, Context, paused, running
from .outputs import Output, components, items, output, replace
from .probe import LENGTHS, Probe, probed
from .report import Progress, Report, Result
from .sources import Source, source
from .totals import Total, partial_type

_NAMES = ("sum", "prod", "min", "max", "any", "all", "none", "count", "mean")
_PACKET = 32


def evaluate(
    fn: Callable[..., Any],
    *sources: Any,
    params: Any = (),
    out: Any = None,
    reduce: str | Callable[[Any], Any] | None = None,
    max_resident: int | float | str = "1 GiB",
    chunk: int | None = None,
    progress: bool | Callable[[int, int], Any] | None = None,
    keep_partial: bool = False,
    ad: bool | None = None,
) -> Result:
    """Return fn(*sources, *params) for sources of any length, of which only a chunk at a time is in memory.

    `sources`: paths of .npy files, `stream.raw(path, dtype)`, memory maps, NumPy arrays, Zarr-like objects, or lists of
    these in a row; all with equally many elements. `fn` gets a flat array per source, or a nested one if elements have
    components, and returns arrays alone or in lists, tuples and dicts. It runs once per chunk, and before on symbols,
    and must do the same each time. `params`: further arguments (a dict: by name).

    Results with an element per element go to `out`: a path (.npy, or plain elements), an array, None for memory, or
    these in the structure of the results. Other results are totals over all chunks. `reduce` names a reduction of
    every result (or is a function of an array that reduces it).

    `max_resident` (bytes, text, or fraction of the machine's memory) bounds chunk windows, results in memory, params,
    and everything the engine allocates. `chunk` sets the elements per chunk instead of the largest that fits.
    `progress`: True, False, a function of (done, total), or None: a bar on a terminal. `keep_partial` leaves an
    unfinished `out` as "name.partial". `ad`: whether `fn` gets differentiable types; by default if `params` are.

    Raises MemoryBudgetError and NotStreamableError before anything is read or written, FileFormatError for files that
    are too short or change meanwhile.

    >>> import numpy as np, luxgrad as dr
    >>> from luxgrad import stream
    >>> x = np.arange(1000, dtype=np.float32)
    >>> stream.evaluate(lambda x: dr.sum(x * 2), x, chunk=256).value
    [999000]
    """
    with Job(fn, sources, params, reduce, max_resident, chunk, progress, ad) as job:
        return job.run(out, keep_partial)


class Job:
    """One streamed evaluation: its sources, totals so far, and how a chunk is loaded and computed."""

    def __init__(
        self, fn: Any, sources: Any, params: Any, reduce: Any, max_resident: Any, chunk: Any, progress: Any, ad: Any
    ) -> None:
        self.fn, self.params, self.asked = fn, params, chunk
        self.reduction = _reduction(reduce)
        self.budget = nbytes(max_resident)
        self.sources: list[Source] = [source(s) for s in sources]
        self.length = _common_length(self.sources)
        diff = any(a.is_diff for a in tree.arrays(params)) if ad is None else ad
        self.ns = namespace("llvm", diff)
        self.totals: dict[Any, Total] = {}
        self.report = Report(self.length, budget=self.budget)
        self.progress = Progress(progress)
        self.windows = 0  # bytes of the largest window

    def __enter__(self) -> Job:
        self._began = time.perf_counter()
        self._before = history.launches, history.soft_misses + history.hard_misses
        try:
            for s in self.sources:
                s.open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        runtime.sync()
        self.close()
        self.progress.__exit__(kind, error, trace)

    def close(self) -> None:
        """Close all sources."""
        for s in self.sources:
            s.close()

    def call(self, chunks: list[Any]) -> Any:
        """Return the function's result, reduced as asked."""
        params = self.params
        if type(params) is dict:
            result = self.fn(*chunks, **params)
        else:
            result = self.fn(*chunks, *(params if type(params) in (list, tuple) else (params,)))
        return result if self.reduction is None else tree.map_arrays(self.reduction, result)

    def probe(self) -> Probe:
        """Return what the function does, as far as the totals known so far let it run."""
        return probed(self.call, self.sources, self.ns, self.length, self.totals)

    def need(self, probe: Probe, outputs: list[Output], extra: int = 0) -> Need:
        """Return the bytes that a pass takes."""
        params = sum(x._n.size * x._n.dtype.itemsize for x in tree.arrays(self.params) if x._n.buf is not None)
        stored = sum(probe.context.stored.values()) + extra
        return Need(self.sources, outputs, probe.totals, stored, params)

    def plan(self, need: Need) -> int:
        """Return the elements per chunk, and note it in the report."""
        chunk = chunk_size(need, self.budget, self.length, self.asked, self.sources, text)
        self.report.chunk = chunk
        self.report.planned = max(self.report.planned, need(min(chunk, max(1, self.length))))
        return chunk

    def run(self, out: Any, keep: bool) -> Result:
        """Return the result: passes over the data until all totals are known and all results are written."""
        outputs: list[Output | None] | None = None
        written: set[int] = set()
        try:
            with pool().scope() as seen:
                while True:
                    probe = self.probe()
                    if outputs is None and probe.items is not None:
                        outputs = self._outputs(probe, out, keep)
                    known = [o for o in outputs or [] if o is not None]
                    chunk = self.plan(self.need(probe, known))
                    if self.length <= 1:
                        assert outputs is not None or probe.items is None
                        return self._tiny(out, keep)
                    ready = [t for t in probe.totals if t.value is None and t.ready]
                    todo = [
                        k for k, item in enumerate(probe.items or [])
                        if item.streamed and item.ready and k not in written
                    ]  # fmt: skip
                    if not ready and not todo:
                        break
                    if not written:
                        for o in (known if todo else []):
                            o.open()
                    del probe
                    self._pass(chunk, ready, {k: outputs[k] for k in todo} if outputs else {})
                    written.update(todo)
                value = self._finish(outputs or [])
        except BaseException:
            runtime.sync()
            for o in outputs or []:
                if o is not None:
                    o.abort()
            raise
        self._account(seen)
        return Result(value, self.report)

    def _outputs(self, probe: Probe, out: Any, keep: bool) -> list[Output | None]:
        assert probe.items is not None
        streamed = [k for k, item in enumerate(probe.items) if item.streamed]
        places = [out] if len(streamed) <= 1 and type(out) not in (list, tuple, dict) else items(out)
        if out is not None and len(places) == len(probe.items):
            places = [places[k] for k in streamed]
        if out is None:
            places = [None] * len(streamed)
        if len(places) != len(streamed):
            raise ValueError(
                f"out: {len(places)} place(s) for {len(streamed)} result(s) with an element per element of the stream"
            )
        paths = [str(p) for p in places if p is not None and not isinstance(p, np.ndarray)]
        if len(set(paths)) != len(paths):
            raise ValueError(f"out: several results cannot go to one file: {', '.join(paths)}")
        found: list[Output | None] = [None] * len(probe.items)
        for k, place in zip(streamed, places, strict=True):
            item = probe.items[k]
            dtypes = {n.dtype for n in item.nodes}
            dtype = dtypes.pop()
            found[k] = output(place, keep, _maker(item.value), self.length, dtype, item.inner)
        return found

    def ranges(self, chunk: int) -> Iterator[tuple[int, int]]:
        """Yield start and end of every chunk; none has a single element, whose program would be another one."""
        start = 0
        while start < self.length:
            stop = min(start + chunk, self.length)
            if self.length - stop == 1:
                stop -= _PACKET
            yield start, stop
            start = stop

    def chunks(self, chunk: int) -> Iterator[tuple[int, int, Context, list[Any]]]:
        """Yield every chunk with a context and the arrays that hold it; checks the sources and reports afterwards."""
        self.report.passes += 1
        ranges = list(self.ranges(chunk))
        for k, (start, stop) in enumerate(ranges):
            arrays = [self._load(s, start, stop) for s in self.sources]
            following = ranges[k + 1 : k + 2]
            for s in self.sources:
                for begin, end in following:
                    s.prefetch(begin, end)
            yield start, stop, self._context(start, stop), arrays
            del arrays
            self.report.chunks += 1
            for s in self.sources:
                s.done(start, stop)
                self.report.bytes_read += (stop - start) * s.row
            self.progress.update((self.report.passes - 1) * self.length + stop, self.report.passes * self.length)

    def _context(self, start: int, stop: int) -> Context:
        first = materialise(literal(UInt64, start))
        return Context(stop - start, first, self.length, self.ns, self.totals, probing=False)

    def _load(self, s: Source, start: int, stop: int) -> Any:
        size = stop - start
        count = s.row // s.dtype.itemsize
        if s.direct:
            window = s.window(start, stop).reshape(-1)
            n = data(s.kind, window.size, borrow(window.ctypes.data, window.nbytes, window))
        else:
            buffer = allocate(s.kind, size * count)
            runtime.sync()  # the block may still be read by what ran before
            place = (ctypes.c_char * (size * s.row)).from_address(buffer.ptr)
            s.read_into(np.frombuffer(place, s.kind.numpy).reshape(size, *s.shape[1:]), start, stop)
            n = data(s.kind, size * count, buffer)
        if s.mapped:
            self.windows = max(self.windows, size * s.row)
        kind = self.ns.flat(s.kind)
        flat = kind.wrap(n)
        if len(s.shape) == 1:
            return flat
        index = self.ns.flat(UInt32).wrap(counter(size)) * count
        numbers = iter(range(count))
        return tree.map_arrays(lambda _: gather(kind, flat, index + next(numbers)), self.ns.nested(s.shape[1:], s.kind)(0))

    def _pass(self, chunk: int, ready: list[Total], outputs: dict[int, Output | None]) -> None:
        self.totals.update((t.key, t) for t in ready)
        for start, stop, context, arrays in self.chunks(chunk):
            results: list[Any] = []
            with running(context):
                try:
                    results = items(self.call(arrays))
                except Blocked:
                    pass
                finally:
                    self._take_scattered(context, ready)
            del arrays
            self._compute(context, ready, {k: components(results[k]) for k in outputs} if outputs else {})
            for k, o in outputs.items():
                assert o is not None
                o.write(start, [x._n for x in components(results[k])], stop - start)
                self.report.bytes_written += (stop - start) * o.row
        for t in ready:
            t.finish()
            t.level = self.report.passes

    def _take_scattered(self, context: Context, ready: list[Total]) -> None:
        for t in ready:
            if t.scattered:
                t.running = context.roots.pop(t.key, None)
        context.afters.clear()
        context.current.clear()
        context._kinds.clear()
        context.restore()

    def _compute(self, context: Context, ready: list[Total], results: dict[int, list[Any]]) -> None:
        reduced = {
            t: node(REDUCE, partial_type(t.dtype, t.op), 1, (context.roots[t.key],), t.op)
            for t in ready if not t.scattered
        }  # fmt: skip
        context.roots.clear()
        context.bases.clear()
        nodes: list[Node] = [x._n for arrays in results.values() for x in arrays]
        with paused():
            compute([*nodes, *reduced.values(), *(t.running for t in ready if t.running is not None)])
            runtime.sync()
            for t, n in reduced.items():
                t.partials.add(read(n, 0))

    def _tiny(self, out: Any, keep: bool) -> Result:
        """Return the result for a stream of at most one element, which is computed as arrays in memory are."""
        size = self.length
        arrays = [self._load(s, 0, size) if size else _empty(self.ns, s) for s in self.sources]
        context = Context(size, materialise(literal(UInt64, 0)), size, self.ns, {}, probing=False)
        with running(context):
            result = self.call(arrays)
        probe_items = self.probe().items or []
        outputs = self._outputs(self.probe(), out, keep) if probe_items else []
        values = items(result)
        for k, o in enumerate(outputs):
            if o is not None:
                o.open()
                try:
                    if size:
                        flats = components(values[k])
                        compute([x._n for x in flats])
                        o.write(0, [x._n for x in flats], size)
                    values[k] = o.finish()
                except BaseException:
                    o.abort()
                    raise
        self.report.chunks = self.report.passes = 1
        self.report.seconds = time.perf_counter() - self._began
        return Result(replace(result, iter(values)), self.report)

    def _finish(self, outputs: list[Output | None]) -> Any:
        """Return the value: totals are put in, what only depends on them is computed, files get their names."""
        last = Probe(self.call, self.sources, self.ns, LENGTHS[0], self.length, self.totals, keep=True)
        if last.items is None:
            raise RuntimeError("stream: the function did something else on symbols than before; it must not change")
        compute([n for item in last.items if not item.streamed for n in item.nodes])
        values = [item.value for item in last.items]
        for k, o in enumerate(outputs):
            if o is not None:
                values[k] = o.finish()
        return replace(last.result, iter(values))

    def _account(self, seen: Any) -> None:
        report = self.report
        report.seconds = time.perf_counter() - self._began
        report.peak = seen.live_peak - seen.live_before + self.windows
        report.launches = history.launches - self._before[0]
        report.compiled = history.soft_misses + history.hard_misses - self._before[1]


def _empty(ns: Any, s: Source) -> Any:
    kind = ns.flat(s.kind)
    if len(s.shape) == 1:
        return kind()
    return tree.map_arrays(lambda _: kind(), ns.nested(s.shape[1:], s.kind)(0))


def _maker(value: Any) -> Callable[[list[Node]], Any]:
    """Return what makes an array like `value` of nodes; the value itself is not kept."""
    template = tree.map_arrays(lambda x: type(x)(0), value)

    def make(nodes: list[Node]) -> Any:
        rest = iter(nodes)
        return tree.map_arrays(lambda x: type(x).wrap(next(rest)), template)

    return make


def _reduction(asked: Any) -> Callable[[Any], Any] | None:
    if asked is None or callable(asked):
        return asked  # type: ignore[no-any-return]
    if asked not in _NAMES:
        raise ValueError(f"reduce: unknown reduction {asked!r}; use {', '.join(_NAMES)}, or a function of an array")
    found: Callable[[Any], Any] = getattr(reductions, asked)
    return found


def _common_length(sources: list[Source]) -> int:
    if not sources:
        raise ValueError("stream: at least one source is needed; its length is the number of elements")
    lengths = [len(s) for s in sources]
    if len(set(lengths)) > 1:
        named = ", ".join(f"{s.name}: {len(s)}" for s in sources)
        raise ValueError(f"stream: all sources need equally many elements, found {named}")
    return lengths[0]


__all__ = ["Job", "evaluate"]
