"""Tracing rays one at a time through the tree with eight children: for rays that go different ways in large scenes.

The eight lanes are the children of a node or the triangles of a leaf. Everything that depends on the ray alone is
computed for the whole packet first. The triangle test has the operations of the packet traversal in the same order,
so a ray finds the same hit with the same bits either way.
"""

from __future__ import annotations

from ...jit.dtypes import Bool, Float32, Int32, Int64, UInt32
from . import analytic, bvh_memory
from .bvh_rays import ORDERS, PARAMS, Rays, largest_axis, load_rays, projection, slabs
from .bvh_wide_build import (
    BLOCK_SIZE,
    CODE_OFFSET,
    FAN,
    NUMBER_OFFSET,
    SHAPES_OFFSET,
    STACK_WIDE,
    UPPER_OFFSET,
)
from .code import Code, Value, Var, maximum, minimum
from .layout import ray_field

_ROW = 4 * FAN  # bytes of one component of the eight boxes or corners


class Single:
    """Writes the function that traces the active rays of a packet one after the other."""

    def __init__(self, name: str, width: int, occluded: bool) -> None:
        self.code = code = Code(name, PARAMS, width)
        self.one, self.eight, self.occluded = code.scalar, code.part(FAN), occluded
        self.field = ray_field(width)
        self.nodes = code.pointer("%scene", bvh_memory.SCENE_WIDE)
        self.blocks = code.pointer("%scene", bvh_memory.SCENE_BLOCKS)
        self.records = code.pointer("%scene", bvh_memory.SCENE_RECORDS)
        self.shapes = code.pointer("%scene", bvh_memory.SCENE_ANALYTIC)
        self.node_stack = code.alloca(f"[{STACK_WIDE + FAN} x i32]")
        self.near_stack = code.alloca(f"[{STACK_WIDE + FAN} x float]")
        self._prepare(load_rays(code))
        one = self.one
        self.far, self.best = one.var(one.const(Float32, 0.0)), one.var(one.const(UInt32, 0))
        self.u, self.v = one.var(one.const(Float32, 0.0)), one.var(one.const(Float32, 0.0))
        self.top, self.node = one.var(one.const(Int64, 0)), one.var(one.const(Int32, 0))
        self._each_ray()

    # What depends on the ray alone ----------------------------------------------------------------------------

    def _prepare(self, rays: Rays) -> None:
        """Store all that the traversal needs of every ray: one row of lanes per quantity."""
        code = self.code
        rows: dict[str, Value] = {}
        s, p = slabs(code, rays), projection(code, rays)
        for i, axis in enumerate("xyz"):
            rows |= {f"inverse_{axis}": s.inverse[i], f"early_{axis}": s.early[i], f"late_{axis}": s.late[i]}
            rows |= {f"origin_{axis}": rays.origin[i], f"direction_{axis}": rays.direction[i]}
            behind = rays.direction[i].bits(Int32) < 0
            rows[f"enter_{axis}"] = code.select(
                behind, code.const(Int32, UPPER_OFFSET + _ROW * i), code.const(Int32, _ROW * i)
            )
        is_x, is_y = largest_axis(code, rays.direction)
        for i, order in enumerate(ORDERS):
            x, y, z = (code.const(Int32, _ROW * axis) for axis in order)
            rows[f"axis_{i}"] = code.select(is_x, x, code.select(is_y, y, z))
        rows |= {"shear_0": p.shear[0], "shear_1": p.shear[1], "base_0": p.base[0], "base_1": p.base[1]}
        rows |= {"inverse": p.inverse_z, "origin": p.origin_z, "tnear": rays.tnear, "tfar": rays.tfar}
        self.rows = {name: 4 * code.width * i for i, name in enumerate(rows)}
        self.memory = code.alloca(f"[{4 * code.width * len(rows)} x i8]")
        for name, value in rows.items():
            code.store(value, self.memory, self.rows[name])
        packed = code.raw(f"bitcast {code.type(Bool)} {rays.active.name} to i{code.width}")
        wide = code.raw(f"zext i{code.width} {packed} to i32")
        self.pending = self.one.var(Value(self.one, Int32, wide))

    def _scalar(self, name: str) -> Value:
        """Return a quantity of the present ray."""
        integer = name.startswith(("enter", "axis"))
        value = self.one.load(Int32 if integer else Float32, self.code.at(self.memory, self.rows[name]), self.lane)
        return value.cast(Int64) if integer else value

    def _lanes(self, name: str) -> Value:
        return self.eight.splat(Float32, self._scalar(name).name)

    # One ray --------------------------------------------------------------------------------------------------

    def _each_ray(self) -> None:
        code, one = self.code, self.one
        with code.loop() as loop:
            pending = self.pending.get()
            loop.stop_if(pending.eq(0))
            lane = self._first(pending)
            self.pending.set(pending & (pending - 1))
            self.lane = lane.cast(Int64) * 4
            self.far.set(self._scalar("tfar"))
            self.best.set(one.const(UInt32, 0xFFFFFFFF))
            self.top.set(one.const(Int64, 0))
            self.node.set(one.const(Int32, 0))
            self._load_ray()
            self._walk()
            self._report()

    def _first(self, bits: Value) -> Value:
        """Return the number of the lowest bit that is set."""
        self.code.declarations["declare i32 @llvm.cttz.i32(i32, i1)"] = None
        return self.one.op(Int32, f"call i32 @llvm.cttz.i32(i32 {bits.name}, i1 true)")

    def _load_ray(self) -> None:
        self.inverse, self.early, self.late = (
            [self._lanes(f"{name}_{axis}") for axis in "xyz"] for name in ("inverse", "early", "late")
        )
        self.tnear = self._lanes("tnear")
        self.enter = [self._scalar(f"enter_{axis}") for axis in "xyz"]
        self.leave = [self.one.const(Int64, UPPER_OFFSET + 2 * _ROW * i) - e for i, e in enumerate(self.enter)]

    def _walk(self) -> None:
        code = self.code
        labels = ("visit", "inner", "leaf", "pop", "done")
        visit, inner, leaf, pop, done = (code.new_label(x) for x in labels)
        code.branch(visit)
        code.start(visit)
        node = self.node.get()
        code.branch_if((node >= 0).name, inner, leaf)
        code.start(inner)
        self._enter_node(node, visit, pop)
        code.start(leaf)
        self._visit_leaf(node, done)
        code.branch(pop)
        code.start(pop)
        self._pop(pop, done, visit)
        code.start(done)

    def _enter_node(self, node: Value, visit: str, pop: str) -> None:
        """Test the eight children; go on with the nearest and push the others."""
        code, one, eight = self.code, self.one, self.eight
        base = code.at(self.nodes, node.cast(Int64) << 8)
        enter, leave = self.tnear, eight.splat(Float32, self.far.get().name)
        for i in range(3):
            a = eight.fma(eight.load(Float32, base, self.enter[i], _ROW), self.inverse[i], self.early[i])
            b = eight.fma(eight.load(Float32, base, self.leave[i], _ROW), self.inverse[i], self.late[i])
            enter, leave = maximum(a, enter), minimum(b, leave)
        hit = enter <= leave
        bits = self._bits(hit)
        some, single, many = (code.new_label(x) for x in ("some", "single", "many"))
        code.branch_if(bits.eq(0).name, pop, some)
        code.start(some)
        codes = code.at(base, CODE_OFFSET)
        code.branch_if((bits & (bits - 1)).eq(0).name, single, many)
        code.start(single)
        self.node.set(one.load(Int32, codes, self._first(bits).cast(Int64) << 2))
        code.branch(visit)
        code.start(many)
        # Any hit ends a shadow ray, so there the order is not worth the time to find it.
        nearest = self._first(bits if self.occluded else self._bits(self._least(hit, enter)[1]))
        self.node.set(one.load(Int32, codes, nearest.cast(Int64) << 2))
        rest = bits ^ (one.const(Int32, 1) << nearest)
        self._push(rest, eight.load(Int32, codes, 0, _ROW), enter)
        code.branch(visit)

    def _push(self, rest: Value, codes: Value, near: Value) -> None:
        """Push the children of a bit set, packed together; what lies above the new top is overwritten later."""
        code, one = self.code, self.one
        packed = code.raw(f"trunc i32 {rest.name} to i{FAN}")
        mask = code.raw(f"bitcast i{FAN} {packed} to {self.eight.type(Bool)}")
        top = self.top.get()
        for value, suffix, stack in ((codes, "i32", self.node_stack), (near, "f32", self.near_stack)):
            vector, name = self.eight.type(value.dtype), f"llvm.experimental.vector.compress.v{FAN}{suffix}"
            code.declarations[f"declare {vector} @{name}({vector}, {self.eight.type(Bool)}, {vector})"] = None
            dense = self.eight.op(
                value.dtype,
                f"call {vector} @{name}({vector} {value.name}, {self.eight.type(Bool)} {mask}, {vector} poison)",
            )
            self.eight.store(dense, stack, top << 2)
        self.top.set(top + one.intrinsic("ctpop", Int32, rest).cast(Int64))

    def _pop(self, pop: str, done: str, visit: str) -> None:
        code, one = self.code, self.one
        top = self.top.get()
        rest, taken = code.new_label("rest"), code.new_label("taken")
        code.branch_if(top.eq(0).name, done, rest)
        code.start(rest)
        top = top - 1
        self.top.set(top)
        code.branch_if((one.load(Float32, self.near_stack, top << 2) <= self.far.get()).name, taken, pop)
        code.start(taken)
        self.node.set(one.load(Int32, self.node_stack, top << 2))
        code.branch(visit)

    def _bits(self, mask: Value) -> Value:
        packed = self.code.raw(f"bitcast {self.eight.type(Bool)} {mask.name} to i{FAN}")
        return Value(self.one, Int32, self.code.raw(f"zext i{FAN} {packed} to i32"))

    def _least(self, mask: Value, value: Value) -> tuple[Value, Value]:
        """Return the least of the values in a mask, which holds one at least and no NaN, and where it lies."""
        eight, vector = self.eight, self.eight.type(Float32)
        chosen = eight.select(mask, value, float("inf"))
        name = f"llvm.vector.reduce.fmin.v{FAN}f32"
        self.code.declarations[f"declare float @{name}({vector})"] = None
        least = self.one.op(Float32, f"call nnan float @{name}({vector} {chosen.name})")
        return least, chosen.eq(eight.splat(Float32, least.name)) & mask

    # Leaves ---------------------------------------------------------------------------------------------------

    def _visit_leaf(self, node: Value, done: str) -> None:
        code, one, eight = self.code, self.one, self.eight
        block = code.at(self.blocks, (node ^ -1).cast(Int64) * BLOCK_SIZE)
        axes = [self._scalar(f"axis_{i}") for i in range(3)]
        corners = [
            [eight.load(Float32, code.at(block, 3 * _ROW * corner), axis, _ROW) for axis in axes] for corner in range(3)
        ]
        x, y = (
            [
                eight.fma(-self._lanes(f"shear_{i}"), corner[2], corner[i] - self._lanes(f"base_{i}"))
                for corner in corners
            ]
            for i in range(2)
        )
        weights = [x[a] * y[b] - x[b] * y[a] for a, b in ((2, 1), (0, 2), (1, 0))]
        least, most = (f(f(weights[0], weights[1]), weights[2]) for f in (minimum, maximum))
        inside = (least >= 0.0) | (most <= 0.0)
        with code.when(self._bits(inside).ne(0)):
            scale = 1.0 / (weights[0] + weights[1] + weights[2])
            origin, inverse = self._lanes("origin"), self._lanes("inverse")
            depth = [(corner[2] - origin) * inverse for corner in corners]
            t = eight.fma(weights[2], depth[2], eight.fma(weights[1], depth[1], weights[0] * depth[0])) * scale
            far = eight.splat(Float32, self.far.get().name)
            hit = inside & (t > self.tnear) & (t <= far)
            with code.when(self._bits(hit).ne(0)):
                if self.occluded:
                    self.far.set(one.const(Float32, float("-inf")))
                    self._leave(done)
                else:
                    nearest, where = self._least(hit, t)
                    # Numbers rise within a block: of equal distances the lowest slot has the least.
                    slot = self._first(self._bits(where))
                    number = one.load(UInt32, code.at(block, NUMBER_OFFSET), slot.cast(Int64) << 2)
                    u, v = (self._pick(weights[i] * scale, slot) for i in (1, 2))
                    self._accept(nearest, number, u, v)
        shapes = one.load(Int32, block, SHAPES_OFFSET)
        with code.when(shapes.ne(0)):
            self._visit_shapes(block, one.var(shapes), done)

    def _leave(self, done: str) -> None:
        """End the search for this ray; the code that follows in the text is never reached."""
        self.code.branch(done)
        self.code.start(self.code.new_label("unreached"))

    def _pick(self, lanes: Value, slot: Value) -> Value:
        return self.one.op(
            Float32, f"extractelement {self.eight.type(Float32)} {lanes.name}, i32 {slot.name}"
        )

    def _accept(self, t: Value, number: Value, u: Value, v: Value) -> None:
        """Keep a hit that is nearer than the nearest yet, or as near with a lesser number."""
        far, best = self.far.get(), self.best.get()
        with self.code.when((t < far) | (t.eq(far) & (number < best))):
            for variable, value in ((self.far, t), (self.best, number), (self.u, u), (self.v, v)):
                variable.set(value)

    def _visit_shapes(self, block: str, slots: Var, done: str) -> None:
        """Test the spheres and disks of a block, one after the other."""
        code, one = self.code, self.one
        origin, direction = (
            (self._scalar(f"{name}_x"), self._scalar(f"{name}_y"), self._scalar(f"{name}_z"))
            for name in ("origin", "direction")
        )
        zero, tnear = one.const(Float32, 0.0), self._scalar("tnear")
        with code.loop() as loop:
            bits = slots.get()
            loop.stop_if(bits.eq(0))
            slots.set(bits & (bits - 1))
            place = self._first(bits).cast(Int64) << 2
            number = one.load(UInt32, code.at(block, NUMBER_OFFSET), place)
            record = code.at(self.records, number.cast(Int64) << 6)
            shape = code.at(self.shapes, one.load(Int32, record).cast(Int64) * analytic.RECORD.itemsize)
            kind = one.load(Int32, record, 4 * bvh_memory.KIND_PLACE)
            for which, test in ((analytic.SPHERE, analytic.hit_sphere), (analytic.DISK, analytic.hit_disk)):
                with code.when(kind.eq(which)):
                    hit, t = test(one, shape, origin, direction, tnear, self.far.get())
                    with code.when(hit & (t > tnear)):
                        if self.occluded:
                            self.far.set(one.const(Float32, float("-inf")))
                            self._leave(done)
                        else:
                            self._accept(t, number, zero, zero)

    def _report(self) -> None:
        """Write the result of the present ray to the packet."""
        code, one = self.code, self.one

        def put(name: str, value: Value) -> None:
            one.store(value, code.at("%rays", self.field[name]), self.lane)

        if self.occluded:
            with code.when(self.far.get().eq(float("-inf"))):
                put("tfar", self.far.get())
            return
        best = self.best.get()
        with code.when(best.ne(0xFFFFFFFF)):
            record = code.at(self.records, best.cast(Int64) << 6)
            for name, variable in (("tfar", self.far), ("u", self.u), ("v", self.v)):
                put(name, variable.get())
            for name, place in (("primID", bvh_memory.PRIM_PLACE), ("geomID", bvh_memory.GEOM_PLACE)):
                put(name, one.load(Int32, record, 4 * place))

