"""Small scenes whose pictures equal Mitsuba's sample by sample, and the program that makes the stored pictures.

    python exact_scenes.py ../data/exact.npz

runs under a Python with mitsuba 3.9.1 and renders all scenes with 4 samples and seed 7.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

SPP, SEED = 4, 7
WIDTH, HEIGHT = 24, 18


def rgb(*values: float) -> dict[str, Any]:
    """Return the description of a colour."""
    return {"type": "rgb", "value": list(values)}


def write_meshes(folder: Path) -> None:
    """Write a wavy sheet as OBJ with and without normals and uv."""
    n = 5
    x, y = np.meshgrid(np.linspace(-1, 1, n), np.linspace(-1, 1, n))
    z = 0.25 * np.sin(2 * x) * np.cos(3 * y)
    normals = np.stack(
        [-0.5 * np.cos(2 * x) * np.cos(3 * y), 0.75 * np.sin(2 * x) * np.sin(3 * y), np.ones_like(x)], -1
    )
    rows = {
        "v": np.stack([x, y, z], -1).reshape(-1, 3),
        "vt": np.stack([(x + 1) / 2, (y + 1) / 2], -1).reshape(-1, 2),
        "vn": (normals / np.linalg.norm(normals, axis=2, keepdims=True)).reshape(-1, 3),
    }
    corners = [j * n + i + 1 for j in range(n - 1) for i in range(n - 1)]
    faces = [t for a in corners for t in ((a, a + 1, a + n + 1), (a, a + n + 1, a + n))]
    for name, tags in {"full": ("v", "vt", "vn"), "plain": ("v",), "uv": ("v", "vt")}.items():
        lines = [tag + "".join(f" {c:.6f}" for c in row) for tag in tags for row in rows[tag]]
        lines += ["f " + " ".join("/".join([str(k)] * len(tags)) for k in face) for face in faces]
        (folder / f"{name}.obj").write_text("\n".join(lines) + "\n")


def scenes(T: Any, bitmap: Any, folder: Path) -> dict[str, dict[str, Any]]:
    """Return the scenes; `T` is the transform class, `bitmap` makes a picture object of an array."""
    write_meshes(folder)
    noise = np.random.default_rng(3)
    picture = (noise.random((5, 7, 3)) * 255).astype(np.uint8)
    sky = (noise.random((6, 12, 3)) ** 3 * 2).astype(np.float32)
    sky[1, 5] = (20, 15, 10)

    def texture(**values: Any) -> dict[str, Any]:
        return {"type": "bitmap", "bitmap": bitmap(picture), **values}

    def camera(film: dict[str, Any] | None = None, **values: Any) -> dict[str, Any]:
        shown = {"type": "hdrfilm", "width": WIDTH, "height": HEIGHT, "rfilter": {"type": "box"}} | (film or {})
        at = T().look_at(origin=[0.3, 1.2, 4], target=[0, 0, 0], up=[0, 1, 0])
        return {"type": "perspective", "fov": 45, "to_world": at, "film": shown} | values

    def scene(integrator: dict[str, Any] | None = None, sensor: Any = None, **objects: Any) -> dict[str, Any]:
        chosen = integrator or {"type": "path", "max_depth": 5}
        return {"type": "scene", "integrator": chosen, "sensor": sensor or camera(), **objects}

    def ball(x: float, bsdf: dict[str, Any], radius: float = 0.5, **values: Any) -> dict[str, Any]:
        return {"type": "sphere", "center": [x, 0, 0], "radius": radius, "bsdf": bsdf, **values}

    def sheet(name: str, x: float, bsdf: dict[str, Any], **values: Any) -> dict[str, Any]:
        at = T().translate([x, 0, 0]).rotate([1, 0, 0], -50).scale([0.6, 0.7, 0.6])
        return {"type": "obj", "filename": str(folder / f"{name}.obj"), "bsdf": bsdf, "to_world": at, **values}

    def plate(x: float, turn: float, bsdf: dict[str, Any], **values: Any) -> dict[str, Any]:
        at = T().translate([x, 0, 0]).rotate([0, 1, 0], turn).scale([0.5, 0.8, 1])
        return {"type": "rectangle", "bsdf": bsdf, "to_world": at, **values}

    lamp_at = T().translate([0, 2.5, 0.5]).rotate([1, 0, 0], 90).scale(0.7)
    emission = {"type": "area", "radiance": rgb(8, 7, 5)}
    lamp = {"type": "rectangle", "to_world": lamp_at, "emitter": emission}
    floor_at = T().translate([0, -0.8, 0]).rotate([1, 0, 0], -90).scale(3)
    floor = {"type": "rectangle", "to_world": floor_at, "bsdf": {"type": "diffuse", "reflectance": rgb(0.7, 0.5, 0.3)}}
    room = {"lamp": lamp, "floor": floor}
    blue = {"type": "diffuse", "reflectance": rgb(0.2, 0.6, 0.9)}
    mirror = {"type": "conductor"}
    glass = {"type": "dielectric"}
    rough = {"type": "roughconductor", "alpha": 0.2, "material": "Cu"}
    brushed = {"type": "roughconductor", "distribution": "ggx", "alpha_u": 0.4, "alpha_v": 0.1, "material": "Ag"}
    blunt = {"type": "roughconductor", "alpha": 0.3, "sample_visible": False}
    painted = {"type": "diffuse", "reflectance": texture()}
    two = {"type": "twosided", "a": {"type": "diffuse", "reflectance": rgb(0.9, 0.1, 0.1)}, "b": rough}
    trio = {"a": ball(-1.2, blue), "b": ball(0, mirror), "c": ball(1.2, glass)}
    light_sky = {"sky": {"type": "constant", "radiance": rgb(1, 0.8, 0.6)}}
    rgba = {"pixel_format": "rgba"}
    wide = {"rfilter": {"type": "gaussian", "stddev": 0.8}}
    away = {"to_world": T().look_at(origin=[0, 1, 7], target=[0, 0.9, 0], up=[0, 1, 0])}

    def wall(x: float, y: float, **values: Any) -> dict[str, Any]:
        at = T().translate([x, y, 0]).scale([0.6, 0.5, 1])
        to_uv = T().translate([0.3, -0.4, 0]).rotate([0, 0, 1], 20).scale([2.3, -3.1, 1])
        bsdf = {"type": "diffuse", "reflectance": texture(to_uv=to_uv, **values)}
        return {"type": "rectangle", "to_world": at, "bsdf": bsdf}

    walls = {
        f"{filtered}_{wrap}": wall(-1.3 + 1.3 * i, 0.6 - 1.2 * j, filter_type=filtered, wrap_mode=wrap)
        for j, filtered in enumerate(("bilinear", "nearest"))
        for i, wrap in enumerate(("repeat", "mirror", "clamp"))
    }
    near_sphere = {"type": "sphere", "center": [1, 1, 1], "radius": 0.4}
    small_disk = {"type": "disk", "to_world": T().translate([-1.2, 1.4, 0.5]).rotate([1, 0, 0], 110).scale(0.5)}
    return {
        "smooth": scene(
            **room, a=ball(-1.2, blue), b=ball(0, {"type": "conductor", "material": "Au"}), c=ball(1.2, glass)
        ),
        "rough": scene(**room, a=ball(-1.2, rough), b=ball(0, brushed), c=ball(1.2, blunt)),
        "sides": scene(
            **room,
            a=plate(-1.2, 20, two),
            b=plate(0, 170, two),
            c=plate(1.2, 160, {"type": "twosided", "a": brushed}),
            d={
                "type": "cube",
                "to_world": T().translate([0, 1.2, 0]).rotate([0, 1, 0], 40).scale(0.3),
                "bsdf": painted,
            },
        ),
        "meshes": scene(
            **room,
            a=sheet("full", -1.3, painted),
            b=sheet("plain", 0, {"type": "twosided", "a": brushed}),
            c=sheet("uv", 1.3, painted),
            d=sheet("full", 0, painted, face_normals=True) | {"to_world": T().translate([0, 1.2, 0]).scale(0.4)},
        ),
        "mirrored": scene(
            **room,
            a=sheet("full", -1.2, painted) | {"to_world": T().rotate([1, 0, 0], -50).scale([-0.6, 0.6, 0.6])},
            b={"type": "rectangle", "bsdf": painted, "to_world": T().translate([-1.3, 0, 0]).scale([-0.5, 0.8, 1])},
            c={"type": "disk", "bsdf": painted, "to_world": T().translate([1.3, 0, 0]).scale([-0.6, 0.6, 0.6])},
            d=sheet("full", 0, painted, flip_normals=True)
            | {"to_world": T().translate([0, 1, 0]).rotate([1, 0, 0], 130)},
        ),
        "lamps": scene(
            floor=floor,
            a=near_sphere | {"emitter": emission | {"sampling_weight": 2.0}},
            b=small_disk | {"emitter": emission},
            c={"type": "cube", "to_world": T().translate([0, 1.5, 0.5]).scale(0.2), "emitter": emission},
            m=ball(0, rough),
        ),
        "mesh-lamp": scene(
            floor=floor,
            m=ball(0, blue),
            a=sheet("full", 0, blue, emitter=emission)
            | {"to_world": T().translate([0, 1.8, 0]).rotate([1, 0, 0], 95).scale(0.6)},
        ),
        "painted-lamps": scene(
            floor=floor,
            a=lamp | {"emitter": {"type": "area", "radiance": texture(filter_type="nearest")}},
            b=near_sphere | {"emitter": {"type": "area", "radiance": texture()}},
            c=small_disk | {"emitter": {"type": "area", "radiance": texture(wrap_mode="clamp")}},
            m=ball(0, blue),
        ),
        "points": scene(
            floor=floor,
            **light_sky,
            m=ball(0, rough),
            p={"type": "point", "position": [1, 2, 1], "intensity": 4.0},
            q={"type": "point", "to_world": T().translate([-1, 2, 1]), "sampling_weight": 0.5},
        ),
        "sky": scene(
            floor=floor,
            **trio,
            sky={"type": "envmap", "bitmap": bitmap(sky), "scale": 1.7, "to_world": T().rotate([0, 0.6, 0.8], 77)},
        ),
        "compensated-sky": scene(
            floor=floor, m=ball(0, rough), sky={"type": "envmap", "bitmap": bitmap(sky), "mis_compensation": True}
        ),
        "walls": scene(sky={"type": "constant"}, **walls),
        "cropped": scene(
            **room,
            m=ball(0, blue),
            sensor=camera(
                rgba
                | {
                    "crop_offset_x": 4,
                    "crop_offset_y": 3,
                    "crop_width": 15,
                    "crop_height": 9,
                    "sample_border": True,
                    "rfilter": {"type": "gaussian"},
                },
                fov_axis="y",
            ),
        ),
        "shifted": scene(
            **room,
            m=ball(0, blue),
            sensor=camera(
                {"pixel_format": "xyz", "rfilter": {"type": "tent"}},
                principal_point_offset_x=0.1,
                principal_point_offset_y=-0.2,
                fov_axis="diagonal",
            ),
        ),
        "direct": scene(
            {"type": "direct", "emitter_samples": 2, "bsdf_samples": 1},
            camera(rgba, **away),
            **room,
            **trio,
            **light_sky,
        ),
        "direct-hidden": scene({"type": "direct", "hide_emitters": True}, camera(rgba, **away), **room, **trio),
        "path-hidden": scene(
            {"type": "path", "hide_emitters": True, "rr_depth": 2}, camera(rgba, **away), **room, **trio, **light_sky
        ),
        "path-passes": scene({"type": "path", "max_depth": 5, "samples_per_pass": 2}, camera(wide), **room, **trio),
        "replay": scene(
            {"type": "prb", "rr_depth": 2, "max_depth": 8}, camera(rgba, **away), **room, **trio, **light_sky
        ),
        "aov": scene(
            {"type": "aov", "aovs": "a:albedo,d:depth,p:position,t:uv,g:geo_normal,s:sh_normal,u:dp_du,v:dp_dv"},
            a=ball(-1.2, blue),
            b=sheet("full", 0, painted),
            c=small_disk,
        ),
    }


def main(path: str) -> None:
    """Render all scenes with Mitsuba and store the pictures."""
    import tempfile

    import mitsuba as mi

    mi.set_variant("llvm_ad_rgb")
    pictures = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, description in scenes(mi.ScalarTransform4f, mi.Bitmap, Path(folder)).items():
            # Merged, equal materials and meshes would change the order in which lights are drawn.
            scene = mi.load_dict(description, optimize=False)
            pictures[name] = np.array(mi.render(scene, spp=SPP, seed=SEED)).astype(np.float16)
    np.savez_compressed(path, **pictures)


if __name__ == "__main__":
    main(sys.argv[1])
