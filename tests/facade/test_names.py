"""The public names of `luxgrad` and its modules of types."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys

import pytest

import luxgrad as dr
import luxgrad.auto
import luxgrad.auto.ad
import luxgrad.detail
import luxgrad.llvm
import luxgrad.llvm.ad
import luxgrad.scalar
from luxgrad.names import NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_name_exists_and_is_described(name: str) -> None:
    value = getattr(dr, name)
    assert value is getattr(dr, name) and name in dir(dr)
    if callable(value):
        assert value.__doc__, f"{name} has no description"


def test_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(AttributeError, match="'scater'; did you mean 'scatter'"):
        dr.scater  # noqa: B018
    with pytest.raises(AttributeError, match="no type 'Flot'"):
        dr.llvm.Flot  # noqa: B018


def test_names_of_types() -> None:
    for module in (luxgrad.llvm, luxgrad.llvm.ad, luxgrad.scalar):
        for name in module.__all__:
            assert getattr(module, name) is getattr(module, name)
    assert luxgrad.llvm.Float is luxgrad.llvm.Float32 and luxgrad.llvm.ad.Float.__name__ == "Float"
    assert luxgrad.llvm.ad.Float.__module__ == "luxgrad.llvm.ad" and luxgrad.scalar.Float is float
    assert luxgrad.llvm.Float is not luxgrad.llvm.ad.Float
    assert type(pickle.loads(pickle.dumps(luxgrad.llvm.ad.Array3f(1, 2, 3)))) is luxgrad.llvm.ad.Array3f


def test_automatic_backend() -> None:
    assert luxgrad.auto.Float is luxgrad.llvm.Float and luxgrad.auto.ad.Float is luxgrad.llvm.ad.Float
    dr.set_backend("llvm")
    dr.set_backend(dr.JitBackend.LLVM)
    with pytest.raises(ValueError, match="'metal' is not available"):
        dr.set_backend("metal")


def test_star_imports_bring_the_types() -> None:
    scope: dict[str, object] = {}
    exec("from luxgrad.auto.ad import *", scope)
    assert scope["Float"] is luxgrad.llvm.ad.Float


def test_nothing_heavy_is_loaded_before_it_is_used() -> None:
    code = (
        "import sys, luxgrad as dr; dir(dr); heavy = {'numpy', 'llvmlite', 'luxgrad.jit.trace'} & set(sys.modules);"
        "print(sorted(heavy)); dr.pi; dr.llvm.ad.Float(1, 2); print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "False"]


def test_diagnostics() -> None:
    assert luxgrad.detail.launch_stats() == dr.launch_stats()
    x = dr.arange(luxgrad.llvm.Float, 1000) * 3.25
    before = dr.launch_stats()
    with dr.scoped_set_flag(dr.JitFlag.KernelHistory):
        dr.kernel_history_clear()
        dr.eval(x)
        history = dr.kernel_history()
    assert not dr.flag(dr.JitFlag.KernelHistory) and dr.kernel_history() == []
    assert history[0]["size"] == 1000 and history[0]["output_count"] == 1 and "define" in history[0]["ir"].getvalue()
    dr.flush_kernel_cache()
    dr.eval(dr.arange(luxgrad.llvm.Float, 500) * 3.25)
    after = dr.launch_stats()
    assert after[0] - before[0] == 2 and after[1] - before[1] >= 1


def test_log_lines(capsys: pytest.CaptureFixture[str]) -> None:
    before = dr.log_level()
    dr.set_log_level(dr.LogLevel.Info)
    try:
        dr.eval(dr.arange(luxgrad.llvm.Float, 77) + 1.125)
    finally:
        dr.set_log_level(before)
    out = capsys.readouterr().out
    assert "jit_eval(): launching 1 kernel." in out and "(n=77, in=0, out=1, ops=" in out


def test_memory_watermark_follows_large_arrays() -> None:
    dr.flush_malloc_cache()
    dr.malloc_clear_statistics()
    start = dr.malloc_watermark()
    dr.eval(dr.arange(luxgrad.llvm.Float, 4_000_000) + 0.5)
    dr.sync_thread()
    assert 16_000_000 <= dr.malloc_watermark() - start < 20_000_000


def test_table_of_live_arrays(capsys: pytest.CaptureFixture[str]) -> None:
    x = dr.arange(luxgrad.llvm.UInt, 12345) + 1
    dr.eval(x)
    dr.whos()
    out = capsys.readouterr().out
    assert any("UInt32" in line and "12345" in line and "evaluated" in line for line in out.splitlines())
    dr.whos(simple=True)
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_submodules_are_found_as_attributes() -> None:
    assert dr.llvm is importlib.import_module("luxgrad.llvm") and dr.llvm.ad is luxgrad.llvm.ad
    assert dr.detail is luxgrad.detail
