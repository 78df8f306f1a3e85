"""The choice between the accelerators."""

from __future__ import annotations

from collections.abc import Sequence

from ...jit.datacache import data_cache
from .embree_library import available
from .geometry import Geometry, Triangles, geometry_digest
from .interface import Accelerator

KINDS = ("auto", "embree", "bvh")

# Up to this many primitives `auto` takes our own tree. Measured by benchmarks/rays.py with packets of 16 (one core
# with AVX-512, million rays per second of ours / Embree 4.4 in robust mode, each with its better arguments):
#                              camera, nearest   bounced, nearest   bounced, shadow    build, seconds
#   room of 36 triangles          106 / 53           23 / 8.4           29 / 13       0.002 / 0.004
#   rough sphere of 320            61 / 39          6.1 / 3.7          7.7 / 5.8      0.005 / 0.005
#   rough sphere of 5 120          31 / 27          2.9 / 2.3          4.3 / 3.6       0.03 / 0.01
#   rough sphere of 82 000         15 / 14          1.6 / 1.6          2.3 / 2.2       0.35 / 0.07
#   rough sphere of 328 000       6.5 / 6.0        0.81 / 0.93         1.2 / 1.2        2.3 / 0.34
# The rays are even at 82 000, but Embree builds five times faster.
OWN_UP_TO = 40_000


def build(
    geometry: Sequence[Geometry], kind: str = "auto", width: int = 16, remember: bool = False
) -> Accelerator:
    """Return an accelerator over `geometry` for packets of `width` rays; geomID is the place in the list.

    `kind` is "embree", "bvh" (our own), or "auto": our own for small scenes and wherever Embree is not installed. With
    `remember` it is kept for scenes of the same geometry, and may belong to others: it must not be updated or closed.
    Raises ValueError for an unknown kind and EmbreeError where Embree is asked for but not installed.
    """
    if kind not in KINDS:
        raise ValueError(f"accelerator '{kind}' was asked for; known are {', '.join(KINDS)}")
    if kind == "auto":
        count = sum(len(item.faces) if isinstance(item, Triangles) else 1 for item in geometry)
        kind = "embree" if count > OWN_UP_TO and available() else "bvh"
    if kind == "bvh":
        from .bvh import BvhAccelerator

        return BvhAccelerator(geometry, width, remember)
    from .embree import EmbreeAccelerator

    if not remember:
        return EmbreeAccelerator(geometry, width)
    # Embree's structures cannot be stored: in memory only.
    built: Accelerator = data_cache().share(
        "embree", (width, geometry_digest(geometry)), lambda: EmbreeAccelerator.shared(geometry, width)
    )
    return built
