"""The meaning of every operation: a slow interpreter of recorded programs in NumPy, the measure of all targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .arrays.transfer import to_numpy
from .ops.row import Row
from .trace import (
    ACTIVE,
    AFTER,
    ALIAS,
    BITS,
    BRANCH,
    CAST,
    COUNTER,
    DATA,
    GATHER,
    LITERAL,
    LOOP,
    OUT,
    PHI,
    REDUCE,
    SCATTER,
    Node,
    Scope,
    value_of,
)

Array = Any  # a NumPy array of shape (1,) or (size,)


def interpret(nodes: Sequence[Node]) -> list[np.ndarray[Any, Any]]:
    """Return the elements of each node, shape (size,), without compiling; evaluated nodes give what memory holds.

    Raises NotImplementedError for ray queries.
    """
    with np.errstate(all="ignore"):
        run = _Run()
        return [np.ascontiguousarray(np.broadcast_to(run.value(n), n.size)) for n in nodes]


class _Frame:
    """Values known in one pass through a scope, and the mask of its lanes."""

    def __init__(self) -> None:
        self.values: dict[int, Array] = {}
        self.kept: list[Node] = []  # values are filed under ids, which are those of living nodes only


class _Run:
    """One interpretation: frames of the scopes being run, and the memory that scatters have made."""

    def __init__(self) -> None:
        self.top = _Frame()
        self.current = self.top
        self.frames: dict[int, _Frame] = {}
        self.masks: dict[int, Array] = {}
        self.phis: dict[tuple[int, int], Array] = {}
        self.targets: dict[int, Array] = {}

    def frame(self, n: Node) -> _Frame:
        """Return where the value of `n` is kept: with the pass through the scope it was recorded in."""
        return self.top if n.scope is None else self.frames.get(id(n.scope), self.current)

    def value(self, root: Node) -> Array:
        """Return the value of a node in the frames being run; without recursion along chains of operations."""
        stack = [root]
        while stack:
            n = stack[-1]
            frame = self.frame(n)
            if id(n) in frame.values:
                stack.pop()
                continue
            wanted = () if n.buf is not None or n.op is AFTER else n.args
            missing = [a for a in wanted if id(a) not in self.frame(a).values]
            if missing:
                stack += missing
                continue
            frame.values[id(n)] = self._compute(n)
            frame.kept.append(n)
            stack.pop()
        return self.frame(root).values[id(root)]

    def _compute(self, n: Node) -> Array:
        if n.buf is not None:
            return to_numpy(n)
        if isinstance(n.op, Row):
            args = np.broadcast_arrays(*(self.value(a) for a in n.args))
            result = n.op.reference(np, *(np.ascontiguousarray(a) for a in args))
            return np.asarray(result).astype(n.dtype.numpy, copy=False)
        rule = _RULES.get(n.op)
        if rule is None:
            raise NotImplementedError(f"the interpreter has no rule for {n.op!r} (node {n!r})")
        return rule(self, n)

    def mask(self, scope: Scope | None) -> Array:
        """Return the lanes that take part in a scope, or in the nearest one around it that is being run."""
        while scope is not None and id(scope) not in self.masks:
            scope = scope.parent
        return np.ones(1, bool) if scope is None else self.masks[id(scope)]

    def _inside(self, frame: _Frame, masks: dict[Scope, Array], work: Callable[[], Any]) -> Any:
        """Return work(), run with `frame` as the pass through the scopes in `masks`."""
        saved = self.current, dict(self.frames), dict(self.masks)
        self.current = frame
        for scope, mask in masks.items():
            self.frames[id(scope)], self.masks[id(scope)] = frame, mask
        try:
            return work()
        finally:
            self.current, self.frames, self.masks = saved

    def loop(self, n: Node) -> list[Array]:
        """Return the final state: every lane stays as it is once its condition fails."""
        body = n.attr
        state = [self.value(a) for a in n.args]
        running = np.broadcast_to(self.mask(n.scope), n.size)
        while True:
            for position, value in enumerate(state):
                self.phis[id(body.scope_cond), position] = value
            frame = _Frame()
            scopes = {body.scope_cond: running}
            going = running & self._inside(frame, scopes, lambda b=body: self.value(b.cond))  # type: ignore[misc]
            if not going.any():
                return state
            scopes[body.scope_body] = going
            new = self._inside(frame, scopes, lambda b=body: self._pass(b.outs, b.effects))  # type: ignore[misc]
            state = [np.where(going, b, a) for a, b in zip(state, new, strict=True)]
            running = going

    def branch(self, n: Node) -> list[Array]:
        """Return the outputs: of each lane those of the last arm whose mask is set, else the defaults."""
        body = n.attr
        active = self.mask(n.scope)
        state = [self.value(d) for d in body.defaults]
        for scope, test, outs, effects in zip(body.scopes, n.args, body.outs, body.effects, strict=True):
            chosen = np.broadcast_to(active & self.value(test), n.size)
            if chosen.any():
                new = self._inside(_Frame(), {scope: chosen}, lambda o=outs, e=effects: self._pass(o, e))  # type: ignore[misc]
                state = [np.where(chosen, b, a) for a, b in zip(state, new, strict=True)]
        return state

    def _pass(self, outs: Sequence[Node], effects: Sequence[Node]) -> list[Array]:
        for effect in effects:
            self.value(effect)
        return [self.value(o) for o in outs]

    def target(self, after: Node) -> Array:
        """Return the memory that scatters to `after` write, a copy of the array before them."""
        if id(after) not in self.targets:
            self.targets[id(after)] = np.array(np.broadcast_to(self.value(after.args[0]), after.size))
            self.top.kept.append(after)
        return self.targets[id(after)]

    def scatter(self, n: Node) -> Array:
        """Write to the target, if anybody can still read it and it is not written yet."""
        after = n.attr.after()
        if after is None or after.buf is not None:
            return np.zeros(1, bool)
        target = self.target(after)
        args = np.broadcast_arrays(*(self.value(a) for a in n.args), np.empty(n.size))
        value, index, mask = args[:3]
        mask = mask & _inside(index, target.size)
        value, index = value[mask], index[mask]
        if n.attr.op:
            _COMBINE[n.attr.op].at(target, index, value)
        else:
            target[index] = value
        return np.zeros(1, bool)

    def after(self, n: Node) -> Array:
        """Return the target once all its scatters have happened."""
        target = self.target(n)
        for effect in n.attr.effects:
            self.value(effect)
        return target

    def gather(self, n: Node) -> Array:
        """Return elements by index, 0 where the mask is clear or the index is outside of the source."""
        source, index, mask = (self.value(a) for a in n.args)
        mask = np.broadcast_to(mask, np.broadcast_shapes(mask.shape, index.shape))
        source = np.broadcast_to(source, n.args[0].size)
        mask = mask & _inside(index, source.size)
        if not mask.any():
            return np.zeros(mask.shape, source.dtype)
        return np.where(mask, source[np.where(mask, index, 0)], source.dtype.type(0))

    def reduce(self, n: Node) -> Array:
        """Return one element; floats are added and multiplied in double precision, min and max skip NaN."""
        values = np.broadcast_to(self.value(n.args[0]), n.args[0].size)
        if n.attr == "count":
            return np.array([np.count_nonzero(values)], n.dtype.numpy)
        wide = np.float64 if n.dtype.is_float and n.attr in ("add", "mul") else values.dtype
        return np.array([_COMBINE[n.attr].reduce(values.astype(wide))]).astype(n.dtype.numpy)


def _inside(index: Array, size: int) -> Array:
    inside: Array = (index >= 0) & (index < size)
    return inside


def _cast(run: _Run, n: Node) -> Array:
    value = run.value(n.args[0])
    return value != 0 if n.dtype.kind == "b" else value.astype(n.dtype.numpy)


def _out(run: _Run, n: Node) -> Array:
    state: list[Array] = run.value(n.args[0])
    return state[n.attr]


_COMBINE: dict[str, Any] = {"add": np.add, "mul": np.multiply, "min": np.fmin, "max": np.fmax}
_COMBINE |= {"and": np.bitwise_and, "or": np.bitwise_or}

_RULES: dict[Any, Callable[[_Run, Node], Any]] = {
    LITERAL: lambda run, n: np.array([value_of(n)], n.dtype.numpy),
    DATA: lambda run, n: to_numpy(n),
    COUNTER: lambda run, n: np.arange(n.size, dtype=np.uint32),
    ACTIVE: lambda run, n: run.mask(n.scope),
    CAST: _cast,
    BITS: lambda run, n: np.ascontiguousarray(run.value(n.args[0])).view(n.dtype.numpy),
    GATHER: _Run.gather,
    PHI: lambda run, n: run.phis[id(n.scope), n.attr],
    ALIAS: lambda run, n: run.value(n.args[0]),
    LOOP: _Run.loop,
    BRANCH: _Run.branch,
    OUT: _out,
    SCATTER: _Run.scatter,
    AFTER: _Run.after,
    REDUCE: _Run.reduce,
}
