#!/usr/bin/env python3
"""Print how large modules and functions are: a hint where to split, never a failure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("facade", "jit", "ad", "render", "scenes", "optim", "tests", "tools", "benchmarks")
LOOK_AT, SPLIT_AT = 250, 400
LONG_FUNCTION = 60


@dataclass(frozen=True)
class Module:
    """One source file: its path, its lines, and (lines, name, first line) of each of its functions."""

    path: str
    lines: int
    functions: list[tuple[int, str, int]]


def read_modules(package: str) -> Iterator[Module]:
    """Yield the modules of a top-level folder in order of their paths."""
    for path in sorted((ROOT / package).rglob("*.py")):
        text = path.read_text("utf-8")
        functions = [
            ((node.end_lineno or node.lineno) - node.lineno + 1, node.name, node.lineno)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        yield Module(path.relative_to(ROOT).as_posix(), text.count("\n"), functions)


def quantile(values: Sequence[int], fraction: float) -> int:
    """Return the element of rank `fraction` (0 to 1) of the values, 0 for none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))] if ordered else 0


def main() -> None:
    """Print the table per package, then the modules and functions to look at."""
    modules = {package: list(read_modules(package)) for package in PACKAGES}
    print("package     modules   lines  median  largest   functions: count, median, p90, longest")
    for package, found in modules.items():
        if not found:
            continue
        lines = [m.lines for m in found]
        sizes = [size for m in found for size, _, _ in m.functions]
        print(
            f"{package:<11}{len(found):>8}{sum(lines):>8}{quantile(lines, 0.5):>8}{max(lines):>9}   "
            f"{len(sizes):>16}{quantile(sizes, 0.5):>8}{quantile(sizes, 0.9):>5}{max(sizes, default=0):>9}"
        )
    everything = [m for found in modules.values() for m in found]
    for m in sorted(everything, key=lambda m: -m.lines):
        if m.lines > LOOK_AT:
            print(f"{m.lines:>6} lines  {m.path}{'  (split)' if m.lines > SPLIT_AT else ''}")
    long = [(size, f"{m.path}:{line} {name}") for m in everything for size, name, line in m.functions]
    for size, where in sorted(long, key=lambda item: -item[0])[:15]:
        if size > LONG_FUNCTION:
            print(f"{size:>6} lines  {where}")


if __name__ == "__main__":
    main()
