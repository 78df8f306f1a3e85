"""Which nodes a kernel needs, in an order in which each follows what it uses. No recursion: graphs may be deep."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ops.row import Row
from ..trace import AFTER, BRANCH, LITERAL, LOOP, OUT, PHI, REDUCE, SCATTER, BranchBody, LoopBody, Node


def live_effects(effects: tuple[Node, ...]) -> list[Node]:
    """Return the side effects whose target is wanted and not written yet; nested loops and branches count as wanted."""
    return [e for e in effects if e.op is not SCATTER or _unwritten(e.attr.after())]


def _unwritten(after: Node | None) -> bool:
    # A loop whose scatters have happened may run again for another of its outputs.
    return after is not None and after.buf is None


def children(n: Node) -> tuple[Node, ...] | list[Node]:
    """Return what must be computed before `n`, all of a loop's or branch's content included."""
    op = n.op
    if n.buf is not None:
        return ()
    if op is LOOP:
        body: LoopBody = n.attr
        return [*n.args, body.cond, *body.outs, *live_effects(body.effects)]
    if op is BRANCH:
        arms: BranchBody = n.attr
        nodes = [*n.args, *arms.defaults]
        for outs, effects in zip(arms.outs, arms.effects, strict=True):
            nodes += outs
            nodes += live_effects(effects)
        return nodes
    if op is AFTER:
        return list(n.attr.effects)
    return n.args


class Live:
    """Which state variables of loops and outputs of branches are used; the others are not computed."""

    def __init__(self, roots: list[Node]) -> None:
        self.used: dict[int, set[int]] = {}  # id of LOOP/BRANCH node -> positions
        self._loop_of: dict[int, Node] = {}  # id of condition scope -> LOOP node
        self._waiting: dict[int, set[int]] = {}  # positions of placeholders met before their loop
        seen: set[Node] = set()
        stack = list(roots)
        while stack:
            n = stack.pop()
            if n in seen or n.buf is not None:
                continue
            seen.add(n)
            stack += n.args if n.op.__class__ is Row else self._needs(n)

    def _needs(self, n: Node) -> list[Node] | tuple[Node, ...]:
        op = n.op
        if op is OUT and n.args[0].op in (LOOP, BRANCH):
            return [n.args[0], *self._use(n.args[0], n.attr)]
        if op is PHI:
            loop = self._loop_of.get(id(n.scope))
            if loop is None:
                self._waiting.setdefault(id(n.scope), set()).add(n.attr)
                return ()
            return self._use(loop, n.attr)
        if op is LOOP:
            body: LoopBody = n.attr
            self._loop_of[id(body.scope_cond)] = n
            nodes = [body.cond, *live_effects(body.effects)]
            for position in self._waiting.pop(id(body.scope_cond), ()):
                nodes += self._use(n, position)
            return nodes
        if op is BRANCH:
            nodes = list(n.args)
            for effects in n.attr.effects:
                nodes += live_effects(effects)
            return nodes
        return children(n)

    def _use(self, n: Node, position: int) -> list[Node]:
        used = self.used.setdefault(id(n), set())
        if position in used:
            return []
        used.add(position)
        if n.op is LOOP:
            return [n.args[position], n.attr.outs[position]]
        return [n.attr.defaults[position], *(outs[position] for outs in n.attr.outs)]

    def positions(self, n: Node) -> list[int]:
        """Return the used positions of a loop or branch, ascending."""
        return sorted(self.used.get(id(n), ()))

    def children(self, n: Node) -> list[Node] | tuple[Node, ...]:
        """Return what must be computed before `n`, unused loop state and outputs left out."""
        if n.buf is not None or (n.op is not LOOP and n.op is not BRANCH):
            return children(n)
        keep = self.positions(n)
        if n.op is LOOP:
            body: LoopBody = n.attr
            return [
                *(n.args[k] for k in keep),
                body.cond,
                *(body.outs[k] for k in keep),
                *live_effects(body.effects),
            ]
        arms: BranchBody = n.attr
        nodes = [*n.args, *(arms.defaults[k] for k in keep)]
        for outs, effects in zip(arms.outs, arms.effects, strict=True):
            nodes += [outs[k] for k in keep]
            nodes += live_effects(effects)
        return nodes


def walk(roots: list[Node], get: Callable[[Node], Sequence[Node]] = children) -> tuple[list[Node], list[Node]]:
    """Return all nodes below `roots` (which come last), each after what it uses; and those to compute that are no rows.

    `get`: what must be computed before a node that is no row. Literals are in the first list only.
    """
    order: list[Node] = []
    special: list[Node] = []
    done: dict[Node, bool] = {}  # False: what it uses is being visited
    stack: list[Node] = roots[::-1]
    pop, push, known = stack.pop, stack.append, done.get
    while stack:
        n = pop()
        state = known(n)
        if state:
            continue
        if n.buf is None:
            row = n.op.__class__ is Row
            if state is None:
                below = n.args if row else get(n)
                if len(below) == 2:
                    x, y = below
                    if x not in done:
                        done[n] = False
                        push(n)
                        if y not in done:
                            push(y)
                        push(x)
                        continue
                    if y not in done:
                        done[n] = False
                        push(n)
                        push(y)
                        continue
                elif below:
                    todo = [m for m in below if m not in done]
                    if todo:
                        done[n] = False
                        push(n)
                        todo.reverse()
                        stack += todo
                        continue
            if not row and n.op is not LITERAL:
                special.append(n)
        done[n] = True
        order.append(n)
    return order, special


def topological(roots: list[Node]) -> list[Node]:
    """Return all nodes below `roots` (which come last), each after what it uses."""
    return walk(roots)[0]


def pending(order: list[Node]) -> list[Node]:
    """Return the nodes that end a kernel (reductions, scatter targets) and are not evaluated yet, in order."""
    return [n for n in order if (n.op is REDUCE or n.op is AFTER) and n.buf is None]
