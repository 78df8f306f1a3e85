"""Settings: one table, read from the environment or a block, with clear errors; what each of them does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import luxgrad as dr
from luxgrad.jit import debug
from luxgrad.jit.passes.program import Program
from luxgrad.jit.passes.verify import verify
from luxgrad.jit.runtime import cache
from luxgrad.jit.runtime.threads import default_threads
from luxgrad.llvm import Array3f, Float, UInt32

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_of_the_readme_is_that_of_the_declarations() -> None:
    assert debug.markdown_table() in (ROOT / "README.md").read_text("utf-8")


def test_variables_are_read_through_the_table_only() -> None:
    for folder in ("jit", "ad", "render", "scenes", "optim", "facade"):
        for path in (ROOT / folder).rglob("*.py"):
            if path != ROOT / "jit" / "debug.py":
                text = path.read_text("utf-8")
                assert 'environ.get("LUXGRAD' not in text and 'environ["LUXGRAD' not in text, path


@pytest.mark.parametrize(
    ("name", "bad", "message"),
    [
        ("level", "5", "LUXGRAD_DEBUG must be a number from 0 to 4, found '5'"),
        ("level", "yes", "found 'yes'"),
        ("verify", "true", "LUXGRAD_VERIFY must be 0 or 1, found 'true'"),
        ("threads", "0", "LUXGRAD_THREADS must be a positive number, found '0'"),
        ("threads", "two", "found 'two'"),
        ("cache_maxsize", "-1G", "LUXGRAD_CACHE_MAXSIZE must be like '512M' or '2G', found '-1G'"),
        ("cache_maxsize", "inf", "found 'inf'"),
    ],
)
def test_nonsense_is_refused_with_the_variables_name(
    name: str, bad: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(debug.SETTINGS[name].variable, bad)
    with pytest.raises(ValueError, match=message):
        debug.value(name)


def test_blocks_nest_and_end(tmp_path: Path) -> None:
    outer = debug.level()
    with debug.scoped(level=2, cache_dir=tmp_path):
        with debug.scoped(level=0, cache_maxsize="2K"):
            assert (debug.level(), cache.size_limit(), cache.folder()) == (0, 2048, tmp_path)
        assert (debug.level(), cache.size_limit()) == (2, 1 << 30)
    assert debug.level() == outer and cache.folder() != tmp_path
    with pytest.raises(ValueError, match="LUXGRAD_DEBUG"), debug.scoped(level=7):
        pass
    with pytest.raises(TypeError, match="unknown setting 'levle'; there are level"), debug.scoped(levle=1):
        pass


def test_threads_hold_within_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    before = dr.thread_count()
    with dr.scoped_thread_count(3):
        assert dr.thread_count() == 3
        assert dr.sum(dr.arange(UInt32, 1000)).item() == 499500
    assert dr.thread_count() == before
    monkeypatch.setenv("LUXGRAD_THREADS", "5")
    assert default_threads() == 5


def messages(level: int, number: float, capsys: pytest.CaptureFixture[str]) -> str:
    with debug.scoped(level=level, verify=True):
        dr.eval(dr.arange(Float, 33) * dr.opaque(Float, number) + level)
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_each_level_adds_to_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    dr.eval(dr.opaque(Float, 1.5))
    assert messages(0, 1.5, capsys) == ""
    one, two, three, four = (messages(level, 1.5, capsys) for level in (1, 2, 3, 4))
    assert "over 33: " in one and " ms, ran " in one and "pass" not in one
    assert "pass order: " in two and "pass number: " in two and "pass verify: sound" in two and "%0" not in two
    assert "Float32 = mul(" in three and "store %" in three and "<op mul>" in three
    assert "define void @kernel" not in three
    dr.flush_kernel_cache()
    assert "define void @kernel" in messages(4, 1.5, capsys) or "define void @kernel" in four


def test_the_variable_works_in_a_new_process() -> None:
    code = "import luxgrad as dr\nfrom luxgrad.llvm import Float\nprint((dr.arange(Float, 5) + 1)[4])"
    run = lambda level: subprocess.run(  # noqa: E731
        [sys.executable, "-c", code], env={**os.environ, "LUXGRAD_DEBUG": level}, capture_output=True, text=True
    )
    assert "luxgrad: launch " in run("1").stderr
    assert "ValueError: LUXGRAD_DEBUG must be a number from 0 to 4, found '9'" in run("9").stderr


def test_kernels_are_written_in_numbered_files(tmp_path: Path) -> None:
    with debug.scoped(dump=tmp_path, cache_dir=tmp_path / "cache"):
        for k in range(2):
            x = dr.arange(Float, 40 + k)
            for _ in range(7 + k):
                x = x * x + dr.sin(x)
            dr.eval(x)
    names = sorted(path.name for path in tmp_path.glob("*.ll"))
    assert [name[:5] for name in names] == ["0001-", "0002-"]
    assert all("define void @kernel" in (tmp_path / name).read_text("utf-8") for name in names)


def program() -> Program:
    x = dr.arange(Float, 64)
    target = dr.opaque(Float, 0.0, 8)
    dr.scatter_add(target, x, UInt32(x) & 7)
    count, total = dr.while_loop(
        (UInt32(0), x), lambda i, s: i < 3, lambda i, s: (i + 1, dr.if_stmt((s,), s > 2, lambda s: s * 2, lambda s: s))
    )
    lengths = dr.norm(Array3f(total, x, 1.0))
    return Program([n for n in (total._n, lengths._n)], 64)


def test_sound_programs_pass() -> None:
    verify(program())


@pytest.mark.parametrize("fault", ["order", "scope", "type", "parameter", "result", "loop"])
def test_the_check_finds_faults(fault: str) -> None:
    broken = program()
    instrs = broken.instrs
    loop = next(i for i in instrs if i.op.name == "loop")
    within = next(n for n, i in enumerate(instrs) if i.scope > 1 and i.dtype.name == "Float32" and i.args)
    outside = next(i for i in instrs if i.op.name == "sqrt")
    if fault == "order":
        instrs[within].args = (len(instrs) - 1, *instrs[within].args[1:])
    elif fault == "scope":
        outside.args = (within,)
    elif fault == "type":
        instrs[within].dtype = UInt32.dtype
    elif fault == "parameter":
        broken.params.clear()
    elif fault == "result":
        broken.stores[0] = (broken.stores[0][0], within)
    else:
        loop.attr = (*loop.attr[:3], loop.args[0], *loop.attr[4:])
    with pytest.raises(dr.CompileError, match="the program is broken before code is made from it: instruction "):
        verify(broken)
