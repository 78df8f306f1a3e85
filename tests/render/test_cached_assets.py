"""Scenes whose files were loaded before: the same pictures, faster, and nothing that a scene does changes the next."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luxgrad as dr
from luxgrad.jit import debug
from luxgrad.jit.datacache import data_cache
from luxgrad.render.accel.embree_library import available as embree_available
from luxgrad.render.image.bitmap import Bitmap
from luxgrad.render.render import render
from luxgrad.render.shapes.mesh_data import MeshData
from luxgrad.render.shapes.ply_writer import write_ply
from luxgrad.render.traverse import traverse
from luxgrad.render.variants import types
from luxgrad.scenes.loader import load_dict, load_file

SCENE = """<scene version="3.0.0">
 <integrator type="prb"><integer name="max_depth" value="3"/></integrator>
 <sensor type="perspective"><float name="fov" value="40"/>
  <transform name="to_world"><lookat origin="0,0,4" target="0,0,0" up="0,1,0"/></transform>
  <sampler type="independent"><integer name="sample_count" value="4"/></sampler>
  <film type="hdrfilm"><integer name="width" value="12"/><integer name="height" value="12"/></film></sensor>
 <emitter type="envmap" id="sky"><string name="filename" value="sky.exr"/></emitter>
 <shape type="obj" id="hill"><string name="filename" value="hill.obj"/>
  <bsdf type="diffuse"><texture name="reflectance" type="bitmap" id="paint"><string name="filename" value="paint.png"/>
  </texture></bsdf></shape>
 <shape type="ply" id="lamp"><string name="filename" value="hill.ply"/>
  <transform name="to_world"><translate z="-1"/></transform>
  <emitter type="area"><texture name="radiance" type="bitmap" id="glow"><string name="filename" value="glow.exr"/>
  <string name="filter_type" value="nearest"/></texture></emitter></shape>
</scene>"""


def write_mesh(folder: Path, side: int) -> None:
    rng = np.random.default_rng(2)
    x, y = (a.ravel() for a in np.meshgrid(*[np.linspace(-1, 1, side)] * 2))
    points = np.stack([x, y, 0.1 * rng.random(side * side)], axis=1).astype(np.float32)
    first = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).ravel()
    pairs = [(first, first + 1, first + side), (first + 1, first + side + 1, first + side)]
    faces = np.concatenate([np.stack(p, axis=1) for p in pairs]).astype(np.uint32)
    uv = np.stack([x, y], axis=1).astype(np.float32) * 0.5 + 0.5
    write_ply(folder / "hill.ply", MeshData("hill", points, faces, None, uv))
    lines = [f"v {a:.6f} {b:.6f} {c:.6f}" for a, b, c in points] + [f"vt {a:.6f} {b:.6f}" for a, b in uv]
    (folder / "hill.obj").write_text("\n".join([*lines, *(f"f {a}/{a} {b}/{b} {c}/{c}" for a, b, c in faces + 1), ""]))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return a folder with a scene and its files; the cache is empty before and after."""
    rng = np.random.default_rng(1)
    Bitmap(rng.integers(0, 255, (9, 7, 3), np.uint8)).write(tmp_path / "paint.png")
    Bitmap(rng.random((6, 8, 3), np.float32)).write(tmp_path / "sky.exr")
    Bitmap(rng.random((4, 4, 3), np.float32)).write(tmp_path / "glow.exr")
    write_mesh(tmp_path, 8)
    (tmp_path / "scene.xml").write_text(SCENE)
    dr.clear_cache("data")
    yield tmp_path
    dr.clear_cache("data")


def load(folder: Path, variant: str = "llvm_ad_rgb") -> Any:
    return load_file(folder / "scene.xml", types=types(variant))


def picture(scene: Any) -> Any:
    return np.array(render(scene, seed=3))


def contents(scene: Any) -> dict[str, Any]:
    arrays = {k: np.array(v.numpy()) for k, v in traverse(scene).items() if hasattr(v, "numpy")}
    return {k: v for k, v in arrays.items() if v.size > 1}


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


def counts() -> tuple[int, int]:
    return data_cache().hits, data_cache().misses


def test_the_second_loading_makes_nothing_and_is_the_same(folder: Path) -> None:
    first = load(folder)
    image, values = picture(first), contents(first)
    hits, misses = counts()
    second = load(folder)
    assert np.array_equal(picture(second), image) and same(contents(second), values)
    assert counts()[1] == misses and counts()[0] > hits
    assert set(data_cache().statistics()["kinds"]) == {
        "texture", "environment", "mesh", "placed", "table", "accelerator"
    }  # fmt: skip


def test_without_a_cache_it_is_the_same(folder: Path) -> None:
    image = picture(load(folder))
    with debug.scoped(data_cache_maxsize=0):
        dr.clear_cache("data")
        assert np.array_equal(picture(load(folder)), image) and data_cache().nbytes == 0


def test_precisions_do_not_meet(folder: Path) -> None:
    single = load(folder)
    double = load(folder, "llvm_ad_rgb_double")
    for name, dtype in ((single, np.float32), (double, np.float64)):
        assert {v.dtype for v in contents(name).values() if v.dtype.kind == "f"} == {np.dtype(dtype)}
    assert np.allclose(picture(single), picture(double), atol=1e-3)


def change_by_numpy(x: Any) -> None:
    x.numpy()[...] *= 0.5


def change_by_scatter(x: Any) -> None:
    flat = getattr(x, "array", x)
    dr.scatter(flat, type(flat)(9.0), dr.arange(dr.uint32_array_t(type(flat)), dr.width(flat)))
    dr.eval(flat)


def change_by_arithmetic(x: Any) -> None:
    x *= 0.25
    x += 1.0
    dr.eval(x)


@pytest.mark.parametrize("change", [change_by_numpy, change_by_scatter, change_by_arithmetic])
def test_what_a_scene_changes_stays_its_own(folder: Path, change: Any) -> None:
    first, other = load(folder), load(folder)
    image, values = picture(first), contents(first)
    parameters = traverse(first)
    changed = [key for key in values if key.endswith("data") or "vertex" in key]
    assert {"hill.bsdf.reflectance.data", "sky.data", "hill.vertex_positions", "hill.vertex_texcoords"} <= set(changed)
    for key in changed:
        change(parameters[key])
        parameters[key] = parameters[key]
    parameters.update()
    assert not any(np.array_equal(np.array(parameters[key].numpy()), values[key]) for key in changed)
    assert not np.array_equal(picture(first), image)
    for scene in (other, load(folder)):
        assert same(contents(scene), values) and np.array_equal(picture(scene), image)


def test_gradients_and_steps_stay_with_their_scene(folder: Path) -> None:
    first = load(folder)
    image, values = picture(first), contents(first)
    parameters = traverse(first)
    keys = ["hill.bsdf.reflectance.data", "sky.data", "hill.vertex_positions"]
    for _ in range(2):
        for key in keys:
            dr.enable_grad(parameters[key])
        dr.backward(dr.mean(dr.square(render(first, parameters, seed=3))))
        for key in keys:
            parameters[key] = dr.detach(parameters[key]) - 10.0 * dr.grad(parameters[key])
        parameters.update()
    assert not np.array_equal(contents(first)["hill.bsdf.reflectance.data"], values["hill.bsdf.reflectance.data"])
    second = load(folder)
    assert same(contents(second), values) and np.array_equal(picture(second), image)
    again = traverse(second)
    assert not any(dr.grad_enabled(again[key]) for key in keys)


def test_moving_shapes_fill_no_cache(folder: Path) -> None:
    scene = load(folder)
    picture(scene)
    parameters, held = traverse(scene), data_cache().statistics()["bytes"]
    for _ in range(3):
        parameters["hill.vertex_positions"] = parameters["hill.vertex_positions"] * 1.01
        parameters["sky.data"] = parameters["sky.data"] * 1.01
        parameters.update()
        picture(scene)
    assert data_cache().statistics()["bytes"] == held


@pytest.mark.parametrize("kind", ["bvh", "embree"])
def test_scenes_share_the_ray_structure_until_one_moves(folder: Path, kind: str) -> None:
    if kind == "embree" and not embree_available():
        pytest.skip("Embree is not installed")
    scenes = [load(folder), load(folder)]
    for scene in scenes:
        scene.use_accelerator(kind)
    image = picture(scenes[0])
    assert np.array_equal(picture(scenes[1]), image)
    parts = [s.accelerator.scene if kind == "embree" else s.accelerator._memory[0].ctypes.data for s in scenes]
    assert parts[0] == parts[1]
    parameters = traverse(scenes[0])
    parameters["hill.vertex_positions"] = parameters["hill.vertex_positions"] * 0.5
    parameters.update()
    assert not np.array_equal(picture(scenes[0]), image) and np.array_equal(picture(scenes[1]), image)
    dr.clear_cache("data")  # what is in use stays
    assert np.array_equal(picture(scenes[1]), image)
    if kind == "embree":
        scenes[1].accelerator.close()
        with pytest.raises(RuntimeError, match="several scenes use"):
            scenes[1].accelerator.update(0, np.zeros((64, 3), np.float32))
        assert np.array_equal(picture(scenes[1]), image)


@pytest.mark.parametrize("name", ["paint.png", "sky.exr", "glow.exr", "hill.obj", "hill.ply"])
def test_a_file_that_changes_is_noticed_at_once(folder: Path, name: str) -> None:
    before = contents(load(folder))
    path = folder / name
    info = path.stat()
    if path.suffix in (".obj", ".ply"):
        data = path.read_bytes()
        place = data.index(b"0.0") if path.suffix == ".obj" else data.index(b"end_header\n") + 11 + 8
        step = b"0.5" if path.suffix == ".obj" else np.float32(0.75).tobytes()
        path.write_bytes(data[:place] + step + data[place + len(step) :])
        assert path.stat().st_size == info.st_size
    else:
        Bitmap(np.array(Bitmap(path))[::-1].copy()).write(path)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))  # as a copy that keeps times
    after = contents(load(folder))
    assert before.keys() == after.keys() and not same(before, after)


def test_what_is_asked_for_is_part_of_the_key(folder: Path) -> None:
    t = types("llvm_ad_rgb")

    def texture(**values: Any) -> Any:
        return load_dict({"type": "bitmap", "filename": str(folder / "paint.png"), **values}, types=t).data.numpy()

    def mesh(kind: str = "ply", **values: Any) -> dict[str, Any]:
        shape = load_dict({"type": kind, "filename": str(folder / f"hill.{kind}"), **values}, types=t)
        names = ("vertex_positions", "vertex_normals", "vertex_texcoords")
        return {name: getattr(shape, name).numpy() for name in names}

    from luxgrad.render.transform import ScalarTransform4f

    assert not np.array_equal(texture(), texture(raw=True)) and np.array_equal(texture(), texture())
    plain, again = mesh(), mesh()
    assert same(plain, again)
    assert not np.array_equal(mesh(flip_tex_coords=True)["vertex_texcoords"], plain["vertex_texcoords"])
    assert mesh(face_normals=True)["vertex_normals"].size == 0
    moved = mesh(to_world=ScalarTransform4f().translate([1, 2, 3]))["vertex_positions"]
    assert np.allclose(moved.reshape(-1, 3), plain["vertex_positions"].reshape(-1, 3) + [1, 2, 3])
    assert data_cache().statistics()["kinds"].keys() == {"texture", "mesh", "placed"}


def test_light_is_sampled_from_the_present_picture(folder: Path) -> None:
    load(folder)
    scene = load(folder)
    parameters = traverse(scene)
    for key in ("sky.data", "lamp.emitter.radiance.data"):
        values = np.zeros(parameters[key].shape, np.float32)
        values[2, 1] = 1.0
        parameters[key] = type(parameters[key])(values)
    parameters.update()
    sky = next(e for e in scene.emitters() if e.is_environment())
    table = np.array(sky.distribution.values.numpy()).reshape(6, 9)
    assert table[2, 1] > 0 and np.count_nonzero(table) == 1
    glow = next(e for e in scene.emitters() if not e.is_environment()).radiance
    assert np.count_nonzero(np.array(glow.distribution.probabilities.numpy())) == 1


def test_warnings_of_files_come_again(folder: Path) -> None:
    mesh = MeshData("flat", np.eye(3, dtype=np.float32), np.array([[0, 1, 2]], np.uint32), np.zeros((3, 3), np.float32))
    mesh.normals[0] = 1, 0, 0  # type: ignore[index]
    write_ply(folder / "flat.ply", mesh)
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            load_dict({"type": "ply", "filename": str(folder / "flat.ply")}, types=types("llvm_ad_rgb"))
        (warning,) = caught
        assert "flat.ply: 2 of 3 vertices have no normal" in str(warning.message)


def test_mistakes_in_files_are_reported_every_time(folder: Path) -> None:
    (folder / "hill.obj").write_text("v 0 0 0\nf 1 2 3\n")
    for _ in range(2):
        with pytest.raises(ValueError, match=r"hill.obj:2: a face refers to number 2"):
            load(folder)
    assert "mesh" not in data_cache().statistics()["kinds"]
    (folder / "hill.obj").unlink()
    with pytest.raises(ValueError, match='file "hill.obj" not found'):
        load(folder)


_CHILD = """
import hashlib, sys
import numpy as np
from luxgrad.jit.datacache import data_cache
from luxgrad.render.render import render
from luxgrad.render.variants import types
from luxgrad.scenes.loader import load_file
image = np.array(render(load_file(sys.argv[1] + "/scene.xml", types=types("llvm_ad_rgb")), seed=3))
c = data_cache()
print(c.misses, c.store.hits, c.store.damaged, hashlib.sha256(image.tobytes()).hexdigest())
"""


def test_other_processes_find_the_files(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "cache"

    def child() -> subprocess.Popen[str]:
        settings = {**os.environ, "LUXGRAD_DATA_CACHE_DIR": str(place)}
        command = [sys.executable, "-c", _CHILD, str(folder)]
        return subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, text=True)

    def answer(process: subprocess.Popen[str]) -> list[str]:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        return out.split()

    together = [child(), child()]
    first, second = (answer(process) for process in together)
    assert first[2:] == second[2:] and first[2] == "0"
    later = answer(child())
    assert later[0] == "0" and int(later[1]) > 5 and later[2:] == first[2:]
    for path in place.iterdir():
        path.write_bytes(path.read_bytes()[:-5] + b"wrong")
    damaged = answer(child())
    assert int(damaged[2]) > 5 and damaged[3] == first[3]


def test_loading_again_is_five_times_faster(folder: Path) -> None:
    write_mesh(folder, 120)  # 28 322 triangles each
    Bitmap(np.random.default_rng(1).random((128, 256, 3), np.float32)).write(folder / "sky.exr")

    def seconds() -> float:
        begin = time.perf_counter()
        load(folder).prepare()
        dr.sync_thread()
        return time.perf_counter() - begin

    seconds()  # kernels
    dr.clear_cache("data")
    first = seconds()
    assert first > 5 * min(seconds() for _ in range(3))
