"""The accelerator that uses Embree: triangles natively, spheres and disks through compiled callbacks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from . import analytic
from . import embree_library as lib
from .embree_callbacks import ARGS_INTERSECT1, ARGS_OCCLUDED1, ARGS_SIZE, callbacks, single_ray
from .embree_library import EmbreeError, available
from .geometry import Disk, Geometry, Sphere, Triangles, bounds, moved, union
from .interface import Accelerator
from .layout import WIDTHS

__all__ = ["EmbreeAccelerator", "available"]


class EmbreeAccelerator(Accelerator):
    """Embree's structure over `geometry`, built watertight; geomID is the place in the list.

    Raises EmbreeError if Embree is not installed or fails, ValueError for a width other than 1, 8 or 16.
    """

    def __init__(self, geometry: Sequence[Geometry], width: int = 16) -> None:
        if width not in WIDTHS:
            raise ValueError(f"packets of {width} rays were asked for; an accelerator traces 1, 8 or 16")
        self.scene = 0
        self._is_shared = False
        self.width = width
        self._library, self._device = lib.library(), lib.device()
        self._geometry = list(geometry)
        self._handles: dict[int, int] = {}
        self._memory: dict[int, list[NDArray[np.generic]]] = {}  # what Embree reads, for as long as it may
        self._arguments = [self._make_arguments(coherent) for coherent in (True, False)]
        self.args_coherent, self.args_incoherent = (int(block.ctypes.data) for block in self._arguments)
        if width == 1:
            self.closest, self.occluded = (single_ray().address(name) for name in ("closest1", "occluded1"))
        else:
            self.closest, self.occluded = (lib.address(f"rtc{what}{width}") for what in ("Intersect", "Occluded"))
        self.scene = int(self._library.rtcNewScene(self._device))
        self._library.rtcSetSceneFlags(self.scene, lib.SCENE_ROBUST)
        try:
            for index, item in enumerate(self._geometry):
                self._attach(index, item)
            self._commit()
        except lib.EmbreeError:
            self.close()
            raise

    @classmethod
    def shared(cls, geometry: Sequence[Geometry], width: int) -> tuple[EmbreeAccelerator, int]:
        """Return an accelerator that several scenes use, and about how many bytes it takes."""
        built = cls(geometry, width)
        built._is_shared = True
        # Measured with Embree 4.4: 52 to 54 bytes per triangle besides vertices and faces.
        arrays = [array for memory in built._memory.values() for array in memory]
        count = sum(len(item.faces) if isinstance(item, Triangles) else 1 for item in geometry)
        return built, sum(array.nbytes for array in arrays) + 56 * count

    @staticmethod
    def _make_arguments(coherent: bool) -> NDArray[np.uint8]:
        """Return RTCIntersectArguments (flags, features, no context, no filter), then the single-ray functions."""
        block = np.zeros(ARGS_SIZE, np.uint8)
        block[:8].view(np.uint32)[:] = lib.QUERY_COHERENT if coherent else 0, 0xFFFFFFFF
        for offset, name in ((ARGS_INTERSECT1, "rtcIntersect1"), (ARGS_OCCLUDED1, "rtcOccluded1")):
            block[offset : offset + 8].view(np.uint64)[:] = lib.address(name)
        return block

    def _attach(self, index: int, item: Geometry) -> None:
        if isinstance(item, Triangles) and not len(item.faces):
            return  # Embree takes no empty buffers
        kind = lib.GEOMETRY_TRIANGLE if isinstance(item, Triangles) else lib.GEOMETRY_USER
        handle = int(self._library.rtcNewGeometry(self._device, kind) or 0)
        lib.check(self._device, f"make geometry {index}")
        try:
            if isinstance(item, Triangles):
                self._set_mesh(index, handle, item)
            else:
                self._set_analytic(index, handle, item)
            self._library.rtcCommitGeometry(handle)
            self._library.rtcAttachGeometryByID(self.scene, handle, index)
            lib.check(self._device, f"add geometry {index} ({type(item).__name__})")
        finally:
            self._library.rtcReleaseGeometry(handle)  # the scene holds it now
        self._handles[index] = handle

    def _set_mesh(self, index: int, handle: int, item: Triangles) -> None:
        # Embree loads 16 bytes per vertex, so the last one needs 4 more.
        vertices = np.zeros((len(item.vertices) * 3 + 4,), np.float32)
        vertices[: item.vertices.size] = item.vertices.ravel()
        faces = item.faces.copy()
        self._memory[index] = [vertices, faces]
        for buffer, form, array, count in (
            (lib.BUFFER_VERTEX, lib.FORMAT_FLOAT3, vertices, len(item.vertices)),
            (lib.BUFFER_INDEX, lib.FORMAT_UINT3, faces, len(faces)),
        ):
            self._library.rtcSetSharedGeometryBuffer(handle, buffer, 0, form, array.ctypes.data, 0, 12, count)

    def _set_analytic(self, index: int, handle: int, item: Sphere | Disk) -> None:
        record = analytic.record(item)
        self._memory[index] = [record]
        functions = callbacks()
        shape = "sphere" if isinstance(item, Sphere) else "disk"
        self._library.rtcSetGeometryUserPrimitiveCount(handle, 1)
        self._library.rtcSetGeometryUserData(handle, record.ctypes.data)
        self._library.rtcSetGeometryBoundsFunction(handle, functions.address("bounds"), None)
        self._library.rtcSetGeometryIntersectFunction(handle, functions.address(f"{shape}_intersect"))
        self._library.rtcSetGeometryOccludedFunction(handle, functions.address(f"{shape}_occluded"))

    def _commit(self) -> None:
        self._library.rtcCommitScene(self.scene)
        lib.check(self._device, f"build the structure over {len(self._geometry)} geometries")
        lower, upper = zip(*(bounds(item) for item in [Triangles([], []), *self._geometry]), strict=True)
        self.bounds = union(np.stack(lower), np.stack(upper))

    def update(self, geom_index: int, change: NDArray[np.float32] | Sphere | Disk) -> None:
        """Move a geometry: new vertices, or another sphere or disk."""
        if self._is_shared:
            raise EmbreeError("an accelerator that several scenes use cannot be updated: build another one")
        item = moved(self._geometry, geom_index, change)
        self._geometry[geom_index] = item
        if geom_index not in self._handles:
            return
        handle = self._handles[geom_index]
        if isinstance(item, Triangles):
            self._memory[geom_index][0][: item.vertices.size] = item.vertices.ravel()
            self._library.rtcUpdateGeometryBuffer(handle, lib.BUFFER_VERTEX, 0)
        else:
            self._memory[geom_index][0][:] = analytic.record(item)
        self._library.rtcCommitGeometry(handle)
        self._commit()

    def close(self) -> None:
        """Give the memory of the structure back; no ray may be traced after that. Shared ones stay with the others."""
        if self.scene and not self._is_shared:
            self._library.rtcReleaseScene(self.scene)
            self.scene = 0
            self._handles.clear()
            self._memory.clear()

    def __del__(self) -> None:
        if getattr(self, "scene", 0):
            self._is_shared = False
            self.close()
