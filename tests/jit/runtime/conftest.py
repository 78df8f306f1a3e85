"""Plain single-precision types and a cache folder of the test's own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from luxgrad.jit.arrays.namespace import namespace
from luxgrad.jit.runtime.engine import runtime


@pytest.fixture
def t() -> SimpleNamespace:
    """Return array types by short names."""
    ns = namespace("llvm", False)
    return SimpleNamespace(Float=ns.get("Float"), UInt=ns.get("UInt"), Bool=ns.get("Bool"), Double=ns.get("Float64"))


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """Return an empty cache folder; kernels in memory are forgotten before and after."""
    monkeypatch.setenv("LUXGRAD_CACHE_DIR", str(tmp_path))
    kernels, runtime.kernels = runtime.kernels, {}
    yield tmp_path
    runtime.kernels = kernels
