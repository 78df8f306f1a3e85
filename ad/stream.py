"""Gradients of streamed functions: chunks are computed again in reverse mode, gradients of totals come first.

A result is a function of totals over all chunks, and a total one of the elements and of earlier totals. Reverse mode
takes these steps one by one: results to totals without any data, then one pass over the data per step from totals to
earlier ones, and a last pass in which every total hands its gradient to elements and parameters of all chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..jit.arrays import tree
from ..jit.arrays.create import full
from ..jit.arrays.flat import cast
from ..jit.arrays.memops import scatter_flat
from ..jit.dtypes import Float64
from ..jit.memory.pool import pool
from ..jit.runtime.engine import runtime
from ..jit.runtime.evaluate import evaluate as compute
from ..jit.stream.context import Context
from ..jit.stream.current import paused, running
from ..jit.stream.evaluate import Job
from ..jit.stream.outputs import Output, items, output, replace
from ..jit.stream.probe import LENGTHS, symbol
from ..jit.stream.refusals import not_streamable
from ..jit.stream.report import Result
from ..jit.stream.totals import Pairwise, Total
from ..jit.trace import Node
from . import rules
from .api import enable_grad, suspend_grad
from .graph import ADNode, attach, enabled, here, new_index
from .traverse import ADFlag, backward_pass
from .widen import widened


def backward(
    fn: Callable[..., Any],
    *sources: Any,
    params: Any = (),
    grad_out: Any = None,
    reduce: str | Callable[[Any], Any] | None = None,
    max_resident: int | float | str = "1 GiB",
    chunk: int | None = None,
    progress: bool | Callable[[int, int], Any] | None = None,
    keep_partial: bool = False,
) -> Result:
    """Do what `luxgrad.backward(fn(*sources, *params))` does, chunk by chunk, and return the result of `fn`.

    Gradients are added to those of all differentiable arrays that `fn` uses: of `params`, which are passed on as they
    are, and of others. `grad_out`: a path or array for the gradient of the source, or a list with one per source (None
    for those not wanted). Of the returned `value` results with an element per element of the stream are None; all other
    arguments and errors are those of `stream.evaluate`. Products (`prod`), and scatters other than sums, have no
    streamed derivative: NotStreamableError.

    >>> import numpy as np, luxgrad as dr
    >>> from luxgrad import stream
    >>> from luxgrad.llvm.ad import Float
    >>> w = Float(3)
    >>> dr.enable_grad(w)
    >>> stream.backward(lambda x, w: dr.sum(x * w), np.ones(1000, np.float32), params=(w,), chunk=256).value
    [3000]
    >>> w.grad
    [1000]
    """
    with Job(fn, sources, params, reduce, max_resident, chunk, progress, True) as job:
        reverse = Reverse(job, _places(grad_out, job, keep_partial))
        try:
            with pool().scope() as seen:
                value = reverse.run()
        except BaseException:
            runtime.sync()
            for o in reverse.outputs.values():
                o.abort()
            raise
        job.account(seen)
        return Result(value, job.report)


def _places(grad_out: Any, job: Job, keep: bool) -> dict[int, Output]:
    if grad_out is None:
        return {}
    places = list(grad_out) if isinstance(grad_out, (list, tuple)) else [grad_out]
    if len(places) != len(job.sources):
        raise ValueError(f"grad_out: {len(places)} place(s) for the gradients of {len(job.sources)} source(s)")
    found = {}
    for k, (s, place) in enumerate(zip(job.sources, places, strict=True)):
        if place is not None:
            if not s.kind.is_float:
                raise TypeError(f"grad_out: source {k} has elements of type {s.kind}, which have no gradients")
            found[k] = output(place, keep, lambda nodes: None, job.length, s.kind, s.shape[1:])
    return found


class Sum:
    """The gradient of one array, added up over chunks in double precision."""

    def __init__(self, cls: Any, size: int) -> None:
        self.cls, self.size = cls, size
        self._wide = cls.ns.detached.flat(Float64)
        self._single = Pairwise("add", Float64)
        self._sum: Any = None
        self._next: Any = None
        self.touched = False

    def add(self, gradient: Any) -> Node:
        """Take a chunk's gradient; return the node to be computed before `settle`."""
        gradient = cast(self._wide, self._wide.ns.flat(gradient.dtype).wrap(widened(gradient, self.size)._n))
        self._next = gradient if self._sum is None else self._sum + gradient
        n: Node = self._next._n
        return n

    def settle(self) -> None:
        """Make what was added part of the sum."""
        if self._next is None:
            return
        self.touched = True
        if self.size == 1:
            self._single.add(float(self._next.item()))
        else:
            self._sum = self._next
        self._next = None

    def total(self) -> Any:
        """Return the gradient as a detached array of the array's own type, in memory."""
        total = self._wide(self._single.total()) if self.size == 1 else self._sum
        found = self.cls.wrap(cast(self.cls.ns.detached.flat(self.cls.dtype), total)._n)
        compute([found._n])
        return found


class Reverse:
    """Reverse mode of one streamed function."""

    def __init__(self, job: Job, outputs: dict[int, Output]) -> None:
        self.job, self.outputs = job, outputs
        self.leaves: dict[Any, Any] = {}  # totals as differentiable arrays, by key
        self.sums: dict[Any, Sum] = {}  # gradients of totals by key, of arrays outside by the number of their node
        self.captured: dict[int, ADNode] = {}  # nodes outside that the function reads
        self.saved: dict[int, tuple[ADNode, Any]] = {}  # and their gradients before
        self.seeds: list[tuple[Any, Any]] = []  # (key, array): totals of this chunk whose gradients are handed on
        self.levels: set[int] = set()  # of the totals that hand on their gradients in this pass

    def run(self) -> Any:
        """Return the function's result; its gradients are where they belong afterwards."""
        job = self.job
        if job.length <= 1:
            return self._tiny()
        with self._region():
            self._plan()  # before anything is read
        with suspend_grad():
            job.settle(lambda results: None, {})
        try:
            with self._region():
                value, streamed = self._from_results()
                levels = sorted({t.level for t in job.totals.values()}, reverse=True)
                chunk = self._plan()
                if streamed and levels:
                    self._pass(chunk, set(), True, last=False)
                for level in levels[:-1]:
                    self._pass(chunk, {level}, False, last=False)
                for o in self.outputs.values():
                    o.open()
                self._pass(chunk, set(levels), streamed, last=True)
            for o in self.outputs.values():
                o.finish()
        finally:
            for node, grad in self.saved.values():
                node.grad = grad
        self._hand_on()
        return value

    def _hand_on(self) -> None:
        """Add the gradients to the arrays outside, and send them on through what these were computed from."""
        reached = []
        for index, (node, _) in self.saved.items():
            found = self.sums.get(index)
            if found is not None and found.touched:
                total = found.total()
                node.grad = total if node.grad is None else node.grad + total
                reached.append(node)
        backward_pass(reached, ADFlag.Default)

    @contextmanager
    def _region(self) -> Iterator[None]:
        """Within the block traversals end at what existed before, which is noted in `captured`."""
        state = here()
        before = state.boundary, state.postponed, state.captures
        first = new_index()
        state.boundary, state.postponed = first, {}
        state.captures = (*before[2], (first, self.captured))
        try:
            yield
        finally:
            state.boundary, state.postponed, state.captures = before

    # Totals and results.

    def _leaf(self, total: Total, cls: Any) -> Any:
        found = self.leaves.get(total.key)
        if found is None:
            found = cls.wrap(total.value)
            enable_grad(found)
            self.leaves[total.key] = found
            self.sums[total.key] = Sum(cls, found._n.size)
        return found.__copy__()

    def _reduced(self, total: Total, x: Any, result: Any) -> Any:
        """Note a reduction of a chunk; return its total as something to take derivatives by."""
        if total.level in self.levels and enabled(x._ad):
            if total.op == "mul":
                raise not_streamable("prod", "has no streamed derivative; write exp(sum(log(...)))", total.where)
            whole = result.wrap(total.value)  # of equal extremes in all chunks each gets the gradient
            whole._ad = attach(whole, rules.REDUCE, (x.__copy__(),), total.op)
            self.seeds.append((total.key, whole))
        return self._leaf(total, result)

    def _scattered(self, total: Total, op: str, target: Any, value: Any, index: Any, active: Any) -> Any:
        """Note a scatter from a chunk; return what the array holds after all chunks."""
        kind = type(target)
        if enabled(target._ad) and total.key not in self.leaves:
            raise not_streamable("scatter_add", "adds to a differentiable array; add to zeros and sum up", total.where)
        if total.level in self.levels and enabled(value._ad):
            if op != "add":
                raise not_streamable("scatter_reduce", f"of kind '{op}' has no streamed derivative", total.where)
            part = full(kind, 0, total.width)
            with paused():
                scatter_flat(op, part, value, index, active)
            if part._ad is not None:
                self.seeds.append((total.key, part))
        return self._leaf(total, kind)

    def _call(self, context: Context, arrays: list[Any]) -> Any:
        context.reduced, context.scattered = self._reduced, self._scattered
        self.seeds = []
        try:
            with running(context):
                return self.job.call(arrays)
        finally:
            context.restore()

    def _from_results(self) -> tuple[Any, bool]:
        """Send gradients from results to totals; return the results, and whether some have an element per element."""
        job = self.job
        context = Context(LENGTHS[0], None, job.length, job.ns, job.totals, probing=True)
        result = self._call(context, [symbol(s, k, job.ns, LENGTHS[0]) for k, s in enumerate(job.sources)])
        values: list[Any] = []
        roots: list[ADNode] = []
        streamed = False
        for value in items(result):
            flats = list(tree.arrays(value))
            if any(x._n.size == context.size for x in flats):
                streamed |= any(x._ad is not None or self.outputs for x in flats)
                values.append(None)
                continue
            compute([x._n for x in flats])
            roots += self._seeded(flats)
            values.append(tree.map_arrays(lambda x: type(x).wrap(x._n), value))
        self._backward(roots)
        self._harvest(parameters=True)
        return replace(result, iter(values)), streamed

    def _seeded(self, flats: list[Any]) -> list[ADNode]:
        roots = []
        for x in flats:
            if enabled(x._ad) and x.dtype.is_float:
                self._save(x._ad)
                x._ad.grad = full(type(x), 1, 1) if x._ad.grad is None else x._ad.grad + 1.0
                roots.append(x._ad)
        return roots

    def _save(self, node: ADNode) -> None:
        if node.index < here().boundary and node.index not in self.saved:
            self.saved[node.index] = node, node.grad
            node.grad = None

    def _backward(self, roots: list[ADNode]) -> None:
        for node in self.captured.values():
            self._save(node)
        backward_pass(roots, ADFlag.Default)

    def _harvest(self, parameters: bool) -> None:
        """Add up the gradients that this run gave: those of totals, or (`parameters`) also those of arrays outside."""
        taken: list[Sum] = []
        nodes: list[Node] = []
        for key, leaf in self.leaves.items():
            gradient, leaf._ad.grad = leaf._ad.grad, None
            if gradient is not None and not (parameters and self.levels):
                taken.append(self.sums[key])
                nodes.append(taken[-1].add(gradient))
        for index, (node, _) in self.saved.items():
            gradient, node.grad = node.grad, None
            if gradient is not None and parameters:
                if index not in self.sums:
                    self.sums[index] = Sum(node.cls, node.size)
                taken.append(self.sums[index])
                nodes.append(taken[-1].add(gradient))
        compute(nodes)
        for s in taken:
            s.settle()

    # Passes over the data.

    def _plan(self) -> int:
        """Return the elements per chunk in reverse mode."""
        job = self.job
        probe = job.probe()
        need = job.need(probe, list(self.outputs.values()))
        for node in self.captured.values():
            size = node.size * node.cls.dtype.itemsize
            need.scattered.append((size, node.size))
            need.parts["gradients"] = need.parts.get("gradients", 0) + 2 * Float64.itemsize * node.size
        return job.plan(need)

    def _pass(self, chunk: int, levels: set[int], results: bool, last: bool) -> None:
        """Go through the data: totals of some levels, and results, hand on their gradients to totals, or in the
        last pass to everything else."""
        job, self.levels = self.job, levels
        gradients = {k: s.total() for k, s in self.sums.items() if k in self.leaves and s.touched}
        if not results and not any(t.level in levels and t.key in gradients for t in job.totals.values()):
            if not (last and self.outputs):
                return
        for start, stop, arrays in job.chunks(chunk):
            context = job.context(start, stop - start)
            inputs = {k: list(tree.arrays(arrays[k])) for k in self.outputs} if last else {}
            for flats in inputs.values():
                enable_grad(flats)
            found = items(self._call(context, arrays))
            arrays.clear()
            roots = []
            for key, whole in self.seeds:
                if key in gradients:
                    whole._ad.grad = gradients[key].__copy__()
                    roots.append(whole._ad)
            self.seeds = []
            if results:
                roots += self._seeded([x for v in found for x in tree.arrays(v) if x._n.size == stop - start])
            found.clear()
            self._backward(roots)
            written = {k: [self._gradient(x, stop - start) for x in flats] for k, flats in inputs.items()}
            compute([x._n for flats in written.values() for x in flats])
            self._harvest(parameters=last)
            runtime.sync()
            for k, flats in written.items():
                self.outputs[k].write(start, [x._n for x in flats], stop - start)
                job.report.bytes_written += (stop - start) * self.outputs[k].row
            del context, roots, written, inputs  # they may hold the window, and the next one is mapped now

    def _gradient(self, x: Any, size: int) -> Any:
        gradient = x._ad.grad
        return full(type(x), 0, size) if gradient is None else widened(gradient, size)

    def _tiny(self) -> Any:
        """Return the result for a stream of at most one element, whose gradients are taken as in memory."""
        job = self.job
        context = job.context(0, job.length)
        arrays = [job.chunks.load(s, 0, job.length) for s in job.sources]
        inputs = {k: list(tree.arrays(arrays[k])) for k in self.outputs}
        enable_grad(list(inputs.values()))
        with running(context):
            result = job.call(arrays)
        roots = [x for x in tree.arrays(result) if enabled(x._ad)]
        for x in roots:
            x._ad.grad = full(type(x), 1, x._n.size)
        backward_pass([x._ad for x in roots], ADFlag.Default)
        for k, flats in inputs.items():
            self.outputs[k].open()
            if job.length:
                gradients = [self._gradient(x, job.length) for x in flats]
                compute([g._n for g in gradients])
                self.outputs[k].write(0, [g._n for g in gradients], job.length)
            self.outputs[k].finish()
        job.report.passes = job.report.chunks = 1
        return tree.map_arrays(lambda x: type(x).wrap(x._n), result)


__all__ = ["Reverse", "Sum", "backward"]
