"""Rendering and differentiating the Cornell box, beside Mitsuba 3.

    python benchmarks/vs_mitsuba.py --peer /path/to/python-with-mitsuba [--size 256] [--spp 64] [--rounds 7]

Mitsuba needs a system LLVM: set DRJIT_LIBLLVM_PATH, it is passed on. Tasks: a warm forward picture, a step of gradient
descent with path replay, both by the same script through the names the systems share, and the first picture of a new
process with cold and warm kernel cache.
"""

from __future__ import annotations

import sys
from typing import Any

import common
import numpy as np

_FIRST = """
import {system} as mi
import numpy as np
mi.set_variant("llvm_ad_rgb")
scene = mi.load_dict(mi.cornell_box())
print(np.array(mi.render(scene, spp={spp})).mean())
"""


def tasks(mi: Any, dr: Any, size: int, spp: int) -> dict[str, common.Task]:
    """Return the tasks of a system, given its renderer and its array library."""
    mi.set_variant("llvm_ad_rgb")
    description = mi.cornell_box()
    description["sensor"]["film"] |= {"width": size, "height": size}
    scene = mi.load_dict(description)
    replay = mi.load_dict({"type": "prb", "max_depth": 8})
    target = mi.TensorXf(np.array(mi.render(scene, spp=16, seed=999)))
    params = mi.traverse(scene)
    key = "red.reflectance.value"
    opt = mi.ad.Adam(lr=0.01)
    opt[key] = params[key]
    params.update(opt)
    seed = iter(range(1, 1_000_000))

    def forward() -> float:
        return float(np.array(mi.render(scene, spp=spp, seed=next(seed))).mean())

    def step() -> float:
        image = mi.render(scene, params, integrator=replay, spp=spp // 4, seed=next(seed))
        loss = dr.mean(dr.square(image - target))
        dr.backward(loss)
        opt.step()
        params.update(opt)
        return float(np.array(opt[key]).ravel()[0])

    return {f"forward {size}x{size}, {spp} spp": forward, f"prb step {size}x{size}, {spp // 4} spp": step}


def main() -> None:
    """Run the comparison, or one worker of it."""
    parser = common.parser(__doc__)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--spp", type=int, default=64)
    options = parser.parse_args()
    if options.worker == "mitsuba":
        import drjit
        import mitsuba

        common.serve(tasks(mitsuba, drjit, options.size, options.spp))
    elif options.worker:
        import luxgrad
        import luxgrad.mi

        common.serve(tasks(luxgrad.mi, luxgrad, options.size, options.spp))
    else:
        arguments = ["--size", str(options.size), "--spp", str(options.spp)]
        common.run(options, __file__, "luxgrad", "mitsuba", arguments)
        commands = {"luxgrad": [sys.executable, "-c", _FIRST.format(system="luxgrad.mi", spp=options.spp)]}
        if options.peer:
            commands["mitsuba"] = [options.peer, "-c", _FIRST.format(system="mitsuba", spp=options.spp)]
        if options.only in "first picture":
            common.cold_and_warm(commands, max(1, options.rounds // 3), f"first picture 256x256, {options.spp} spp")


if __name__ == "__main__":
    main()
