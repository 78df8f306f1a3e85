"""Scenes whose pictures are known by formula: furnaces, planes under simple lights, depth, alpha, cameras, films."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lanes import DOUBLE, SINGLE, load, numbers, uniform, vectors

from luxgrad.jit.errors import SceneError
from luxgrad.render.films.block import Block
from luxgrad.render.interfaces.records import Ray
from luxgrad.render.render import render
from luxgrad.render.transform import ScalarTransform4f as T
from luxgrad.render.traverse import traverse

pytestmark = pytest.mark.cpu

SIZE = 16


def rgb(*values: float) -> dict[str, Any]:
    return {"type": "rgb", "value": list(values)}


def camera(
    origin: Any = (0, 0, 5), target: Any = (0, 0, 0), fov: float = 30.0, up: Any = (0, 1, 0), **film: Any
) -> dict[str, Any]:
    shown = {"type": "hdrfilm", "width": SIZE, "height": SIZE, "rfilter": {"type": "box"}} | film
    at = T().look_at(origin=list(origin), target=list(target), up=list(up))
    return {"type": "perspective", "fov": fov, "to_world": at, "film": shown}


def picture(
    spp: int = 16, types: Any = SINGLE, integrator: Any = None, sensor: Any = None, **objects: Any
) -> np.ndarray:
    chosen = integrator or {"type": "path"}
    scene = load({"type": "scene", "integrator": chosen, "sensor": sensor or camera(), **objects}, types)
    image: np.ndarray = render(scene, seed=3, spp=spp).numpy().astype(np.float64)
    return image


INSIDE = camera((0.1, 0.2, 0.3), (1, 0.1, 0), 60.0)
HOLLOW = {
    "sphere": {"type": "sphere", "radius": 2.0, "flip_normals": True},
    "cube": {"type": "cube", "to_world": T().rotate([0, 1, 0], 20).scale(2.0), "flip_normals": True},
}
EMISSION = {"type": "area", "radiance": rgb(1.0, 2.0, 0.5)}
ALBEDO = np.array([0.8, 0.5, 0.2])


@pytest.mark.parametrize("integrator", ["path", "prb"])
@pytest.mark.parametrize("shape", HOLLOW)
@pytest.mark.parametrize("depth", [1, 2, 3, 7])
def test_furnace_of_finite_depth(shape: str, depth: int, integrator: str) -> None:
    """Inside a closed surface that shines and reflects, every bounce adds albedo times the light of the one before."""
    walls = HOLLOW[shape] | {"emitter": EMISSION, "bsdf": {"type": "diffuse", "reflectance": rgb(*ALBEDO)}}
    image = picture(
        32, integrator={"type": integrator, "max_depth": depth, "rr_depth": 100}, sensor=INSIDE, walls=walls
    )
    expected = np.array([1.0, 2.0, 0.5]) * (1 - ALBEDO**depth) / (1 - ALBEDO)
    np.testing.assert_allclose(image.mean((0, 1)), expected, rtol=2e-3)
    # Both strategies together see the same light in all directions: hardly any noise. In corners light is near.
    assert np.abs(image / expected - 1).max() < (0.02 if shape == "sphere" else 0.5)


@pytest.mark.parametrize("integrator", ["path", "prb"])
def test_furnace_without_bound(integrator: str) -> None:
    walls = HOLLOW["sphere"] | {"emitter": EMISSION, "bsdf": {"type": "diffuse", "reflectance": rgb(*ALBEDO)}}
    image = picture(256, integrator={"type": integrator, "max_depth": -1, "rr_depth": 3}, sensor=INSIDE, walls=walls)
    expected = np.array([1.0, 2.0, 0.5]) / (1 - ALBEDO)
    error = image.std((0, 1)) / SIZE
    assert (np.abs(image.mean((0, 1)) - expected) < 5 * error + 2e-4 * expected).all()
    assert (error < 0.01 * expected).all()


@pytest.mark.parametrize(
    ("bsdf", "exact"),
    [
        ({"type": "diffuse", "reflectance": 1.0}, False),
        ({"type": "conductor"}, True),
        ({"type": "dielectric"}, False),
        ({"type": "dielectric", "int_ior": 1.0, "ext_ior": 1.33}, False),
        ({"type": "twosided", "a": {"type": "diffuse", "reflectance": 1.0}}, False),
    ],
    ids=["diffuse", "mirror", "glass", "bubble", "twosided"],
)
def test_what_loses_no_light_cannot_be_seen_in_a_white_world(bsdf: dict[str, Any], exact: bool) -> None:
    image = picture(64, ball={"type": "sphere", "bsdf": bsdf}, sky={"type": "constant"})
    if exact:
        np.testing.assert_allclose(image, 1.0, rtol=1e-5)
    error = image.std((0, 1)) / SIZE
    assert (np.abs(image.mean((0, 1)) - 1) < 5 * error + 1e-4).all()


def test_rough_metal_loses_little_and_gains_nothing() -> None:
    for distribution in ("beckmann", "ggx"):
        bsdf = {"type": "roughconductor", "alpha": 0.3, "distribution": distribution}
        image = picture(64, sensor=camera(fov=15.0), ball={"type": "sphere", "bsdf": bsdf}, sky={"type": "constant"})
        assert 0.8 < image.mean() < 1.0


def test_plane_under_a_white_sky() -> None:
    """All of the light from the upper half, times the reflectance."""
    floor = {
        "type": "rectangle",
        "to_world": T().scale(100),
        "bsdf": {"type": "diffuse", "reflectance": rgb(0.2, 0.5, 0.9)},
    }
    image = picture(256, floor=floor, sky={"type": "constant", "radiance": rgb(2, 1, 3)})
    error = image.std((0, 1)) / SIZE
    assert (np.abs(image.mean((0, 1)) - [0.4, 0.5, 2.7]) < 5 * error).all() and (error < 0.01).all()


@pytest.mark.parametrize("integrator", ["path", "prb", "direct"])
def test_point_light_over_a_plane(integrator: str) -> None:
    """Radiance = reflectance / pi * intensity * cos / distance^2, at the points that the picture of positions shows."""
    floor = {"type": "rectangle", "to_world": T().scale(10), "bsdf": {"type": "diffuse", "reflectance": 0.5}}
    light = {"type": "point", "position": [0.5, -0.3, 1.5], "intensity": rgb(4, 5, 6)}
    inner = {"type": integrator} if integrator == "direct" else {"type": integrator, "max_depth": 2}
    image = picture(1, integrator={"type": "aov", "aovs": "p:position", "i": inner}, floor=floor, light=light)
    offset = np.array([0.5, -0.3, 1.5]) - image[..., 3:]
    distance = np.linalg.norm(offset, axis=2)
    expected = 0.5 / math.pi * (offset[..., 2] / distance**3)[..., None] * [4, 5, 6]
    np.testing.assert_allclose(image[..., :3], expected, rtol=1e-4)


@pytest.mark.parametrize("shape", ["disk", "sphere", "rectangle"])
def test_irradiance_of_area_lights(shape: str) -> None:
    """Disk: pi L r^2 / (r^2 + h^2). Sphere: pi L (r / d)^2. Both seen from straight below; a square by its factor."""
    r, h = 0.7, 1.5
    face_down = T().translate([0, 0, h]).rotate([1, 0, 0], 180).scale(r)
    light, factor = {
        "disk": ({"type": "disk", "to_world": face_down}, r * r / (r * r + h * h)),
        "sphere": ({"type": "sphere", "center": [0, 0, h], "radius": r}, (r / h) ** 2),
        # View factor of a square above a point below its centre (Howell, configuration B-4), four quarters.
        "rectangle": (
            {"type": "rectangle", "to_world": face_down},
            4 / math.pi * (r / math.hypot(r, h)) * math.atan(r / math.hypot(r, h)),
        ),
    }[shape]
    floor = {"type": "rectangle", "to_world": T().scale(10), "bsdf": {"type": "diffuse", "reflectance": 0.5}}
    sensor = camera((0, 4, 1), (0, 0, 0), 0.05, up=(0, 0, 1))
    image = picture(256, SINGLE, {"type": "direct"}, sensor, floor=floor, light=light | {"emitter": EMISSION})
    expected = 0.5 * factor * np.array([1.0, 2.0, 0.5])
    error = image.std((0, 1)) / SIZE
    assert (np.abs(image.mean((0, 1)) - expected) < 5 * error + 1e-3 * expected).all() and (
        error < 0.02 * expected
    ).all()


def test_mean_of_a_textured_light() -> None:
    """A rectangle that fills the view shows the mean of its texture."""
    data = np.random.default_rng(1).random((4, 4, 3))
    fov = 2 * math.degrees(math.atan(1 / 5))
    for filtered in ("bilinear", "nearest"):
        radiance = {"type": "bitmap", "data": data, "raw": True, "filter_type": filtered}
        image = picture(
            64, sensor=camera(fov=fov), plane={"type": "rectangle", "emitter": {"type": "area", "radiance": radiance}}
        )
        np.testing.assert_allclose(image.mean((0, 1)), data.mean((0, 1)), rtol=3e-3)
    # Row 0 is at v = 0, the lower edge; the camera's x points left, so u grows to the right of the picture.
    np.testing.assert_allclose(image[:4, :4].mean((0, 1)), data[3, 0], rtol=1e-5)


@pytest.mark.parametrize("types", [SINGLE, DOUBLE], ids=["single", "double"])
def test_depth_of_a_sphere(types: Any) -> None:
    image = picture(
        1, types, {"type": "aov", "aovs": "d:depth,p:position,n:sh_normal,g:geo_normal"}, ball={"type": "sphere"}
    )
    depth, p, n = image[..., 0], image[..., 1:4], image[..., 4:7]
    hit = depth > 0
    assert 0.3 < hit.mean() < 0.9
    np.testing.assert_allclose(np.linalg.norm(p[hit], axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(n[hit], p[hit], atol=1e-5)
    np.testing.assert_allclose(image[..., 7:][hit], n[hit])
    # Camera rays start on the near plane.
    reach = np.linalg.norm(p[hit] - [0, 0, 5], axis=1)
    start = 0.01 * reach / (5 - p[hit][:, 2])
    np.testing.assert_allclose(depth[hit], reach - start, rtol=1e-5)
    assert (image[~hit] == 0).all()
    plain = picture(1, types, {"type": "depth"}, ball={"type": "sphere"})
    np.testing.assert_allclose(plain, np.repeat(depth[..., None], 3, 2), rtol=1e-6)


def test_alpha_is_the_share_of_covered_samples() -> None:
    fov = 2 * math.degrees(math.atan(2 / 5))
    image = picture(256, sensor=camera(fov=fov, pixel_format="rgba"), disk={"type": "disk"})
    assert image.shape == (SIZE, SIZE, 4)
    assert abs(image[..., 3].mean() - math.pi / 16) < 2e-3
    assert image[SIZE // 2, SIZE // 2, 3] == 1 and image[0, 0, 3] == 0


@pytest.mark.parametrize(
    ("integrator", "hide", "expected"),
    [
        # Alpha of the sky, of the lamp in front of nothing, and of the lamp in front of a black wall.
        ("path", False, (1, 1, 1)), ("prb", False, (0, 1, 1)), ("direct", False, (0, 1, 1)),
        ("path", True, (0, 0, 1)), ("prb", True, (0, 0, 1)), ("direct", True, (0, 0, 1)),
    ],
)  # fmt: skip
def test_hidden_lights(integrator: str, hide: bool, expected: tuple[int, int, int]) -> None:
    lamp = {"type": "rectangle", "to_world": T().scale([0.9, 0.45, 1]), "emitter": {"type": "area", "radiance": 2.0}}
    wall = {"type": "rectangle", "to_world": T().translate([0.5, 0, -1]).scale([0.5, 1.4, 1])}
    image = picture(
        4, integrator={"type": integrator, "hide_emitters": hide}, sensor=camera(pixel_format="rgba"), lamp=lamp,
        wall=wall | {"bsdf": {"type": "diffuse", "reflectance": 0.0}}, sky={"type": "constant", "radiance": 0.25},
    )  # fmt: skip
    middle = SIZE // 2
    sky, alone, before = image[0, 0], image[middle, 3], image[middle, middle + 3]
    np.testing.assert_allclose([sky[3], alone[3], before[3]], expected)
    np.testing.assert_allclose(sky[:3], 0 if hide else 0.25)
    np.testing.assert_allclose(alone[:3], 0 if hide else 2)
    np.testing.assert_allclose(before[:3], 0 if hide else 2)


@pytest.mark.parametrize("integrator", ["path", "prb"])
def test_depth_zero_is_black_and_depth_one_shows_lights_only(integrator: str) -> None:
    objects = {"floor": {"type": "rectangle"}, "sky": {"type": "constant"}}
    sensor = camera(pixel_format="rgba")
    none = picture(4, integrator={"type": integrator, "max_depth": 0}, sensor=sensor, **objects)
    assert (none == 0).all()
    one = picture(4, integrator={"type": integrator, "max_depth": 1}, sensor=sensor, **objects)
    assert (one[8, 8, :3] == 0).all() and (one[0, 0, :3] == 1).all()


def rays(sensor: dict[str, Any], x: Any, y: Any) -> np.ndarray:
    """Return directions (3, n), scaled to depth 1, in camera space for positions in [0, 1]^2."""
    made = load(sensor | {"to_world": T()})
    ray = made.sample_ray(SINGLE.Float(0.0), vectors(SINGLE.Point2f, [x, y]), SINGLE.Point2f(0.5))
    d = numbers(ray.d, len(x))
    np.testing.assert_allclose(np.linalg.norm(d, axis=0), 1, rtol=1e-6)
    return d / d[2]


@pytest.mark.parametrize(
    ("axis", "expected"),
    [("x", (1, 0.5)), ("y", (2, 1)), ("smaller", (2, 1)), ("larger", (1, 0.5)), ("diagonal", None)],
)
def test_field_of_view(axis: str, expected: tuple[float, float] | None) -> None:
    sensor = camera(fov=90.0, width=20, height=10) | {"fov_axis": axis}
    left, top = rays(sensor, [0.0], [0.0])[:2, 0]
    if expected is None:
        assert math.hypot(left, top) == pytest.approx(1, rel=1e-5)
        assert left == pytest.approx(2 * top, rel=1e-5)
    else:
        assert (left, top) == pytest.approx(expected, rel=1e-5)


def test_focal_length_and_crop_and_principal_point() -> None:
    sensor = camera(width=36, height=24)
    del sensor["fov"]
    left, top = rays(sensor | {"focal_length": "50mm"}, [0.0], [0.0])[:2, 0]
    assert math.hypot(left, top) == pytest.approx(math.hypot(18, 12) / 50, rel=1e-5)
    whole = rays(sensor, [0.25, 0.75], [0.5, 0.5])
    cropped = camera(width=36, height=24, crop_offset_x=9, crop_width=18, crop_offset_y=6, crop_height=12)
    del cropped["fov"]
    np.testing.assert_allclose(rays(cropped, [0.0, 1.0], [0.5, 0.5]), whole, atol=1e-6)
    shifted = rays(sensor | {"principal_point_offset_x": 0.25}, [0.25, 0.75], [0.5, 0.5])
    np.testing.assert_allclose(shifted, rays(sensor, [0.5, 1.0], [0.5, 0.5]), atol=1e-6)


FILTERS = {"box": {}, "tent": {}, "tent-wide": {"radius": 2.3}, "gaussian": {}, "gaussian-narrow": {"stddev": 0.3}}


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("border", [False, True])
def test_filters_keep_constant_pictures(name: str, border: bool) -> None:
    rfilter = {"type": name.split("-")[0], **FILTERS[name]}
    film = {"rfilter": rfilter, "sample_border": border, "width": 12, "height": 7}
    image = picture(2, sensor=camera(**film), sky={"type": "constant", "radiance": rgb(0.3, 0.6, 0.9)})
    assert image.shape == (7, 12, 3)
    np.testing.assert_allclose(image, np.broadcast_to([0.3, 0.6, 0.9], image.shape), rtol=1e-5)


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("margin", [0, 2])
def test_reading_a_block_is_the_adjoint_of_filling_it(name: str, margin: int) -> None:
    """<put(values), image> = <values, read(image)>, also for samples that rounding puts on the far edge."""
    rfilter = load({"type": name.split("-")[0], **FILTERS[name]}, DOUBLE)
    size, count = (6, 5), 400
    rng = np.random.default_rng(4)
    x, y = (rng.random(count) * (n + 2 * margin) - margin for n in size)
    x[:3], y[2:5] = size[0] + margin, size[1] + margin
    values = rng.random((2, count))
    block = Block(DOUBLE, size, 2, rfilter, margin)
    px, py = DOUBLE.Float(x), DOUBLE.Float(y)
    block.put(px, py, [DOUBLE.Float(v) for v in values])
    pixels = block.data.numpy().reshape(-1, 3)
    picture_ = rng.random((len(pixels), 2))
    read = block.read(px, py, DOUBLE.Float(picture_.ravel()))
    right = sum(float(numbers(r, count) @ v) for r, v in zip(read, values, strict=True))
    assert float((pixels[:, :2] * picture_).sum()) == pytest.approx(right, rel=1e-10)
    assert len(pixels) == block.row * block.rows


def test_samples_at_the_far_edge_stay_in_the_picture() -> None:
    """In single precision the last pixel's number plus a number near 1 is the next pixel's."""
    block = Block(SINGLE, (1000, 2), 1, load({"type": "box"}))
    block.put(SINGLE.Float(1000.0), SINGLE.Float(2.0), [SINGLE.Float(5.0)])
    (image,) = block.channels_of_image()
    assert image.numpy()[-1] == 5 and (image.numpy()[:-1] == 0).all()


@pytest.mark.parametrize("pixel_format", ["luminance", "luminance_alpha", "rgb", "rgba", "xyz", "xyza"])
def test_pixel_formats(pixel_format: str) -> None:
    ball = {"type": "sphere", "radius": 9, "emitter": {"type": "area", "radiance": rgb(0.2, 0.4, 0.6)}}
    image = picture(1, sensor=camera((0, 0, 20), pixel_format=pixel_format), ball=ball)
    matrix = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
    xyz = matrix @ [0.2, 0.4, 0.6]
    base = {"l": [xyz[1]], "r": [0.2, 0.4, 0.6], "x": list(xyz)}[pixel_format[0]]
    expected = base + [1.0] * (pixel_format in ("luminance_alpha", "rgba", "xyza"))
    np.testing.assert_allclose(image[8, 8], expected, rtol=1e-5)


def test_the_same_seed_gives_the_same_picture_and_another_seed_another() -> None:
    objects = {"ball": {"type": "sphere"}, "sky": {"type": "constant"}}
    scene = load({"type": "scene", "sensor": camera(), **objects})
    first, again, other = (render(scene, seed=s, spp=2).numpy() for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_single_and_double_precision_agree() -> None:
    objects: dict[str, Any] = {
        "ball": {"type": "sphere", "bsdf": {"type": "roughconductor", "alpha": 0.4}}, "sky": {"type": "constant"},
        "cube": {"type": "cube", "to_world": T().translate([1.5, 0, 0]).scale(0.4)},
        "lamp": {"type": "disk", "to_world": T().translate([0, 2, 0]).rotate([1, 0, 0], 90), "emitter": EMISSION},
    }  # fmt: skip
    single, double = (picture(64, types, **objects) for types in (SINGLE, DOUBLE))
    error = np.hypot(single.std((0, 1)), double.std((0, 1))) / SIZE
    assert (np.abs(single.mean((0, 1)) - double.mean((0, 1))) < 0.1 * error + 0.01).all()


def test_rays_that_leave_an_empty_scene() -> None:
    image = picture(1, sensor=camera(pixel_format="rgba"))
    assert (image == 0).all()
    image = picture(1, sky={"type": "constant", "radiance": 3.0})
    np.testing.assert_allclose(image, 3.0)


def test_moving_a_shape_equals_loading_it_there() -> None:
    kinds: dict[str, dict[str, Any]] = {
        "sphere": {"type": "sphere", "radius": 0.5}, "disk": {"type": "disk"}, "rectangle": {"type": "rectangle"},
    }  # fmt: skip
    there = T().translate([0.4, -0.3, 0.2]).rotate([0, 1, 0], 30).scale(0.6)
    for name, kind in kinds.items():
        lit = {"sensor": camera(), "sky": {"type": "constant"}, "emitter": {"type": "point", "position": [0, 1, 3]}}
        moved = load({"type": "scene", "shape": kind, **lit})
        before = render(moved, spp=2, seed=1).numpy()
        params = traverse(moved)
        radius = T().scale(0.5) if name == "sphere" else T()
        m = (there @ radius).matrix
        params["shape.to_world"] = type(params["shape.to_world"])([[float(v) for v in row] for row in m])
        params.update()
        image = render(moved, spp=2, seed=1).numpy()
        loaded = render(load({"type": "scene", "shape": kind | {"to_world": there}, **lit}), spp=2, seed=1).numpy()
        assert (np.abs(image - loaded) < 1e-3).all(-1).mean() > 0.99
        assert (before != image).any()


def test_mesh_moved_twice_has_the_normals_of_one_loaded_there(tmp_path: Path) -> None:
    vertices = np.array([[-1, -1, 0], [1, -1, 0.3], [1, 1, -0.2], [-1, 1, 0.5], [0, 0, 0.8]], float)
    faces = "f 1 2 5\nf 2 3 5\nf 3 4 5\nf 4 1 5\n"

    def mesh(points: np.ndarray) -> Any:
        path = tmp_path / "mesh.obj"
        path.write_text("".join("v {} {} {}\n".format(*p) for p in points) + faces)
        return load({"type": "scene", "m": {"type": "obj", "filename": str(path)}})

    scene = mesh(vertices)
    params = traverse(scene)
    for stretch in ([1, 1, 2], [1, 2, -1], [0.5, 1, 3]):
        other = traverse(mesh(vertices * stretch))
        # Vertices are in the order in which faces name them.
        params["m.vertex_positions"] = SINGLE.Float(other["m.vertex_positions"].numpy())
        params.update()
        found, wanted = params["m.vertex_normals"].numpy(), other["m.vertex_normals"].numpy()
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    normals = np.tile([0, 0, 1], 5).astype(np.float32)
    params["m.vertex_positions"] = SINGLE.Float(vertices.astype(np.float32).ravel())
    params["m.vertex_normals"] = SINGLE.Float(normals)
    params.update()
    np.testing.assert_array_equal(params["m.vertex_normals"].numpy(), normals)


def test_sensor_may_not_scale() -> None:
    with pytest.raises(SceneError, match="scale"):
        load(camera() | {"to_world": T().scale(2.0)})


def test_rays_start_off_surfaces() -> None:
    scene = load({"type": "scene", "ball": {"type": "sphere", "center": [100, 0, 0], "radius": 3.0}})
    d = numbers(uniform(SINGLE, 2, 1000), 1000) - 0.5
    d = np.stack([np.full(1000, 40.0), d[0], d[1]])
    d /= np.linalg.norm(d, axis=0)
    si = scene.ray_intersect(Ray(SINGLE.Point3f(0, 0, 0), vectors(SINGLE.Vector3f, d), SINGLE.Float(float("inf"))))
    assert si.valid.numpy().all()
    away = si.spawn_ray(SINGLE.Vector3f(si.n))
    assert not scene.ray_test(away).numpy().any()
    assert scene.ray_test(si.spawn_ray(-SINGLE.Vector3f(si.n))).numpy().all()
