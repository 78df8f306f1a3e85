"""`freeze`: functions whose launches are recorded once and replayed with other arrays."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable
from threading import get_ident
from typing import Any, overload

from ...jit.arrays.flat import Flat
from ...jit.errors import FreezeError
from ...jit.flags import freezing
from ...jit.freeze.recorder import Recorder
from ...jit.freeze.replay import Replay
from ...jit.memory.pool import Buffer
from ...jit.runtime.engine import runtime
from ...jit.runtime.evaluate import evaluate
from ...jit.trace import data, recording
from ..graph import ADNode, here, new_index
from .entry import Entering
from .recipe import Entry, Kitchen, Lost, Recipe, apply, follow, lost
from .shortcut import Shortcuts
from .snapshot import Index, Snap, differences, leaves, snapshot

_new = object.__new__
_SIZES = 8  # recordings kept per structure, one for each combination of sizes


class Recording:
    """One recorded call for one combination of sizes: its launches, and how its result and changes are made."""

    def __init__(self, replay: Replay, recipe: Recipe, result: Any, changes: list[Any], gradients: list[Any]) -> None:
        self.replay, self.recipe, self.result = replay, recipe, result
        self.changes, self.gradients = changes, gradients
        # The usual case: one array comes back, and nothing else happens.
        self.simple = (
            result[0] == "flat" and result[1][1] == ("made", 0) and result[1][2] is None
            and not changes and not gradients and len(recipe.made) == len(replay.sizes) == 1
        )  # fmt: skip

    def play_simple(self, buffers: list[Buffer]) -> Any:
        """Return the one array of a recording whose inputs are these buffers."""
        dtype, size, _ = self.recipe.made[0]
        x = _new(self.result[1][0])
        x._n, x._ad = data(dtype, size, self.replay.run_one(buffers)), None
        return x

    def play(self, entry: Entry) -> Any:
        """Launch everything, change what the function changes, and return its result."""
        buffers = self.replay.run(entry.buffers)
        kitchen = Kitchen(self.recipe, entry, buffers)
        result = kitchen.value(self.result)
        targets = [follow(entry.roots, change.path) for change, _ in self.changes]
        values = [None if how is None else kitchen.value(how) for _, how in self.changes]
        gradients = [None if how is None else kitchen.flat(how) for _, how in self.gradients]
        for (change, _), target, value in zip(self.changes, targets, values, strict=True):
            apply(change, target, value, entry)
        for (number, _), gradient in zip(self.gradients, gradients, strict=True):
            entry.ads[number].grad = gradient
        return result


class FrozenFunction:
    """A function that is recorded when it meets a new structure of inputs, and replayed when it knows it.

    Made by `freeze`, which tells what counts. `n_recordings` is how many structures of inputs it was recorded for so
    far (other sizes do not count), `n_cached_recordings` how many are kept, `clear()` forgets them.
    """

    frozen_open = True  # NumPy arrays that its function sees may be the user's
    frozen_skip = ("_known", "_short", "_opaque", "_literals", "n_recordings")

    def __init__(
        self, fn: Callable[..., Any], state_fn: Callable[..., Any] | None, limit: int | None, warn_after: int,
        auto_opaque: bool, enabled: bool,
    ) -> None:  # fmt: skip
        functools.update_wrapper(self, fn)
        self.name = getattr(fn, "__name__", type(fn).__name__)
        self.fn, self.state_fn, self.limit, self.warn_after = fn, state_fn, limit, warn_after
        self.auto_opaque, self.enabled = auto_opaque, enabled
        self.clear()
        self.n_recordings = 0

    def clear(self) -> None:
        """Forget all recordings and the memory and constants they hold."""
        self._known: OrderedDict[Any, OrderedDict[tuple[int, ...], Recording]] = OrderedDict()
        self._opaque: dict[Any, frozenset[int]] = {}  # per structure: arrays whose constant value does not count
        self._literals: dict[Any, tuple[Any, ...]] = {}  # per structure: the constants of the latest recording
        self._short = Shortcuts(self.fn)

    @property
    def n_cached_recordings(self) -> int:
        """Return how many recordings are kept."""
        return len(self._known)

    def report(self) -> str:
        """Return a text about each recording: launches, and what its intermediate values take in the shared arena, with
        a map of the moment when that is most."""
        parts = []
        for number, variants in enumerate(self._known.values()):
            for sizes, made in variants.items():
                largest = max(sizes, default=0)
                parts.append(
                    f"{self.name}, recording {number + 1}, arrays of up to {largest} elements: "
                    f"{len(made.replay.notes)} launches\n{made.replay.plan.report()}"
                )
        return "\n\n".join(parts) or f"{self.name}: no recordings"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else BoundFrozen(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.enabled or recording.scopes or recording.lines or not freezing():
            return self.fn(*args, **kwargs)  # kernels under the Debug flag report to Python
        recorder = runtime.recorder
        if recorder is not None and recorder.thread == get_ident():
            return self.fn(*args, **kwargs)
        if not kwargs and not here().scopes:
            found = self._short.find(args)
            if found is not None:
                return found[0].play_simple(found[1])
        roots: list[Any] = [args, kwargs, self.fn]
        if self.state_fn is not None:
            roots.append(self.state_fn(*args, **kwargs))
        with runtime.lock:
            entering, key, sizes = self._enter(roots)
            known = self._find(key, sizes)
            if known is None and _prepare(roots):
                entering, key, sizes = self._enter(roots)
                known = self._find(key, sizes)
            if known is not None:
                if self.state_fn is None and not kwargs and not here().scopes:
                    self._short.learn(args, known)
                return known.play(entering.entry)
            self._literals[entering.structure] = entering.literals
            made, result = self._record(entering.entry, args, kwargs)
            self._keep(key, sizes, made)
            return result

    def _enter(self, roots: list[Any]) -> tuple[Entering, Any, tuple[int, ...]]:
        """Return what a call begins with, its key and sizes; constants known to change are put into memory."""
        entering = Entering(roots)
        structure = entering.structure
        key, sizes = entering.finish(self._opaque.get(structure))
        if key not in self._known and self.auto_opaque and structure in self._literals:
            changed = entering.changed(self._literals[structure])
            if changed:
                self._opaque[structure] = changed | self._opaque.get(structure, frozenset())
                key, sizes = entering.finish(self._opaque[structure])
        return entering, key, sizes

    def _find(self, key: Any, sizes: tuple[int, ...]) -> Recording | None:
        variants = self._known.get(key)
        known = None if variants is None else variants.get(sizes)
        if known is not None:
            self._known.move_to_end(key)
        return known

    def _keep(self, key: Any, sizes: tuple[int, ...], made: Recording) -> None:
        new = key not in self._known
        variants = self._known.setdefault(key, OrderedDict())
        variants[sizes] = made
        if len(variants) > _SIZES:
            variants.popitem(last=False)
            self._short.clear()
        if new:
            self.n_recordings += 1
            if self.n_recordings == self.warn_after + 1:
                warnings.warn(
                    f"frozen function '{self.name}' was recorded {self.n_recordings} times: an argument changes at "
                    "every call that counts as part of the program, such as a Python number. Pass numbers that change "
                    "as arrays in memory (opaque).",
                    stacklevel=4,
                )
        while self.limit is not None and len(self._known) > self.limit:
            self._known.popitem(last=False)
            self._short.clear()

    def _record(self, entry: Entry, args: Any, kwargs: Any) -> tuple[Recording, Any]:
        """Call the function once while its launches are noted; return the recording and the result."""
        name = self.name
        seen: dict[int, Any] = {}
        before = snapshot(entry.roots, seen)
        if any(a.value is not b for a, b in zip(leaves(before), entry.leaves, strict=True)):
            raise RuntimeError(f"frozen function '{name}': its arrays were listed in two different orders")
        gradients_before = [a.grad._n if a.grad is not None else None for a in entry.ads]
        recorder = Recorder(name, entry.buffers)
        started = new_index()
        runtime.recorder, here().frozen = recorder, started
        try:
            result = self.fn(*args, **kwargs)
            roots = [*entry.roots[:3], *([self.state_fn(*args, **kwargs)] if self.state_fn is not None else [])]
            after_result, after = snapshot(result, {}), snapshot(roots, {})
            _evaluate([after_result, after], entry.ads)
            after_result, after = snapshot(result, {}), snapshot(roots, {})
        finally:
            runtime.recorder, here().frozen = None, 0
        index = Index(before)
        recipe = Recipe(name, recorder, entry, index.values)
        how = recipe.value(after_result, index.paths)
        differences_found = differences(before, after, index, frozenset({3}))
        changes = [(c, recipe.content(c, index.paths)) for c in differences_found]
        gradients = []
        for k, (a, old) in enumerate(zip(entry.ads, gradients_before, strict=True)):
            new = a.grad._n if a.grad is not None else None
            if new is not old:
                gradients.append((k, None if a.grad is None else recipe.array(a.grad)))
        changed = [c.snap for c in differences_found if c.snap is not None]
        _lose_derivatives(name, started, entry, [after_result, *changed])
        guards = [(recipe.result(mask), message) for mask, message in recorder.guards]
        for mask, message in recorder.guards:
            runtime.guard(mask, message)
        for change in differences_found:
            change.snap = None  # it holds arrays of this call
        replay = Replay(recorder, recipe.results, guards)
        recipe.finish()
        return Recording(replay, recipe, how, changes, gradients), result


class BoundFrozen:
    """A frozen function as a method of an object; all but the call is that of the function."""

    def __init__(self, function: FrozenFunction, instance: Any) -> None:
        self.__func__, self.__self__ = function, instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(self.__self__, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__func__, name)


def _prepare(roots: list[Any]) -> bool:
    """Let objects build now what a recording cannot hold (acceleration structures); return whether any did."""
    seen: dict[int, Any] = {}
    snapshot(roots, seen)
    able = [value for value in seen.values() if hasattr(type(value), "frozen_prepare")]
    for value in able:
        value.frozen_prepare()
    return bool(able)


def _evaluate(snaps: list[Snap], ads: list[ADNode]) -> None:
    """Compute everything that leaves the function: results, changed arrays, gradients."""
    wanted = [a.grad._n for a in ads if a.grad is not None]
    for snap in snaps:
        for one in leaves(snap):
            wanted.append(one.node)
            if one.ad is not None and one.ad.grad is not None:
                wanted.append(one.ad.grad._n)
    evaluate(wanted)


def _lose_derivatives(name: str, started: int, entry: Entry, snaps: list[Snap]) -> None:
    """Give what left the function the derivative nodes that replays give it, so that the first call is like others."""
    made: dict[int, Any] = {}
    for snap in snaps:
        for one in leaves(snap):
            x: Flat = one.value
            a = x._ad
            if a is not None and a.rule is not None and a.index >= started and not isinstance(a.rule, Lost):
                if a.index not in made:
                    made[a.index] = lost(name, x, entry.ads)
                x._ad = made[a.index]


@overload
def freeze(fn: Callable[..., Any], /) -> FrozenFunction: ...
@overload
def freeze(
    fn: None = None, /, *, state_fn: Callable[..., Any] | None = None, limit: int | None = None, warn_after: int = 10,
    backend: Any = None, auto_opaque: bool = True, enabled: bool = True,
) -> Callable[[Callable[..., Any]], FrozenFunction]: ...  # fmt: skip
def freeze(
    fn: Callable[..., Any] | None = None, /, *, state_fn: Callable[..., Any] | None = None, limit: int | None = None,
    warn_after: int = 10, backend: Any = None, auto_opaque: bool = True, enabled: bool = True,
) -> Any:  # fmt: skip
    """Return the function with its launches recorded at the first call and replayed at later ones.

    A replay runs the same kernels on other arrays: nothing is traced again, and all memory for intermediate values is
    planned. Recordings are kept for each structure of inputs: types, containers, Python numbers and strings, which
    arrays are constants, single values or the same array twice, which have gradients; other sizes are recorded once
    more each, without compiling. Inputs are arguments, closure variables, globals that the function names, everything
    below the objects they are, and what `state_fn`, called with the same arguments, returns. Arrays that the function
    changes below these are changed by replays too, gradients of its inputs included.

    Python code runs while recording only: reading values, printing, random numbers of Python. Reading values of arrays
    raises FreezeError. Derivatives must be computed inside: those of the result stop at the function with FreezeError.

    `limit`: recordings kept, the longest unused go first (None: all). `warn_after`: more recordings than these give a
    warning. `auto_opaque`: constants that differ between calls become arrays in memory instead of new recordings.
    `enabled=False` and the flag `KernelFreezing` switch freezing off; inside of other recordings and under the flag
    `Debug` it is off, too.

    >>> import luxgrad as dr
    >>> from luxgrad.llvm import Float
    >>> @dr.freeze
    ... def smooth(x, weight):
    ...     return x * weight + dr.mean(x) * (1 - weight)
    >>> print(smooth(Float([1, 2, 3]), Float(0.5)), smooth(Float([3, 4, 8]), Float(0.5)), smooth.n_recordings)
    [1.5, 2, 2.5] [4, 4.5, 6.5] 1
    """
    if limit is not None and limit < 1:
        raise ValueError(f"freeze(): limit must be at least 1, found {limit}")

    def wrap(function: Callable[..., Any]) -> FrozenFunction:
        if not callable(function):
            raise TypeError(f"freeze(): a function is needed, found {type(function).__name__}")
        return FrozenFunction(function, state_fn, limit, warn_after, auto_opaque, enabled)

    return wrap if fn is None else wrap(fn)


__all__ = ["FreezeError", "FrozenFunction", "freeze"]
