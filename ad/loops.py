"""Derivatives of recorded loops: tangents ride along; reverse mode replays the loop and walks it backwards.

The reverse pass of a loop with N lanes and at most M iterations keeps the state at the start of every iteration in
arrays of N * M elements (`max_iterations` says M), then runs the body once per iteration from the last to the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..jit import control, trace
from ..jit.arrays import reduce, tree
from ..jit.arrays.create import arange, full
from ..jit.arrays.memops import gather, scatter
from ..jit.dtypes import UInt32
from .custom import Hub, install_hub
from .graph import ADNode, ScopeState, active, enabled, here, leaf, new_index
from .traverse import ADFlag, accumulate, backward_pass, forward_into

Give = Callable[..., None]


def differentiable_loop(
    values: tuple[Any, ...], cond: Callable[..., Any], body: Callable[..., Any], names: list[str], limit: int | None
) -> tuple[Any, ...] | None:
    """Return the state after a loop, differentiable; None if nothing in it has gradients (then it is a plain loop)."""
    if not active():
        return None
    before = here().captures
    captured: dict[int, ADNode] = {}
    recorder = _Recorder(body, cond, [enabled(x._ad) for v in values for x in tree.arrays(v)])
    here().captures = (*before, (new_index(), captured))
    try:
        result = control.symbolic_loop(control.copied(_detached(values)), recorder.cond, recorder.body, names)
    finally:
        here().captures = before
    inputs = {x._ad.index: x._ad for v in values for x in tree.arrays(v) if enabled(x._ad)}
    inputs.update(captured)
    if not inputs:
        return result
    hub = LoopHub(values, result, cond, body, names, limit)
    install_hub(hub, list(inputs.values()), [x for v in result for x in tree.arrays(v)])
    return result


def _detached(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tree.map_arrays(lambda x: type(x).wrap(x._n), v) for v in values)


class _Recorder:
    """Runs the body with state that has gradients where the initial state has, to find what else it reads."""

    def __init__(self, body: Callable[..., Any], cond: Callable[..., Any], attached: list[bool]) -> None:
        self._body, self._cond, self.attached = body, cond, attached

    def cond(self, *values: Any) -> Any:
        with plain():
            return self._cond(*values)

    def body(self, *values: Any) -> Any:
        flat = [x for v in values for x in tree.arrays(v)]
        for x, on in zip(flat, self.attached, strict=True):
            if on and x.is_diff and x.dtype.is_float:
                x._ad = leaf(x)
        result = self._body(*values)
        result = tuple(result) if isinstance(result, (tuple, list)) else result
        return tree.map_arrays(lambda x: type(x).wrap(x._n), result)


class plain:
    """No gradients are recorded within the block."""

    def __enter__(self) -> None:
        self.before = here().scopes
        here().scopes = (*self.before, ScopeState(False))

    def __exit__(self, *_: object) -> None:
        here().scopes = self.before


class LoopHub(Hub):
    """A recorded loop and how to run it again with derivatives."""

    name = "while_loop"

    def __init__(
        self,
        values: tuple[Any, ...],
        result: tuple[Any, ...],
        cond: Callable[..., Any],
        body: Callable[..., Any],
        names: list[str],
        limit: int | None,
    ) -> None:
        super().__init__()
        self.initial = tuple(tree.map_arrays(lambda x: x.__copy__(), v) for v in values)
        self.final = [x._n for v in result for x in tree.arrays(v)]
        self.cond, self.body, self.names, self.limit = cond, body, names, limit
        self.scopes = here().scopes

    def leaves(self) -> list[Any]:
        """Return the flat arrays of the initial state."""
        return [x for v in self.initial for x in tree.arrays(v)]

    def _call_body(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        before = here().scopes
        here().scopes = self.scopes
        try:
            return control.check_state(values, self.body(*values), self.names)
        finally:
            here().scopes = before

    def forward(self) -> dict[int, Any]:
        """Run the loop with the tangents as further state."""
        start = _detached(self.initial)
        floats = [k for k, x in enumerate(self.leaves()) if x.is_diff and x.dtype.is_float]
        initial = self.leaves()
        tangents = []
        for k in floats:
            node = initial[k]._ad
            has = node is not None and node.grad is not None
            tangents.append(type(initial[k]).wrap(node.grad._n) if has else type(initial[k])(0))
        count = len(start)

        def cond(*s: Any) -> Any:
            with plain():
                return self.cond(*s[:count])

        def body(*s: Any) -> tuple[Any, ...]:
            values, rates = s[:count], s[count]
            flat = [x for v in values for x in tree.arrays(v)]
            for k, t in zip(floats, rates, strict=True):
                flat[k]._ad = leaf(flat[k])
                flat[k]._ad.grad = t
            after = self._call_body(values)
            outs = [x for v in after for x in tree.arrays(v)]
            forward_into([outs[k]._ad for k in floats if outs[k]._ad is not None], ADFlag.Default)
            new = [_tangent(outs[k]) for k in floats]
            return (*_detached(after), new)

        result = control.symbolic_loop((*start, tangents), cond, body, [*self.names, "tangents"])
        return dict(zip(floats, result[count], strict=True))

    def backward(self, give: Give) -> None:
        """Replay the loop, keeping every iteration's state, and send the gradients back through it."""
        if self.limit is None:
            raise RuntimeError(
                "while_loop(): reverse-mode differentiation of a symbolic loop needs max_iterations: pass "
                "max_iterations=N with a bound on the iterations (with @syntax: hint(..., max_iterations=N)), or "
                "mode='evaluated'"
            )
        reverse = _SumReverse(self) if self.limit == -1 else _Reverse(self, self.limit)
        gradients = reverse.run()
        for k, g in gradients.items():
            node = self.leaves()[k]._ad
            if node is not None and enabled_in(self.scopes, node):
                give(node, g)


def enabled_in(scopes: tuple[ScopeState, ...], node: ADNode) -> bool:
    """Return whether a node was enabled where the loop was recorded."""
    return not scopes or scopes[-1].allows(node)


def _tangent(x: Any) -> Any:
    node = x._ad
    return type(x)(0) if node is None or node.grad is None else type(x).wrap(node.grad._n)


class _Reverse:
    """The reverse pass of a loop with a bound on its iterations."""

    def __init__(self, hub: LoopHub, limit: int) -> None:
        self.hub, self.limit = hub, limit
        self.start = _detached(hub.initial)
        self.initial = [x for v in self.start for x in tree.arrays(v)]
        self.size = max([1, *(n.size for n in hub.final)])
        self.kind = self.initial[0].ns.flat(UInt32)
        # State that the loop hands on unchanged needs no trajectory.
        self.kept = [k for k, x in enumerate(self.initial) if hub.final[k] is not x._n]
        self.floats = [k for k, x in enumerate(self.initial) if x.is_diff and x.dtype.is_float]

    def run(self) -> dict[int, Any]:
        """Return the gradients of the initial state by position."""
        trajectory, count = self._replay()
        return self._walk_back(trajectory, count)

    def _replay(self) -> tuple[dict[int, Any], Any]:
        hub, size = self.hub, self.size
        if trace.state.scope is not None:
            raise RuntimeError(
                "while_loop(): reverse-mode differentiation of a loop inside another recorded loop is not possible: "
                "the inner loop's states would need memory per iteration of the outer one; run the outer loop with "
                "mode='evaluated'"
            )
        trajectory = {k: full(type(self.initial[k]), 0, size * self.limit) for k in self.kept}
        lane = arange(self.kind, size)
        n = len(self.start)

        def cond(*s: Any) -> Any:
            with plain():
                return hub.cond(*s[:n]) & (s[n] < self.limit)

        def body(*s: Any) -> tuple[Any, ...]:
            with plain():
                flat = [x for v in s[:n] for x in tree.arrays(v)]
                for k in self.kept:
                    scatter(trajectory[k], flat[k], s[n] * size + lane)
                with _no_effects():
                    after = control.check_state(s[:n], hub.body(*s[:n]), hub.names)
                return (*_detached(after), s[n] + 1)

        result = control.symbolic_loop((*self.start, full(self.kind, 0, size)), cond, body, [*hub.names, "iteration"])
        with plain():
            open_lanes = hub.cond(*result[:n])
        self._refuse_truncation(open_lanes, result[n], trajectory)
        return trajectory, result[n]

    def _refuse_truncation(self, open_lanes: Any, count: Any, trajectory: dict[int, Any]) -> None:
        from ..jit.runtime.engine import runtime
        from ..jit.runtime.evaluate import evaluate, materialise

        some = reduce.any(open_lanes)
        evaluate([some._n, count._n, *(t._n for t in trajectory.values())])
        runtime.guard(
            materialise(some._n).buf,
            f"while_loop(): a lane runs for more than max_iterations={self.limit} iterations, so the stored "
            "trajectory would be cut off and the gradient wrong; raise max_iterations",
        )

    def _walk_back(self, trajectory: dict[int, Any], count: Any) -> dict[int, Any]:
        hub, size, n = self.hub, self.size, len(self.start)
        lane = arange(self.kind, size)
        out_grads = [self._out_gradient(k) for k in self.floats]

        def body(*s: Any) -> tuple[Any, ...]:
            step, rates = s[0] - 1, s[1]
            position = iter(range(len(self.initial)))

            def load(x: Any) -> Any:
                k = next(position)
                if k in trajectory:
                    return gather(type(x), trajectory[k], step * size + lane)
                return x.__copy__()

            with plain():
                values = tuple(tree.map_arrays(load, v) for v in self.start)
            return (step, self._step_back(values, list(rates)))

        result = control.symbolic_loop((count, out_grads), lambda i, g: i > 0, body, ["iteration", "gradients"])
        del n, hub
        return dict(zip(self.floats, result[1], strict=True))

    def _out_gradient(self, k: int) -> Any:
        g = self.hub.out_grads.get(k)
        x = self.initial[k]
        return full(type(x), 0, self.size) if g is None else type(x).wrap(g._n) + full(type(x), 0, self.size)

    def _step_back(self, values: tuple[Any, ...], rates: list[Any]) -> list[Any]:
        """Return the gradients before one iteration from those after it."""
        flat = [x for v in values for x in tree.arrays(v)]
        leaves = {}
        for k in self.floats:
            flat[k]._ad = leaves[k] = leaf(flat[k])
        with _no_effects():
            after = self.hub._call_body(values)
        outs = [x for v in after for x in tree.arrays(v)]
        roots = {}
        for k, g in zip(self.floats, rates, strict=True):
            node = outs[k]._ad
            if node is not None:
                accumulate(node, g, self.size)
                roots[node.index] = node
        backward_pass(roots.values(), ADFlag.ClearNone)
        return [
            type(flat[k])(0) if leaves[k].grad is None else type(flat[k]).wrap(leaves[k].grad._n) for k in self.floats
        ]


class _SumReverse(_Reverse):
    """A loop declared as a plain sum (max_iterations=-1): iterations only add to the differentiable state.

    Then the gradient of the state after every iteration is the final one, and no trajectory is needed. That the
    declaration is true is checked while recording: the gradient of an iteration with respect to the state it starts
    from must be the incoming gradient itself.
    """

    def __init__(self, hub: LoopHub) -> None:
        super().__init__(hub, 0)

    def run(self) -> dict[int, Any]:
        """Return the gradients of the initial state by position."""
        out_grads = [self._out_gradient(k) for k in self.floats]
        n = len(self.start)

        def cond(*s: Any) -> Any:
            with plain():
                return self.hub.cond(*s[:n])

        def body(*s: Any) -> tuple[Any, ...]:
            copies = control.copied(_detached(tuple(s[:n])))
            before = self._step_back(copies, list(s[n]))
            for k, (new, old) in enumerate(zip(before, s[n], strict=True)):
                if new._n is not old._n and k in self._summed:
                    raise RuntimeError(
                        "while_loop(): max_iterations=-1 declares a sum loop, but the state changes in another way "
                        "than by addition, so the gradient would be wrong; pass a bound on the iterations instead"
                    )
            with plain(), _no_effects():
                after = control.check_state(tuple(s[:n]), self.hub.body(*s[:n]), self.hub.names)
            return (*_detached(after), list(s[n]))

        self._summed = {i for i, k in enumerate(self.floats) if k in self.kept}
        control.symbolic_loop((*self.start, out_grads), cond, body, [*self.hub.names, "gradients"])
        return dict(zip(self.floats, out_grads, strict=True))


class _no_effects:
    """Scatters of the loop's body to arrays outside have happened already; replays leave them out."""

    def __enter__(self) -> None:
        self.before = trace.state.replaying
        trace.state.replaying = True

    def __exit__(self, *_: object) -> None:
        trace.state.replaying = self.before
