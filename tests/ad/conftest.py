"""Types the derivative tests use."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import luxgrad.ad.api  # noqa: F401  (array operations record derivatives from now on)
from luxgrad.jit.arrays.namespace import namespace


@pytest.fixture
def t() -> SimpleNamespace:
    """Return the differentiable double-precision types by short names."""
    ns = namespace("llvm", True)
    names = {"Float": "Float64", "Single": "Float", "UInt": "UInt32", "Int": "Int32", "Bool": "Bool"}
    names["Vec"] = "Array3f64"
    return SimpleNamespace(**{short: ns.get(name) for short, name in names.items()})
