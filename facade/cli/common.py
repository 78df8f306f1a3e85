"""What the commands share: loading a scene with the options of the command line."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from luxgrad.jit.errors import MissingFileError, SceneError
from luxgrad.optim.fit_integrator import make_integrator as integrator_of
from luxgrad.render.arguments import find_sensor
from luxgrad.render.image.files import file_format
from luxgrad.render.image.util import write_bitmap
from luxgrad.render.traverse import traverse
from luxgrad.render.variants import types
from luxgrad.scenes.loader import load_file

__all__ = ["check_image_name", "check_writable", "load", "make_integrator", "resize", "write_picture"]


def load(options: argparse.Namespace) -> Any:
    """Return the scene of the command line; SceneError if the file holds something else."""
    if not options.scene:
        raise SceneError("the name of the scene file is empty")
    if not os.path.exists(options.scene):
        raise MissingFileError(f'the scene file "{options.scene}" does not exist')
    scene = load_file(options.scene, types=types(options.variant), **dict(options.parameters))
    if not hasattr(scene, "sensors"):
        raise SceneError(f'"{options.scene}" holds a {getattr(scene, "plugin_kind", "list")}, not a scene')
    return scene


def check_image_name(path: str) -> None:
    """Raise an error, before any work is done, if no picture can be written to `path`."""
    check_writable(path)
    file_format(path)


def check_writable(path: str) -> None:
    """Raise SceneError if no file can be written to `path`; a folder that is missing will be made."""
    if os.path.isdir(path):
        raise SceneError(f'cannot write "{path}": it is a folder')
    folder = os.path.dirname(path) or "."
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder) or "."
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK | os.X_OK):
        reason = "permission is missing" if os.path.isdir(folder) else "it is no folder"
        raise SceneError(f'cannot write "{path}" into "{folder}": {reason}')
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise SceneError(f'cannot write "{path}": permission is missing')


def write_picture(path: str, picture: Any) -> None:
    """Write an image file; makes its folder where there is none."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_bitmap(path, picture)


def make_integrator(options: argparse.Namespace) -> Any:
    """Return the integrator that the options name, None for the scene's own."""
    if options.integrator is None:
        if options.max_depth is not None:
            raise SceneError("--max-depth needs --integrator; the scene file sets the depth of its own integrator")
        return None
    values = {} if options.max_depth is None else {"max_depth": options.max_depth}
    return integrator_of(options.integrator, types(options.variant), **values)


def resize(scene: Any, sensor: int, size: tuple[int, int] | None) -> tuple[int, int]:
    """Give the film of a sensor another size (width, height), uncropped, and return the size it has then."""
    film = find_sensor(scene, sensor).film()
    if size is not None:
        parameters = traverse(film)
        for key, value in {"size": size, "crop_size": size, "crop_offset": (0, 0)}.items():
            parameters[key] = list(value)
        parameters.update()
    width, height = (int(n) for n in film.crop_size())
    return width, height
