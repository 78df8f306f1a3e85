"""Mathematical constants, and the limits of floating-point types."""

from __future__ import annotations

import math
from typing import Any

from .dtypes import DType, Float64

pi, e, inf, nan = math.pi, math.e, math.inf, math.nan
two_pi, inv_pi, inv_two_pi, inv_four_pi = 2 * math.pi, 1 / math.pi, 0.5 / math.pi, 0.25 / math.pi
sqrt_pi, inv_sqrt_pi, sqrt_two, inv_sqrt_two = math.sqrt(math.pi), 1 / math.sqrt(math.pi), math.sqrt(2), math.sqrt(0.5)
sqrt_two_pi, inv_sqrt_two_pi = math.sqrt(2 * math.pi), 1 / math.sqrt(2 * math.pi)
log_two, inv_log_two = math.log(2), 1 / math.log(2)

# Per width: bits after the leading one, and the greatest exponent.
_FORMS = {16: (10, 15), 32: (23, 127), 64: (52, 1023)}


def _form(kind: Any) -> tuple[int, int]:
    kind = kind if isinstance(kind, type) else type(kind)
    dtype: DType = Float64 if kind in (float, int) else kind.dtype
    if not dtype.is_float:
        raise TypeError(f"a floating-point type is needed, found {kind.__name__}")
    return _FORMS[dtype.bits]


def epsilon(kind: Any) -> float:
    """Return half the distance from 1 to the next number of a type (the greatest relative error of rounding)."""
    return float(math.ldexp(1.0, -_form(kind)[0] - 1))


def one_minus_epsilon(kind: Any) -> float:
    """Return the greatest number below 1."""
    return 1.0 - epsilon(kind)


def largest(kind: Any) -> float:
    """Return the greatest finite number."""
    bits, exponent = _form(kind)
    return math.ldexp(2.0 - math.ldexp(1.0, -bits), exponent)


def smallest(kind: Any) -> float:
    """Return the least positive number of full precision."""
    return math.ldexp(1.0, 1 - _form(kind)[1])


def recip_overflow(kind: Any) -> float:
    """Return the least positive number whose reciprocal is finite."""
    return math.ldexp(1.0, -_form(kind)[1] - 1)
