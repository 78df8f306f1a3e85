"""What a call of a frozen function begins with: its arrays evaluated, numbered, and their state in the key."""

from __future__ import annotations

from typing import Any

from ...jit.runtime.engine import runtime
from ...jit.runtime.evaluate import evaluate, materialise
from ...jit.trace import LITERAL, Node
from ..graph import enabled, here
from .recipe import Entry
from .walk import Walk


class Entering:
    """Looks at everything below the roots of a call. `structure` is the key without the values of constants."""

    __slots__ = ("entry", "structure", "literals", "_constants", "_seen", "_sizes")

    def __init__(self, roots: list[Any]) -> None:
        walk = Walk()
        for root in roots:
            walk.visit(root)
        self.entry = entry = Entry(roots, walk.leaves)
        tokens = walk.tokens
        self._seen: dict[Node, int] = {}
        self._sizes: list[int] = []
        self._constants: list[tuple[int, Any]] = []  # (leaf, array) of constants, in order
        ads: dict[Any, int] = {}
        pending = [x._n for x in walk.leaves if x._n.buf is None and x._n.op is not LITERAL]
        pending += [
            x._ad.grad._n for x in walk.leaves
            if x._ad is not None and x._ad.grad is not None and x._ad.grad._n.buf is None
        ]  # fmt: skip
        if pending:
            evaluate(pending)
        for k, x in enumerate(walk.leaves):
            tokens.append(self._node(x, k))
            ad = x._ad
            if ad is None:
                tokens.append(None)
                continue
            number = ads.get(ad)
            if number is not None:
                tokens.append(~number)
                continue
            ads[ad] = len(ads)
            entry.ads.append(ad)
            if ad.rule is not None:
                tokens.append("interior")
            elif ad.grad is None:
                tokens.append("leaf")
            else:
                tokens.append(("gradient", self._node(ad.grad, -1)))
        self.literals = tuple((k, x._n.op is LITERAL, x._n.attr, x._n.size) for k, x in self._constants)
        tokens.append(runtime.threads.threads)
        if here().scopes:
            tokens.append(("suspended", here().scopes[-1].enabled, tuple(enabled(a) for a in entry.ads)))
        self.structure = tuple(tokens)

    def _node(self, x: Any, leaf: int) -> Any:
        """Return the token of an array's value, entering its node among the inputs."""
        n = x._n
        number = self._seen.get(n)
        if number is not None:
            return ~number
        self._seen[n] = len(self._seen)
        if n.op is LITERAL:
            self._constants.append((leaf, x))
            return "constant"
        entry, size, buffer = self.entry, n.size, n.buf
        entry.nodes.append(n)
        entry.buffers.append(buffer)
        self._sizes.append(size)
        if buffer.owner is not None and buffer.foreign and (size % 32 or buffer.nbytes % 64):
            return "borrowed"  # its last packet is read elsewhere
        return 1 if size == 1 else "array" if size else 0

    def changed(self, before: tuple[Any, ...]) -> frozenset[int]:
        """Return the arrays whose constant differs from that of an earlier call of the same structure."""
        pairs = zip(self.literals, before, strict=True)
        return frozenset(a[0] for a, b in pairs if a != b and a[0] >= 0)

    def finish(self, opaque: frozenset[int] | None) -> tuple[Any, tuple[int, ...]]:
        """Return key and sizes, with the constants in `opaque` put into memory: their values do not count."""
        if not self._constants:
            return self.structure, tuple(self._sizes)
        fixed = []
        for entry_literal, (k, x) in zip(self.literals, self._constants, strict=True):
            if opaque and k in opaque:
                if x._n.op is LITERAL:
                    old = x._n
                    x._n = materialise(old)
                    for other in self.entry.leaves:
                        if other._n is old:
                            other._n = x._n
                    self.entry.nodes.append(x._n)
                    self.entry.buffers.append(x._n.buf)
                    self._sizes.append(x._n.size)
            else:
                fixed.append(entry_literal)
        return (self.structure, tuple(fixed), opaque), tuple(self._sizes)


__all__ = ["Entering"]
