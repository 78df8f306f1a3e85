"""Sampling tables made by recorded operations equal those made by NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from luxgrad import mi
from luxgrad.render.distributions import Bilinear2D
from luxgrad.render.emitters.envmap import _tables


@pytest.mark.parametrize("variant", ["llvm_ad_rgb", "llvm_ad_rgb_double"])
@pytest.mark.parametrize("shape", [(2, 2), (2, 5), (7, 2), (9, 14), (33, 64)], ids=str)
@pytest.mark.parametrize("compensate", [False, True])
def test_tables_of_changed_images(variant, shape, compensate):
    mi.set_variant(variant)
    rng = np.random.default_rng(3)
    light = mi.load_dict(
        {"type": "envmap", "bitmap": mi.Bitmap(np.ones((*shape, 3), np.float32)), "mis_compensation": compensate}
    )
    params = mi.traverse(light)
    for image in (rng.random((*shape, 3)) ** 4, np.zeros((*shape, 3)), np.ones((*shape, 3))):
        params["data"] = mi.TensorXf(image.astype(np.float32))
        params.update()
        got, types = light.distribution, light.types
        kept = np.asarray(image.astype(np.float32), types.dtype.numpy)
        expected = Bilinear2D(types, tables=_tables(kept, compensate))
        assert (got.height, got.width) == (expected.height, expected.width)
        close = {"rtol": 1e-6 if types.dtype.numpy == np.float32 else 1e-12, "atol": 1e-12}
        assert np.allclose(got.values.numpy(), expected.values.numpy(), **close)
        assert len(got.levels) == len(expected.levels)
        for (a, m), (b, n) in zip(got.levels, expected.levels, strict=True):
            assert m == n and np.allclose(a.numpy(), b.numpy(), **close)
