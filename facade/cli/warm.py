"""`luxgrad cache warm`: a scene is rendered and fitted in outline, so that its kernels are there when it is for real.

Numbers such as the size of the picture and the samples per pixel are part of the kernels, so they must be those of the
later runs. Only the time is saved: of launches over all samples a few packets in each chunk are computed.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from luxgrad.cli.common import load, make_integrator, resize
from luxgrad.cli.fit import RULES
from luxgrad.cli.render import passes_of, render_passes
from luxgrad.jit.diagnostics import launch_stats
from luxgrad.jit.errors import SceneError
from luxgrad.jit.runtime.engine import Launch, runtime
from luxgrad.optim import losses
from luxgrad.optim.fit import fit, select_keys
from luxgrad.render.arguments import find_sensor
from luxgrad.render.traverse import traverse

__all__ = ["outlined", "run"]

_STEPS = 4  # by then every number that changes from step to step has become an argument
_LONG = 200  # instructions of kernels worth cutting short: those that trace paths


@contextmanager
def outlined(lanes: int) -> Iterator[None]:
    """Within the block long kernels over at least `lanes` elements compute a few packets in each of their chunks.

    What they leave out keeps whatever is in memory; nothing may depend on it.
    """
    complete = runtime.run

    def run(launch: Launch) -> None:
        packets, chunk = launch.packets, launch.chunk
        if launch.size >= lanes and launch.kernel.instructions > _LONG and chunk > 4:
            # As many chunks as before: each has a part of the result of its own.
            launch.chunk, launch.packets = 4, min(packets, 4 * launch.chunks)
        try:
            complete(launch)
        finally:
            launch.packets, launch.chunk = packets, chunk

    runtime.run = run  # type: ignore[method-assign]
    try:
        yield
    finally:
        del runtime.run  # the method of the class is found again


def run(options: argparse.Namespace) -> None:
    """Load the scene of the command line, and compile what rendering and fitting it needs."""
    before = launch_stats()
    scene = load(options)
    width, height = resize(scene, options.sensor, options.size)
    scene.prepare()
    done = ["loading"]
    # Pictures and parameters are computed as a whole: only what runs over many samples per pixel takes long.
    with outlined(4 * width * height):
        if options.only != "fit":
            _render(options, scene, width * height)
            done.append("rendering")
        if options.only != "render":
            if _fit(options, scene, (height, width)):
                done.append("fitting")
    _, loaded, compiled = (b - a for a, b in zip(before, launch_stats(), strict=True))
    if not options.quiet:
        print(f"{options.scene}: {compiled} kernels compiled, {loaded} were there; ready for {', '.join(done)}")


def _render(options: argparse.Namespace, scene: Any, pixels: int) -> None:
    spp = options.spp or find_sensor(scene, options.sensor).sampler().sample_count
    passes = options.passes or passes_of(pixels, spp)
    render_passes(scene, options.sensor, make_integrator(options), options.seed, spp, passes)


def _fit(options: argparse.Namespace, scene: Any, shape: tuple[int, int]) -> bool:
    """Fit to a black picture; return whether there is anything to fit."""
    try:
        select_keys(traverse(scene), options.params)
    except SceneError:
        if options.params is not None or options.only == "fit":
            raise
        return False
    target = np.zeros((*shape, 3), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about gradients, which mean nothing here
        fit(
            scene, target, options.params, RULES[options.optimizer], _STEPS, options.fit_spp, lr=options.lr,
            lr_end=options.lr_end, loss=getattr(losses, options.loss), sensor=options.sensor,
            integrator=make_integrator(options), seed=options.seed, progress=False,
        )  # fmt: skip
    return True
