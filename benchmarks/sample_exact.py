"""Pictures of one sample per pixel and equal seeds, beside Mitsuba 3: which part of the pixels agrees.

    python benchmarks/sample_exact.py --peer /path/to/python-with-mitsuba [--size 128] [scene.xml ...]

The random numbers and their order are the same in both systems, so that all pixels agree to rounding but those whose
path met an edge on its other side. A pixel agrees if each channel differs by at most 1e-3 of its value (or of 1e-3).
Without scene files the Cornell box and the Veach scene of the package are compared.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

_RENDER = """
import sys, numpy as np
import {system} as mi
mi.set_variant("llvm_ad_rgb")
path, out, size, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
scene = mi.load_file(path, optimize=False)
params = mi.traverse(scene)
for key in list(params.keys()):
    if key.endswith("film.size") or key.endswith("film.crop_size"):
        params[key] = [size, size]
params.update()
np.save(out, np.array(mi.render(scene, spp=1, seed=seed)))
"""


def picture(python: str, system: str, scene: str, size: int, seed: int) -> np.ndarray:
    """Return the picture that a system renders in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "picture.npy")
        code = _RENDER.format(system=system)
        subprocess.run([python, "-c", code, scene, out, str(size), str(seed)], check=True)
        image: np.ndarray = np.load(out)
        return image


def agreement(a: np.ndarray, b: np.ndarray, tolerance: float = 1e-3) -> float:
    """Return the part of pixels whose channels all agree."""
    return float(np.all(np.abs(a - b) <= tolerance * np.maximum(np.abs(b), 1e-3), axis=-1).mean())


def main() -> None:
    """Compare the scenes and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", metavar="PYTHON", required=True, help="interpreter with mitsuba")
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("scenes", nargs="*")
    options = parser.parse_args()
    scenes = options.scenes
    if not scenes:
        from luxgrad.scenes.builtin import data_file

        scenes = [str(data_file(f"{name}/scene.xml")) for name in ("cornell-box", "veach-mis")]
    for scene in scenes:
        for seed in range(options.seeds):
            ours = picture(sys.executable, "luxgrad.mi", scene, options.size, seed)
            theirs = picture(options.peer, "mitsuba", scene, options.size, seed)
            part = agreement(ours, theirs)
            name = f"{Path(scene).parent.name}, seed {seed}"
            means = f"means {ours.mean():.6f} {theirs.mean():.6f}"
            print(f"{name:<32} {100 * part:8.3f} % of pixels agree; {means}", flush=True)


if __name__ == "__main__":
    main()
