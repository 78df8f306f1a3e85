"""Ray queries as operations of the trace: what a kernel does to ask an accelerator.

The packet is written to the stack, the accelerator's function is called through a pointer from the kernel's arguments
(so one kernel serves every scene and accelerator), and the results are read back.
"""

from __future__ import annotations

from typing import Any

from ...jit.arrays.base import make_node
from ...jit.arrays.flat import Flat
from ...jit.arrays.memops import index_mask
from ...jit.codegen.emitter import Emitter, Value
from ...jit.dtypes import Bool, Float32, UInt32
from ...jit.trace import OUT, TRACE_RAY
from .interface import Accelerator
from .layout import alignment, ray_field, ray_size, rayhit_size

_ORIGIN = ("org_x", "org_y", "org_z", "dir_x", "dir_y", "dir_z", "tfar")


class RayQuery:
    """One query; `kind` is "closest" (t, u, v, primitive, geometry) or "occluded" (a mask)."""

    def __init__(self, kind: str, accelerator: Accelerator) -> None:
        self.kind, self.owner = kind, accelerator
        self.width = accelerator.width

    def pointers(self) -> list[tuple[str, int]]:
        """Return the addresses that the kernel receives as arguments."""
        a = self.owner
        function = a.closest if self.kind == "closest" else a.occluded
        return [
            ("function", function),
            ("scene", a.scene),
            ("coherent", a.args_coherent),
            ("incoherent", a.args_incoherent),
        ]

    def emit(self, e: Emitter, args: list[Value], pointers: list[str]) -> list[Value]:
        """Write the query; args: origin, direction, tfar (Float32), coherent and active (Bool)."""
        w = e.width
        fields, align = ray_field(w), alignment(w)
        closest = self.kind == "closest"
        size = rayhit_size(w) if closest else ray_size(w)
        packet = e.alloca(f"[{size} x i8]", align)
        valid = e.alloca(f"[{w} x i32]", 4 * w)
        coherent, active = args[7], args[8]
        lanes = e.raw(f"sext {e.type(Bool)} {active.name} to {e.vector('i32')}")
        e.line(f"store {e.vector('i32')} {lanes}, ptr {valid}, align {4 * w}")
        for name, value in zip(_ORIGIN, args, strict=False):
            self._store(e, packet, fields[name], value)
        zero, ones = e.const(Float32, 0.0), e.const(UInt32, 0xFFFFFFFF)
        for name in ("tnear", "time"):
            self._store(e, packet, fields[name], zero)
        for name in ("mask", "id"):
            self._store(e, packet, fields[name], ones)
        self._store(e, packet, fields["flags"], e.const(UInt32, 0))
        if closest:
            for name in ("geomID", "primID", "instID", "instPrimID"):
                self._store(e, packet, fields[name], ones)
            for name in ("u", "v"):
                self._store(e, packet, fields[name], zero)
        spread = e.any(~coherent & active)
        chosen = e.raw(f"select i1 {spread}, ptr {pointers[3]}, ptr {pointers[2]}")
        some, done = e.new_label("trace"), e.new_label("traced")
        e.branch_if(e.any(active), some, done)
        e.start(some)
        e.line(f"call void {pointers[0]}(ptr {valid}, ptr {pointers[1]}, ptr {packet}, ptr {chosen})")
        e.branch(done)
        e.start(done)
        if not closest:
            return [self._load(e, packet, fields["tfar"], Float32) < 0.0]
        return [
            self._load(e, packet, fields["tfar"], Float32),
            self._load(e, packet, fields["u"], Float32),
            self._load(e, packet, fields["v"], Float32),
            self._load(e, packet, fields["primID"], UInt32),
            self._load(e, packet, fields["geomID"], UInt32),
        ]

    @staticmethod
    def _store(e: Emitter, packet: str, offset: int, value: Value) -> None:
        address = e.raw(f"getelementptr i8, ptr {packet}, i64 {offset}")
        e.line(f"store {e.type(value.dtype)} {value.name}, ptr {address}, align 4")

    @staticmethod
    def _load(e: Emitter, packet: str, offset: int, dtype: Any) -> Value:
        address = e.raw(f"getelementptr i8, ptr {packet}, i64 {offset}")
        return e.op(dtype, f"load {e.type(dtype)}, ptr {address}, align 4")


def trace(kind: str, accelerator: Accelerator, o: Any, d: Any, maxt: Any, coherent: Any, active: Any) -> list[Any]:
    """Return the outputs of a ray query as flat arrays: t, u, v, primitive, geometry; or the mask of occluded rays.

    `o`, `d` three-component arrays, `maxt` flat; single precision inside whatever their type. Not differentiable:
    hits are computed again from the primitive where gradients are needed.
    """
    ns = o.ns
    single, boolean = ns.flat(Float32), ns.flat(Bool)
    flat = [single(x) for x in (*o._c, *d._c, maxt)]
    index = max(flat, key=lambda x: x._n.size)
    marker = ns.flat(UInt32)(0) if index._n.size == 1 else ns.flat(UInt32).wrap(_sized_zero(index._n.size))
    _, mask, _ = index_mask(marker, active)
    flat += [boolean(coherent), mask]
    nodes = tuple(x._n for x in flat)
    size = max(n.size for n in nodes)
    node = make_node(TRACE_RAY, Bool, size, nodes, RayQuery(kind, accelerator))
    kinds = [Float32, Float32, Float32, UInt32, UInt32] if kind == "closest" else [Bool]
    return [_output(ns.flat(t), node, size, k) for k, t in enumerate(kinds)]


def _sized_zero(size: int) -> Any:
    from ...jit.trace import literal

    return literal(UInt32, 0, size)


def _output(cls: type[Flat], node: Any, size: int, position: int) -> Any:
    return cls.wrap(make_node(OUT, cls.dtype, size, (node,), position))
