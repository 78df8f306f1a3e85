"""Finding the colours of the Cornell box's walls from one picture, beside Mitsuba 3: steps and seconds to 0.02.

    python benchmarks/fit/wall_colours.py --peer /path/to/python-with-mitsuba [--size 64] [--steps 60]

Both systems run the same loop (path replay, Adam, relative errors) through the names they share.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import common  # noqa: E402
import numpy as np  # noqa: E402

KEYS = ("red.reflectance.value", "green.reflectance.value", "white.reflectance.value")
TOLERANCE = 0.02


def fit(mi: Any, dr: Any, size: int, spp: int, steps: int) -> dict[str, float]:
    """Return how the fit ended: largest error, steps until all colours were within 0.02 (or -1)."""
    description = mi.cornell_box()
    description["sensor"]["film"] |= {"width": size, "height": size}
    description["integrator"] = {"type": "prb", "max_depth": 8}
    scene = mi.load_dict(description)
    params = mi.traverse(scene)
    truth = {key: np.array(params[key]).ravel() for key in KEYS}
    target = mi.TensorXf(np.array(mi.render(scene, spp=512, seed=100_000)))
    opt = mi.ad.Adam(lr=0.06, beta_1=0.8, beta_2=0.95)
    for key in KEYS:
        opt[key] = mi.Color3f(0.5)
    reached, error = -1, 1.0
    for step in range(steps):
        opt.set_learning_rate(0.06 * (0.002 / 0.06) ** (step / (steps - 1)))
        params.update(opt)
        image = mi.render(scene, params, spp=spp, seed=step)
        dr.backward(dr.mean(dr.square(image - target) / (dr.square(target) + 0.01)))
        opt.step()
        for key in KEYS:
            opt[key] = dr.clip(opt[key], 0, 1)
        error = max(float(np.abs(np.array(opt[key]).ravel() - truth[key]).max()) for key in KEYS)
        if reached < 0 and error < TOLERANCE:
            reached = step + 1
    return {"largest": error, "reached": float(reached)}


def main() -> None:
    """Run the comparison, or one worker of it."""
    parser = common.parser(__doc__)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--spp", type=int, default=16)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    name = f"fit, {options.steps} steps of {options.size}x{options.size}, {options.spp} spp"
    if options.worker == "mitsuba":
        import drjit as dr
        import mitsuba as mi
    elif options.worker:
        import luxgrad as dr
        import luxgrad.mi as mi
    if options.worker:
        mi.set_variant("llvm_ad_rgb")
        common.serve({name: lambda: fit(mi, dr, options.size, options.spp, options.steps)})
        return
    arguments = [f"--{k}={getattr(options, k)}" for k in ("size", "spp", "steps")]
    options.rounds = min(options.rounds, 2)
    for systems in common.run(options, __file__, "luxgrad", "mitsuba", arguments).values():
        for system, answers in systems.items():
            for answer in answers:
                reached = f"within {TOLERANCE} after {answer['reached']:.0f} steps"
                print(f"{system}: error {answer['largest']:.4f}, {reached}")


if __name__ == "__main__":
    main()
