"""Whole steps of a fit as frozen functions: the same pictures, losses and parameters as without."""

from __future__ import annotations

import numpy as np
import pytest

import luxgrad as dr
from luxgrad import mi
from luxgrad.jit.errors import FreezeError


def scene(integrator, **more):
    mi.set_variant("llvm_ad_rgb")
    described = {**mi.cornell_box(), "integrator": integrator, **more}
    described["sensor"]["film"].update(width=16, height=16, rfilter={"type": "box"})
    return mi.load_dict(described)


def steps(loaded, endings, frozen, count=5, optimiser=None):
    """Return losses, pictures and values of a few steps, and the function that took them."""
    params = mi.traverse(loaded)
    target = mi.render(loaded, spp=8, seed=77) * 0.8
    dr.eval(target)
    opt = optimiser or dr.opt.Adam(lr=0.05)
    for name in params.keys():
        if any(name.endswith(e) for e in endings):
            opt[name] = params[name]
    assert len(opt) > 0

    def step(seed):
        params.update(opt)
        image = mi.render(loaded, params, spp=4, seed=seed)
        loss = dr.mean(dr.square(image - target), axis=None)
        dr.backward(loss)
        opt.step()
        return dr.detach(loss), dr.detach(image)

    call = dr.freeze(step) if frozen else step
    losses, images = [], []
    for k in range(count):
        loss, image = call(dr.opaque(mi.UInt32, k))
        losses.append(float(loss.array[0]))
        images.append(image.numpy().copy())
    return losses, images, {k: opt[k].numpy().copy() for k in opt}, call


CASES = {
    "prb, colours": ({"type": "prb", "max_depth": 4}, ("reflectance.value",)),
    "prb, light": ({"type": "prb", "max_depth": 3}, ("radiance.value",)),
    "path, colours": ({"type": "path", "max_depth": 3}, ("reflectance.value",)),
    "direct, both": ({"type": "direct"}, ("reflectance.value", "radiance.value")),
}


@pytest.mark.parametrize("case", CASES)
def test_steps_equal_those_that_are_traced(case):
    integrator, endings = CASES[case]
    a = steps(scene(integrator), endings, False)
    b = steps(scene(integrator), endings, True)
    assert a[0] == b[0]
    assert all(np.array_equal(x, y) for x, y in zip(a[1], b[1], strict=True))
    assert all(np.array_equal(a[2][k], b[2][k]) for k in a[2])
    assert b[3].n_recordings <= 3


def test_textures_and_environments():
    rng = np.random.default_rng(1)
    texture = {"type": "bitmap", "bitmap": mi.Bitmap(rng.random((4, 4, 3)).astype(np.float32)), "raw": True}
    ball = {"type": "sphere", "radius": 0.3, "bsdf": {"type": "diffuse", "reflectance": texture}}
    sky = {"type": "envmap", "bitmap": mi.Bitmap(rng.random((4, 8, 3)).astype(np.float32))}
    integrator = {"type": "prb", "max_depth": 3}
    a, b = (steps(scene(integrator, ball=ball, sky=sky), ("data",), frozen, 6) for frozen in (False, True))
    assert a[0] == b[0] and all(np.array_equal(a[2][k], b[2][k]) for k in a[2])
    assert b[3].n_recordings <= 4


def test_rendering_alone_with_other_seeds():
    loaded = scene({"type": "path", "max_depth": 4})
    draw = dr.freeze(lambda seed: mi.render(loaded, spp=4, seed=seed))
    for k in range(4):
        got = draw(dr.opaque(mi.UInt32, 10 + k))
        assert np.array_equal(got.numpy(), mi.render(loaded, spp=4, seed=10 + k).numpy())
    assert draw.n_recordings <= 2


def test_changes_between_replays_are_seen():
    loaded = scene({"type": "direct"})
    params = mi.traverse(loaded)
    draw = dr.freeze(lambda seed: mi.render(loaded, spp=4, seed=seed))
    seed = dr.opaque(mi.UInt32, 3)
    for colour in ([0.9, 0.1, 0.1], [0.1, 0.9, 0.1], [0.5, 0.5, 0.5]):
        draw(seed)
        params["white.reflectance.value"] = mi.Color3f(colour)
        params.update()
        assert np.array_equal(draw(seed).numpy(), mi.render(loaded, spp=4, seed=3).numpy())
    moved = next(k for k in params.keys() if k.endswith("to_world"))
    matrix = params[moved]
    params[moved] = mi.ScalarTransform4f().translate([0, 0.3, 0]) @ mi.ScalarTransform4f(matrix.numpy().reshape(4, 4))
    params.update()
    assert np.array_equal(draw(seed).numpy(), mi.render(loaded, spp=4, seed=3).numpy())


def test_moving_shapes_inside_is_refused():
    loaded = scene({"type": "direct"})
    params = mi.traverse(loaded)
    name = next(k for k in params.keys() if k.endswith("vertex_positions"))

    @dr.freeze
    def step(offset):
        params[name] = params[name] + offset
        params.update()
        return mi.render(loaded, spp=1)

    with pytest.raises(FreezeError, match="frozen function 'step'"):
        step(dr.opaque(mi.Float, 0.1))
