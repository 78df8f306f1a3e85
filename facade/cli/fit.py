"""`luxgrad fit`: parameters of a scene file are fitted to a picture."""

from __future__ import annotations

import argparse
import io
import sys
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from luxgrad.cli.common import check_image_name, check_writable, load, make_integrator, resize, write_picture
from luxgrad.optim import adam, losses, rmsprop, sgd
from luxgrad.optim.checkpoint import write_atomically
from luxgrad.optim.fit import fit
from luxgrad.optim.fit_views import read_target
from luxgrad.optim.report import write_report
from luxgrad.optim.result import FitResult

__all__ = ["RULES", "run"]

RULES = {"Adam": adam.Adam, "AdamW": adam.AdamW, "SGD": sgd.SGD, "RMSProp": rmsprop.RMSProp}


def run(options: argparse.Namespace) -> None:
    """Fit the scene of the command line, print the parameters and write what was asked for."""
    if options.output:
        check_image_name(options.output)
    for path in (options.save, options.report, options.checkpoint):
        if path:
            check_writable(path)
    scene = load(options)
    target = read_target(options.target)
    resize(scene, options.sensor, options.size or (target.shape[1], target.shape[0]))
    result = fit(
        scene, target, options.params, RULES[options.optimizer], options.steps, options.spp,
        lr=options.lr, lr_end=options.lr_end, loss=getattr(losses, options.loss), sensor=options.sensor,
        integrator=make_integrator(options), seed=options.seed, progress=not options.quiet,
        checkpoint_path=options.checkpoint,
    )  # fmt: skip
    if options.output:
        write_picture(options.output, result.images["fitted"])
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
    table = Table(*(Column(name, overflow="fold") for name in ("parameter", "start", "fitted")))
    for key in result.keys:
        rows = [[_number(v) for v in row] for row in (result.history[key][0], result.history[key][-1])]
        width = max(len(text) for row in rows for text in row)
        table.add_row(escape(key), *(" ".join(text.rjust(width) for text in row) for row in rows))
    Console(file=sys.stdout).print(table)
    print(f"{result.steps} steps, loss {result.losses[0]:.4g} -> {result.loss:.4g}, {result.seconds:.1f} s")


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 1e6 else f"{value:.4e}"
