"""Settings of every test run: a kernel cache of its own per test process, so that runs cannot meet."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest

_cache = tempfile.mkdtemp(prefix="luxgrad-test-")
# Set while this file loads: the package reads the variable when it is first used.
os.environ["LUXGRAD_CACHE_DIR"] = _cache
os.environ.setdefault("LUXGRAD_VERIFY", "1")  # every program that a test runs is checked
# Tests start other processes in other folders, where a relative entry would point nowhere.
if os.environ.get("PYTHONPATH"):
    os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, os.environ["PYTHONPATH"].split(os.pathsep)))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the cache of this process."""
    shutil.rmtree(_cache, ignore_errors=True)
