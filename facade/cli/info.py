"""`luxgrad info`: what is installed here, or what a scene file holds."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from luxgrad import __version__
from luxgrad.cli.common import load
from luxgrad.jit.codegen import host
from luxgrad.jit.datacache import data_cache
from luxgrad.jit.runtime import cache, threads
from luxgrad.jit.runtime.store import Store
from luxgrad.render.accel.embree_library import available as embree_available
from luxgrad.render.registry import KINDS, known
from luxgrad.render.traverse import flag_text, traverse
from luxgrad.render.variants import available

__all__ = ["describe", "installation", "run"]

_LIBRARIES = ("numpy", "llvmlite", "embreex", "OpenEXR", "pillow", "cuda-python")


def run(options: argparse.Namespace) -> None:
    """Print the tables."""
    console = Console()
    if options.scene is None:
        table = Table(show_header=False)
        for name, value in installation().items():
            table.add_row(name, escape(value))
        console.print(table)
    else:
        for table in _scene_tables(load(options)):
            if table.row_count:
                console.print(table)


def installation() -> dict[str, str]:
    """Return facts about this installation and machine by name."""
    target = host.target()
    plugins = {kind: len(known(kind)) for kind in KINDS if kind != "scene"}
    return {
        "luxgrad": __version__,
        "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "libraries": ", ".join(f"{name} {_version(name)}" for name in _LIBRARIES),
        "LLVM": target.llvm_version,
        "processor": f"{target.cpu}, {os.cpu_count()} hardware threads, {threads.default_threads()} used",
        "vectors": _vectors(target.features),
        "GPU": _gpu(),
        "ray tracing": "own tree" + (" and Embree" if embree_available() else "; Embree is not installed"),
        "variants": ", ".join(available()),
        "plugins": ", ".join(f"{count} {kind}" for kind, count in plugins.items() if count),
        "kernel cache": describe(cache.STORE, "kernels"),
        "data cache": describe(data_cache().store, "files"),
    }


def describe(store: Store, what: str) -> str:
    """Return where a cache lies on disk and what it holds."""
    folder, files = store.folder(), store.files()
    if folder is None:
        return "not kept on disk"
    size = sum(f.size for f in files)
    return f"{folder}, {len(files)} {what}, {size / 1e6:.1f} MB of {store.limit() / 1e6:.0f} MB"


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def _vectors(features: str) -> str:
    found = [name for name in ("avx512f", "avx2", "avx", "sse4.2", "neon", "sve") if f"+{name}" in features.split(",")]
    return ", ".join(found) or "none known"


def _gpu() -> str:
    if any(name.startswith("cuda") for name in available()):
        return "CUDA"
    return "not used by this version"


def _scene_tables(scene: Any) -> list[Table]:
    sensors = Table("sensor", "type", "film", "samples", title="Sensors")
    for sensor in scene.sensors():
        width, height = (int(n) for n in sensor.film().crop_size())
        sensors.add_row(sensor.id(), sensor.plugin_name, f"{width} x {height}", str(sensor.sampler().sample_count))
    integrator = scene.integrator()
    sensors.caption = f"integrator: {integrator.plugin_name if integrator is not None else 'none, path is used'}"
    shapes = Table("shape", "type", "faces", "bsdf", "emitter", title="Shapes")
    bsdfs = Table("bsdf", "type", "used by", title="Materials")
    used: dict[int, tuple[Any, int]] = {}
    for shape in scene.shapes():
        faces = str(shape.face_count()) if hasattr(shape, "face_count") else ""
        emitter = shape.emitter.plugin_name if getattr(shape, "emitter", None) is not None else ""
        bsdf = getattr(shape, "bsdf", None)
        bsdf = bsdf() if callable(bsdf) and not hasattr(bsdf, "plugin_kind") else bsdf
        if bsdf is not None:
            used[id(bsdf)] = (bsdf, used.get(id(bsdf), (bsdf, 0))[1] + 1)
        shapes.add_row(shape.id(), shape.plugin_name, faces, bsdf.id() if bsdf is not None else "", emitter)
    for bsdf, count in used.values():
        bsdfs.add_row(bsdf.id(), bsdf.plugin_name, f"{count} shape{'s' if count > 1 else ''}")
    emitters = Table("emitter", "type", title="Lights")
    for emitter in scene.emitters():
        emitters.add_row(emitter.id(), emitter.plugin_name)
    return [sensors, shapes, bsdfs, emitters, _parameter_table(scene)]


def _parameter_table(scene: Any) -> Table:
    table = Table("parameter", "flags", "type", "shape", title="Parameters")
    parameters = traverse(scene)
    table.caption = "∂ differentiable, D moves edges of what is visible, R read-only"
    for key, value in parameters.items():
        shape = " x ".join(str(n) for n in getattr(value, "shape", ()))
        table.add_row(escape(key), flag_text(parameters.flags(key)), type(value).__name__, shape)
    return table
