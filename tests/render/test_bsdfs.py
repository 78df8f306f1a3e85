"""Every registered material: samples follow the density, weights are value / density, energy, reciprocity, sides,
derivatives."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from bsdf_table import configurations
from chi2 import angles, assert_follows, directions, sphere
from lanes import DOUBLE, SINGLE, bsdf, numbers, surface, uniform, vectors

from luxgrad.ad import api
from luxgrad.jit.arrays import reduce
from luxgrad.render.interfaces.bsdf import BSDFContext, BSDFFlags
from luxgrad.render.interfaces.object import ParamFlags
from luxgrad.render.traverse import traverse

pytestmark = [pytest.mark.cpu, pytest.mark.statistical]

TABLE = configurations()
CTX = BSDFContext()
GRID = sphere()
LANES = 100_000
# Polar angle and azimuth of the directions that light is looked at from.
SEEN_FROM = [(12.0, 30.0), (50.0, -100.0), (82.0, 170.0)]


def direction(theta: float, phi: float) -> np.ndarray:
    """Return the unit vector (3, 1) of angles in degrees."""
    t, p = math.radians(theta), math.radians(phi)
    return np.array([[math.sin(t) * math.cos(p)], [math.sin(t) * math.sin(p)], [math.cos(t)]])


def sides(material: Any) -> list[np.ndarray]:
    """Return directions on every side that the material serves."""
    front = [direction(*a) for a in SEEN_FROM]
    return front + [v * [[1], [1], [-1]] for v in front[1:2]] if material.flags() & BSDFFlags.BackSide else front


def has_smooth(name: str) -> bool:
    return bool(make(name).flags() & BSDFFlags.Smooth)


@functools.cache
def make(name: str) -> Any:
    return bsdf(TABLE[name])


SMOOTH = [name for name in TABLE if has_smooth(name)]
DELTA = [name for name in TABLE if make(name).flags() & BSDFFlags.Delta]
TESTS = 4 * len(SMOOTH)


def draw(material: Any, wi: np.ndarray, lanes: int = LANES, seed: int = 1) -> dict[str, np.ndarray]:
    """Return samples: directions (3, n), densities, weights (3, n), lobes."""
    si = surface(SINGLE, wi)
    bs, weight = material.sample(CTX, si, uniform(SINGLE, 1, lanes, seed), uniform(SINGLE, 2, lanes, seed + 1))
    return {
        "wo": numbers(bs.wo, lanes), "pdf": numbers(bs.pdf, lanes), "weight": numbers(weight, lanes),
        "type": numbers(bs.sampled_type, lanes).astype(int), "eta": numbers(bs.eta, lanes),
    }  # fmt: skip


def evaluate(material: Any, wi: np.ndarray, wo: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return values (3, n) and densities (n)."""
    value, pdf = material.eval_pdf(CTX, surface(SINGLE, wi), vectors(SINGLE.Vector3f, wo))
    lanes = max(wi.shape[1], wo.shape[1])
    return numbers(value, lanes), numbers(pdf, lanes)


@pytest.mark.parametrize("name", SMOOTH)
def test_samples_follow_the_density(name: str) -> None:
    material = make(name)
    wo, sine = directions(GRID)
    for wi in sides(material):
        samples = draw(material, wi)
        # Of a mixture with delta lobes only the smooth part has a density.
        smooth = (samples["pdf"] > 0) & (samples["type"] & int(BSDFFlags.Smooth) != 0)
        theta, phi = angles(np.where(smooth, samples["wo"], np.nan))
        _, pdf = evaluate(material, wi, wo)
        assert (pdf >= 0).all() and np.isfinite(pdf).all()
        assert_follows(GRID, (theta, phi), pdf * sine, TESTS)


@pytest.mark.parametrize("name", SMOOTH)
def test_weights_are_value_over_density(name: str) -> None:
    material = make(name)
    for wi in sides(material):
        samples = draw(material, wi, 20_000)
        smooth = (samples["pdf"] > 1e-3) & (samples["type"] & int(BSDFFlags.Smooth) != 0)
        assert smooth.any()
        value, pdf = evaluate(material, wi, samples["wo"])
        # Half vectors are computed on two ways: a narrow peak multiplies their rounding.
        np.testing.assert_allclose(samples["pdf"][smooth], pdf[smooth], rtol=5e-3)
        expected = value[:, smooth] / pdf[smooth]
        np.testing.assert_allclose(samples["weight"][:, smooth], expected, rtol=5e-3, atol=1e-5)
        assert np.isfinite(samples["weight"]).all()
        assert (samples["weight"][:, samples["pdf"] <= 0] == 0).all()


@pytest.mark.parametrize("name", SMOOTH)
def test_densities_integrate_to_one_at_most_and_energy_is_kept(name: str) -> None:
    material = make(name)
    wo, sine = directions(GRID)
    area = GRID.points()[2]
    for wi in sides(material):
        value, pdf = evaluate(material, wi, wo)
        assert (pdf * sine).sum() * area < 1.005
        assert ((value * sine).sum(1) * area < 1.005).all()
        assert (value >= 0).all()


@pytest.mark.parametrize("name", SMOOTH)
def test_reflection_is_reciprocal(name: str) -> None:
    material = make(name)
    if material.flags() & BSDFFlags.Transmission or name.startswith(("bumpmap", "normalmap")):
        pytest.skip("transmission scales by the index of refraction; shifted shading normals are not reciprocal")
    rng = np.random.default_rng(5)
    a, b = (np.stack([np.cos(p) * s, np.sin(p) * s, z]) for p, z, s in (_hemisphere(rng, 500) for _ in range(2)))
    there, _ = evaluate(material, a, b)
    back, _ = evaluate(material, b, a)
    np.testing.assert_allclose(there / b[2], back / a[2], rtol=2e-3, atol=1e-5)
    assert there.max() > 0


def _hemisphere(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    z = rng.uniform(0.05, 1, count)
    return rng.uniform(0, 2 * math.pi, count), z, np.sqrt(1 - z * z)


@pytest.mark.parametrize("name", TABLE)
def test_sides_that_are_not_served_are_black(name: str) -> None:
    material = make(name)
    flags = material.flags()
    below = direction(40.0, 10.0) * [[1], [1], [-1]]
    if not flags & BSDFFlags.BackSide:
        samples = draw(material, below, 1000)
        assert (samples["weight"] == 0).all()
        value, pdf = evaluate(material, below, directions(sphere((8, 8), 2))[0])
        assert (value == 0).all() and (pdf == 0).all()
    if not flags & BSDFFlags.Transmission:
        value, pdf = evaluate(material, -below, below)
        assert (value == 0).all() and (pdf == 0).all()


@pytest.mark.parametrize("name", DELTA)
def test_delta_lobes_have_no_value_and_keep_energy(name: str) -> None:
    material = make(name)
    for wi in sides(material):
        samples = draw(material, wi, 20_000)
        delta = samples["type"] & int(BSDFFlags.Delta) != 0
        assert delta.any()
        if not material.flags() & BSDFFlags.Smooth:
            value, pdf = evaluate(material, wi, samples["wo"])
            assert (value == 0).all() and (pdf == 0).all()
        # Refraction squeezes radiance by the square of the index: energy is counted without.
        energy = samples["weight"] * samples["eta"] ** 2
        assert (energy[:, delta].mean(1) < 1 + 1e-3).all()
        np.testing.assert_allclose(np.linalg.norm(samples["wo"][:, delta], axis=0), 1, rtol=1e-5)


def test_mirror_reflects_everything() -> None:
    samples = draw(make("conductor"), direction(50.0, 20.0), 16)
    np.testing.assert_allclose(samples["wo"], np.repeat(direction(50.0, 200.0), 16, 1), atol=1e-6)
    np.testing.assert_allclose(samples["weight"], 1, rtol=1e-6)


@pytest.mark.parametrize(("name", "ratio"), [("dielectric", 1.5046 / 1.000277), ("dielectric-inverse", 1 / 1.5)])
@pytest.mark.parametrize("theta", [0.0, 30.0, 60.0, 120.0, 170.0])
def test_glass_obeys_fresnel_and_snell(name: str, ratio: float, theta: float) -> None:
    eta = ratio if theta < 90 else 1 / ratio
    samples = draw(make(name), direction(theta, 0.0), 50_000)
    cos_i, sin_i = abs(math.cos(math.radians(theta))), abs(math.sin(math.radians(theta)))
    sin_t = sin_i / eta
    refracted = samples["type"] & int(BSDFFlags.DeltaTransmission) != 0
    if sin_t >= 1:
        assert not refracted.any()
        return
    cos_t = math.sqrt(1 - sin_t**2)
    s = (cos_i - eta * cos_t) / (cos_i + eta * cos_t)
    p = (cos_t - eta * cos_i) / (cos_t + eta * cos_i)
    reflectance = (s * s + p * p) / 2
    assert abs((~refracted).mean() - reflectance) < 4 * math.sqrt(reflectance / 50_000)
    np.testing.assert_allclose(samples["pdf"][~refracted], reflectance, rtol=1e-4)
    wo = samples["wo"][:, refracted]
    np.testing.assert_allclose(np.hypot(wo[0], wo[1]), sin_t, atol=1e-5)
    assert (np.sign(wo[2]) == (-1 if theta < 90 else 1)).all()
    np.testing.assert_allclose(samples["weight"][:, refracted], 1 / eta**2, rtol=1e-5)
    np.testing.assert_allclose(samples["eta"][refracted], eta, rtol=1e-6)


def test_twosided_is_the_same_from_both_sides() -> None:
    flip = np.array([[1.0], [1.0], [-1.0]])
    wi, wo = direction(30.0, 20.0), directions(sphere((8, 8), 2))[0]
    for name in ("twosided-one", "twosided-one-rough"):
        front, back = evaluate(make(name), wi, wo), evaluate(make(name), wi * flip, wo * flip)
        np.testing.assert_array_equal(front[0], back[0])
        np.testing.assert_array_equal(front[1], back[1])
    value, _ = evaluate(make("twosided-two"), wi * flip, direction(10.0, 0.0) * flip)
    rough, _ = evaluate(bsdf({"type": "roughconductor", "alpha": 0.3}), wi, direction(10.0, 0.0))
    np.testing.assert_allclose(value, rough, rtol=1e-5)


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_are_those_of_central_differences(name: str) -> None:
    material = bsdf(TABLE[name], DOUBLE)
    params = traverse(material)
    rng = np.random.default_rng(8)
    wi, wo = (np.stack([np.cos(p) * s, np.sin(p) * s, z]) for p, z, s in (_hemisphere(rng, 40) for _ in range(2)))
    si, out = surface(DOUBLE, wi), vectors(DOUBLE.Vector3f, wo)
    weights = DOUBLE.Color3f(*(DOUBLE.Float(w) for w in rng.random((3, 40))))

    def loss() -> Any:
        value = material.eval(CTX, si, out) * weights
        return reduce.sum(value.x + value.y + value.z)

    wanted = [k for k, v in params.items() if not params.flags(k) & ParamFlags.NonDifferentiable and v.dtype.is_float]
    assert wanted
    for key in wanted:
        start = numbers(params[key], 1).ravel()
        step = np.linspace(1.0, 2.0, len(start)) * 1e-5
        sides_ = []
        for sign in (1, -1):
            params[key] = type(params[key])(*[float(v) for v in start + sign * step])
            params.update()
            sides_.append(float(loss().numpy().item()))
        params[key] = type(params[key])(*[float(v) for v in start])
        params.update()
        api.enable_grad(params[key])
        params.update()
        api.backward(loss())
        gradient = numbers(api.grad(params[key]), 1).ravel()
        api.disable_grad(params[key])
        params.update()
        expected = (sides_[0] - sides_[1]) / 2
        np.testing.assert_allclose(gradient @ step, expected, rtol=1e-5, atol=1e-12, err_msg=key)
