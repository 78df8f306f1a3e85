"""`@syntax`: Python's own `while` and `if` on arrays, rewritten into `while_loop` and `if_stmt` calls.

The body of each statement becomes a function of the variables it uses. What it binds or changes is state; arrays it
only reads are captured, so that scatters to them work; objects that hold arrays and may be changed by a method (random
number generators) are state as well, and get their new fields back.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import textwrap
import types
from collections.abc import Callable, Sequence
from typing import Any

from .arrays import tree
from .arrays.base import ArrayBase
from .branches import branch_of
from .loops import run_loop
from .syntax_names import Uses, parameters, uses

__all__ = ["hint", "syntax"]

_HINTS = ("mode", "max_iterations", "label", "include", "exclude", "strict", "compress")


def hint(
    arg: Any,
    /,
    *,
    mode: str | None = None,
    max_iterations: int | None = None,
    label: str | None = None,
    include: Sequence[Any] | None = None,
    exclude: Sequence[Any] | None = None,
    strict: bool = True,
    compress: bool | None = None,
) -> Any:
    """Return the condition `arg`; inside a `@syntax` function the options control its `while` or `if`.

    `mode`: "scalar" leaves the statement to Python, "evaluated" and "symbolic" choose how it runs. `max_iterations`
    bounds a loop for reverse-mode derivatives. `include` and `exclude` list variables that are, or are not, state.
    """
    return arg


def syntax(
    f: Callable[..., Any] | None = None, *, recursive: bool = False, print_ast: bool = False, print_code: bool = False
) -> Any:
    """Return the function with its `while` and `if` rewritten for arrays (a decorator, with or without options).

    `recursive` rewrites functions defined inside as well; `print_ast` and `print_code` show the result. Raises
    SyntaxError with file and line for `return`, `break` and `continue` inside a rewritten statement, and RuntimeError
    if the source of the function cannot be found.
    """
    if f is None:
        return lambda g: syntax(g, recursive=recursive, print_ast=print_ast, print_code=print_code)
    definition = _definition(f)
    if print_code:
        print(f"Input code\n----------\n{ast.unparse(definition)}\n")
    filename = inspect.getsourcefile(f) or "<unknown>"
    _Rewriter(filename, definition, recursive).rewrite_function(definition)
    if print_code:
        print(f"Output code\n-----------\n{ast.unparse(definition)}\n")
    if print_ast:
        print(ast.dump(definition, indent=4))
    return _compiled(f, definition, filename)


def _definition(f: Any) -> ast.FunctionDef:
    if not isinstance(f, types.FunctionType):
        raise TypeError(f"@syntax: a function is needed, found {type(f).__name__}")
    try:
        lines, first = inspect.getsourcelines(f)
    except (OSError, TypeError) as error:
        raise RuntimeError(
            f"@syntax: the source of '{f.__qualname__}' cannot be found. Functions typed at the prompt or made by "
            "exec() have none: put the function into a file, or call while_loop() and if_stmt() directly."
        ) from error
    module = ast.parse(textwrap.dedent("".join(lines)))
    ast.increment_lineno(module, first - 1)
    definition = module.body[0] if module.body else None
    if not isinstance(definition, ast.FunctionDef):
        raise TypeError("@syntax: only functions written with 'def' can be rewritten, not lambdas or coroutines")
    definition.decorator_list = []
    return definition


def _compiled(f: Any, definition: ast.FunctionDef, filename: str) -> Any:
    """Return a function of the new code with globals, closure and defaults of the old one."""
    cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
    cells["_luxgrad"] = types.CellType(_Calls)
    factory = ast.parse(f"def factory({', '.join(cells)}):\n    pass")
    outer: Any = factory.body[0]
    outer.body = [definition]
    ast.fix_missing_locations(factory)
    module = compile(factory, filename, "exec")
    code = _code(_code(module, "factory"), definition.name)
    closure = tuple(cells[name] for name in code.co_freevars)
    result: Any = types.FunctionType(code, f.__globals__, f.__name__, f.__defaults__, closure)
    result.__kwdefaults__ = f.__kwdefaults__
    functools.update_wrapper(result, f)
    del result.__wrapped__
    return result


def _code(outer: types.CodeType, name: str) -> types.CodeType:
    return next(c for c in outer.co_consts if isinstance(c, types.CodeType) and c.co_name == name)


class _Rewriter:
    """Rewrites one function; `known` are the variables that have a value at the statement being looked at."""

    def __init__(self, filename: str, function: ast.FunctionDef, recursive: bool) -> None:
        self.filename, self.function, self.recursive = filename, function, recursive
        self.known: set[str] = set()
        self.outside: set[str] = set()  # declared global or nonlocal
        self.count = 0

    def error(self, node: ast.AST, message: str) -> SyntaxError:
        line = getattr(node, "lineno", 0)
        return SyntaxError(f"@syntax ({self.filename}:{line}): {message}")

    def rewrite_function(self, function: ast.FunctionDef) -> None:
        """Rewrite the statements of a function in place."""
        self.known = parameters(function.args)
        self.reads = [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        for node in ast.walk(function):
            if isinstance(node, ast.Global | ast.Nonlocal):
                self.outside |= set(node.names)
        function.body = self.block(function.body)

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in body:
            result += self.statement(statement)
            self.known |= uses([statement]).bound - self.outside
        return result

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.FunctionDef):
            if self.recursive:
                _Rewriter(self.filename, node, True).rewrite_function(node)
            return [node]
        if isinstance(node, ast.While | ast.If):
            test, options = self.hints(node.test)
            node.test = test
            if options.get("mode") != "scalar":
                return self.loop(node, options) if isinstance(node, ast.While) else self.branch(node, options)
        if isinstance(node, ast.For):
            self.known |= uses([node.target]).bound
        for field in ("body", "orelse", "finalbody"):
            if isinstance(getattr(node, field, None), list) and not isinstance(node, ast.ClassDef):
                setattr(node, field, self.block(getattr(node, field)))
        for part in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
            part.body = self.block(part.body)
        return [node]

    def hints(self, test: ast.expr) -> tuple[ast.expr, dict[str, Any]]:
        """Return a condition without its `hint(...)`, and the options of that."""
        name = test.func if isinstance(test, ast.Call) else None
        called = name.attr if isinstance(name, ast.Attribute) else name.id if isinstance(name, ast.Name) else None
        if called != "hint" or not isinstance(test, ast.Call):
            return test, {}
        if len(test.args) != 1:
            raise self.error(test, "hint() takes the condition and named options")
        options: dict[str, Any] = {}
        for keyword in test.keywords:
            if keyword.arg not in _HINTS:
                raise self.error(test, f"hint() has no option '{keyword.arg}'; there are {', '.join(_HINTS)}")
            options[keyword.arg] = self.option(keyword)
        return test.args[0], options

    def option(self, keyword: ast.keyword) -> Any:
        value = keyword.value
        if keyword.arg == "mode":
            if not (isinstance(value, ast.Constant) and value.value in (None, "scalar", "evaluated", "symbolic")):
                raise self.error(value, "hint(): mode must be written as 'scalar', 'evaluated' or 'symbolic'")
            return value.value
        if keyword.arg in ("include", "exclude"):
            if not isinstance(value, ast.List | ast.Tuple) or not all(isinstance(e, ast.Name) for e in value.elts):
                raise self.error(value, f"hint(): {keyword.arg} must be a list of variables")
            return [e.id for e in value.elts if isinstance(e, ast.Name)]
        return value

    def refuse(self, body: Sequence[ast.AST], kind: str, loops: int = 0) -> None:
        """Raise SyntaxError if statements leave the block other than at its end."""
        for node in body:
            jumps = isinstance(node, ast.Return | ast.Yield | ast.YieldFrom | ast.Await)
            if jumps or (isinstance(node, ast.Break | ast.Continue) and not loops):
                word = type(node).__name__.lower()
                raise self.error(
                    node,
                    f"'{word}' inside a rewritten '{kind}' is not possible, because lanes take different ways. Use a "
                    "mask, or write hint(condition, mode='scalar') if the condition is a Python bool.",
                )
            if isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
                continue
            inner = loops + isinstance(node, ast.For | ast.While)
            self.refuse(list(ast.iter_child_nodes(node)), kind, inner)

    def variables(self, parts: list[ast.AST], options: dict[str, Any]) -> tuple[list[str], list[str], Uses]:
        """Return the state that is bound, variables that are only read or changed in place, and what happens to all."""
        found = uses(parts)
        declared = found.written & self.outside
        if declared:
            name = sorted(declared)[0]
            raise self.error(
                parts[0],
                f"'{name}' is declared global or nonlocal and cannot be assigned in a rewritten statement: the change "
                "would not be made per lane. Pass it as an argument and return it, or write hint(condition, "
                "mode='scalar') if the condition is a Python bool.",
            )
        bound = (found.bound | set(options.get("include", ()))) & self.known - set(options.get("exclude", ()))
        others = (found.read | found.changed) & self.known - bound - set(options.get("exclude", ()))
        return sorted(bound), sorted(others), found

    def loop(self, node: ast.While, options: dict[str, Any]) -> list[ast.stmt]:
        if node.orelse:
            raise self.error(node.orelse[0], "a rewritten 'while' cannot have an 'else' part")
        self.refuse(node.body, "while")
        bound, others, found = self.variables([node.test, *node.body], options)
        self.count += 1
        names = [*bound, *others]
        cond, body = f"_loop_cond_{self.count}", f"_loop_body_{self.count}"
        known = set(self.known)
        inner = self.block(node.body)
        self.known = known
        statements = [
            self.define(cond, names, [ast.Return(value=node.test)], node),
            self.define(body, names, [*inner, ast.Return(value=_tuple(names))], node),
            self.call("loop", bound, others, names, [_name(cond), _name(body)], options, found.changed, node),
        ]
        return statements

    def branch(self, node: ast.If, options: dict[str, Any]) -> list[ast.stmt]:
        self.refuse([*node.body, *node.orelse], "if")
        state, others, found = self.variables([node.test, *node.body, *node.orelse], options)
        new = found.bound - self.known
        in_both = uses(node.body).bound & uses(node.orelse).bound
        within = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        # What is new and not looked at elsewhere stays inside.
        results = [*state, *sorted(v for v in new & in_both if self.reads.count(v) > within.count(v))]
        self.count += 1
        yes, no = f"_if_true_{self.count}", f"_if_false_{self.count}"
        names = [*state, *others]
        known = set(self.known)
        sides: list[ast.stmt] = []
        for name, part in ((yes, node.body), (no, node.orelse)):
            copied = self.block(part)
            self.known = set(known)
            sides.append(self.define(name, names, [*copied, ast.Return(value=_tuple([*results, *others]))], node))
        functions: list[ast.expr] = [node.test, _name(yes), _name(no)]
        results += others
        return [*sides, self.call("branch", state, others, results, functions, options, found.changed, node)]

    def define(self, name: str, names: list[str], body: list[ast.stmt], node: ast.stmt) -> ast.stmt:
        """Return the definition of a function of these variables."""
        definition = ast.parse(f"def {name}({', '.join(names)}):\n    pass").body[0]
        definition.body = body  # type: ignore[attr-defined]
        return _located(definition, node)

    def call(
        self, kind: str, state: list[str], others: list[str], results: list[str], functions: list[ast.expr],
        options: dict[str, Any], changed: set[str], node: ast.stmt,
    ) -> ast.stmt:  # fmt: skip
        """Return `results = _luxgrad.kind(state, others, names, *functions, options)`; attributes or elements of
        `changed` are assigned."""
        labels = ast.Tuple([ast.Constant(r) for r in results], ast.Load())
        arguments: list[ast.expr] = [_tuple(state), _tuple(others), labels, *functions]
        keywords = [ast.keyword("assigned", ast.Tuple([ast.Constant(n) for n in sorted(changed)], ast.Load()))]
        for name, value in options.items():
            if name not in ("include", "exclude"):
                keywords.append(ast.keyword(name, value if isinstance(value, ast.expr) else ast.Constant(value)))
        target = ast.Attribute(ast.Name("_luxgrad", ast.Load()), kind, ast.Load())
        value = ast.Call(target, arguments, keywords)
        if not results:
            return _located(ast.Expr(value), node)
        return _located(ast.Assign([_tuple(results, ast.Store())], value), node)


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _tuple(names: Sequence[str], context: ast.expr_context | None = None) -> ast.expr:
    context = context or ast.Load()
    return ast.Tuple([ast.Name(n, copy.copy(context)) for n in names], context)


def _located(node: ast.stmt, like: ast.stmt) -> ast.stmt:
    """Give the line of the original statement to every new node; those of the body keep theirs."""
    line = ast.copy_location(ast.Pass(), like)
    line.end_lineno, line.end_col_offset = line.lineno, line.col_offset  # else calls count as where a statement ends
    for n in ast.walk(node):
        # The numbers of `ast.parse` for a definition of two lines are no lines of the file.
        if isinstance(n, ast.FunctionDef | ast.arguments | ast.arg) or not hasattr(n, "lineno"):
            ast.copy_location(n, line)
    return ast.fix_missing_locations(node)


def _changeable(value: Any) -> bool:
    """Return whether a value holds arrays and may be given others by whoever is handed it."""
    if isinstance(value, (ArrayBase, tuple, type)):
        return False
    container = type(value) in (list, dict) or tree.fields(value) is not None
    return container and next(tree.arrays(value), None) is not None


def _write_back(target: Any, source: Any) -> None:
    """Give an object, list or dict the arrays that a loop or branch computed for its copy."""
    if type(target) is list:
        target[:] = [_kept(t, s) for t, s in zip(target, source, strict=True)]
    elif type(target) is dict:
        for k in target:
            target[k] = _kept(target[k], source[k])
    else:
        for k, old in (tree.fields(target) or {}).items():
            object.__setattr__(target, k, _kept(old, getattr(source, k)))


def _kept(old: Any, new: Any) -> Any:
    if _changeable(old) and type(old) is type(new):
        _write_back(old, new)
        return old
    return new


class _Calls:
    """What rewritten functions call."""

    @staticmethod
    def loop(
        state: tuple[Any, ...], others: tuple[Any, ...], names: tuple[str, ...], cond: Any, body: Any,
        assigned: tuple[str, ...] = (), mode: str | None = None, max_iterations: int | None = None, **options: Any,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Return all variables after a loop."""
        changing = [k for k, v in enumerate(others) if _changeable(v)]
        first = len(state)

        def complete(values: tuple[Any, ...]) -> list[Any]:
            rest = list(others)
            for k, v in zip(changing, values[first:], strict=True):
                rest[k] = v
            return [*values[:first], *rest]

        def step(*values: Any) -> tuple[Any, ...]:
            after = body(*complete(values))
            return (*after[:first], *(after[first + k] for k in changing))

        labels = [*names[:first], *(names[first + k] for k in changing)]
        start = (*state, *(others[k] for k in changing))
        after = run_loop(
            start, lambda *v: cond(*complete(v)), step, labels, mode, max_iterations,
            list(zip(names[first:], others, strict=True)), assigned, (cond, body),
        )  # fmt: skip
        for k, new in zip(changing, after[first:], strict=True):
            _write_back(others[k], new)
        return (*after[:first], *others)

    @staticmethod
    def branch(
        state: tuple[Any, ...], others: tuple[Any, ...], names: tuple[str, ...], cond: Any, yes: Any, no: Any,
        assigned: tuple[str, ...] = (), mode: str | None = None, **options: Any,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Return all variables after a branch."""
        if isinstance(cond, bool) or mode == "scalar" or not isinstance(cond, ArrayBase):
            return (yes if cond else no)(*state, *others)  # type: ignore[no-any-return]
        changing = [k for k, v in enumerate(others) if _changeable(v)]
        count = len(names) - len(others)
        first = len(state)

        def side(fn: Any) -> Any:
            def run(*values: Any) -> tuple[Any, ...]:
                rest = list(others)
                for k, v in zip(changing, values[first:], strict=True):
                    rest[k] = v
                after = fn(*values[:first], *rest)
                return (*after[:count], *(after[count + k] for k in changing))

            return run

        labels = [*names[:count], *(names[count + k] for k in changing)]
        arguments = (*state, *(others[k] for k in changing))
        after = branch_of(
            arguments, cond, side(yes), side(no), mode, labels, (yes, no),
            list(zip(names[count:], others, strict=True)), assigned,
        )  # fmt: skip
        for k, new in zip(changing, after[count:], strict=True):
            _write_back(others[k], new)
        return (*after[:count], *others)
