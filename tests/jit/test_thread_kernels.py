"""Kernels written for a GPU compute what the interpreter says: run here, one thread after the other."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import pytest

from luxgrad.jit import control, dtypes
from luxgrad.jit.arrays import memops, reduce
from luxgrad.jit.arrays.base import apply
from luxgrad.jit.arrays.namespace import namespace
from luxgrad.jit.codegen import host
from luxgrad.jit.codegen.memory import identity
from luxgrad.jit.codegen.nvptx import ThreadKernelWriter
from luxgrad.jit.codegen.reduce import accumulator_type
from luxgrad.jit.interpret import interpret
from luxgrad.jit.ops.row import ROWS
from luxgrad.jit.passes.program import Program
from luxgrad.jit.precision import corner_values, ulp_error
from luxgrad.jit.trace import AFTER, REDUCE

NS = namespace("llvm", False)
Float, Float64, Int, UInt = (NS.get(n) for n in ("Float", "Float64", "Int", "UInt"))
THREADS = 32
pytestmark = pytest.mark.cpu

# What a GPU does around the kernel: every thread of every block, and three behind the end.
LAUNCHER = """
@tid = internal global i32 0
@ctaid = internal global i32 0
define void @launch(ptr %args, i32 %blocks) #0 {{
entry:
  br label %block
block:
  %b = phi i32 [ 0, %entry ], [ %bnext, %blockend ]
  store i32 %b, ptr @ctaid
  br label %thread
thread:
  %t = phi i32 [ 0, %block ], [ %tnext, %thread ]
  store i32 %t, ptr @tid
  call void @kernel(ptr %args)
  %tnext = add i32 %t, 1
  %more = icmp ult i32 %tnext, {threads}
  br i1 %more, label %thread, label %blockend
blockend:
  %bnext = add i32 %b, 1
  %again = icmp ult i32 %bnext, %blocks
  br i1 %again, label %block, label %done
done:
  ret void
}}
"""


def run(arrays: list[Any], size: int) -> list[np.ndarray[Any, Any]]:
    """Return the values of `arrays` computed by a kernel of one thread per element."""
    program = Program([a._n for a in arrays], size)
    text = ThreadKernelWriter(program, {}).text(host.target().attributes)
    text = text.replace("define ptx_kernel void", "define internal void")
    text = re.sub(r"^declare i32 @llvm\.nvvm.*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"call i32 @llvm\.nvvm\.read\.ptx\.sreg\.(tid|ctaid)\.x\(\)", r"load i32, ptr @\1", text)
    text = text.replace("call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()", f"or i32 0, {THREADS}")
    module = host.compile_ir(text + LAUNCHER.format(threads=THREADS), "launch")
    words, results, kept = [size], {}, []
    for kind, payload in program.params:
        if kind in ("load", "gather"):
            words.append(payload.buf.ptr)
            continue
        if kind in ("stride", "extent"):
            words.append(payload if kind == "extent" else 0)
            continue
        if kind == "store":
            memory = np.zeros(size, payload.dtype.numpy)
        elif kind == "partial":
            dtype = accumulator_type(payload.args[0].dtype, payload.attr)
            start = identity(dtype, "add" if payload.attr == "count" else payload.attr)
            memory = np.array([start], dtype.numpy)
        else:
            memory = interpret([payload.args[0]])[0].copy()
        results[id(payload)] = memory
        kept.append(memory)
        words.append(memory.ctypes.data)
    block = (ctypes.c_int64 * len(words))(*words)
    launch = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32)(module.address("launch"))
    launch(ctypes.addressof(block), -(-size // THREADS))
    values = [results[id(a._n)] for a in arrays]
    return [v.astype(a._n.dtype.numpy) for v, a in zip(values, arrays, strict=True)]


def row_arrays(name: str) -> list[Any]:
    """Return the row on special values of every element type it takes."""
    row, out = ROWS[name], []
    for dtype in dtypes.ALL:
        if dtype.kind not in row.kinds:
            continue
        kinds = [dtypes.Bool if row.mask_first and k == 0 else dtype for k in range(row.arity)]
        generator = np.random.default_rng(row.number)
        args = [NS.flat(kind)(generator.choice(corner_values(kind), 77)) for kind in kinds]
        out.append(apply(row, tuple(args)))
    return out


@pytest.mark.parametrize("name", list(ROWS))
def test_rows(name: str) -> None:
    """Width-1 code of each row, for each element type; floats within the row's error bound."""
    arrays = row_arrays(name)
    for array, result, expected in zip(arrays, run(arrays, 77), interpret([a._n for a in arrays]), strict=True):
        dtype = array._n.dtype
        if dtype.is_float:
            # NumPy's own functions are off by up to one unit too, in half precision by less than that of single.
            error = ulp_error(result, expected.astype(np.longdouble), dtype)
            assert error.max() <= (ROWS[name].ulp + 1.0 if ROWS[name].ulp else 0.0), (name, dtype)
        else:
            np.testing.assert_array_equal(result, expected, err_msg=f"{name} {dtype}")


@pytest.mark.parametrize("size", [2, 31, 100])
def test_structures(size: int) -> None:
    """A loop with a branch, gathers and scatters in it; scatters and reductions of all elements."""
    generator = np.random.default_rng(size)
    table = Float(generator.integers(0, 9, 16).astype(np.float32))
    counts, sums = UInt(np.zeros(4, np.uint32)), Int(np.arange(5, dtype=np.int32))
    start = Int(generator.integers(0, 8, size).astype(np.int32))

    def body(i: Any, total: Any) -> tuple[Any, Any]:
        value = control.if_stmt((total,), total < 8.0, lambda t: t + 1.0, lambda t: t * 0.5)
        memops.scatter_add(counts, UInt(1), UInt(i & 3), total < 5.0)
        return i + 1, value + memops.gather(Float, table, UInt(i), i < 9)

    i, total = control.while_loop((start, Float(start)), lambda i, t: i < 10, body)
    memops.scatter_reduce("max", sums, start * 3, UInt(start % 5), start > 1)
    wide = Float64(start) * 0.5
    values = [total, i, counts, sums, reduce.sum(wide), reduce.max(start), reduce.count(start > 3)]
    values += [reduce.min(Float(start) + 0.25), reduce.prod(Float(start % 2) + 1.0), reduce.any(start > 6)]
    expected = interpret([v._n for v in values])
    groups = [[v for v in values if v._n.op is not AFTER and v._n.op is not REDUCE], [counts], [sums]]
    groups.append([v for v in values if v._n.op is REDUCE])
    for group in groups:
        for value, result in zip(group, run(group, size), strict=True):
            position = next(k for k, v in enumerate(values) if v is value)
            np.testing.assert_array_equal(result, expected[position])
