"""Tracing packets through the binary tree: all rays of a packet visit the same nodes with one stack.

There are two forms. The uniform form serves packets whose active rays agree in the signs of the direction and in its
largest component, as camera rays do: the planes where rays enter boxes and the axes of the projection are then known
per packet. The general form finds both per ray. They compute the same triangle test in the same order, so a ray's
hit does not depend on the rays beside it: not even its last bit, and equal distances go to the lesser record.

Triangles: Woop, Benthin and Wald 2013, "Watertight ray/triangle intersection". Corners are projected along the ray
onto a coordinate plane; a corner shared by two triangles projects to the same point, and the rounded edge function
x0 * y1 - x1 * y0 is never of the wrong sign, because rounding keeps order. Counting zero as inside therefore leaves
no gaps. The projection differs from the paper's in where the origin is subtracted, which saves instructions: corners
are off by a few roundings of the largest coordinate, the same for all triangles that share them.
"""

from __future__ import annotations

from ...jit.dtypes import Bool, Float32, Int32, Int64, UInt32
from . import analytic, bvh_memory
from .bvh_build import LEAF_BITS, STACK
from .bvh_rays import CALL, ORDERS, PARAMS, Vector, largest_axis, load_rays, permuted, projection, slabs, three
from .code import Code, Value, maximum, minimum
from .layout import ray_field


class Traversal:
    """Writes one traversal function."""

    def __init__(self, name: str, width: int, occluded: bool, uniform: bool) -> None:
        self.code = code = Code(name, PARAMS, width)
        self.one, self.occluded, self.uniform = code.scalar, occluded, uniform
        self.field, self.align = ray_field(width), 4 * width
        self.nodes = code.pointer("%scene", bvh_memory.SCENE_NODES)
        self.records = code.pointer("%scene", bvh_memory.SCENE_RECORDS)
        self.shapes = code.pointer("%scene", bvh_memory.SCENE_ANALYTIC)
        self.rays = load_rays(code)
        self.slabs = slabs(code, self.rays)
        self.far = code.var(self.rays.tfar)
        self.best = code.var(code.const(UInt32, 0xFFFFFFFF))
        self.near_stack = code.alloca(f"[{STACK} x {code.vector('float')}]")
        self.node_stack = code.alloca(f"[{STACK} x i32]")
        self.top = self.one.var(self.one.const(Int64, 0))
        self.node = self.one.var(self.one.const(Int32, 0))
        self.plane = projection(code, self.rays)
        if uniform:
            self._agree()
        self._walk()

    # Projection axes ------------------------------------------------------------------------------------------

    def _agree(self) -> None:
        """Find what the rays of a uniform packet have in common: the axes kx, ky, kz and the planes of entry."""
        one, rays = self.one, self.rays
        x, y = (self._agreed(mask) for mask in (self.plane.is_x, self.plane.is_y))
        places = [one.const(Int64, 4 * i) for i in range(3)]
        self.offsets = [one.select(x, places[a], one.select(y, places[b], places[c])) for a, b, c in ORDERS]
        behind = [self._agreed(d.bits(Int32) < 0) for d in rays.direction]
        self.enter = [
            one.select(b, one.const(Int64, 12 + 4 * i), one.const(Int64, 4 * i)) for i, b in enumerate(behind)
        ]
        octant = one.const(Int32, 1)
        for i, b in enumerate(behind):
            octant = octant << one.select(b, one.const(Int32, 1 << i), one.const(Int32, 0))
        self.octant = octant
        self.leave = [one.const(Int64, 12 + 8 * i) - enter for i, enter in enumerate(self.enter)]

    def _agreed(self, mask: Value) -> Value:
        """Return whether the active rays of a uniform packet are in a mask."""
        packed = self.code.any(mask & self.rays.active)
        return Value(self.one, Bool, packed)

    def _corner(self, record: str, index: int) -> Vector:
        """Return a corner's components along kx, ky and kz."""
        code = self.code
        if self.uniform:
            place = code.at(record, 12 * index)
            return three([code.broadcast(Float32, place, offset) for offset in self.offsets])
        return permuted(
            code, self.plane.is_x, self.plane.is_y,
            three([code.broadcast(Float32, record, 12 * index + 4 * i) for i in range(3)]),
        )  # fmt: skip

    # The walk -------------------------------------------------------------------------------------------------

    def _walk(self) -> None:
        code = self.code
        visit, inner, leaf, pop, done = (code.new_label(x) for x in ("visit", "inner", "leaf", "pop", "done"))
        code.branch(visit)
        code.start(visit)
        node = self.node.get()
        code.branch_if((node >= 0).name, inner, leaf)
        code.start(inner)
        self._enter_node(node, visit, pop)
        code.start(leaf)
        self._visit_leaf(node)
        code.branch(pop)
        code.start(pop)
        self._pop(pop, done, visit)
        code.start(done)
        if self.occluded:
            hidden = self.far.get().eq(float("-inf")) & self.rays.active
            code.masked_store(code.const(Float32, float("-inf")), hidden, "%rays", self.field["tfar"])

    def _enter_node(self, node: Value, visit: str, pop: str) -> None:
        """Test both children; go on with the nearer one and push the other."""
        code, one = self.code, self.one
        base = code.at(self.nodes, node.cast(Int64) << 7)
        if not self.uniform:
            base = code.at(base, 4 * bvh_memory.SECOND_HALF)
        far = self.far.get()
        hits, nears = zip(*(self._box(base, child, far) for child in range(2)), strict=True)
        some = [Value(one, Bool, code.any(hit)) for hit in hits]
        child = [one.load(Int32, base, 4 * (bvh_memory.CHILD_PLACE + i)) for i in range(2)]
        both, single, chosen = code.new_label("both"), code.new_label("single"), code.new_label("one")
        code.branch_if((some[0] & some[1]).name, both, single)
        code.start(single)
        code.branch_if((some[0] | some[1]).name, chosen, pop)
        code.start(chosen)
        self.node.set(one.select(some[0], child[0], child[1]))
        code.branch(visit)
        code.start(both)
        near = [code.select(hit, near, float("inf")) for hit, near in zip(hits, nears, strict=True)]
        if self.occluded:  # any hit ends a shadow ray, so there the order is not worth the time to find it
            swap = one.const(Bool, False)
        elif self.uniform:
            swap = (one.load(Int32, base, 4 * bvh_memory.ORDER_PLACE) & self.octant).ne(0)
        else:
            swap = self._count(near[1] < near[0]) > self._count(near[0] < near[1])
        self.node.set(one.select(swap, child[1], child[0]))
        top = self.top.get()
        one.store(one.select(swap, child[0], child[1]), self.node_stack, top << 2)
        pushed = code.op(
            Float32, f"select i1 {swap.name}, {code.type(Float32)} {near[0].name}, {code.type(Float32)} {near[1].name}"
        )
        code.store(pushed, self.near_stack, top * (4 * code.width), self.align)
        self.top.set(top + 1)
        code.branch(visit)

    def _box(self, base: str, child: int, far: Value) -> tuple[Value, Value]:
        """Return which rays meet a child's box before `far`, and where they enter it."""
        code, s = self.code, self.slabs
        enter, leave = self.rays.tnear, far
        for i in range(3):
            if self.uniform:
                place = code.at(base, 24 * child)
                a = code.fma(code.broadcast(Float32, place, self.enter[i]), s.inverse[i], s.early[i])
                b = code.fma(code.broadcast(Float32, place, self.leave[i]), s.inverse[i], s.late[i])
            else:
                centre = code.broadcast(Float32, base, 24 * child + 4 * i)
                half = code.broadcast(Float32, base, 24 * child + 12 + 4 * i)
                a = code.fma(-half, s.scale[i], code.fma(centre, s.inverse[i], s.early[i]))
                b = code.fma(half, s.scale[i], code.fma(centre, s.inverse[i], s.late[i]))
            # NaN, from infinities meeting, drops out and leaves the box to the other axes.
            enter, leave = maximum(a, enter), minimum(b, leave)
        return enter <= leave, enter

    def _count(self, mask: Value) -> Value:
        """Return the number of rays in a mask."""
        code, width = self.code, self.code.width
        packed = code.raw(f"bitcast {code.type(Bool)} {mask.name} to i{width}")
        wide = packed if width == 32 else code.raw(f"zext i{width} {packed} to i32")
        return self.one.intrinsic("ctpop", Int32, Value(self.one, Int32, wide))

    def _pop(self, pop: str, done: str, visit: str) -> None:
        """Take the next node from the stack; drop it if no ray needs it any more, stop if there is none."""
        code, one = self.code, self.one
        top = self.top.get()
        rest, taken = code.new_label("rest"), code.new_label("taken")
        code.branch_if(top.eq(0).name, done, rest)
        code.start(rest)
        top = top - 1
        self.top.set(top)
        near = code.load(Float32, self.near_stack, top * (4 * code.width), self.align)
        code.branch_if(code.any(near <= self.far.get()), taken, pop)
        code.start(taken)
        self.node.set(one.load(Int32, self.node_stack, top << 2))
        code.branch(visit)

    # Leaves ---------------------------------------------------------------------------------------------------

    def _visit_leaf(self, node: Value) -> None:
        code, one = self.code, self.one
        span = (node ^ -1).cast(Int64)
        index = one.var(span >> LEAF_BITS)
        end = index.get() + (span & (1 << LEAF_BITS) - 1)
        with code.loop() as loop:
            i = index.get()
            loop.stop_if(i >= end)
            record = code.at(self.records, i << 6)
            number = code.splat(UInt32, i.cast(Int32).name)
            kind = one.load(Int32, record, 4 * bvh_memory.KIND_PLACE)
            triangle, other, after = (code.new_label(x) for x in ("triangle", "shape", "tested"))
            code.branch_if(kind.eq(bvh_memory.TRIANGLE).name, triangle, other)
            code.start(triangle)
            self._triangle(record, number)
            code.branch(after)
            code.start(other)
            self._shape(record, number, kind)
            code.branch(after)
            code.start(after)
            index.set(i + 1)

    def _triangle(self, record: str, number: Value) -> None:
        code, plane = self.code, self.plane
        corners = [self._corner(record, i) for i in range(3)]
        x, y = (
            [code.fma(-plane.shear[i], corner[2], corner[i] - plane.base[i]) for corner in corners] for i in range(2)
        )
        # Products are rounded before they are subtracted, on purpose: see the module's text.
        weights = [x[a] * y[b] - x[b] * y[a] for a, b in ((2, 1), (0, 2), (1, 0))]
        least, most = (f(f(weights[0], weights[1]), weights[2]) for f in (minimum, maximum))
        inside = (least >= 0.0) | (most <= 0.0)
        with code.when(code.any(inside)):
            total = weights[0] + weights[1] + weights[2]
            scale = 1.0 / total
            depth = [(corner[2] - plane.origin_z) * plane.inverse_z for corner in corners]
            t = code.fma(weights[2], depth[2], code.fma(weights[1], depth[1], weights[0] * depth[0])) * scale
            # A triangle seen from the side has total 0, so that t is infinite or NaN, which is beyond every `far`.
            self._accept(inside, t, number, record, weights[1] * scale, weights[2] * scale)

    def _shape(self, record: str, number: Value, kind: Value) -> None:
        code, one = self.code, self.one
        place = one.load(Int32, record).cast(Int64) * analytic.RECORD.itemsize
        shape = code.at(self.shapes, place)
        rays, zero = self.rays, code.const(Float32, 0.0)
        for number_of_kind, test in ((analytic.SPHERE, analytic.hit_sphere), (analytic.DISK, analytic.hit_disk)):
            with code.when(kind.eq(number_of_kind)):
                hit, t = test(code, shape, rays.origin, rays.direction, rays.tnear, self.far.get())
                with code.when(code.any(hit)):
                    self._accept(hit, t, number, record, zero, zero)

    def _accept(self, mask: Value, t: Value, number: Value, record: str, u: Value, v: Value) -> None:
        """Keep hits that are nearer than the rays' nearest yet, or as near with a lesser number."""
        code, far = self.code, self.far.get()
        mask = mask & (t > self.rays.tnear)
        if self.occluded:
            self.far.set(code.select(mask & (t <= far), float("-inf"), far))
            return
        best = self.best.get()
        mask = mask & ((t < far) | (t.eq(far) & (number < best)))
        self.far.set(code.select(mask, t, far))
        self.best.set(code.select(mask, number, best))
        for name, value in (("tfar", t), ("u", u), ("v", v)):
            code.masked_store(value, mask, "%rays", self.field[name])
        for name, place in (("primID", bvh_memory.PRIM_PLACE), ("geomID", bvh_memory.GEOM_PLACE)):
            code.masked_store(code.broadcast(Int32, record, 4 * place), mask, "%rays", self.field[name])


def packet_functions(name: str, width: int, occluded: bool, single: str) -> list[Code]:
    """Return the packet function `name` and its two forms.

    Where the arguments ask for single rays it calls the function `single` instead.
    """
    forms = [Traversal(f"{name}_{form}", width, occluded, form == "uniform").code for form in ("uniform", "general")]
    code = Code(name, PARAMS, width)
    alone, packet, end = (code.new_label(x) for x in ("alone", "packet", "end"))
    code.branch_if(code.scalar.load(Int32, "%args").eq(bvh_memory.ARGS_SINGLE).name, alone, packet)
    code.start(alone)
    code.line(f"call void @{single}({CALL})")
    code.branch(end)
    code.start(packet)
    rays = load_rays(code)
    masks = [d.bits(Int32) < 0 for d in rays.direction] + list(largest_axis(code, rays.direction))
    kind = f"i{width}"

    def pack(mask: Value) -> str:
        return code.raw(f"bitcast {code.type(Bool)} {mask.name} to {kind}")

    active = pack(rays.active)
    with code.when(code.raw(f"icmp ne {kind} {active}, 0")):
        # A mask is agreed on if among the active rays it holds for none or for all: x & (x ^ active) has no bit.
        split = f"{kind} 0"
        for mask in masks:
            x = code.raw(f"and {kind} {pack(mask)}, {active}")
            mixed = code.raw(f"xor {kind} {x}, {active}")
            none = code.raw(f"icmp eq {kind} {x}, 0")
            every = code.raw(f"select i1 {none}, {kind} 0, {kind} {mixed}")
            split = f"{kind} {code.raw(f'or {split}, {every}')}"
        same = code.raw(f"icmp eq {split}, 0")
        calls = [f"call void @{form.function}({CALL})" for form in forms]
        yes, no, after = (code.new_label(x) for x in ("uniform", "general", "traced"))
        code.branch_if(same, yes, no)
        for label, call in ((yes, calls[0]), (no, calls[1])):
            code.start(label)
            code.line(call)
            code.branch(after)
        code.start(after)
    code.branch(end)
    code.start(end)
    return [*forms, code]
