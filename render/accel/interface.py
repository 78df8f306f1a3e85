"""What every accelerator offers to generated code: two functions, a scene and two argument blocks, all addresses."""

from __future__ import annotations

import abc

import numpy as np
from numpy.typing import NDArray

from .geometry import Disk, Sphere


class Accelerator(abc.ABC):
    """Finds what rays hit. A kernel loads the addresses below from its arguments, so it fits every scene.

    Both functions take pointers (valid, scene, rays, args) and return nothing; `layout` describes the memory.
    The caller fills every ray field, the hit fields `primID` and `geomID` with 0xffffffff, and aligns packets and
    masks as `layout.alignment` says. A hit lies at a distance t with tnear < t <= tfar, in units of the length of
    the direction, which need not be normalised. Rays with `valid` 0 are neither read nor written.
    Functions may run in many threads at once, but not during `update` and `close`.
    """

    closest: int
    """Address of the function that writes tfar, u, v, primID and geomID of the nearest hit, or geomID 0xffffffff."""
    occluded: int
    """Address of the function that sets tfar to -inf in lanes where anything is hit."""
    scene: int
    """Second argument of both. Stays the same for the life of the accelerator, also over `update`."""
    args_coherent: int
    """Fourth argument for packets of neighbouring rays, such as camera rays."""
    args_incoherent: int
    """Fourth argument for everything else. The hits are the same with either."""
    width: int
    """Rays per packet: 1, 8 or 16."""
    bounds: tuple[NDArray[np.float32], NDArray[np.float32]]
    """Corners (3,) of the box around everything that can be hit; (inf, -inf) when there is nothing."""

    @abc.abstractmethod
    def update(self, geom_index: int, change: NDArray[np.float32] | Sphere | Disk) -> None:
        """Move one geometry: new vertices (V, 3) of a mesh, or a new sphere or disk in place of one of its kind.

        Raises SceneError if the kind or the number of vertices differs.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Free everything; no ray may be traced afterwards. Closing twice is allowed."""

    def __enter__(self) -> Accelerator:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
