"""Measure the errors of all rows that are not exact and write docs/ulp.md (takes a few minutes)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from luxgrad.jit.arrays.base import apply
from luxgrad.jit.arrays.namespace import namespace
from luxgrad.jit.dtypes import DType, Float32, Float64
from luxgrad.jit.ops.row import ROWS, Row
from luxgrad.jit.precision import bit_patterns, exact_values, ulp_error

HEAD = """# Errors of elementary functions

Written by `tools/ulp_table.py`; do not edit. Errors are in units of the last place (ulp) of the exact result, on the
processor that ran the tool (code on a GPU differs only where division or scaling does). 0.5 is correct rounding.

- Float32, all: every {step}th of the 2^32 bit patterns, denormal numbers, infinities and NaN included; of functions
  of two arguments {pairs} random pairs of bit patterns. Compared with NumPy in double precision.
- Float64, all: {doubles} random bit patterns. Compared with NumPy in extended precision (64-bit mantissa); `erf`
  with the C library's double precision, whose own error counts.
- Range: {doubles} uniform samples of the interval in the last column.
- A NaN or infinity where the reference has another value would count as infinite error.

| function | Float32, all | mean | Float32, range | Float64, all | Float64, range | range |
|---|---|---|---|---|---|---|
"""

CHUNK = 1 << 20


def measured(row: Row, dtype: DType, args: list[np.ndarray[Any, Any]]) -> tuple[float, float]:
    """Return greatest and mean error of compiled code."""
    flat = namespace("llvm", False).flat(dtype)
    largest, total, count = 0.0, 0.0, len(args[0])
    for start in range(0, count, CHUNK):
        part = [a[start : start + CHUNK] for a in args]
        result = apply(row, tuple(flat(a) for a in part)).numpy()
        error = ulp_error(result, exact_values(row, dtype, *part), dtype)
        largest = max(largest, float(error.max()))
        total += float(error.sum())
    return largest, total / count


def ranged(row: Row, dtype: DType, count: int) -> list[np.ndarray[Any, Any]]:
    """Return uniform samples of the row's intervals."""
    generator = np.random.default_rng(1)
    return [generator.uniform(low, high, count).astype(dtype.numpy) for low, high in row.domain]


def line(row: Row, step: int, count: int) -> str:
    """Return the table's line of one row."""
    if row.arity == 1:
        every = [np.arange(0, 1 << 32, step, dtype=np.uint64).astype(np.uint32).view(np.float32)]
    else:
        every = [bit_patterns(Float32, 4 * count, k) for k in range(row.arity)]
    single, mean = measured(row, Float32, every)
    single_range, _ = measured(row, Float32, ranged(row, Float32, count))
    double, _ = measured(row, Float64, [bit_patterns(Float64, count, k) for k in range(row.arity)])
    double_range, _ = measured(row, Float64, ranged(row, Float64, count))
    domain = " x ".join(f"[{low:g}, {high:g}]" for low, high in row.domain)
    numbers = f"{single:.2f} | {mean:.3f} | {single_range:.2f} | {double:.2f} | {double_range:.2f}"
    return f"| `{row.name}` | {numbers} | {domain} |"


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", type=int, default=97, help="take every so-manyth bit pattern of Float32")
    parser.add_argument("--doubles", type=int, default=1 << 20, help="number of Float64 samples")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent.parent / "docs" / "ulp.md")
    options = parser.parse_args()
    rows = [r for r in ROWS.values() if r.ulp and r.kinds == "f"]
    text = HEAD.format(step=options.step, doubles=options.doubles, pairs=4 * options.doubles)
    for row in rows:
        text += line(row, options.step, options.doubles) + "\n"
        print(text.splitlines()[-1], flush=True)
    options.output.write_text(text)


if __name__ == "__main__":
    main()
