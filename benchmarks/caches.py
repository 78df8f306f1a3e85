"""Loading a scene for the first time, again in the same process, and in a new process with a data cache on disk.

A synthetic scene (texture, surroundings and meshes of chosen size) and the scenes that come with the package. What is
timed is `load_file` and `scene.prepare()`: files, sampling tables, and the structure that rays are traced with. Kernels
are warm in all columns.

    python benchmarks/caches.py --texture 1024 --triangles 100000
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

_SCENE = """<scene version="3.0.0">
 <integrator type="prb"/>
 <sensor type="perspective"><film type="hdrfilm"><integer name="width" value="16"/><integer name="height" value="16"/>
 </film></sensor>
 <emitter type="envmap"><string name="filename" value="sky.exr"/></emitter>
 <bsdf type="diffuse" id="painted"><texture name="reflectance" type="bitmap"><string name="filename" value="paint.png"/>
 </texture></bsdf>
 <shape type="obj"><string name="filename" value="hill.obj"/><ref id="painted"/></shape>
 <shape type="ply"><string name="filename" value="hill.ply"/><ref id="painted"/>
  <transform name="to_world"><translate x="2"/></transform></shape>
</scene>
"""


def write_scene(folder: Path, texture: int, triangles: int) -> Path:
    """Write the synthetic scene into a folder and return its path."""
    from luxgrad.render.image.bitmap import Bitmap
    from luxgrad.render.shapes.mesh_data import MeshData
    from luxgrad.render.shapes.ply_writer import write_ply

    rng = np.random.default_rng(1)
    Bitmap(rng.integers(0, 255, (texture, texture, 3), np.uint8)).write(folder / "paint.png")
    Bitmap(rng.random((texture // 2, texture, 3), np.float32)).write(folder / "sky.exr")
    side = max(2, int((triangles / 2) ** 0.5) + 1)
    x, y = (a.ravel() for a in np.meshgrid(*[np.linspace(-1, 1, side)] * 2))
    points = np.stack([x, y, 0.05 * rng.random(side * side)], axis=1).astype(np.float32)
    first = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).ravel()
    lower, upper = np.stack([first, first + 1, first + side]), np.stack([first + 1, first + side + 1, first + side])
    faces = np.concatenate([lower.T, upper.T]).astype(np.uint32)
    uv = np.stack([x, y], axis=1).astype(np.float32)
    write_ply(folder / "hill.ply", MeshData("hill", points, faces, None, uv))
    lines = [f"v {a:.6f} {b:.6f} {c:.6f}" for a, b, c in points] + [f"vt {a:.6f} {b:.6f}" for a, b in uv]
    lines += [f"f {a}/{a} {b}/{b} {c}/{c}" for a, b, c in faces + 1]
    (folder / "hill.obj").write_text("\n".join(lines) + "\n")
    path = folder / "scene.xml"
    path.write_text(_SCENE)
    # As files usually are when they are loaded: not of the last seconds, in which another change might go unseen.
    time.sleep(3.2)
    return path


def load(path: Path) -> float:
    """Return the seconds that loading a scene takes."""
    from luxgrad.jit.diagnostics import sync_thread
    from luxgrad.render.variants import types
    from luxgrad.scenes.loader import load_file

    begin = time.perf_counter()
    scene = load_file(path, types=types("llvm_ad_rgb"))
    scene.prepare()
    sync_thread()
    return time.perf_counter() - begin


def worker(path: Path, again: int) -> None:
    """Print the seconds of loading a small scene (which imports everything), and of loading `path` several times."""
    from luxgrad.jit.datacache import data_cache
    from luxgrad.render.registry import entry

    for plugin in (("emitter", "envmap"), ("texture", "bitmap"), ("shape", "obj"), ("shape", "ply")):
        entry(*plugin)  # imports it
    load(Path(__file__).parent.parent / "scenes" / "data" / "cornell-box" / "scene.xml")
    print(json.dumps({"seconds": [load(path) for _ in range(1 + again)], "bytes": data_cache().nbytes}))


def measure(path: Path, again: int, **settings: str) -> dict[str, list[float]]:
    """Return what a worker prints in a process of its own."""
    command = [sys.executable, __file__, "--worker", str(path), "--again", str(again)]
    environment = {**os.environ, **settings}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    answer: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return answer


def rows(path: Path, rounds: int) -> dict[str, float]:
    """Return medians over processes of the first, second and stored loading, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        measure(path, 0)  # kernels
        first, second, stored = [], [], []
        measure(path, 0, LUXGRAD_DATA_CACHE_DIR=folder)
        for _ in range(rounds):
            fresh = measure(path, 3)["seconds"]
            first.append(fresh[0])
            second.append(statistics.median(fresh[1:]))
            stored.append(measure(path, 0, LUXGRAD_DATA_CACHE_DIR=folder)["seconds"][0])
    return {name: statistics.median(v) for name, v in (("first", first), ("again", second), ("stored", stored))}


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--texture", type=int, default=2048, help="columns of texture and surroundings (%(default)s)")
    options.add_argument("--triangles", type=int, default=200_000, help="of each of two meshes (%(default)s)")
    options.add_argument("--rounds", type=int, default=3, help="processes per figure (%(default)s)")
    options.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--again", type=int, default=3, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.worker:
        worker(given.worker, given.again)
        return
    data = Path(__file__).parent.parent / "scenes" / "data"
    with tempfile.TemporaryDirectory() as folder:
        scenes = {"synthetic": write_scene(Path(folder), given.texture, given.triangles)}
        scenes |= {name: data / name / "scene.xml" for name in ("cornell-box", "veach-mis")}
        print(f"{'scene':<14}{'first ms':>12}{'again ms':>12}{'times':>8}{'stored ms':>12}{'times':>8}")
        for name, path in scenes.items():
            found = rows(path, given.rounds)
            first, again, stored = (1e3 * found[key] for key in ("first", "again", "stored"))
            cells = f"{first:>12.1f}{again:>12.1f}{first / again:>8.1f}{stored:>12.1f}{first / stored:>8.1f}"
            print(f"{name:<14}{cells}", flush=True)


if __name__ == "__main__":
    main()
