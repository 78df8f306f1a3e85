"""The accelerator of our own: needs nothing but NumPy and the compiler, and leaves no gaps between triangles."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...jit.codegen.host import CompiledModule
from ...jit.once import once
from ..cached import Value, remembered
from . import bvh_memory
from .bvh_build import Tree, build_tree
from .bvh_memory import Primitives
from .bvh_packet import packet_functions
from .bvh_wide import Single
from .bvh_wide_build import wide_arrays
from .code import compiled
from .geometry import Disk, Geometry, Sphere, geometry_digest, moved, union
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

    def __init__(self, geometry: Sequence[Geometry], width: int = 16, remember: bool = False) -> None:
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
        self._geometry = list(geometry)
        if remember:
            key = (width == 1, geometry_digest(geometry))
            self._take(remembered("accelerator", key, lambda: self._made(Primitives(self._geometry))))
        else:
            self._take(self._made(Primitives(self._geometry)))

    # Attributes in the interface; compiled when first asked for here, and never set.
    @property
    def closest(self) -> int:  # type: ignore[override]
        """Return the address of the function for nearest hits."""
        return functions(self.width).address("closest")

    @property
    def occluded(self) -> int:  # type: ignore[override]
        """Return the address of the function for shadow rays."""
        return functions(self.width).address("occluded")

    def _made(self, primitives: Primitives, tree: Tree | None = None) -> Value:
        """Return the arrays over primitives by name, with a tree that exists or a new one."""
        tree = build_tree(primitives.lower, primitives.upper) if tree is None else tree
        count = len(primitives)
        ordered = bvh_memory.aligned(max(count, 1) * 16, "f4").reshape(-1, 16)
        ordered[:count] = primitives.records()[tree.order]
        arrays = {"nodes": bvh_memory.node_array(tree), "records": ordered, "analytic": primitives.analytic}
        if self.width == 1 or count > PACKETS_UP_TO:
            arrays["wide"], arrays["blocks"] = wide_arrays(tree, ordered)
        bounds = np.stack(union(primitives.lower, primitives.upper))
        kept = {"lower": tree.lower, "upper": tree.upper, "child": tree.child, "order": tree.order}
        return {**arrays, **kept, "levels": tree.levels, "bounds": bounds, "cost": tree.cost()}

    def _take(self, made: Value) -> None:
        """Point the scene at arrays, which may be shared: they are only read."""
        self.tree = Tree(*(made[name] for name in ("lower", "upper", "child", "order", "levels")))
        self._built_cost: float = made["cost"]
        self._memory = [made[name] for name in ("nodes", "records", "analytic", "wide", "blocks") if name in made]
        single = "wide" in made
        self._arguments[0] = bvh_memory.ARGS_SINGLE if self.width == 1 else bvh_memory.ARGS_PACKET
        self._arguments[1] = bvh_memory.ARGS_SINGLE if single else bvh_memory.ARGS_PACKET
        self._scene[: len(self._memory)] = [array.ctypes.data for array in self._memory]
        self.bounds = made["bounds"][0], made["bounds"][1]

    def update(self, geom_index: int, change: NDArray[np.float32] | Sphere | Disk) -> None:
        """Move a geometry: new vertices, or another sphere or disk."""
        self._geometry[geom_index] = moved(self._geometry, geom_index, change)
        primitives, old, cost = Primitives(self._geometry), self.tree, self._built_cost
        tree = Tree(old.lower.copy(), old.upper.copy(), old.child, old.order, old.levels)
        tree.refit(primitives.lower, primitives.upper)
        worn = tree.cost() > _WORN * cost
        self._take(self._made(primitives, None if worn else tree))
        if not worn:
            self._built_cost = cost

    def close(self) -> None:
        """Give the memory of the structure back; no ray may be traced after that."""
        self.scene = 0
        self._memory.clear()
