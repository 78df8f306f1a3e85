"""Derivative rules of array operations: rows by their weights, and gather, scatter, reductions, casts and others."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ..jit.arrays import functions as f
from ..jit.arrays.base import apply, make_node
from ..jit.arrays.create import arange, full
from ..jit.arrays.flat import cast, convert
from ..jit.arrays.memops import gather, scatter, scatter_add
from ..jit.dtypes import UInt32
from ..jit.ops.row import ROWS, Row
from ..jit.trace import LITERAL, Node, scalar, value_of
from .graph import ADNode, Rule, active
from .traverse import prepare_sum
from .widen import widened

Give = Callable[..., None]
_new = object.__new__
# All traced functions, as rows' weights call them.
_traced = SimpleNamespace(**{n: getattr(f, n) for n in (*ROWS, "zero", "one", "square", "isnan", "isinf", "isfinite")})
_select, _scaled = ROWS["select"], ROWS["scaled"]


def scaled(g: Any, weight: Any) -> Any:
    """Return g * weight, 0 where g is 0: a masked-out branch may have an infinite derivative."""
    if isinstance(weight, (int, float)):
        return g if weight == 1 else -g if weight == -1 else g * weight
    if g._n.op is LITERAL:
        return g * weight if g._n.attr.strip(b"\x00") else g
    weight = convert(g.__class__, weight)
    if weight._n.op is LITERAL and math.isfinite(value_of(weight._n)):
        return g * weight
    return apply(_scaled, (g, weight))


def _pick(weight: Any, arity: int) -> int | None:
    """Return which argument a weight function just hands back (-1: the result), None if it computes something."""
    marks = [object() for _ in range(arity + 1)]
    try:
        found = weight(None, *marks)
    except (TypeError, AttributeError):
        return None
    return next((k - 1 for k, m in enumerate(marks) if m is found), None)


class RowRule(Rule):
    """An elementwise operation; the weights stand in its row.

    A node's `args` are the arguments' trace nodes, its `data` their derivative nodes.
    """

    def __init__(self, row: Row, weights: tuple[Any, ...]) -> None:
        self.row, self.name, self.weights = row, row.name, weights
        self.everywhere = row.result == "same" and None not in weights[row.mask_first :]  # (masks have no gradients)
        self.picks = [_pick(w, row.arity) if callable(w) else None for w in weights]

    def operands(self, node: ADNode, attached: bool) -> list[Any]:
        """Return result and arguments as arrays, with their derivative nodes where derivatives are recorded."""
        cls = node.cls
        made = []
        for n in (node.value, *node.args):
            r = _new(cls)
            r._n = n
            r._ad = None
            made.append(r)
        if attached:
            for r, ad in zip(made, (node, *node.data), strict=True):
                r._ad = ad
        return made

    def term(self, node: ADNode, g: Any, position: int, attached: bool, operands: list[Any]) -> Any:
        """Return gradient or tangent `g` times the weight of an argument; `operands` is filled when it is needed."""
        w = self.weights[position]
        if w.__class__ is float:
            return scaled(g, w)
        pick = self.picks[position]
        if pick is None or attached:
            if not operands:
                operands += self.operands(node, attached)
            weight = w(_traced, *operands)
            if weight.__class__ is not node.cls or attached:
                return scaled(g, weight)
            factor = weight._n
        else:
            factor = node.value if pick < 0 else node.args[pick]
        n: Node = g._n
        r = _new(node.cls)
        r._ad = None
        if n.op is LITERAL or factor.op is LITERAL or n.size != factor.size or g._ad is not None:
            r._n = factor
            return scaled(g, r)
        r._n = make_node(_scaled, n.dtype, n.size, (n, factor))
        return r

    def chosen(self, node: ADNode, g: Any, position: int) -> Any:
        """Return `g` where `select` took the argument at `position`, else 0."""
        cls, n, mask = node.cls, g._n, node.args[0]
        zero = scalar(n.dtype, 0)
        if n.op is LITERAL or n.size != mask.size or g._ad is not None:
            g, other = cls.wrap(n, g._ad), cls.wrap(zero)
            return apply(_select, (cls.mask.wrap(mask), *((g, other) if position == 1 else (other, g))))
        r = _new(cls)
        r._ad = None
        r._n = make_node(_select, n.dtype, n.size, (mask, n, zero) if position == 1 else (mask, zero, n))
        return r

    def backward(self, node: ADNode, grad: Any, give: Give) -> None:
        """Hand grad times weight to each argument."""
        position = 0
        attached = active()
        operands: list[Any] = []
        weights = self.weights
        for parent in node.parents:
            if parent is not None:
                if weights[position] == 1.0:
                    give(parent, grad)
                elif self.row is _select:
                    give(parent, self.chosen(node, grad, position))
                else:
                    give(parent, self.term(node, grad, position, attached, operands))
            position += 1

    def forward(self, node: ADNode) -> Any:
        """Return the sum of tangents times weights."""
        total = None
        attached = active()
        operands: list[Any] = []
        for position, parent in enumerate(node.parents):
            if parent is None or parent.grad is None:
                continue
            if self.row is _select:
                term = self.chosen(node, parent.grad, position)
            else:
                term = self.term(node, parent.grad, position, attached, operands)
            total = term if total is None else total + term
        return total


class CastRule(Rule):
    """Conversion between floating-point types."""

    name = "cast"

    def backward(self, node: ADNode, grad: Any, give: Give) -> None:
        """Convert the gradient back."""
        parent = node.parents[0]
        if parent is not None:
            give(parent, cast(parent.cls, grad))

    def forward(self, node: ADNode) -> Any:
        """Convert the tangent."""
        parent = node.parents[0]
        return None if parent is None or parent.grad is None else cast(node.cls, parent.grad)


class GatherRule(Rule):
    """Reading by index: the reverse adds by index, straight into the source's gradient."""

    name = "gather"

    def backward(self, node: ADNode, grad: Any, give: Give) -> None:
        """Add the gradients up at the source's elements."""
        parent = node.parents[0]
        if parent is None:
            return
        index, mask = node.data
        add_at(parent, grad, index, mask)
        give(parent, None)

    def forward(self, node: ADNode) -> Any:
        """Read the tangents."""
        parent = node.parents[0]
        if parent is None or parent.grad is None:
            return None
        index, mask = node.data
        return gather(node.cls, widened(parent.grad, parent.size), index, mask)


def add_at(parent: ADNode, grad: Any, index: Any, mask: Any) -> None:
    """Add `grad` into the parent's gradient at `index`."""
    prepare_sum(parent)
    scatter_add(parent.grad, grad, index, mask)


class ScatterRule(Rule):
    """Writing by index. args: the target before, the value."""

    name = "scatter"

    def backward(self, node: ADNode, grad: Any, give: Give) -> None:
        """Read the value's gradient at its index; elements that were overwritten pass none to the old target."""
        index, mask, op = node.data
        target, value = node.parents
        grad = widened(grad, node.size)
        before, written = node.args
        if value is not None:
            g = gather(value.cls, grad, index, mask)
            if op in ("min", "max"):
                final = gather(value.cls, node.cls.wrap(node.value), index, mask)
                g = f.select(final == written, g, 0.0)
            give(value, g, g._n.size)
        if target is not None:
            if op == "":
                kept = grad.__copy__()
                scatter(kept, node.cls(0), index, mask)
                grad = kept
            elif op in ("min", "max"):
                grad = f.select(node.cls.wrap(node.value) == before, grad, 0.0)
            give(target, grad)

    def forward(self, node: ADNode) -> Any:
        """Write the tangents as the values were written."""
        index, mask, op = node.data
        target, value = node.parents
        t = (
            full(node.cls, 0, node.size)
            if target is None or target.grad is None
            else widened(target.grad, node.size).__copy__()
        )
        v = None if value is None else value.grad
        if op in ("min", "max"):
            before, written = node.args
            final = node.cls.wrap(node.value)
            t = f.select(final == before, t, 0.0)
            if v is not None:
                scatter_add(t, f.select(gather(node.cls, final, index, mask) == written, v, 0.0), index, mask)
            return t
        if op == "add":
            if v is not None:
                scatter_add(t, v, index, mask)
            return t
        scatter(t, v if v is not None else node.cls(0), index, mask)
        return t


def _others(x: Any) -> Any:
    """Return, per element, the product of all other elements, also where some are zero."""
    from ..jit.arrays import reduce

    zero = x == 0
    count = reduce.count(zero)
    rest = reduce.prod(f.select(zero, f.one(x), x))
    alone = f.select((count == 1) & zero, rest, f.zero(x))
    return f.select(count == 0, rest / f.select(zero, f.one(x), x), alone)


class ReduceRule(Rule):
    """Reductions of flat arrays; data: the reduction's name."""

    name = "reduce"

    def weight(self, node: ADNode) -> Any:
        """Return d result / d element."""
        x, op = node.args[0], node.data
        if op == "add":
            return 1.0
        if op == "mul":
            return _others(x)
        return f.select(x == node.result(), 1.0, 0.0)

    def backward(self, node: ADNode, grad: Any, give: Give) -> None:
        """Hand the gradient to every element that took part; to all of equal extremes."""
        parent = node.parents[0]
        if parent is not None:
            give(parent, scaled(grad, self.weight(node)))

    def forward(self, node: ADNode) -> Any:
        """Reduce the tangents."""
        from ..jit.arrays import reduce

        parent = node.parents[0]
        if parent is None or parent.grad is None:
            return None
        return reduce.sum(widened(scaled(parent.grad, self.weight(node)), parent.size))


class ConcatRule(Rule):
    """Arrays one after the other; data: their offsets."""

    name = "concat"

    def backward(self, node: ADNode, grad: Any, give: Give) -> None:
        """Cut the gradient into the parts."""
        grad = widened(grad, node.size)
        kind = node.cls.ns.flat(UInt32)
        for parent, offset in zip(node.parents, node.data, strict=True):
            if parent is not None:
                index = arange(kind, parent.size) + offset
                give(parent, gather(parent.cls, grad, index), parent.size)

    def forward(self, node: ADNode) -> Any:
        """Join the tangents."""
        from ..jit.arrays.shape import concat

        parts = []
        for parent, arg in zip(node.parents, node.args, strict=True):
            size = arg._n.size
            missing = parent is None or parent.grad is None
            parts.append(full(node.cls, 0, size) if missing else widened(parent.grad, size))  # type: ignore[union-attr]
        return concat(parts)


class PrefixRule(Rule):
    """Running sums; data: whether each element's own value is left out."""

    name = "prefix_sum"

    def backward(self, node: ADNode, grad: Any, give: Give) -> None:
        """Sum the gradients of the elements behind."""
        from ..jit.arrays.scan import prefix_sum

        parent = node.parents[0]
        if parent is None:
            return
        kind = node.cls.ns.flat(UInt32)
        backwards = node.size - 1 - arange(kind, node.size)
        turned = gather(node.cls, widened(grad, node.size), backwards)
        give(parent, gather(node.cls, prefix_sum(turned, node.data), backwards))

    def forward(self, node: ADNode) -> Any:
        """Sum the tangents."""
        from ..jit.arrays.scan import prefix_sum

        parent = node.parents[0]
        return None if parent is None or parent.grad is None else prefix_sum(widened(parent.grad, node.size), node.data)


RULES = {row: RowRule(row, row.weights) for row in ROWS.values() if row.weights is not None and row.result == "same"}
CAST, GATHER, SCATTER, REDUCE, CONCAT, PREFIX = (
    CastRule(), GatherRule(), ScatterRule(), ReduceRule(), ConcatRule(), PrefixRule(),
)  # fmt: skip
__all__ = ["RULES", "RowRule", "scaled", "widened", "add_at"]
