"""The binding of the Embree library: memory layout, version, errors."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from luxgrad.render.accel import embree_library, layout
from luxgrad.render.accel.embree import EmbreeAccelerator, available
from luxgrad.render.accel.geometry import Sphere, Triangles

pytestmark = [pytest.mark.cpu, pytest.mark.skipif(not available(), reason="the embreex wheel is not installed")]


def packet(size: int) -> np.ndarray:
    raw = np.full(size + 64, 0xA5, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start:]


def test_version_is_four() -> None:
    assert embree_library.version()[0] == 4


@pytest.mark.parametrize("width", layout.WIDTHS)
@pytest.mark.parametrize("shape", ["mesh", "sphere"])
def test_layout_is_what_embree_writes(width: int, shape: str) -> None:
    """A packet whose unused bytes hold a pattern comes back with exactly the documented fields changed."""
    far = [Triangles([], [])] * 3
    mesh = Triangles([[-9, -9, 2], [9, -9, 2], [0, 9, 2]], [[0, 1, 2]])
    field, size = layout.ray_field(width), layout.rayhit_size(width)
    with EmbreeAccelerator([*far, mesh if shape == "mesh" else Sphere([0, 0, 4], 2.0)], width) as accelerator:
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)
        rays, valid = packet(size + 256), packet(64)
        valid[: 4 * width].view(np.int32)[:] = -1
        for name in layout.RAY_FIELDS:
            words = rays[field[name] : field[name] + 4 * width]
            if name in ("mask", "id", "flags"):
                words.view(np.int32)[:] = -1 if name == "mask" else 0
            else:
                words.view(np.float32)[:] = {"dir_z": 1.0, "tfar": np.inf}.get(name, 0.0)
        for name in ("primID", "geomID"):
            rays[field[name] : field[name] + 4 * width].view(np.uint32)[:] = layout.INVALID_ID
        before = rays.copy()
        call(accelerator.closest)(valid.ctypes.data, accelerator.scene, rays.ctypes.data, accelerator.args_coherent)
    changed = set(np.flatnonzero((rays != before).reshape(-1, 4).any(1)[: (size + 256) // 4]) // width)
    names = [*layout.RAY_FIELDS, *layout.HIT_FIELDS]
    written = {names[i] for i in changed}
    assert {"tfar", "u", "v", "primID", "geomID"} <= written <= {"tfar", *layout.HIT_FIELDS}
    assert (rays[field["tfar"] :].view(np.float32)[:width] == 2.0).all()
    assert (rays[field["geomID"] :].view(np.uint32)[:width] == 3).all()
    assert (rays[field["primID"] :].view(np.uint32)[:width] == 0).all()


def test_sizes_follow_the_alignment() -> None:
    assert [layout.ray_size(w) for w in (1, 8, 16)] == [48, 384, 768]
    assert [layout.rayhit_size(w) for w in (1, 8, 16)] == [96, 672, 1344]
    assert layout.ray_field(16)["tfar"] == 8 * 64 and layout.ray_field(1)["geomID"] == 72


def test_errors_of_the_library_become_exceptions() -> None:
    library, device = embree_library.library(), embree_library.device()
    library.rtcNewGeometry(device, 77)
    with pytest.raises(embree_library.EmbreeError, match="failed to make a thing: unknown error"):
        embree_library.check(device, "make a thing")
    embree_library.check(device, "be asked twice")


def test_a_missing_library_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embree_library, "_candidates", lambda: iter(()))
    assert not embree_library.available()
    with pytest.raises(embree_library.EmbreeError, match="install embreex .* or build with kind='bvh'"):
        embree_library.library.__wrapped__()
