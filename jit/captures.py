"""What the functions of loops and branches capture, watched for changes: those would happen once, and for all lanes."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .arrays import tree
from .arrays.base import ArrayBase
from .arrays.flat import Flat
from .errors import SymbolicError
from .passes.order import children
from .trace import AFTER, ALIAS, LITERAL, Node, next_index, user_line

_LIMIT = 300  # values looked at per loop or branch: enough for what a function names, little for whole scenes
_DEPTH = 3  # attributes followed: sampler.rng.state
_PACKAGE = __name__.rsplit(".", 2)[0] + "."
_NO_STATE = (type, types.ModuleType, types.BuiltinFunctionType, str, bytes)


class Watch:
    """The arrays that functions find in closures and globals, as they are before the functions are recorded.

    `named` are further values by name; of those in `assigned` the code is known to assign attributes or elements, so
    that any change counts, of Python numbers too. Elsewhere a change is one if the new value is computed from the old
    one or constant: objects may keep what is written anew in each iteration before it is read.
    """

    def __init__(
        self,
        functions: Sequence[Callable[..., Any]],
        named: Sequence[tuple[str, Any]] = (),
        assigned: Sequence[str] = (),
    ) -> None:
        given = [*functions, *(v for _, v in named if isinstance(v, (types.FunctionType, types.MethodType)))]
        self.functions = [f for f in given if not _own(f)]
        self.named, self.assigned = named, frozenset(assigned)
        self.start = next_index()
        self.before = dict(self._values())

    def check(self, what: str) -> None:
        """Raise SymbolicError naming a variable that changed; `what` is recorded ("the body of a loop")."""
        if not self.before:
            return
        for key, (new, strict) in self._values():
            old = self.before.get(key, (new, strict))[0]
            if new is not old and self._wrong(old, new, strict):
                self._refuse(key[1], what)

    def _refuse(self, path: str, what: str) -> None:
        where = user_line()
        raise SymbolicError(
            f"{what} changes '{path}', which is not among its variables{f' (at {where})' if where else ''}. It is "
            "recorded once, so that the change would happen once and for all lanes, not per iteration and lane. Pass "
            "the value in and return it. In @syntax functions it must be a local variable or argument: an array, or a "
            "list, dict, dataclass or class with a DRJIT_STRUCT that names the attribute."
        )

    def _wrong(self, old: Any, new: Any, strict: bool) -> bool:
        if not isinstance(old, Node) or not isinstance(new, Node):
            return isinstance(old, Node) or isinstance(new, Node) or bool(old != new)
        if new.op is AFTER:  # a scatter
            return False
        if new.op is LITERAL or old.op is LITERAL:
            same = old.size == new.size and (new.buf is not None or (old.op is new.op and old.attr == new.attr))
            return not same and (strict or new.op is LITERAL or self._uses(new, old))
        return strict or self._uses(new, old)

    def _uses(self, new: Node, old: Node) -> bool:
        """Return whether `new` is computed from `old` by what was recorded since the start."""
        stack, seen = [new], {new}
        while stack:
            n = stack.pop()
            if n is old:
                return True
            if n.index > self.start and n.op is not ALIAS:
                for m in children(n):
                    if m not in seen:
                        seen.add(m)
                        stack.append(m)
        return False

    def _values(self) -> Iterator[tuple[tuple[int, str], tuple[Any, bool]]]:
        """Yield (root, path), (node or Python number, whether any change is wrong); breadth first."""
        roots = [(name, value, name in self.assigned) for name, value in self.named]
        roots += [(name, value, isinstance(value, ArrayBase)) for name, value in _captured(self.functions)]
        queue = [(k, name, value, strict, 0) for k, (name, value, strict) in enumerate(roots)]
        seen: set[int] = set()
        k = 0
        while k < len(queue) and k < _LIMIT:
            root, path, value, strict, depth = queue[k]
            k += 1
            strict = strict or roots[root][0] in self.assigned
            if isinstance(value, Flat):
                yield (root, path), (value._n, strict)
            elif isinstance(value, ArrayBase):
                for part, flat in enumerate(tree.arrays(value)):
                    yield (root, path if part == 0 else f"{path} ({part})"), (flat._n, strict)
            elif isinstance(value, (bool, int, float)):
                if roots[root][0] in self.assigned:
                    yield (root, path), (value, True)
            elif depth < _DEPTH and len(queue) < _LIMIT and id(value) not in seen:
                seen.add(id(value))
                queue += [(root, path + text, v, False, depth + 1) for text, v in _members(value)]


def _members(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(f"[{k!r}]", v) for k, v in value.items()] if len(value) <= _LIMIT else []
    if isinstance(value, (list, tuple)):
        return [(f"[{k}]", v) for k, v in enumerate(value)] if len(value) <= _LIMIT else []
    if isinstance(value, _NO_STATE) or isinstance(value, types.FunctionType):
        return []
    own = getattr(value, "__dict__", None)
    own = own if isinstance(own, dict) else tree.fields(value) or {}
    return [(f".{k}", v) for k, v in own.items()]


def _own(f: Any) -> bool:
    return (getattr(f, "__module__", None) or "").startswith(_PACKAGE)


def _captured(functions: Sequence[Callable[..., Any]]) -> Iterator[tuple[str, Any]]:
    """Yield name and value of what functions, and functions they capture, find outside of themselves."""
    stack: list[Any] = list(functions)
    seen: set[int] = set()
    while stack:
        f = stack.pop()
        if isinstance(f, types.MethodType):
            if id(f.__self__) not in seen:
                seen.add(id(f.__self__))
                yield "self", f.__self__
            f = f.__func__
        if not isinstance(f, types.FunctionType) or id(f) in seen or _own(f):
            continue
        seen.add(id(f))
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # not bound yet
                continue
            if isinstance(value, (types.FunctionType, types.MethodType)):
                stack.append(value)
            elif id(cell) not in seen:
                seen.add(id(cell))
                yield name, value
        for name in f.__code__.co_names:
            value = f.__globals__.get(name)
            if isinstance(value, types.FunctionType):
                if value.__module__ == f.__module__:
                    stack.append(value)
            elif value is not None and not isinstance(value, _NO_STATE):
                yield name, value
