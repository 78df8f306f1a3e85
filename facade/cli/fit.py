"""`luxgrad fit`: parameters of a scene file are fitted to a picture."""

from __future__ import annotations

import argparse
import io
import sys
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Column, Table

from luxgrad.cli.common import load, make_integrator, resize
from luxgrad.optim import adam, losses, rmsprop, sgd
from luxgrad.optim.checkpoint import write_atomically
from luxgrad.optim.fit import fit
from luxgrad.optim.fit_views import read_target
from luxgrad.optim.report import write_report
from luxgrad.optim.result import FitResult
from luxgrad.render.image.util import write_bitmap

__all__ = ["run"]

_RULES = {"Adam": adam.Adam, "AdamW": adam.AdamW, "SGD": sgd.SGD, "RMSProp": rmsprop.RMSProp}


def run(options: argparse.Namespace) -> None:
    """Fit the scene of the command line, print the parameters and write what was asked for."""
    scene = load(options)
    target = read_target(options.target)
    resize(scene, options.sensor, options.size or (target.shape[1], target.shape[0]))
    result = fit(
        scene, target, options.params, _RULES[options.optimizer], options.steps, options.spp,
        lr=options.lr, lr_end=options.lr_end, loss=getattr(losses, options.loss), sensor=options.sensor,
        integrator=make_integrator(options), seed=options.seed, progress=not options.quiet,
        checkpoint_path=options.checkpoint,
    )  # fmt: skip
    if options.output:
        write_bitmap(options.output, result.images["fitted"])
    if options.save:
        memory = io.BytesIO()
        arrays: dict[str, Any] = dict(result.values)
        np.savez(memory, **arrays)
        write_atomically(options.save, memory.getvalue())
    if options.report:
        write_report(options.report, result, title=f"Fit of {options.scene}", notes=f"target: {options.target}")
    if not options.quiet:
        _print(result)


def _print(result: FitResult) -> None:
    table = Table(Column("parameter", overflow="fold"), Column("start", no_wrap=True), Column("fitted", no_wrap=True))
    for key in result.keys:
        rows = result.history[key]
        table.add_row(key, *(" ".join(f"{v:.4f}" for v in row) for row in (rows[0], rows[-1])))
    Console(file=sys.stdout).print(table)
    print(f"{result.steps} steps, loss {result.losses[0]:.4g} -> {result.loss:.4g}, {result.seconds:.1f} s")
