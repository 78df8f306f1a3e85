"""Rays from NumPy arrays through an accelerator: for tests, tools and benchmarks. Kernels call it directly."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...jit.codegen.host import CompiledModule
from ...jit.dtypes import Float32, Int32
from ...jit.once import once
from .code import Code, Value, compiled
from .interface import Accelerator
from .layout import INVALID_ID, alignment, ray_field, ray_size, rayhit_size

_INPUTS = ("org_x", "org_y", "org_z", "dir_x", "dir_y", "dir_z", "tnear", "tfar")
_OUTPUTS = ("tfar", "u", "v", "primID", "geomID")


@dataclass(frozen=True)
class Hits:
    """Nearest hits of n rays: distance (inf on a miss), barycentric u and v, primitive and geometry (-1 on a miss)."""

    t: NDArray[np.float32]
    u: NDArray[np.float32]
    v: NDArray[np.float32]
    prim: NDArray[np.int64]
    geom: NDArray[np.int64]


def _driver(width: int, occluded: bool) -> Code:
    """Return a function that fills packets from arrays (start and end in packets), calls, and stores the answers."""
    params = [("i64", "start"), ("i64", "end"), ("ptr", "arrays"), ("ptr", "call")]
    code = Code(f"drive_{'occluded' if occluded else 'closest'}{width}", params, width)
    field, one = ray_field(width), code.scalar
    function, scene, args = (code.pointer("%call", 8 * i) for i in range(3))
    size, align = ray_size(width) if occluded else rayhit_size(width), alignment(width)
    rays, valid = code.alloca(f"[{size} x i8]", align), code.alloca(code.vector("i32"), max(align, 16))
    inputs = [code.pointer("%arrays", 8 * i) for i in range(len(_INPUTS) + 1)]
    outputs = [code.pointer("%arrays", 8 * (len(inputs) + i)) for i in range(1 if occluded else len(_OUTPUTS))]
    place = one.alloca("i64")
    code.line(f"store i64 %start, ptr {place}")
    for name in ("time", "id", "flags"):
        code.store(code.const(Int32, 0), rays, field[name])
    code.store(code.const(Int32, -1), rays, field["mask"])
    with code.loop() as loop:
        index = code.raw(f"load i64, ptr {place}")
        loop.stop_if(code.raw(f"icmp uge i64 {index}, %end"))
        offset = Value(one, Int32, code.raw(f"mul i64 {index}, {4 * width}"))
        for name, pointer in zip(_INPUTS, inputs, strict=False):
            code.store(code.load(Float32, pointer, offset), rays, field[name])
        code.store(code.load(Int32, inputs[-1], offset), valid, 0)
        if not occluded:
            for name in ("primID", "geomID"):
                code.store(code.const(Int32, -1), rays, field[name])
        code.line(f"call void {function}(ptr {valid}, ptr {scene}, ptr {rays}, ptr {args})")
        for name, pointer in zip(_OUTPUTS, outputs, strict=False):
            code.store(code.load(Float32, rays, field[name]), pointer, offset)
        code.line(f"store i64 {code.raw(f'add i64 {index}, 1')}, ptr {place}")
    return code


@once
def driver(width: int, occluded: bool) -> Callable[[int, int, int, int], None]:
    """Return the compiled driver: call it with (first packet, end packet, array pointers, call pointers)."""
    module = compiled([_driver(width, occluded)], "ray_query")
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    function = kind(module.address(f"drive_{'occluded' if occluded else 'closest'}{width}"))

    def call(start: int, end: int, arrays: int, pointers: int, keep: CompiledModule = module) -> None:
        function(start, end, arrays, pointers)

    return call


class Batch:
    """Rays laid out for the driver; `run` may be repeated, which is what benchmarks do.

    Origins and directions are (n, 3); `tnear`, `tfar` and `active` are scalars or (n,).
    """

    def __init__(
        self,
        accelerator: Accelerator,
        origins: ArrayLike,
        directions: ArrayLike,
        tnear: ArrayLike = 0.0,
        tfar: ArrayLike = np.inf,
        active: ArrayLike = True,
        *,
        coherent: bool = False,
        occluded: bool = False,
    ) -> None:
        o, d = np.asarray(origins, np.float32), np.asarray(directions, np.float32)
        self.accelerator, self.count = accelerator, max(len(o), len(d))
        self._driver = driver(accelerator.width, occluded)
        self.packets = -(-self.count // accelerator.width)
        padded = self.packets * accelerator.width
        self._inputs = np.zeros((len(_INPUTS) + 1, padded), np.float32)
        for row, values in enumerate((*o.T, *d.T, tnear, tfar)):
            self._inputs[row, : self.count] = values
        self._inputs[-1].view(np.int32)[: self.count] = np.where(np.asarray(active, bool), -1, 0)
        self.outputs = np.zeros((1 if occluded else len(_OUTPUTS), padded), np.float32)
        rows = [int(row.ctypes.data) for row in (*self._inputs, *self.outputs)]
        self._arrays = np.array(rows, np.uint64)
        args = accelerator.args_coherent if coherent else accelerator.args_incoherent
        function = accelerator.occluded if occluded else accelerator.closest
        self._call = np.array([function, accelerator.scene, args], np.uint64)

    def run(self) -> None:
        """Trace all rays once on this thread."""
        self._driver(0, self.packets, int(self._arrays.ctypes.data), int(self._call.ctypes.data))


def closest(
    accelerator: Accelerator,
    origins: ArrayLike,
    directions: ArrayLike,
    tnear: ArrayLike = 0.0,
    tfar: ArrayLike = np.inf,
    active: ArrayLike = True,
    *,
    coherent: bool = False,
) -> Hits:
    """Return the nearest hits of rays given as to `Batch`; an inactive ray is a miss."""
    batch = Batch(accelerator, origins, directions, tnear, tfar, active, coherent=coherent)
    batch.run()
    t, u, v, prim, geom = batch.outputs[:, : batch.count]
    numbers = geom.view(np.uint32).astype(np.int64)
    hit = numbers != INVALID_ID
    prims = np.where(hit, prim.view(np.uint32).astype(np.int64), -1)
    return Hits(np.where(hit, t, np.float32(np.inf)), u.copy(), v.copy(), prims, np.where(hit, numbers, -1))


def occluded(
    accelerator: Accelerator,
    origins: ArrayLike,
    directions: ArrayLike,
    tnear: ArrayLike = 0.0,
    tfar: ArrayLike = np.inf,
    active: ArrayLike = True,
    *,
    coherent: bool = False,
) -> NDArray[np.bool_]:
    """Return whether anything is hit by each of the rays given as to `Batch`; an inactive ray gives False."""
    batch = Batch(accelerator, origins, directions, tnear, tfar, active, coherent=coherent, occluded=True)
    batch.run()
    return np.asarray(np.isneginf(batch.outputs[0, : batch.count]))
