"""The accelerator of our own: needs nothing but NumPy and the compiler, and leaves no gaps between triangles."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...jit.codegen.host import CompiledModule
from ...jit.once import once
from . import bvh_memory
from .bvh_build import Tree, build_tree
from .bvh_memory import Primitives
from .bvh_packet import packet_functions
from .bvh_wide import Single
from .bvh_wide_build import wide_arrays
from .code import compiled
from .geometry import Disk, Geometry, Sphere, moved, union
from .interface import Accelerator
from .layout import WIDTHS

# Scenes of more primitives trace incoherent rays one by one.
PACKETS_UP_TO = 150

# A refitted tree whose cost has grown by this factor is built anew.
_WORN = 1.5


@once
def functions(width: int) -> CompiledModule:
    """Return the module with `closest` and `occluded` for packets of `width` rays."""
    parts = []
    for name, occluded in (("closest", False), ("occluded", True)):
        single = Single(f"{name}_single", width, occluded).code
        parts += [single, *packet_functions(name, width, occluded, single.function)]
    return compiled(parts, f"bvh{width}")


class BvhAccelerator(Accelerator):
    """A binary tree of boxes over `geometry`; geomID is the place in the list.

    Raises ValueError for a width other than 1, 8 or 16.
    """

    def __init__(self, geometry: Sequence[Geometry], width: int = 16) -> None:
        if width not in WIDTHS:
            raise ValueError(f"packets of {width} rays were asked for; an accelerator traces 1, 8 or 16")
        self.width = width
        # The code is needed when the first kernel is launched; a quarter of a second of compiling, the first time on a
        # machine, passes beside the recording of that kernel.
        threading.Thread(target=functions, args=(width,), name="luxgrad-compile").start()
        self._scene = np.zeros(bvh_memory.SCENE_SIZE // 8, np.uint64)
        self._arguments = np.zeros(2, np.uint64)
        self.scene = int(self._scene.ctypes.data)
        self.args_coherent, self.args_incoherent = (int(self._arguments[i:].ctypes.data) for i in range(2))
        self._memory: list[NDArray[np.generic]] = []
        self._primitives = Primitives(geometry)
        self._build()

    # Attributes in the interface; compiled when first asked for here, and never set.
    @property
    def closest(self) -> int:  # type: ignore[override]
        """Return the address of the function for nearest hits."""
        return functions(self.width).address("closest")

    @property
    def occluded(self) -> int:  # type: ignore[override]
        """Return the address of the function for shadow rays."""
        return functions(self.width).address("occluded")

    def _build(self) -> None:
        self.tree: Tree = build_tree(self._primitives.lower, self._primitives.upper)
        self._built_cost = self.tree.cost()
        self._publish()

    def _publish(self) -> None:
        """Write the tree and the primitives to memory and point the scene at them."""
        ordered = bvh_memory.aligned(max(len(self._primitives), 1) * 16, "f4").reshape(-1, 16)
        ordered[: len(self._primitives)] = self._primitives.records()[self.tree.order]
        self._memory = [bvh_memory.node_array(self.tree), ordered, self._primitives.analytic]
        single = self.width == 1 or len(self._primitives) > PACKETS_UP_TO
        if single:
            self._memory += wide_arrays(self.tree, ordered)
        self._arguments[0] = bvh_memory.ARGS_SINGLE if self.width == 1 else bvh_memory.ARGS_PACKET
        self._arguments[1] = bvh_memory.ARGS_SINGLE if single else bvh_memory.ARGS_PACKET
        self._scene[: len(self._memory)] = [array.ctypes.data for array in self._memory]
        self.bounds = union(self._primitives.lower, self._primitives.upper)

    def update(self, geom_index: int, change: NDArray[np.float32] | Sphere | Disk) -> None:
        """Move a geometry: new vertices, or another sphere or disk."""
        geometry = self._primitives.geometry
        geometry[geom_index] = moved(geometry, geom_index, change)
        self._primitives = Primitives(geometry)
        self.tree.refit(self._primitives.lower, self._primitives.upper)
        if self.tree.cost() > _WORN * self._built_cost:
            self._build()
        else:
            self._publish()

    def close(self) -> None:
        """Give the memory of the structure back; no ray may be traced after that."""
        self.scene = 0
        self._memory.clear()
