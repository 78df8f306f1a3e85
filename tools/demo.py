"""The demonstration: paint the Cornell box grey, then find its colours again from one picture.

`tools/demo` installs luxgrad and runs this. The pictures and the report land in `demo_out/`.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import luxgrad.mi as mi
from luxgrad.optim.fit import fit
from luxgrad.optim.losses import relative_l2
from luxgrad.optim.report import write_report
from luxgrad.scenes.builtin import data_file

WALLS = "(LeftWall|RightWall|Floor|Ceiling|BackWall|ShortBox|TallBox)BSDF"
GREY = 0.5
TOLERANCE = 0.01
# The rate falls towards the end, so that the noise of the pictures averages out.
STEPS, RATE, LAST_RATE = 80, 0.06, 0.002


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration and return 0 if every colour is found to within 0.01."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=128, help="width and height in pixels (%(default)s)")
    parser.add_argument("--spp", type=int, default=16, help="samples per pixel and step (%(default)s)")
    parser.add_argument("--target-spp", type=int, default=1024, help="samples per pixel of the target (%(default)s)")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of the optimiser (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("demo_out"), help="folder of the results (%(default)s)")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)

    mi.set_variant("llvm_ad_rgb")
    begin = time.perf_counter()
    path = data_file("cornell-box/scene.xml")
    scene = mi.load_file(path, resx=options.size, resy=options.size, integrator="prb", max_depth=8)
    params = mi.traverse(scene)
    keys = [key for key in params.keys() if re.match(WALLS, key)]
    truth = {key: np.array(params[key]).ravel() for key in keys}
    target = np.array(mi.render(scene, spp=options.target_spp, seed=1_000_000))
    print(f"target: {options.size} x {options.size}, {options.target_spp} samples, {time.perf_counter() - begin:.1f} s")

    for key in keys:
        params[key] = mi.Color3f(GREY)
    params.update()
    # Relative errors make the dark channels count; short memories suit the few steps.
    result = fit(
        scene, target, keys, lambda rate: mi.ad.Adam(rate, beta_1=0.8, beta_2=0.95), steps=options.steps,
        spp=options.spp, lr=RATE, lr_end=LAST_RATE, loss=relative_l2, image_spp=256,
    )  # fmt: skip

    for name in ("target", "start", "fitted"):
        mi.util.write_bitmap(options.out / f"{name}.png", result.images[name])
    write_report(options.out / "report.html", result, title="Cornell box: colours from a picture")
    errors = {key: float(np.abs(result.values[key].ravel() - truth[key]).max()) for key in keys}
    _print(keys, truth, result.values, errors)
    print(f"{result.steps} steps, {time.perf_counter() - begin:.1f} s; pictures and report.html are in {options.out}/")
    largest = max(errors.values())
    print(f"largest colour error: {largest:.4f}")
    return 0 if largest <= TOLERANCE else 1


def _print(keys: list[str], truth: dict[str, Any], found: dict[str, Any], errors: dict[str, float]) -> None:
    print(f"{'material':<15} {'true colour':<23} {'found':<23} error")
    for key in keys:
        true, value = (" ".join(f"{v:.4f}" for v in colours[key].ravel()) for colours in (truth, found))
        print(f"{key.split('.')[0]:<15} {true:<23} {value:<23} {errors[key]:.4f}")


if __name__ == "__main__":
    sys.exit(main())
