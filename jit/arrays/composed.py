"""Functions made of operations: angles, safe forms at the edge of a domain, comparison, bits, text, evaluation."""

from __future__ import annotations

import builtins
import math
import sys
import weakref
from typing import Any

from ..dtypes import Float32
from ..ops.row import ROWS
from ..runtime.evaluate import evaluate
from ..trace import LITERAL
from . import tree
from .base import ArrayBase
from .flat import Flat, reinterpret
from .functions import call, clip, safe_sqrt, select, tracked
from .nested import Nested

__all__ = [
    "allclose", "assert_allclose", "deg2rad", "eval", "format", "log2i", "print", "rad2deg", "reinterpret_array",
    "safe_acos", "safe_asin", "safe_sqrt", "schedule", "sincos", "sincosh", "sphdir", "step", "unit_angle",
]  # fmt: skip


def sincos(x: Any) -> tuple[Any, Any]:
    """Return sine and cosine of x (radians)."""
    return call(ROWS["sin"], x), call(ROWS["cos"], x)


def sincosh(x: Any) -> tuple[Any, Any]:
    """Return hyperbolic sine and cosine of x."""
    return call(ROWS["sinh"], x), call(ROWS["cosh"], x)


def deg2rad(x: Any) -> Any:
    """Return degrees as radians."""
    return x * (math.pi / 180)


def rad2deg(x: Any) -> Any:
    """Return radians as degrees."""
    return x * (180 / math.pi)


def step(x: Any, y: Any) -> Any:
    """Return 0 where x < y, else 1."""
    return select(x < y, 0.0, 1.0)


def log2i(x: Any) -> Any:
    """Return the integer part of the logarithm of a positive integer to base 2."""
    if isinstance(x, int):
        return x.bit_length() - 1
    return x.dtype.bits - 1 - call(ROWS["lzcnt"], x)


def safe_asin(x: Any) -> Any:
    """Return the arc sine of x limited to [-1, 1]; its derivative is 0 where |x| >= 1."""
    return _safe_arc("asin", x)


def safe_acos(x: Any) -> Any:
    """Return the arc cosine of x limited to [-1, 1]; its derivative is 0 where |x| >= 1."""
    return _safe_arc("acos", x)


def _safe_arc(name: str, x: Any) -> Any:
    row = ROWS[name]
    if not tracked(x):
        return call(row, clip(x, -1.0, 1.0))
    plain = tree.map_arrays(lambda a: type(a).wrap(a._n), x)
    inside = call(ROWS["abs"], plain) < 1
    return select(inside, call(row, select(inside, x, 0.0)), call(row, clip(plain, -1.0, 1.0)))


def sphdir(theta: Any, phi: Any) -> Any:
    """Return the unit vector with polar angle theta (from z) and azimuth phi, in radians."""
    (sin_theta, cos_theta), (sin_phi, cos_phi) = sincos(theta), sincos(phi)
    x, y = cos_phi * sin_theta, sin_phi * sin_theta
    if not isinstance(x, ArrayBase):
        from .namespace import namespace

        return namespace("scalar", False).nested((3,), Float32)(x, y, cos_theta)
    return x.ns.nested((3,), x.dtype)(x, y, cos_theta)


def unit_angle(a: Any, b: Any) -> Any:
    """Return the angle between two unit vectors in radians, exact for small angles too (Kahan)."""
    from .linear import dot, norm

    cosine = dot(a, b)
    far = norm(b + a) * 0.5
    near = norm(b - a) * 0.5
    return select(cosine < 0, math.pi - 2 * safe_asin(far), 2 * safe_asin(near))


def reinterpret_array(dtype: Any, value: Any) -> Any:
    """Return the bits of an array (or of the components of a nested one) read as another type of equal width."""
    if isinstance(value, Nested):
        kind = dtype if issubclass(dtype, Nested) else dtype.ns.nested(value.static_shape, dtype.dtype)
        return kind.of([reinterpret_array(kind.value_t, c) for c in value._c])
    if isinstance(value, Flat):
        return reinterpret(dtype, value)
    return value.with_array(reinterpret(dtype.storage(), value.array))


def _tolerance(a: Any, b: Any) -> float:
    bits = [x.dtype.bits for x in (a, b) if isinstance(x, ArrayBase) and x.dtype.is_float]
    return 1e-3 if 16 in bits else 1e-5


def allclose(a: Any, b: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = False) -> bool:
    """Return whether |a - b| <= atol + rtol |b| everywhere. Sequences and dicts are compared entry by entry.

    Default tolerances are 1e-5 (1e-3 in half precision).
    """
    if type(a) in (list, tuple) and type(b) in (list, tuple) or type(a) is dict and type(b) is dict:
        pairs = [(a[k], b[k]) for k in a] if type(a) is dict else builtins.list(zip(a, b, strict=False))
        return len(a) == len(b) and builtins.all(allclose(x, y, rtol, atol, equal_nan) for x, y in pairs)
    like = a if isinstance(a, ArrayBase) else b
    if isinstance(like, ArrayBase):
        a, b = (v if isinstance(v, (ArrayBase, int, float)) else type(like)(v) for v in (a, b))
        if isinstance(like, Nested) and isinstance(a, Nested) and isinstance(b, Nested) and len(a._c) != len(b._c):
            return False
    rtol = _tolerance(a, b) if rtol is None else rtol
    atol = _tolerance(a, b) if atol is None else atol
    import numpy as np

    x, y = (np.asarray(v.numpy() if isinstance(v, ArrayBase) else v) for v in (a, b))
    if isinstance(a, ArrayBase) and isinstance(b, ArrayBase) and x.ndim != y.ndim and x.ndim and y.ndim:
        raise RuntimeError(f"allclose(): shapes {x.shape} and {y.shape} cannot be compared")
    return bool(np.allclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan))


def assert_allclose(a: Any, b: Any, rtol: float | None = None, atol: float | None = None) -> None:
    """Raise AssertionError with both values unless `allclose`."""
    if not allclose(a, b, rtol, atol):
        raise AssertionError(f"values differ by more than the tolerance:\n{a}\n{b}")


_scheduled: list[weakref.ref[Any]] = []


def schedule(*args: Any) -> bool:
    """Let the next `eval` compute all arrays in PyTrees as well; return whether any needs it."""
    waiting = [x._n for x in tree.arrays(args) if x._n.buf is None and x._n.op is not LITERAL]
    _scheduled.extend(weakref.ref(n) for n in waiting)
    return bool(waiting)


def eval(*args: Any) -> bool:
    """Compute all arrays in PyTrees, and what was scheduled before; return whether there was work.

    Arrays of one size share a kernel. Kernels run asynchronously.
    """
    waiting = [n for n in (r() for r in _scheduled) if n is not None]
    _scheduled.clear()
    return evaluate([*waiting, *(x._n for x in tree.arrays(args))])


def format(text: Any, *args: Any, **named: Any) -> str:
    """Return `text.format(*args)`; a single other value gives its own text. Arrays are computed."""
    if not isinstance(text, str):
        return repr(text)
    return text.format(*args, **named)


def print(text: Any = "", *args: Any, end: str = "\n", file: Any = None, **named: Any) -> None:
    """Write `format(text, ...)`; arrays inside a recorded loop or branch show their type and size."""
    (file or sys.stdout).write(format(text, *args, **named) + end)
