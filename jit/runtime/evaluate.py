"""Evaluation: which kernels a set of nodes needs, in which order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from ..errors import SymbolicError
from ..ops.row import Row
from ..passes.order import children, walk
from ..trace import ACTIVE, AFTER, BRANCH, LITERAL, LOOP, PHI, REDUCE, Node, Scope
from .engine import runtime
from .launch import run_group
from .utilities import fill


class Choice(threading.local):
    """Per thread: what picks, of the nodes asked for, those to compute (while a function is tried for streaming)."""

    pick: Callable[[Iterable[Node]], Iterable[Node]] | None = None


choice = Choice()


def evaluate(nodes: Iterable[Node]) -> bool:
    """Compute all nodes that have no storage yet and return whether there were any.

    Reductions and scatters end a kernel: what reads their result waits for the next one. Everything of one size that
    is ready shares a kernel. Raises SymbolicError for values that exist only inside a loop or branch being recorded.
    """
    if choice.pick is not None:
        nodes = choice.pick(nodes)
    with runtime.lock:
        roots = _unique(nodes)
        worked = False
        while roots:
            worked = True
            _run_stage(roots)
            roots = [n for n in roots if n.buf is None]
        return worked


def _unique(nodes: Iterable[Node]) -> list[Node]:
    return list(dict.fromkeys([n for n in nodes if n.buf is None and n.op is not LITERAL]))


def _run_stage(roots: list[Node]) -> None:
    order, special = _with_companions(roots)
    ends = [n for n in special if n.op is REDUCE or n.op is AFTER]
    later = _waiting(order, ends)
    groups: dict[int, list[Node]] = {}
    if ends:
        wanted = set(roots)
        ends_set = set(ends)
        ready = [n for n in order if (n in wanted or n in ends_set) and n not in later]
    else:
        ready = roots
    for n in ready:
        groups.setdefault(launch_size(n), []).append(n)
    whole = len(groups) == 1 and not later
    for size, group in groups.items():
        if size:
            run_group(group, size, (order, special) if whole else None)
        else:
            _finish_empty(group)


def _waiting(order: list[Node], ends: list[Node]) -> set[Node]:
    """Return the nodes that need the result of a reduction or of scatters before they can be computed."""
    if not ends:
        return set()
    ending = set(ends)
    later: set[Node] = set()
    for n in order[order.index(ends[0]) + 1 :]:
        if n.buf is None:
            for c in n.args if n.op.__class__ is Row else children(n):
                if c in ending or c in later:
                    later.add(n)
                    break
    return later


def _with_companions(roots: list[Node]) -> tuple[list[Node], list[Node]]:
    """Return the nodes to visit, as `walk` does; scatters of a loop run with its other results, not again."""
    while True:
        order, special = walk(roots)
        _refuse_symbolic(special)
        more = []
        known: set[Node] | None = None
        for n in special:
            if (n.op is LOOP or n.op is BRANCH) and n.attr.afters:
                known = set(order) if known is None else known
                for reference in n.attr.afters:
                    after = reference()
                    if after is not None and after not in known:
                        more.append(after)
                        known.add(after)
        if not more:
            return order, special
        roots = [*roots, *more]


def _refuse_symbolic(special: list[Node]) -> None:
    inside = {id(s) for n in special if n.op is LOOP for s in (n.attr.scope_cond, n.attr.scope_body)}
    inside |= {id(s) for n in special if n.op is BRANCH for s in n.attr.scopes}
    for n in special:
        if (n.op is PHI or n.op is ACTIVE) and n.scope is not None and n.scope.closed and id(n.scope) not in inside:
            raise SymbolicError(
                "a *symbolic* variable left the loop or branch that it was computed in: its value exists only while "
                "that runs. Return it as a state variable or result instead of keeping it in a Python object."
            )
        if (n.op is PHI or n.op is ACTIVE) and n.scope is not None and _open(n.scope):
            raise SymbolicError(
                "tried to evaluate a *symbolic* variable: its value exists only while the loop, branch or call being "
                "recorded runs. Move what needs the value out of it (printing, indexing with [i], NumPy conversion, "
                "Python `if`), or record with mode='evaluated'."
            )
        if n.op is AFTER and n.attr.scope is not None and not n.attr.scope.closed:
            raise SymbolicError(
                "tried to evaluate a *symbolic* variable: the array is the target of a scatter in the loop or branch "
                "being recorded, and cannot be read before that has run"
            )


def _open(scope: Scope) -> bool:
    return not scope.closed


def launch_size(n: Node) -> int:
    """Return over how many elements the kernel runs that computes `n`."""
    if n.op is REDUCE:
        return n.args[0].size
    if n.op is AFTER:
        return int(n.attr.size)
    return n.size


def _finish_empty(group: list[Node]) -> None:
    """Finish roots over no elements: scatters of nothing leave their target, arrays stay empty."""
    from ..memory.pool import allocate
    from ..trace import DATA

    for n in group:
        if n.op is AFTER:
            old = n.args[0]
            if old.op is LITERAL:
                buffer = allocate(old.dtype, n.size)
                fill(buffer, old.dtype, -(-n.size // 16), int.from_bytes(old.attr, "little"))
            else:
                buffer = old.buf
        else:
            buffer = allocate(n.dtype, 0)
        n.buf, n.op, n.args, n.attr, n.scope = buffer, DATA, (), None, None


def materialise(n: Node) -> Node:
    """Return an evaluated node: `n` after its evaluation; a literal is written to memory as a new node."""
    from ..memory.pool import allocate
    from ..trace import data

    if n.op is not LITERAL:
        evaluate([n])
        return n
    with runtime.lock:
        buffer = allocate(n.dtype, n.size)
        fill(buffer, n.dtype, max(1, -(-n.size // 16)), int.from_bytes(n.attr, "little"))
        return data(n.dtype, n.size, buffer)
