"""Pictures that are Mitsuba's sample by sample: the same random numbers give the same paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exact_scenes import SEED, SPP, scenes
from lanes import load
from pictures import assert_equal

from luxgrad.render.image.bitmap import Bitmap
from luxgrad.render.render import render
from luxgrad.render.transform import ScalarTransform4f

pytestmark = pytest.mark.cpu

STORED = np.load(Path(__file__).parent / "data" / "exact.npz")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return scenes(ScalarTransform4f, Bitmap, tmp_path_factory.mktemp("meshes"))


@pytest.mark.parametrize("name", STORED.files)
def test_same_picture(name: str, table: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    image = render(load(table[name]), spp=SPP, seed=SEED).numpy()
    # A path may take another turn where rounding differs: at edges, at the border of two triangles.
    assert_equal(image, STORED[name].astype(np.float64), tmp_path, share=0.985)


def test_all_scenes_are_stored(table: dict[str, dict[str, Any]]) -> None:
    assert set(table) == set(STORED.files)
