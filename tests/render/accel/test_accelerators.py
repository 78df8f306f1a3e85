"""Both accelerators against brute force in double precision, through their run-time interface."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from luxgrad.jit.errors import SceneError
from luxgrad.render.accel import query, select
from luxgrad.render.accel.bvh import BvhAccelerator
from luxgrad.render.accel.embree import EmbreeAccelerator, available
from luxgrad.render.accel.geometry import Disk, Geometry, Sphere, Triangles
from luxgrad.render.accel.interface import Accelerator
from luxgrad.render.accel.select import KINDS, build

_spec = importlib.util.spec_from_file_location("accel_reference", Path(__file__).parent / "reference.py")
assert _spec and _spec.loader
ref = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(ref)

CASES = [(kind, width) for kind in KINDS if kind != "auto" for width in (16, 8, 1)]
pytestmark = pytest.mark.cpu


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}{case[1]}")
def case(request: pytest.FixtureRequest) -> tuple[str, int]:
    kind, width = request.param
    if kind == "embree" and not available():
        pytest.skip("the embreex wheel is not installed")
    return kind, width


def make(case: tuple[str, int], geometry: Sequence[Geometry]) -> Accelerator:
    return build(geometry, case[0], case[1])


def mixed() -> list[Geometry]:
    tilt = np.array([[0.4, 0.1, 0, 0.3], [0, 0.3, 0.2, -0.4], [0.1, 0, 0.5, 0.2], [0, 0, 0, 1.0]])
    return [ref.soup(60, 1), Sphere([0.2, 0.3, -0.1], 0.4), Disk(tilt), Triangles([], []), Sphere([-0.5, 0, 0], 0.25)]


SCENES = {
    "soup": lambda: [ref.soup(250, 3)],
    "cornell": ref.cornell,
    "closed": lambda: [ref.icosphere(2, 0.05)],
    "shapes": lambda: [Sphere([0, 0, 0], 0.5), Disk(np.eye(4)), Sphere([0.6, 0.6, 0.1], 0.3)],
    "mixed": mixed,
}


@functools.cache
def expected(scene: str, tnear: float, tfar: float) -> tuple[list[Geometry], tuple[np.ndarray, ...]]:
    geometry = SCENES[scene]()
    return geometry, ref.brute_force(geometry, *ref.random_rays(2000, 5), tnear, tfar)


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("coherent", [False, True])
def test_nearest_hits_equal_brute_force(case: tuple[str, int], scene: str, coherent: bool) -> None:
    o, d = ref.random_rays(2000, 5)
    for tnear, tfar in ((0.0, np.inf), (0.4, 1.1)):
        geometry, (t, prim, geom) = expected(scene, tnear, tfar)
        with make(case, geometry) as accelerator:
            hits = query.closest(accelerator, o, d, tnear, tfar, coherent=coherent)
            shadow = query.occluded(accelerator, o, d, tnear, tfar, coherent=coherent)
        # A ray within rounding of an edge or of the ends of its interval may go either way.
        wrong = (hits.geom != geom) | (hits.prim != prim)
        assert wrong.mean() <= 1e-3
        both = ~wrong & (geom >= 0)
        assert both.mean() > 0.1
        np.testing.assert_allclose(hits.t[both], t[both], rtol=2e-5, atol=2e-6)
        assert ((geom >= 0) != shadow).mean() <= 1e-3


def test_barycentrics_give_the_point(case: tuple[str, int]) -> None:
    mesh = ref.soup(200, 8)
    o, d = ref.random_rays(1000, 2)
    with make(case, [mesh]) as accelerator:
        hits = query.closest(accelerator, o, d)
    hit = hits.geom == 0
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces[hits.prim[hit]]].astype(float), 1, 0)
    u, v = hits.u[hit, None], hits.v[hit, None]
    point = o[hit] + hits.t[hit, None].astype(float) * d[hit]
    np.testing.assert_allclose(a * (1 - u - v) + b * u + c * v, point, atol=2e-5)


def test_inactive_rays_are_neither_read_nor_written(case: tuple[str, int]) -> None:
    geometry = [ref.icosphere(2), Sphere([3, 0, 0], 0.5), Disk(np.eye(4))]
    o, d = ref.random_rays(256, 4, 0.5)
    active = np.arange(256) % 3 == 0
    o[~active], d[~active] = np.nan, np.nan
    tfar = np.where(active, np.float32(np.inf), np.float32(7.25))
    with make(case, geometry) as accelerator:
        for coherent in (False, True):
            batch = query.Batch(accelerator, o, d, 0.0, tfar, active, coherent=coherent)
            batch.run()
            t, _, _, _, geom = batch.outputs[:, :256]
            assert (t[~active] == 7.25).all() and (geom.view(np.uint32)[~active] == 0xFFFFFFFF).all()
            assert np.isfinite(t[active]).all() and (geom.view(np.uint32)[active] != 0xFFFFFFFF).all()
            shadow = query.Batch(accelerator, o, d, 0.0, tfar, active, coherent=coherent, occluded=True)
            shadow.run()
            tfar_after = shadow.outputs[0, :256]
            assert (tfar_after[~active] == 7.25).all() and np.isneginf(tfar_after[active]).all()


def test_axis_parallel_rays_hit(case: tuple[str, int]) -> None:
    directions = np.repeat(np.concatenate([np.eye(3), -np.eye(3)]), 50, axis=0).astype(np.float32)
    directions[::7] *= -0.0 + 1  # keeps zeros of both signs in the other components
    rng = np.random.default_rng(0)
    o = rng.uniform(-0.09, 0.09, (300, 3)).astype(np.float32)
    o[::5] = 0.0  # through the middle of every face: along an edge, from box planes
    with make(case, [*ref.cornell()[:1], Sphere([0, 0, 0], 10.0)]) as accelerator:
        for sign in (1, -1):
            d = np.where(directions == 0, np.float32(0) * sign, directions)
            hits = query.closest(accelerator, o, d)
            assert (hits.geom == 0).all()
            expected = (1 - (o * d).sum(1)) / 1.0
            np.testing.assert_allclose(hits.t, expected, rtol=1e-6)
            assert query.occluded(accelerator, o, d).all()


def test_odd_geometry_builds_and_is_not_hit(case: tuple[str, int]) -> None:
    odd_corners = [[np.nan, 0, 0], [np.inf, 0, 0], [2, 0, 0], [-1e30, 0, 5]]
    v = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], *odd_corners], np.float32)
    bad = [[0, 1, 3], [0, 4, 2], [0, 1, 5], [1, 1, 1], [0, 0, 2], [0, 1, 4], [3, 3, 3]]
    odd: list[Geometry] = [
        Triangles(v, bad), Sphere([0, 0, 0], 0.0), Sphere([0, 0, 0], -1), Sphere([np.nan, 0, 0], 1), Triangles(v, []),
        Disk(np.zeros((4, 4))), Disk(np.full((4, 4), np.nan)),
    ]  # fmt: skip
    o, d = ref.random_rays(500, 6)
    o[:100] = v[[0, 1, 2, 5] * 25] - d[:100]
    for geometry in ([], [Triangles([], [])], odd):
        with make(case, geometry) as accelerator:
            assert (query.closest(accelerator, o, d).geom == -1).all()
            assert not query.occluded(accelerator, o, d).any()
            assert not (accelerator.bounds[0] < accelerator.bounds[1]).all()
    with make(case, [*odd, ref.icosphere(1)]) as accelerator:
        inside = np.zeros((500, 3), np.float32)
        assert (query.closest(accelerator, inside, d).geom == len(odd)).all()


def test_rays_without_direction_or_length_miss(case: tuple[str, int]) -> None:
    o = np.zeros((64, 3), np.float32)
    d = np.zeros((64, 3), np.float32)
    d[32:, 0] = np.nan
    with make(case, [ref.icosphere(2), Sphere([0, 0, 0], 2.0), Disk(np.eye(4) * 3)]) as accelerator:
        assert (query.closest(accelerator, o, d).geom == -1).all()
        assert not query.occluded(accelerator, o, d).any()
        ray = np.array([[0.1, 0.2, -1]], np.float32)
        assert (query.closest(accelerator, o, np.repeat(ray, 64, 0), 1.0, 0.5).geom == -1).all()
        assert not query.occluded(accelerator, o, np.repeat(ray, 64, 0), 1.0, 0.5).any()


def test_closed_meshes_let_no_ray_out(case: tuple[str, int]) -> None:
    count = 100_000 if case[1] == 16 else 10_000
    rng = np.random.default_rng(11)
    for mesh in (ref.icosphere(3, 0.05), ref.icosphere(1), ref.box((-1, -1, -1), (1, 1, 1))):
        # Stretched and moved away from the origin, so that coordinates round; thin triangles too.
        mesh = Triangles(mesh.vertices * np.float32([1, 0.013, 3]) + np.float32([5, -3, 0.7]), mesh.faces)
        corners = mesh.vertices[mesh.faces[rng.integers(len(mesh.faces), size=count // 3)]]
        weights = rng.uniform(0, 1, (len(corners), 1))
        kind = rng.integers(3, size=len(corners))[:, None]
        edge = corners[:, 0] * weights + corners[:, 1] * (1 - weights)
        target = np.where(kind == 0, corners[:, 0], np.where(kind == 1, edge, (corners[:, 0] + corners[:, 1]) / 2))
        centre = np.float32([5, -3, 0.7])
        o = (centre + rng.uniform(-0.003, 0.003, target.shape)).astype(np.float32)
        d = (target - o).astype(np.float32)
        with make(case, [mesh]) as accelerator:
            # Embree's robust mode lets about one ray in ten thousand pass that is aimed exactly at a vertex.
            allowed = 3e-4 * len(o) if case[0] == "embree" else 0
            assert (query.closest(accelerator, o, d).geom != 0).sum() <= allowed
            assert (~query.occluded(accelerator, o, d, coherent=True)).sum() <= allowed


def test_update_moves_geometry(case: tuple[str, int]) -> None:
    mesh = ref.icosphere(2)
    geometry: list[Geometry] = [mesh, Sphere([5, 0, 0], 0.5), Disk(np.eye(4)), Triangles([], [])]
    o, d = ref.random_rays(1000, 9)
    with make(case, geometry) as accelerator:
        scene = accelerator.scene
        query.closest(accelerator, o, d)
        geometry[0] = Triangles(mesh.vertices * np.float32(0.4) + np.float32([0.5, 0, 0]), mesh.faces)
        geometry[1] = Sphere([-0.5, 0, 0], 0.3)
        accelerator.update(0, geometry[0].vertices)  # type: ignore[union-attr]
        accelerator.update(1, geometry[1])
        accelerator.update(3, np.zeros((0, 3), np.float32))
        assert accelerator.scene == scene
        hits = query.closest(accelerator, o, d)
        _, prim, geom = ref.brute_force(geometry, o, d)
        assert ((hits.geom != geom) | (hits.prim != prim)).mean() <= 1e-3 and (geom == 0).any() and (geom == 1).any()
        with pytest.raises(SceneError, match="162 vertices, but the update brings 3"):
            accelerator.update(0, np.zeros((3, 3), np.float32))
        with pytest.raises(SceneError, match="geometry 2 is a Disk"):
            accelerator.update(2, Sphere([0, 0, 0], 1))
        with pytest.raises(SceneError, match="there are the geometries 0 to 3"):
            accelerator.update(4, np.zeros((3, 3), np.float32))


def test_wrong_requests_are_refused() -> None:
    with pytest.raises(ValueError, match="accelerator 'kdtree' was asked for; known are auto"):
        build([], "kdtree")
    with pytest.raises(ValueError, match="packets of 4 rays"):
        build([], KINDS[-1], 4)
    with pytest.raises(SceneError, match=r"face 1 of a triangle mesh names the vertices \[0, 1, 3\]"):
        Triangles(np.zeros((3, 3)), [[0, 1, 2], [0, 1, 3]])
    with pytest.raises(SceneError, match=r"\(V, 3\) and faces \(F, 3\), got \(4, 2\)"):
        Triangles(np.zeros((4, 2)), [[0, 1, 2]])
    with pytest.raises(SceneError, match="transform of a disk"):
        Disk(np.eye(3))


def test_small_scenes_take_our_own_tree_and_large_ones_embree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "OWN_UP_TO", 40)
    monkeypatch.setattr(select, "available", lambda: False)
    assert isinstance(build([ref.soup(41, 0)]), BvhAccelerator)
    monkeypatch.setattr(select, "available", available)
    assert isinstance(build([ref.soup(38, 0), Sphere([0, 0, 0], 1), Disk(np.eye(4))]), BvhAccelerator)
    if available():
        assert isinstance(build([ref.soup(39, 0), Sphere([0, 0, 0], 1), Disk(np.eye(4))]), EmbreeAccelerator)


def test_spheres_keep_their_digits(case: tuple[str, int]) -> None:
    """Rays that start on a large sphere do not find it again, and a far small one is still met where it is."""
    rng = np.random.default_rng(1)
    n = rng.standard_normal((400, 3))
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    with make(case, [Sphere([0, 0, 0], 1e4)]) as accelerator:
        outside = (n * 1e4 * (1 + 3e-7)).astype(np.float32)
        assert not query.occluded(accelerator, outside, n, 1e-3).any()
        inside = query.closest(accelerator, (n * 1e4 * (1 - 3e-7)).astype(np.float32), -n, 0.0)
        np.testing.assert_allclose(inside.t, 2e4, rtol=1e-6)
    with make(case, [Sphere([0, 0, 0], 1e-2)]) as accelerator:
        o = (n * 1e4).astype(np.float32)
        hits = query.closest(accelerator, o, -o)
        point = o.astype(float) * (1 - hits.t[:, None].astype(float))
        assert (hits.geom == 0).mean() > 0.95  # origins round by up to 5e-4, so the line may miss
        assert (np.linalg.norm(point[hits.geom == 0], axis=1) < 0.02).all()


def test_closing_twice_is_allowed(case: tuple[str, int]) -> None:
    accelerator = make(case, ref.cornell())
    accelerator.close()
    accelerator.close()
