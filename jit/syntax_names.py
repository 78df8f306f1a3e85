"""Which variables a piece of Python reads, binds and changes in place: the analysis behind `@syntax`."""

from __future__ import annotations

import ast
from collections.abc import Iterable


class Uses:
    """Names that statements read, bind (also by `+=`), and change through an attribute or index."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.bound: set[str] = set()
        self.changed: set[str] = set()

    @property
    def written(self) -> set[str]:
        """Return the names bound or changed."""
        return self.bound | self.changed


class _Visitor(ast.NodeVisitor):
    def __init__(self) -> None:
        self.uses = Uses()

    def visit_Name(self, node: ast.Name) -> None:
        (self.uses.read if isinstance(node.ctx, ast.Load) else self.uses.bound).add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.uses.read.add(node.target.id)
        self.generic_visit(node)

    def _base(self, node: ast.expr) -> None:
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        if isinstance(node, ast.Name):
            self.uses.changed.add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._base(node)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._base(node)
        self.generic_visit(node)

    def _bind(self, names: Iterable[str]) -> None:
        self.uses.bound.update(names)

    def visit_Import(self, node: ast.Import) -> None:
        self._bind((a.asname or a.name).partition(".")[0] for a in node.names)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self._bind(a.asname or a.name for a in node.names)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self._bind([node.name] if node.name else [])
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        self._bind([node.name] if node.name else [])
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        self._bind([node.name] if node.name else [])

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._bind([node.name])
        for outer in [*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]:
            self.visit(outer)
        self._inner(node.body, parameters(node.args))

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for outer in [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]:
            self.visit(outer)
        self._inner([node.body], parameters(node.args))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._bind([node.name])
        self._inner(node.body, set())

    def _inner(self, body: Iterable[ast.AST], own: set[str]) -> None:
        inner = uses(body)
        self.uses.read |= inner.read - own - inner.bound
        self.uses.changed |= inner.changed - own - inner.bound

    def _comprehension(self, node: ast.AST) -> None:
        inner = _Visitor()
        inner.generic_visit(node)
        own = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}  # type: ignore[attr-defined]
        self.uses.read |= inner.uses.read - own
        self.uses.bound |= inner.uses.bound - own  # by `:=`
        self.uses.changed |= inner.uses.changed - own

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension


def parameters(args: ast.arguments) -> set[str]:
    """Return the names of a function's parameters."""
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, *(a for a in (args.vararg, args.kwarg) if a is not None)]
    return {a.arg for a in every}


def uses(nodes: Iterable[ast.AST]) -> Uses:
    """Return what statements or expressions do to names of the scope around them."""
    visitor = _Visitor()
    for node in nodes:
        visitor.visit(node)
    return visitor.uses
