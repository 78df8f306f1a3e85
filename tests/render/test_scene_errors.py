"""Wrong scenes: each gives one SceneError that says what was found and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lanes import SINGLE, load

from luxgrad.jit.errors import SceneError
from luxgrad.render.image.bitmap import Bitmap
from luxgrad.render.render import render
from luxgrad.render.transform import ScalarTransform4f as T
from luxgrad.render.traverse import traverse

HOLE = np.full((4, 4, 3), 0.5, np.float32)
HOLE[1, 2] = np.nan
PLY = "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\nelement face 1\n"
PLY += "property list uchar int vertex_indices\nend_header\n0 0 0\n1 0 0\n"


def shape(**values: Any) -> dict[str, Any]:
    return {"type": "scene", "wall": {"type": "rectangle", **values}}


def diffuse(**values: Any) -> dict[str, Any]:
    return shape(bsdf={"type": "diffuse", **values})


def texture(**values: Any) -> dict[str, Any]:
    return diffuse(reflectance={"type": "bitmap", **values})


def film(**values: Any) -> dict[str, Any]:
    return {"type": "scene", "camera": {"type": "perspective", "film": {"type": "hdrfilm", **values}}}


def metal(**values: Any) -> dict[str, Any]:
    return shape(bsdf={"type": "roughconductor", **values})


SKY = {"type": "constant"}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "missing mesh": ({"type": "scene", "m": {"type": "obj", "filename": "no-such.obj"}}, r"no-such\.obj"),
    "missing texture": (texture(filename="no-such.png"), r"no-such\.png"),
    "no texture": (texture(), r"filename"),
    "two textures": (texture(data=np.ones((2, 2, 3)), bitmap=Bitmap(HOLE)), r"filename.*bitmap.*data|bitmap.*data"),
    "two channels": (texture(data=np.ones((4, 4, 2), np.float32)), r"\(4, 4, 2\)"),
    "flat data": (texture(data=np.ones(12, np.float32)), r"\(12,\)"),
    "NaN texture": (texture(data=HOLE), r"NaN|finite"),
    "unknown wrap mode": (texture(data=np.ones((2, 2, 3)), wrap_mode="around"), r"around.*repeat"),
    "colour above one": (diffuse(reflectance={"type": "rgb", "value": [0.2, 1.5, 0.1]}), r"1\.5"),
    "unknown property": (diffuse(reflectence=0.5), r"reflectence"),
    "unknown material": (shape(bsdf={"type": "difuse"}), r"difuse.*diffuse"),
    "light as material": (shape(bsdf={"type": "point"}), r"point|bsdf"),
    "two materials": (shape(a={"type": "diffuse"}, b={"type": "diffuse"}), r"single bsdf"),
    "glass on both sides": (shape(bsdf={"type": "twosided", "a": {"type": "dielectric"}}), r"transmi"),
    "empty twosided": (shape(bsdf={"type": "twosided"}), r"found 0"),
    "unknown metal": (metal(material="Unobtainium"), r"Unobtainium"),
    "metal twice": (metal(material="Au", eta=1.0, k=2.0), r"material.*eta"),
    "eta alone": (metal(eta=1.0), r"together"),
    "alpha twice": (metal(alpha=0.1, alpha_u=0.2, alpha_v=0.3), r"alpha"),
    "unknown distribution": (metal(distribution="phong"), r"phong.*beckmann"),
    "negative index": (shape(bsdf={"type": "dielectric", "int_ior": -1.5}), r"positive.*-1\.5"),
    "unknown glass": (shape(bsdf={"type": "dielectric", "int_ior": "jelly"}), r"jelly"),
    "negative radius": ({"type": "scene", "s": {"type": "sphere", "radius": -1.0}}, r"radius.*-1"),
    "stretched sphere": ({"type": "scene", "s": {"type": "sphere", "to_world": T().scale([1, 2, 1])}}, r"uniform"),
    "stretched disk": ({"type": "scene", "s": {"type": "disk", "to_world": T().scale([1, 2, 1])}}, r"scale"),
    "flat transform": (shape(to_world=T().scale([1, 0, 1])), r"to_world|invert|singular"),
    "two environments": ({"type": "scene", "a": SKY, "b": SKY}, r"one environment.*2"),
    "two integrators": ({"type": "scene", "a": {"type": "path"}, "b": {"type": "prb"}}, r"one integrator.*2"),
    "lamp without shape": ({"type": "scene", "lamp": {"type": "area"}}, r"shape"),
    "sky without image": ({"type": "scene", "sky": {"type": "envmap"}}, r"filename"),
    "NaN sky": ({"type": "scene", "sky": {"type": "envmap", "bitmap": Bitmap(HOLE)}}, r"NaN"),
    "light placed twice": (
        {"type": "scene", "p": {"type": "point", "position": [0, 0, 1], "to_world": T()}}, r"position.*to_world",
    ),
    "negative weights": (
        {"type": "scene", "p": {"type": "point", "sampling_weight": -1.0}, "q": {"type": "point"}}, r"sampling_weight",
    ),
    "crop outside": (film(width=8, height=8, crop_offset_x=4, crop_width=8), r"\[8, 8\]"),
    "empty film": (film(width=0, height=8), r"\[0, 8\]|width"),
    "unknown format": (film(pixel_format="cmyk"), r"cmyk.*rgb"),
    "flat filter": (film(rfilter={"type": "gaussian", "stddev": 0.0}), r"stddev"),
    "no reach": (film(rfilter={"type": "tent", "radius": -1.0}), r"radius"),
    "wide angle": ({"type": "scene", "c": {"type": "perspective", "fov": 180.0}}, r"fov.*180"),
    "two lenses": ({"type": "scene", "c": {"type": "perspective", "fov": 40.0, "focal_length": "50mm"}}, r"fov.*focal"),
    "no millimetres": ({"type": "scene", "c": {"type": "perspective", "focal_length": "long"}}, r"long"),
    "near beyond far": (
        {"type": "scene", "c": {"type": "perspective", "near_clip": 5.0, "far_clip": 1.0}}, r"near_clip",
    ),
    "negative depth": ({"type": "scene", "i": {"type": "path", "max_depth": -2}}, r"max_depth.*-2"),
    "no roulette": ({"type": "scene", "i": {"type": "prb", "rr_depth": 0}}, r"rr_depth.*0"),
    "no samples of anything": ({"type": "scene", "i": {"type": "direct", "shading_samples": 0}}, r"sample"),
    "unknown image": ({"type": "scene", "i": {"type": "aov", "aovs": "d:dept"}}, r"dept.*depth"),
    "no images": ({"type": "scene", "i": {"type": "aov"}}, r"aovs"),
    "wrong type": ({"type": "scene", "i": {"type": "path", "max_depth": 2.5}}, r"max_depth.*integer.*float"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_one_clear_error(name: str) -> None:
    description, message = WRONG[name]
    with pytest.raises(SceneError, match=message) as caught:
        load(description)
    text = str(caught.value)
    assert "dictionary node" in text or description["type"] == "scene"
    assert "\n\n" not in text and len(text) < 800


FILES = {
    "truncated PLY": ("ply", PLY, r"mesh\.ply.*(vertex|end)"),
    "PLY index": ("ply", PLY + "0 1 0\n3 0 1 7\n", r"mesh\.ply.*7"),
    "PLY without header": ("ply", "0 0 0\n", r"mesh\.ply"),
    "OBJ index": ("obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n", r"mesh\.obj.*9"),
    "OBJ word": ("obj", "v 0 zero 0\n", r"mesh\.obj.*1"),
}


@pytest.mark.parametrize("name", FILES)
def test_broken_meshes(name: str, tmp_path: Path) -> None:
    kind, text, message = FILES[name]
    path = tmp_path / f"mesh.{kind}"
    path.write_text(text)
    with pytest.raises(SceneError, match=message):
        load({"type": "scene", "m": {"type": kind, "filename": str(path)}})


def test_broken_pictures(tmp_path: Path) -> None:
    (tmp_path / "t.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    with pytest.raises(SceneError, match=r"t\.png"):
        load(texture(filename=str(tmp_path / "t.png")))


CAMERA = {"type": "perspective", "film": {"type": "hdrfilm", "width": 4, "height": 4}}


def test_rendering_needs_a_sensor_and_samples_and_two_seeds() -> None:
    with pytest.raises(SceneError, match="no sensor"):
        render(load(shape()))
    scene = load({"type": "scene", "camera": CAMERA, "integrator": {"type": "prb"}})
    with pytest.raises(SceneError, match="sensor 3.*1"):
        render(scene, sensor=3)
    with pytest.raises(SceneError, match="seed.*5"):
        render(scene, seed=5, seed_grad=5)
    with pytest.raises(SceneError, match="sample"):
        render(scene, spp=-1)
    with pytest.raises(SceneError, match="2\\^32"):
        render(scene, spp=1 << 32)


def test_sampler_without_samples() -> None:
    with pytest.raises(SceneError, match="sample_count|sample"):
        scene = load({"type": "scene", "camera": {**CAMERA, "sampler": {"type": "independent", "sample_count": 0}}})
        render(scene)


def test_parameters_are_checked_when_they_are_set() -> None:
    scene = load(
        {"type": "scene", "sky": {"type": "envmap", "bitmap": Bitmap(np.ones((4, 4, 3), np.float32))}, **shape()}
    )
    params = traverse(scene)
    with pytest.raises(SceneError, match=r"\(H, W, 3\)"):
        params["sky.data"] = SINGLE.TensorXf(np.ones((4, 4, 2), np.float32))
    with pytest.raises(KeyError, match="wall.bsdf.reflectance.value"):
        params["wall.bsdf.reflectence.value"]


def test_meshes_keep_whole_vertices(tmp_path: Path) -> None:
    path = tmp_path / "mesh.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    scene = load({"type": "scene", "m": {"type": "obj", "filename": str(path)}})
    params = traverse(scene)
    params["m.vertex_positions"] = SINGLE.Float([0.0, 1.0])
    with pytest.raises(SceneError, match="vertex_positions.*2"):
        params.update()
