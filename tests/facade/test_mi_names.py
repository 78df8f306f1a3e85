"""The names of `luxgrad.mi`: variants, types, transforms, records, laziness."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import luxgrad.ad.api as ad
import luxgrad.mi as mi
from luxgrad.jit.arrays import reduce


@pytest.fixture(autouse=True)
def variant() -> None:
    mi.set_variant("llvm_ad_rgb")


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class TestVariants:
    def test_without_a_variant_names_say_what_to_do(self) -> None:
        code = "import luxgrad.mi as mi\nfor f in (lambda: mi.Float, lambda: mi.ScalarFloat, lambda: mi.load_dict({})):"
        code += "\n    try: f()\n    except ImportError as e: print('set_variant' in str(e))\nprint(mi.variant())"
        assert run(code).split() == ["True", "True", "True", "None"]

    def test_the_first_available_of_several_is_taken(self) -> None:
        mi.set_variant("cuda_ad_spectral", "llvm_ad_rgb_double", "llvm_ad_rgb")
        assert mi.variant() == "llvm_ad_rgb_double"
        assert mi.Float(1.0).numpy().dtype == np.float64

    def test_unknown_variants_are_refused_with_the_known_ones(self) -> None:
        with pytest.raises(ImportError, match="available are .*llvm_ad_rgb"):
            mi.set_variant("gpu_magic")
        assert mi.variant() == "llvm_ad_rgb"

    def test_a_context_holds_for_its_block_and_thread_only(self) -> None:
        seen: list[Any] = []
        with mi.variant_context("scalar_rgb"):
            assert mi.variant() == "scalar_rgb" and mi.Float(2) + 1 == 3
            thread = threading.Thread(target=lambda: seen.append(mi.variant()))
            thread.start()
            thread.join()
        assert seen == ["llvm_ad_rgb"] and mi.variant() == "llvm_ad_rgb"

    def test_a_thread_sees_the_variant_set_before_it_started(self) -> None:
        seen: list[Any] = []
        thread = threading.Thread(target=lambda: seen.append(mi.Float))
        thread.start()
        thread.join()
        assert seen == [mi.Float]


class TestNames:
    def test_importing_loads_neither_numpy_nor_the_renderer(self) -> None:
        code = "import sys, luxgrad.mi; print([m for m in ('numpy', 'luxgrad.render') if m in sys.modules])"
        assert run(code) == "[]"

    @pytest.mark.parametrize("name", mi.__all__)
    def test_every_listed_name_exists(self, name: str) -> None:
        assert getattr(mi, name) is not None
        assert name in dir(mi)

    def test_other_names_do_not(self) -> None:
        with pytest.raises(AttributeError, match="NoSuchThing"):
            mi.NoSuchThing  # noqa: B018

    def test_types_are_those_of_the_scene_loaders(self) -> None:
        from luxgrad.render.variants import types

        assert mi.Color3f is types("llvm_ad_rgb").Color3f
        assert mi.Ray3f is mi.Ray3f

    def test_scalar_types_hold_single_values(self) -> None:
        p = mi.ScalarPoint3f(1, 2, 3)
        assert p[2] == 3 and np.array(p).shape == (3,)
        assert mi.ScalarFloat(2) == 2.0 and mi.ScalarUInt32(3) == 3

    def test_optimisers_are_ours(self) -> None:
        from luxgrad.optim.adam import Adam

        assert mi.ad.Adam is Adam
        with pytest.raises(AttributeError, match="Adamm"):
            mi.ad.Adamm  # noqa: B018

    def test_log_levels(self) -> None:
        mi.set_log_level(mi.LogLevel.Error)
        assert mi.log_level() == mi.LogLevel.Error
        mi.set_log_level(mi.LogLevel.Warn)


def chain(t: Any, angle: Any) -> Any:
    return t.translate([1, 2, 3]).rotate([1, 1, 0], angle).scale([2, 1, 0.5]).look_at([0, 0, 4], [1, 0, 0], [0, 1, 0])


class TestTransforms:
    def test_the_chain_equals_that_of_the_scalar_class(self) -> None:
        expected = chain(mi.ScalarTransform4f(), 30.0)
        found = chain(mi.Transform4f(), 30.0)
        assert np.allclose(np.array(found.matrix)[..., 0], expected.matrix, atol=1e-6)
        p = [0.3, -0.2, 0.7]
        moved = {mi.Point3f: "transform_point", mi.Vector3f: "transform_vector", mi.Normal3f: "transform_normal"}
        for kind, method in moved.items():
            result = found @ kind(p)
            assert type(result) is kind
            assert np.allclose(np.array(result)[:, 0], getattr(expected, method)(p), atol=1e-5)

    def test_perspective_divides_points(self) -> None:
        p = [0.3, -0.2, 2.0]
        expected = mi.ScalarTransform4f().perspective(40, 0.1, 10)
        for found in (mi.Transform4f().perspective(40, 0.1, 10), mi.Transform4f(expected)):
            assert np.allclose(np.array(found @ mi.Point3f(p))[:, 0], expected @ p, atol=1e-5)
        back = (mi.Transform4f(expected).inverse() @ (mi.Transform4f(expected) @ mi.Point3f(p))).numpy()[:, 0]
        assert np.allclose(back, p, atol=1e-4)

    def test_gradients_reach_the_angle_and_the_offset(self) -> None:
        offset = mi.Point2f(0.5, 0.25)
        angle = mi.Float(0.0)
        ad.enable_grad(angle, offset)
        t = mi.Transform4f().translate([offset.x, offset.y, 0.0]).rotate([0, 0, 1], angle * 100)
        p = t @ mi.Point3f([1, 2], 0, 0)
        ad.backward(reduce.sum(p.y))
        assert float(angle.grad) == pytest.approx(3 * np.radians(100), rel=1e-5)
        assert float(offset.y.grad) == 2 and float(offset.x.grad) == 0

    def test_rays_and_numpy_points(self) -> None:
        t = mi.Transform4f().translate([1, 0, 0])
        ray = t @ mi.Ray3f([0, 0, 0], [0, 0, 1])
        assert np.allclose(np.array(ray.o)[:, 0], [1, 0, 0]) and np.allclose(np.array(ray.d)[:, 0], [0, 0, 1])
        assert np.allclose(np.array(t @ np.zeros((3, 5)))[0], 1)

    def test_the_plane(self) -> None:
        p = mi.Transform3f().translate([1, 0]).rotate(90.0).scale(2) @ mi.Point2f(1, 0)
        assert np.allclose(np.array(p)[:, 0], [1, 2], atol=1e-6)
        assert np.allclose(np.array(mi.Transform4f().translate([1, 2, 3]).extract().matrix)[:, 2, 0], [1, 2, 1])

    def test_matrices_of_several_lanes_keep_their_rows(self) -> None:
        a = np.arange(32, dtype=np.float32).reshape(4, 4, 2)
        assert np.array_equal(np.array(mi.Transform4f(a).matrix), a)

    def test_wrong_component_counts(self) -> None:
        with pytest.raises(ValueError, match="translate: expected 3"):
            mi.Transform4f().translate([1, 2])


class TestRecords:
    def test_rays(self) -> None:
        ray = mi.Ray3f(mi.Point3f(1, 2, 3), mi.Vector3f(0, 0, 1))
        assert float(ray.maxt) == np.inf
        assert np.allclose(np.array(ray(mi.Float(2)))[:, 0], [1, 2, 5])
        assert np.allclose(np.array(mi.Ray3f(ray).o)[:, 0], [1, 2, 3])

    def test_frames_are_orthonormal(self) -> None:
        n = np.array([1, 2, -2]) / 3
        frame = mi.Frame3f(mi.Normal3f(n))
        rows = np.stack([np.array(v)[:, 0] for v in (frame.s, frame.t, frame.n)])
        assert np.allclose(rows @ rows.T, np.eye(3), atol=1e-6) and np.allclose(rows[2], n)
        v = mi.Vector3f(0.2, 0.3, 0.4)
        assert np.allclose(np.array(frame.to_world(frame.to_local(v)))[:, 0], [0.2, 0.3, 0.4], atol=1e-6)

    @pytest.mark.parametrize("name", ["Ray3f", "SurfaceInteraction3f", "DirectionSample3f", "BSDFSample3f", "Frame3f"])
    def test_zeros_of_any_width(self, name: str) -> None:
        from luxgrad.jit.arrays import create, tree

        made = create.zeros(getattr(mi, name), 5)
        assert {len(x) for x in tree.arrays(made)} == {5}
        assert isinstance(made, getattr(mi, name))

    def test_unknown_fields(self) -> None:
        sample = mi.BSDFSample3f(pdf=mi.Float(2))
        assert float(sample.pdf) == 2 and float(sample.eta) == 0
        with pytest.raises(TypeError, match="unknown fields px"):
            mi.BSDFSample3f(px=1)


def test_warps_return_types_of_the_variant() -> None:
    rng = np.random.default_rng(0).random((2, 1000)).astype(np.float32)
    d = mi.warp.square_to_uniform_sphere(mi.Point2f(rng))
    assert type(d) is mi.Vector3f
    assert np.allclose(np.linalg.norm(np.array(d), axis=0), 1, atol=1e-5)
    density = mi.warp.square_to_uniform_sphere_pdf(mi.Vector3f(0, 0, 1))
    assert float(density) == pytest.approx(1 / (4 * np.pi))
    assert np.array(mi.warp.square_to_cosine_hemisphere(mi.Point2f(rng)))[2].min() >= 0
    tent = mi.warp.square_to_tent(mi.Point2f(rng))
    assert type(tent) is mi.Point2f and np.abs(np.array(tent)).max() < 1 and np.array(tent).std() < 0.45
