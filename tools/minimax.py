"""Print the coefficients of `jit/codegen/polynomials.py`: Remez exchange in 90 digits (needs mpmath)."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from typing import Any

import mpmath as mp

mp.mp.dps = 90
Function = Callable[[Any], Any]


def remez(f: Function, weight: Function, low: Any, high: Any, degree: int) -> tuple[list[Any], Any]:
    """Return coefficients, constant first, that minimise max |weight * (p - f)| on [low, high], and that maximum."""
    n = degree + 2
    low, high = mp.mpf(low), mp.mpf(high)
    nodes = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * k / (n - 1)) for k in range(n)]
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * k / (40 * n)) for k in range(40 * n + 1)]
    values = [(f(x), weight(x)) for x in grid]
    coefficients: list[Any] = []
    largest = mp.mpf(0)
    for _ in range(12):
        rows = mp.matrix(n, n)
        right = mp.matrix(n, 1)
        for i, x in enumerate(nodes):
            w = weight(x) or mp.mpf("1e-9")
            for j in range(degree + 1):
                rows[i, j] = x**j
            rows[i, degree + 1] = (-1) ** i / w
            right[i] = f(x)
        solution = mp.lu_solve(rows, right)
        coefficients = [solution[j] for j in range(degree + 1)]
        errors = [w * (mp.polyval(coefficients[::-1], x) - v) for x, (v, w) in zip(grid, values, strict=True)]
        largest = max(abs(e) for e in errors)
        nodes = _extrema(grid, errors, n)
        if largest < abs(solution[degree + 1]) * mp.mpf("1.02"):
            break
    return coefficients, largest


def rounded(f: Function, weight: Function, low: Any, high: Any, degree: int, kind: str) -> tuple[list[float], Any]:
    """Return coefficients in single ("f") or double ("d") precision: each rounded, then the rest fitted again."""
    done: list[float] = []

    def rest(x: Any) -> Any:
        value = f(x)
        for c in done:
            value = (value - c) / x
        return value

    largest = mp.mpf(0)
    if kind == "d" or low < 0:  # rounding matters little in double precision, and where the leading terms are exact
        fitted, largest = remez(f, weight, low, high, degree)
        done = [struct.unpack(kind, struct.pack(kind, float(c)))[0] for c in fitted]
        return done, largest
    for k in range(degree + 1):
        fitted, error = remez(rest, lambda x, k=k: weight(x) * x**k, low, high, degree - k)
        largest = largest or error
        done.append(struct.unpack(kind, struct.pack(kind, float(fitted[0])))[0])
    return done, max(abs(weight(x) * (mp.polyval(done[::-1], x) - f(x))) for x in mp.linspace(low, high, 1000))


def _extrema(grid: list[Any], errors: list[Any], n: int) -> list[Any]:
    """Return n points of alternating sign where the error is largest."""
    runs: list[tuple[Any, Any]] = []
    for x, e in zip(grid, errors, strict=True):
        if runs and (runs[-1][0] > 0) == (e > 0):
            if abs(e) > abs(runs[-1][0]):
                runs[-1] = (e, x)
        else:
            runs.append((e, x))
    while len(runs) > n:
        runs.pop(0 if abs(runs[0][0]) < abs(runs[-1][0]) else -1)
    points = [x for _, x in runs]
    while len(points) < n:  # a run was too short for the grid: put the middle of the widest gap in
        k = max(range(len(points) - 1), key=lambda i: points[i + 1] - points[i])
        points.insert(k + 1, (points[k] + points[k + 1]) / 2)
    return points


def _odd(function: Function) -> tuple[Function, Function]:
    """Return (g(z), weight) for function(x) = x + x^3 g(x^2), error relative to the function."""

    def g(z: Any) -> Any:
        x = mp.sqrt(z)
        return (function(x) / x - 1) / z

    return g, lambda z: z * mp.sqrt(z) / function(mp.sqrt(z))


def _cos(z: Any) -> Any:
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2


def _exp(r: Any) -> Any:
    return (mp.expm1(r) - r) / r**2


def _log(f: Any) -> Any:
    return (mp.log1p(f) - f + f * f / 2) / f**3


def _log_ratio(z: Any) -> Any:
    s = mp.sqrt(z)
    return (mp.log((1 + s) / (1 - s)) - 2 * s) / (s * z)


def _log_rest(z: Any) -> Any:
    s = mp.sqrt(z)
    return (mp.log((1 + s) / (1 - s)) / (2 * s) - 1 - z / 3) / z**2 * 2


def _cosh(z: Any) -> Any:
    return (mp.cosh(mp.sqrt(z)) - 1 - z / 2) / z**2


def _erf(z: Any) -> Any:
    x = mp.sqrt(z)
    return mp.erf(x) / x - 1


def _log_erfc(u: Any) -> Any:
    return mp.log(mp.erfc(u + 2))


_QUARTER = (mp.pi / 4) ** 2 * mp.mpf("1.0001")
_LN = mp.log(2) / 2 * mp.mpf("1.0001")
_RATIO = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mp.mpf("1.0001")


def _fits() -> dict[str, tuple[Function, Function, Any, Any, int, str]]:
    sin, tan, asin, atan = (_odd(f) for f in (mp.sin, mp.tan, mp.asin, mp.atan))
    exp = _exp, lambda r: r * r / mp.exp(r)
    log = _log, lambda f: f**3 / mp.log1p(f)
    ratio = _log_ratio, lambda z: z / 2
    rest = _log_rest, lambda z: z * z / 2
    cos = _cos, lambda z: z**2 / mp.cos(mp.sqrt(z))
    sinh = _odd(mp.sinh)
    cosh = _cosh, lambda z: z**2 / mp.cosh(mp.sqrt(z))
    erf = _erf, lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z))
    tail = _log_erfc, lambda u: mp.erfc(u + 2) / mp.erf(u + 2)
    o = mp.mpf("1e-10")  # the functions are written with divisions by their argument
    return {
        "SIN_32": (*sin, o, _QUARTER, 2, "f"),
        "COS_32": (*cos, o, _QUARTER, 2, "f"),
        "SIN_64": (*sin, o, _QUARTER, 5, "d"),
        "COS_64": (*cos, o, _QUARTER, 5, "d"),
        "TAN_32": (*tan, o, _QUARTER, 6, "f"),
        "EXP_32": (*exp, -_LN, _LN * (1 + o), 4, "f"),
        "EXP_64": (*exp, -_LN, _LN * (1 + o), 9, "d"),
        "LOG_32": (*log, mp.sqrt(0.5) - 1, mp.sqrt(2) - 1, 7, "f"),
        "LOG_64": (*ratio, o, _RATIO, 6, "d"),
        "LOG_REST_32": (*rest, o, _RATIO, 2, "f"),
        "LOG_REST_64": (*rest, o, _RATIO, 6, "d"),
        "ASIN_32": (*asin, o, 0.25, 4, "f"),
        "ASIN_64": (*asin, o, 0.25, 12, "d"),
        "ATAN_32": (*atan, o, 1, 8, "f"),
        "ATAN_64": (*atan, o, 1, 19, "d"),
        "SINH_32": (*sinh, o, 1, 3, "f"),
        "SINH_64": (*sinh, o, 1, 6, "d"),
        "COSH_32": (*cosh, o, 1, 2, "f"),
        "COSH_64": (*cosh, o, 1, 5, "d"),
        "ERF_32": (*erf, o, 1, 6, "f"),
        "ERF_64": (*erf, o, 1, 11, "d"),
        "ERF_TAIL_32": (*tail, -1, 2, 6, "f"),
        "ERF_TAIL_64": (*tail, -1, 4, 17, "d"),
    }


def main(names: list[str]) -> None:
    """Print the named fits (all without names) with their greatest error."""
    for name, (f, weight, low, high, degree, kind) in _fits().items():
        if names and name not in names:
            continue
        values, largest = rounded(f, weight, low, high, degree, kind)
        digits = 9 if kind == "f" else 17
        print(f"{name} = (  # 2^{float(mp.log(largest, 2)):.1f}")
        for c in values:
            print(f"    {c:.{digits}g},")
        print(")")


if __name__ == "__main__":
    main(sys.argv[1:])
