"""`luxgrad render`: a scene file becomes an image file."""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from luxgrad.cli.common import check_image_name, check_writable, load, make_integrator, resize, write_picture
from luxgrad.render.arguments import find_sensor
from luxgrad.render.render import render

__all__ = ["passes_of", "render_passes", "run"]

# More samples than this are rendered in parts, so that the bar moves and a pass stays below the limit of lanes.
PASS_SAMPLES = 1 << 27


def run(options: argparse.Namespace) -> None:
    """Render the scene of the command line and write the image."""
    output = options.output or f"{os.path.splitext(options.scene)[0]}.exr"
    if options.output:
        check_image_name(output)
    check_writable(output)
    shown = not options.quiet
    text = TextColumn("{task.description}")
    columns = (SpinnerColumn(), text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not shown, transient=True) as bar:
        task = bar.add_task("loading", total=1)
        scene = load(options)
        width, height = resize(scene, options.sensor, options.size)
        spp = options.spp or find_sensor(scene, options.sensor).sampler().sample_count
        passes = options.passes or passes_of(width * height, spp)
        bar.update(task, description="rendering", total=passes)
        begin = time.perf_counter()
        image = render_passes(
            scene, options.sensor, make_integrator(options), options.seed, spp, passes, lambda: bar.advance(task)
        )
        seconds = time.perf_counter() - begin
    write_picture(output, image)
    if shown:
        speed = width * height * spp / seconds / 1e6
        print(f"{output}: {width} x {height}, {spp} samples per pixel, {seconds:.2f} s, {speed:.1f} million samples/s")


def passes_of(pixels: int, spp: int) -> int:
    """Return the number of passes that a picture is rendered in unless the user says otherwise."""
    return max(1, -(-pixels * spp // PASS_SAMPLES))


def render_passes(
    scene: Any, sensor: int, integrator: Any, seed: int, spp: int, passes: int, done: Any = lambda: None
) -> Any:
    """Return the image as a NumPy array, averaged over `passes` renderings that share the samples; `done()` after each.

    One pass is exactly `render`; several use the seeds from `seed` on.
    """
    passes = min(passes, spp)
    total: Any = None
    for number in range(passes):
        part = spp // passes + (number < spp % passes)
        image = np.array(render(scene, sensor=sensor, integrator=integrator, seed=(seed + number) % 2**32, spp=part))
        total = image if passes == 1 else (0 if total is None else total) + image.astype(np.float64) * (part / spp)
        done()
    return total.astype(image.dtype)
