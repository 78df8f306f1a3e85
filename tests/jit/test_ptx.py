"""PTX: refusals before LLVM could end the process, and programs of every row that ptxas assembles."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from luxgrad.jit.codegen import nvptx
from luxgrad.jit.errors import CompileError

PTXAS = shutil.which("ptxas")

# Runs in a process of its own: LLVM ends the process on what it cannot select.
CHILD = '''
import sys
from pathlib import Path

import numpy as np

from luxgrad.jit import control, dtypes
from luxgrad.jit.arrays import memops, reduce
from luxgrad.jit.arrays.base import apply
from luxgrad.jit.arrays.namespace import namespace
from luxgrad.jit.codegen.nvptx import ThreadKernelWriter, to_ptx
from luxgrad.jit.ops.row import ROWS
from luxgrad.jit.passes.program import Program

NS = namespace("llvm", False)
Float, Float64, Int, UInt, Bool = (NS.get(n) for n in ("Float", "Float64", "Int", "UInt", "Bool"))
N = 100


def data(dtype, seed):
    values = np.random.default_rng(seed).integers(0, 2, N)
    return NS.flat(dtype)(values.astype(dtype.numpy))


def rows(names):
    out = []
    for name in names:
        row = ROWS[name]
        for dtype in dtypes.ALL:
            if dtype.kind in row.kinds:
                kinds = [dtypes.Bool if row.mask_first and k == 0 else dtype for k in range(row.arity)]
                out.append(apply(row, tuple(data(kind, k) for k, kind in enumerate(kinds))))
    return out


def casts():
    out = []
    for a in dtypes.ALL:
        for b in dtypes.ALL:
            if a is not b and not (a.kind == "b" and b.kind == "f"):
                out.append(NS.flat(b)(data(a, 1)))
    return out


def scatters():
    out = []
    index = UInt(np.arange(N, dtype=np.uint32) % 7)
    for dtype in dtypes.ALL:
        for op in ("", "add", "min", "max", "and", "or"):
            if (dtype.is_float and op in ("and", "or")) or (dtype.kind == "b" and op not in ("", "and", "or")):
                continue
            target = NS.flat(dtype)(np.zeros(7, dtype.numpy))
            memops.scatter_reduce(op or "identity", target, data(dtype, 2), index, data(dtypes.Bool, 3))
            out.append(target)
    return out


def reductions():
    out = [reduce.count(data(dtypes.Bool, 1))]
    for dtype in dtypes.ALL:
        for op in ("add", "mul", "min", "max") if dtype.kind != "b" and dtype.bits >= 16 else ():
            out.append(reduce.reduce(op, data(dtype, 1) + data(dtype, 2)))
        if dtype.kind == "b":
            out += [reduce.reduce(op, data(dtype, 1) ^ data(dtype, 2)) for op in ("and", "or")]
    return out


def structures():
    table, counts = data(dtypes.Float32, 5), UInt(np.zeros(4, np.uint32))

    def body(i, total):
        value = control.if_stmt((total,), total < 3.0, lambda t: t + 1.0, lambda t: t * 0.5)
        memops.scatter_add(counts, UInt(1), UInt(i & 3))
        return i + 1, value + memops.gather(Float, table, UInt(i), i < 9)

    i, total = control.while_loop((data(dtypes.Int32, 1), data(dtypes.Float32, 2)), lambda i, t: i < 10, body)
    wide = memops.gather(Float64, data(dtypes.Float64, 6), data(dtypes.UInt32, 1), data(dtypes.Bool, 4))
    return [total, i, counts, wide, memops.gather(Bool, data(dtypes.Bool, 6), data(dtypes.Int32, 1))]


def main(group, folder, cpu):
    work = {"casts": casts, "scatters": scatters, "reductions": reductions, "structures": structures}.get(group)
    arrays = work() if work else rows(group.split(","))
    program = Program([a._n for a in arrays], N)
    assert len(program.outputs) + len(program.targets) == len(arrays)
    Path(folder, "kernel.ptx").write_text(to_ptx(ThreadKernelWriter(program, {}).text(), cpu))


main(*sys.argv[1:])
'''


def emit(group: str, folder: Path, cpu: str = "sm_80") -> str:
    """Return the PTX of a group of operations, made in a child process."""
    environment = dict(os.environ, LUXGRAD_CACHE_DIR=str(folder / "cache"))
    command = [sys.executable, "-c", CHILD, group, str(folder), cpu]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, f"{group}: {done.stderr[-2000:]}"
    return (folder / "kernel.ptx").read_text()


def assemble(folder: Path, cpu: str = "sm_80") -> None:
    """Check the PTX file with NVIDIA's assembler, if it is here."""
    if PTXAS is None:
        pytest.skip("ptxas is not installed (CUDA toolkit, or the 'ptx' extra): PTX was made but not assembled")
    done = subprocess.run(
        [PTXAS, "-O0", f"-arch={cpu}", str(folder / "kernel.ptx"), "-o", str(folder / "kernel.cubin")],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


def _row_groups() -> list[str]:
    from luxgrad.jit.arrays import flat  # noqa: F401  (enters all rows)
    from luxgrad.jit.ops.row import ROWS

    names = list(ROWS)
    return [",".join(names[k : k + 16]) for k in range(0, len(names), 16)]


@pytest.mark.parametrize("group", [*_row_groups(), "casts", "scatters", "reductions", "structures"])
def test_operations_assemble(group: str, tmp_path: Path) -> None:
    """Every row for every element type, conversions, scatters, reductions, and a loop with a branch."""
    ptx = emit(group, tmp_path)
    assert ".visible .entry kernel" in ptx and ".target sm_80" in ptx
    assert "call.uni" not in ptx or ".func" in ptx
    assemble(tmp_path)


@pytest.mark.parametrize("cpu", ["sm_75", "sm_90", "sm_120"])
def test_architectures(cpu: str, tmp_path: Path) -> None:
    """Other processors, each with the PTX version it needs."""
    ptx = emit("structures", tmp_path, cpu)
    assert f".target {cpu}" in ptx
    assert "ld.global" in ptx
    assemble(tmp_path, cpu)


def test_refused_before_llvm_sees_it() -> None:
    """Unknown processors, versions that do not fit, unknown functions and broken IR are exceptions."""
    kernel = "define ptx_kernel void @kernel(ptr %p) {\n  ret void\n}\n"
    with pytest.raises(CompileError, match="sm_12.*known are"):
        nvptx.to_ptx(kernel, "sm_12")
    with pytest.raises(CompileError, match=r"PTX 7 asked for sm_90: it needs 7\.8"):
        nvptx.to_ptx(kernel, "sm_90", 70)
    with pytest.raises(CompileError, match="PTX 9.9"):
        nvptx.to_ptx(kernel, "sm_80", 99)
    for name in ("llvm.log2.f32", "llvm.pow.f64", "llvm.sin.f32", "sinf"):
        with pytest.raises(CompileError, match=f"'{name}' has no code on NVPTX"):
            nvptx.to_ptx(f"declare float @{name}(float)\n{kernel}")
    with pytest.raises(CompileError, match="LLVM refused"):
        nvptx.to_ptx("define void @kernel() {")


def test_default_versions() -> None:
    """The default is one that drivers of recent years take, or the least the processor needs."""
    assert nvptx.version("sm_80") == nvptx.DEFAULT_PTX
    assert nvptx.version("sm_120") == 87
    assert nvptx.version("sm_90", 90) == 90
