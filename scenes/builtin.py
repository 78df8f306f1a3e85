"""Scenes that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..render.transform import ScalarTransform4f

__all__ = ["cornell_box", "data_file"]


def data_file(name: str) -> Path:
    """Return the path of a file that comes with the package, such as "cornell-box/scene.xml"."""
    return Path(__file__).parent / "data" / name


def cornell_box() -> dict[str, Any]:
    """Return the Cornell box as a dictionary for `load_dict`, to be changed at will.

    A box of side 2 around the origin, open towards the camera on +z, with a lamp under the ceiling and two blocks;
    names, colours and places are those of Mitsuba's function of this name.
    """
    at = ScalarTransform4f

    def wall(transform: Any, material: str) -> dict[str, Any]:
        return {"type": "rectangle", "to_world": transform, "bsdf": {"type": "ref", "id": material}}

    def paint(*color: float) -> dict[str, Any]:
        return {"type": "diffuse", "reflectance": {"type": "rgb", "value": list(color)}}

    def block(transform: Any) -> dict[str, Any]:
        return {"type": "cube", "to_world": transform, "bsdf": {"type": "ref", "id": "white"}}

    lamp = wall(at().translate([0.0, 0.99, 0.01]).rotate([1, 0, 0], 90).scale([0.23, 0.19, 0.19]), "white")
    lamp["emitter"] = {"type": "area", "radiance": {"type": "rgb", "value": [18.387, 13.9873, 6.75357]}}
    return {
        "type": "scene",
        "integrator": {"type": "path", "max_depth": 8},
        "sensor": {
            "type": "perspective",
            "fov": 39.3077,
            "fov_axis": "smaller",
            "near_clip": 0.001,
            "far_clip": 100.0,
            "focus_distance": 1000,
            "to_world": at().look_at(origin=[0, 0, 3.90], target=[0, 0, 0], up=[0, 1, 0]),
            "sampler": {"type": "independent", "sample_count": 64},
            "film": {
                "type": "hdrfilm", "width": 256, "height": 256, "pixel_format": "rgb", "component_format": "float32",
                "rfilter": {"type": "gaussian"},
            },
        },
        "white": paint(0.885809, 0.698859, 0.666422),
        "green": paint(0.105421, 0.37798, 0.076425),
        "red": paint(0.570068, 0.0430135, 0.0443706),
        "light": lamp,
        "floor": wall(at().translate([0, -1, 0]).rotate([1, 0, 0], -90), "white"),
        "ceiling": wall(at().translate([0, 1, 0]).rotate([1, 0, 0], 90), "white"),
        "back": wall(at().translate([0, 0, -1]), "white"),
        "green-wall": wall(at().translate([1, 0, 0]).rotate([0, 1, 0], -90), "green"),
        "red-wall": wall(at().translate([-1, 0, 0]).rotate([0, 1, 0], 90), "red"),
        "small-box": block(at().translate([0.335, -0.7, 0.38]).rotate([0, 1, 0], -17).scale(0.3)),
        "large-box": block(at().translate([-0.33, -0.4, -0.28]).rotate([0, 1, 0], 18.25).scale([0.3, 0.61, 0.3])),
    }  # fmt: skip
