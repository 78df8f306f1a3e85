"""The choice between the accelerators."""

from __future__ import annotations

from collections.abc import Sequence

from .geometry import Geometry
from .interface import Accelerator

KINDS = ("auto", "embree", "bvh")


def build(geometry: Sequence[Geometry], kind: str = "auto", width: int = 16) -> Accelerator:
    """Return an accelerator over `geometry` for packets of `width` rays; geomID is the place in the list.

    Raises ValueError for an unknown kind and EmbreeError where Embree is asked for but not installed.
    """
    if kind not in KINDS:
        raise ValueError(f"accelerator '{kind}' was asked for; known are {', '.join(KINDS)}")
    if kind == "bvh":
        from .bvh import BvhAccelerator

        return BvhAccelerator(geometry, width)
    from .embree import EmbreeAccelerator

    return EmbreeAccelerator(geometry, width)
