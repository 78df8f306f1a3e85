"""`luxgrad cache`: what compiled kernels and prepared data take on disk, and how to have less of it, or more."""

from __future__ import annotations

import argparse
import time
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from luxgrad.cli.info import describe
from luxgrad.jit.datacache import data_cache
from luxgrad.jit.runtime import cache
from luxgrad.jit.runtime.store import Store

__all__ = ["run_clear", "run_list", "run_prune", "run_size", "stores"]


def stores(which: str = "all") -> dict[str, Store]:
    """Return the caches on disk by name: "kernels", "data" or both."""
    found = {"kernels": cache.STORE, "data": data_cache().store}
    return found if which == "all" else {which: found[which]}


def run_list(options: argparse.Namespace) -> None:
    """Print every file, those used last first."""
    table = Table("cache", "name", "bytes", "last used")
    for name, store in stores(options.which).items():
        for file in reversed(store.files()):
            used = time.strftime("%Y-%m-%d %H:%M", time.localtime(file.used))
            table.add_row(name, escape(file.name), f"{file.size:,}", used)
    if table.row_count:
        Console().print(table)
    run_size(options)


def run_size(options: argparse.Namespace) -> None:
    """Print what each cache holds."""
    for name, store in stores(options.which).items():
        print(f"{name + ':':<9}{describe(store, 'files')}")


def run_prune(options: argparse.Namespace) -> None:
    """Remove what was not used for longest until each cache fits into its limit, or into the one given."""
    _removed({
        name: store.evict(store.limit() if options.max_size is None else options.max_size)
        for name, store in stores(options.which).items()
    })  # fmt: skip


def run_clear(options: argparse.Namespace) -> None:
    """Remove all files of the caches; other files in their folders stay."""
    _removed({name: store.clear() for name, store in stores(options.which).items()})


def _removed(found: dict[str, Any]) -> None:
    for name, count in found.items():
        left = stores()[name].size()
        print(f"{name + ':':<9}{count / 1e6:.1f} MB removed, {left / 1e6:.1f} MB left")
