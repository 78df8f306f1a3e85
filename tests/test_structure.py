"""The rules that hold the packages apart: import direction, packaging, guards, laziness."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("jit", "ad", "render", "scenes", "optim")
ALLOWED = {
    "jit": set(),
    "ad": {"jit"},
    "render": {"jit", "ad"},
    "scenes": {"jit", "ad", "render"},
    "optim": {"jit", "ad"},
}


def settings() -> dict[str, Any]:
    """Return the setuptools table of pyproject.toml."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    return table


def package_dir() -> dict[str, str]:
    mapping: dict[str, str] = settings()["package-dir"]
    return mapping


def source_files() -> list[Path]:
    return sorted(path for folder in package_dir().values() for path in (ROOT / folder).rglob("*.py"))


def imported_modules(path: Path, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Yield (line, absolute name) of everything a module imports; `from x import y` gives both x and x.y."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                drop = node.level - 1 if is_package else node.level
                parents = module.split(".")
                assert drop < len(parents), f"{path}:{node.lineno}: relative import leaves the package"
                base = ".".join([*parents[: len(parents) - drop], *([base] if base else [])])
            if base == "luxgrad":
                yield from ((node.lineno, f"luxgrad.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, base


def wrong_imports(package: str) -> list[str]:
    wrong = []
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = list(path.relative_to(ROOT).with_suffix("").parts)
        is_package = parts[-1] == "__init__"
        module = ".".join(["luxgrad", *(parts[:-1] if is_package else parts)])
        allowed = ALLOWED[package] | {package}
        if package == "optim" and parts[-1].startswith("fit"):
            allowed |= {"render", "scenes"}
        for line, name in imported_modules(path, module, is_package):
            head, _, rest = name.partition(".")
            if head in PACKAGES or (head == "luxgrad" and rest.partition(".")[0] not in allowed):
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    return wrong


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_run_one_way(package: str) -> None:
    assert not wrong_imports(package)


def test_the_import_check_sees_relative_and_nested_imports(tmp_path: Path) -> None:
    text = "from ..ad.graph import Node\ndef f():\n    from luxgrad import mi\n    import luxgrad.scenes.xml\n"
    text += "from . import x\n"
    path = tmp_path / "module.py"
    path.write_text(text)
    found = {name for _, name in imported_modules(path, "luxgrad.jit.module", False)}
    assert found == {"luxgrad.ad.graph", "luxgrad.mi", "luxgrad.scenes.xml", "luxgrad.jit"}


def test_every_folder_is_packaged() -> None:
    folders = set()
    for name, folder in package_dir().items():
        for path in (ROOT / folder).rglob("*.py"):
            inner = path.parent.relative_to(ROOT / folder).parts
            folders.add(".".join([name, *inner]))
            assert (path.parent / "__init__.py").exists(), f"{path.parent} holds modules but no __init__.py"
    assert folders == set(settings()["packages"]), "a package missing here is silently left out of the wheel"


def test_names_in_all_are_defined() -> None:
    for path in source_files():
        tree = ast.parse(path.read_text("utf-8"))
        listed: set[str] = set()
        defined: set[str] = set()
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                defined.add(node.name)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                defined |= {alias.asname or alias.name for alias in node.names}
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
                defined |= names
                if "__all__" in names and isinstance(node.value, ast.List | ast.Tuple):
                    listed = {e.value for e in node.value.elts if isinstance(e, ast.Constant)}  # type: ignore[misc]
        if "__getattr__" not in defined:
            assert listed <= defined, f"{path.relative_to(ROOT)}: {sorted(listed - defined)} in __all__ do not exist"


def undocumented(tree: ast.Module) -> Iterator[str]:
    """Yield the public functions, classes and methods of a module that have no docstring, but setters and overloads."""
    if not ast.get_docstring(tree):
        yield "the module"
    waiting = [(node, "") for node in tree.body]
    while waiting:
        node, prefix = waiting.pop()
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        setter = any(isinstance(d, ast.Attribute) and d.attr == "setter" for d in node.decorator_list)
        setter |= any(isinstance(d, ast.Name) and d.id == "overload" for d in node.decorator_list)
        if not setter and not ast.get_docstring(node):
            yield f"line {node.lineno}: {prefix}{node.name}"
        if isinstance(node, ast.ClassDef):
            waiting += [(inner, f"{prefix}{node.name}.") for inner in node.body]


def test_every_public_object_has_a_docstring() -> None:
    missing = [
        f"{path.relative_to(ROOT)}: {what}"
        for path in source_files()
        for what in undocumented(ast.parse(path.read_text("utf-8")))
    ]
    assert not missing


def test_the_docstring_check_sees_what_is_missing() -> None:
    text = "class A:\n    def f(self): ...\n    def _g(self): ...\n    @f.setter\n    def f(self, x): ...\n"
    assert set(undocumented(ast.parse(text))) == {"the module", "line 1: A", "line 2: A.f"}


def test_names_in_all_can_be_imported(tmp_path: Path) -> None:
    code = f"""
import importlib, pathlib
import luxgrad.mi
luxgrad.mi.set_variant("llvm_ad_rgb")  # names of luxgrad.mi depend on it
root = pathlib.Path({str(ROOT)!r})
for package, folder in {package_dir()!r}.items():
    for path in sorted((root / folder).rglob("*.py")):
        if "__all__" in path.read_text("utf-8") and path.stem != "__main__":
            parts = path.relative_to(root / folder).with_suffix("").parts
            name = ".".join([package, *(parts[:-1] if parts[-1] == "__init__" else parts)])
            module = importlib.import_module(name)
            names = list(module.__all__)
            missing = [n for n in names if not hasattr(module, n)]
            if missing or len(set(names)) != len(names):
                print(name, missing or "names twice")
"""
    assert run_python(code, tmp_path) == ""


def run_python(code: str, cwd: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_top_level_folders_refuse_to_be_imported_by_themselves() -> None:
    code = f"""
for name in {PACKAGES!r}:
    try:
        __import__(name)
    except ImportError as error:
        print(name, "luxgrad." + name in str(error))
"""
    assert run_python(code, ROOT).split() == [word for name in PACKAGES for word in (name, "True")]


def test_importing_luxgrad_loads_neither_numpy_nor_the_renderer(tmp_path: Path) -> None:
    heavy = {"numpy", "llvmlite", "luxgrad.render", "luxgrad.mi"}
    code = f"import sys, luxgrad; print(sorted({heavy!r} & set(sys.modules)))"
    assert run_python(code, tmp_path).strip() == "[]"


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps no executable bit")
@pytest.mark.parametrize("name", ["tools/test", "tools/demo", ".ci/run"])
def test_commands_are_executable(name: str) -> None:
    assert os.access(ROOT / name, os.X_OK)
