"""`stream.evaluate`: a function of arrays over data larger than memory, chunk by chunk."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import reduce as reductions
from ..arrays import tree
from ..arrays.namespace import namespace
from ..arrays.transfer import read
from ..dtypes import UInt64
from ..memory.pool import pool
from ..runtime.engine import runtime
from ..runtime.evaluate import evaluate as compute
from ..runtime.evaluate import materialise
from ..runtime.history import history
from ..trace import REDUCE, Node, literal, node
from .budget import Need, chunk_size, nbytes, text
from .chunks import Chunks
from .context import Blocked, Context
from .current import paused, running
from .outputs import Output, components, items, output, replace
from .probe import LENGTHS, Item, Probe, confirm, probed
from .report import Progress, Report, Result
from .totals import Total, partial_type

_PACKAGE = __name__.partition(".")[0] + "."
_NAMES = ("sum", "prod", "min", "max", "any", "all", "none", "count", "mean")


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
        # A frozen function replays what it did in memory; streaming records chunk by chunk itself.
        self.fn = getattr(fn, "__wrapped__", fn) if type(fn).__module__.startswith(_PACKAGE) else fn
        self.params, self.asked = params, chunk
        self.reduction = _reduction(reduce)
        self.ns = namespace("llvm", any(a.is_diff for a in tree.arrays(params)) if ad is None else ad)
        self.report = Report(budget=nbytes(max_resident))
        self.progress = Progress(progress)
        self.chunks = Chunks(sources, self.ns, self.report, self.progress)
        self.sources, self.length = self.chunks.sources, self.chunks.length
        self.report.elements = self.length
        self.totals: dict[Any, Total] = {}

    def __enter__(self) -> Job:
        self._began = time.perf_counter()
        self._before = history.launches, history.soft_misses + history.hard_misses
        self.chunks.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.chunks.__exit__()
        self.progress.__exit__(kind, error, trace)

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

    def need(self, probe: Probe, outputs: list[Output]) -> Need:
        """Return the bytes that a pass takes."""
        params = sum(x._n.size * x._n.dtype.itemsize for x in tree.arrays(self.params) if x._n.buf is not None)
        stored = sum(probe.context.stored.values())
        return Need(self.sources, outputs, probe.totals, stored, params)

    def plan(self, need: Need) -> int:
        """Return the elements per chunk, and note it in the report."""
        chunk = chunk_size(need, self.report.budget, self.length, self.asked, self.sources, text)
        self.report.chunk = chunk
        self.report.planned = max(self.report.planned, need(min(chunk, max(1, self.length))))
        return chunk

    def run(self, out: Any, keep: bool) -> Result:
        """Return the result: passes over the data until all totals are known and all results are written."""
        outputs: dict[int, Output] = {}
        try:
            with pool().scope() as seen:
                self.settle(lambda results: outputs.update(self._outputs(results, out, keep)), outputs)
                value = self._tiny(outputs) if self.length <= 1 else self.finish(outputs)
        except BaseException:
            runtime.sync()
            for o in outputs.values():
                o.abort()
            raise
        self.account(seen)
        return Result(value, self.report)

    def settle(self, place: Callable[[list[Item]], None], outputs: dict[int, Output]) -> None:
        """Go through the data until all totals are known and `outputs`, to which `place` adds, are complete."""
        placed = False
        while True:
            probe = self.probe()
            if not placed and probe.items is not None:
                place(probe.items)
                placed = True
            chunk = self.plan(self.need(probe, list(outputs.values())))
            ready = [t for t in probe.totals if t.value is None and t.ready]
            todo = {k: o for k, o in outputs.items() if not o.complete and _ready(probe, k)}
            if self.length <= 1 or not ready and not todo:
                return
            # A program with "if len(x) > 1000" differs between lengths of its own choice: those that matter are tried.
            sizes = {stop - start for start, stop in self.chunks.ranges(chunk)} | {self.length}
            confirm(probe, self.call, self.sources, self.ns, self.length, self.totals, sorted(sizes))
            self.totals = dict(probe.context.totals)
            del probe
            for o in todo.values():
                o.open()
            self._pass(chunk, ready, todo)

    def _outputs(self, results: list[Item], out: Any, keep: bool) -> dict[int, Output]:
        """Return where the results go that have an element per element of the stream, by number of the result."""
        streamed = [k for k, item in enumerate(results) if item.streamed]
        places = items(out) if type(out) in (list, tuple, dict) else [out] * (1 if out is not None else len(streamed))
        if len(places) == len(results) and all(places[k] is None for k in range(len(results)) if k not in streamed):
            places = [places[k] for k in streamed]
        if len(places) != len(streamed):
            raise ValueError(
                f"out: {len(places)} place(s) for {len(streamed)} result(s) with an element per element of the stream"
            )
        paths = [str(p) for p in places if p is not None and not isinstance(p, np.ndarray)]
        if len(set(paths)) != len(paths):
            raise ValueError(f"out: several results cannot go to one file: {', '.join(paths)}")
        found = {}
        for k, place in zip(streamed, places, strict=True):
            item = results[k]
            found[k] = output(place, keep, _maker(item.value), self.length, item.nodes[0].dtype, item.inner)
        return found

    def context(self, start: int, size: int) -> Context:
        """Return what a run of the function on one chunk reports to."""
        return Context(size, materialise(literal(UInt64, start)), self.length, self.ns, self.totals, probing=False)

    def _pass(self, chunk: int, ready: list[Total], outputs: dict[int, Output]) -> None:
        """Go through the data once: for totals that are known then, and for results that can be written."""
        for start, stop, arrays in self.chunks(chunk):
            context = self.context(start, stop - start)
            results: list[Any] = []
            with running(context):
                try:
                    results = items(self.call(arrays))
                except Blocked:
                    pass
                finally:
                    self._take_scattered(context, ready)
            arrays.clear()
            flats = {k: components(results[k]) for k in outputs}
            results.clear()
            self._compute(context, ready, flats)
            for k, o in outputs.items():
                o.write(start, [x._n for x in flats[k]], stop - start)
                self.report.bytes_written += (stop - start) * o.row
            del flats, context  # they may hold the window, and the next one is mapped now
        for o in outputs.values():
            o.complete = True
        for t in ready:
            t.finish()
            t.level = self.report.passes
        self.totals = {key: t for key, t in self.totals.items() if t.value is not None}

    def _take_scattered(self, context: Context, ready: list[Total]) -> None:
        for t in ready:
            if t.scattered:
                t.running = context.roots.pop(t.key, None)
        context.release()
        context.restore()

    def _compute(self, context: Context, ready: list[Total], results: dict[int, list[Any]]) -> None:
        reduced = {
            t: node(REDUCE, partial_type(t.dtype, t.op), 1, (context.roots[t.key],), t.op)
            for t in ready if not t.scattered
        }  # fmt: skip
        context.roots.clear()
        nodes: list[Node] = [x._n for arrays in results.values() for x in arrays]
        with paused():
            compute([*nodes, *reduced.values(), *(t.running for t in ready if t.running is not None)])
            runtime.sync()
            for t, n in reduced.items():
                t.partials.add(read(n, 0))

    def _tiny(self, outputs: dict[int, Output]) -> Any:
        """Return the result for a stream of at most one element, which is computed as arrays in memory are."""
        size = self.length
        context = self.context(0, size)
        context.totals = {}
        with running(context):
            result = self.call([self.chunks.load(s, 0, size) for s in self.sources])
        values = items(result)
        for k, o in outputs.items():
            flats = components(values[k])
            o.open()
            if size:
                compute([x._n for x in flats])
                o.write(0, [x._n for x in flats], size)
            values[k] = o.finish()
        self.report.chunks = self.report.passes = 1
        return _plain(replace(result, iter(values)))

    def finish(self, outputs: dict[int, Output]) -> Any:
        """Return the value: totals are put in, what only depends on them is computed, files get their names."""
        last = Probe(self.call, self.sources, self.ns, LENGTHS[0], self.length, self.totals, keep=True)
        if last.items is None:
            raise RuntimeError("stream: the function did something else on symbols than before; it must not change")
        compute([n for item in last.items if not item.streamed for n in item.nodes])
        runtime.sync()
        values = [item.value for item in last.items]
        for k, o in outputs.items():
            values[k] = o.finish()
        return _plain(replace(last.result, iter(values)))

    def account(self, seen: Any) -> None:
        """Note time, memory and kernels in the report."""
        report = self.report
        report.seconds = time.perf_counter() - self._began
        report.peak = max(self.chunks.peak, seen.live_peak - seen.live_before)
        report.launches = history.launches - self._before[0]
        report.compiled = history.soft_misses + history.hard_misses - self._before[1]
        if report.peak > report.budget:
            over = f"arrays took {text(report.peak)}, more than max_resident: pass a smaller `chunk`"
            report.notes.append(over)
            warnings.warn(f"stream: {over}", RuntimeWarning, stacklevel=4)


def _plain(value: Any) -> Any:
    """Return results without derivatives: those that they have here leave out what went through chunks."""
    return tree.map_arrays(lambda x: type(x).wrap(x._n), value)


def _ready(probe: Probe, k: int) -> bool:
    """Return whether the k-th result depends on no total that is not known yet."""
    return probe.items is not None and probe.items[k].ready


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


__all__ = ["Job", "evaluate"]
