"""Functions that Embree calls for spheres and disks, compiled here; and single rays with the packets' arguments.

Embree hands a callback one structure: validity array, user pointer (an `analytic` record), primitive, context, rays,
their number N (1, 4, 8 or 16) and the geometry number.
"""

from __future__ import annotations

from ...jit.codegen.host import CompiledModule
from ...jit.dtypes import Float32, Int32
from ...jit.once import once
from . import analytic
from .code import Code, compiled
from .layout import ray_field

# Offsets in RTCIntersectFunctionNArguments, which RTCOccludedFunctionNArguments shares.
_VALID, _USER, _RAYS, _COUNT, _GEOMETRY = 0, 8, 32, 40, 44
# Offsets in RTCBoundsFunctionArguments.
_BOUNDS_USER, _BOUNDS_OUT = 0, 16

# Our argument block: Embree's RTCIntersectArguments first, then what single-ray functions must know.
ARGS_SIZE = 128
ARGS_INTERSECT1, ARGS_OCCLUDED1 = 64, 72

_SHAPES = {"sphere": analytic.hit_sphere, "disk": analytic.hit_disk}


def _test(shape: str, occluded: bool, width: int) -> Code:
    """Return the callback of one shape for packets of `width` rays."""
    code = Code(f"{shape}_{'occluded' if occluded else 'intersect'}{width}", [("ptr", "args")], width)
    field = ray_field(width)
    rays, record = code.pointer("%args", _RAYS), code.pointer("%args", _USER)
    mask = code.active(code.pointer("%args", _VALID))

    def lanes(*names: str) -> analytic.Vector:
        x, y, z = (code.load(Float32, rays, field[name]) for name in names)
        return x, y, z

    tnear, tfar = code.load(Float32, rays, field["tnear"]), code.load(Float32, rays, field["tfar"])
    origin, direction = lanes("org_x", "org_y", "org_z"), lanes("dir_x", "dir_y", "dir_z")
    hit, t = _SHAPES[shape](code, record, origin, direction, tnear, tfar)
    hit = hit & mask
    with code.when(code.any(hit)):
        if occluded:
            code.masked_store(code.const(Float32, float("-inf")), hit, rays, field["tfar"])
        else:
            code.masked_store(t, hit, rays, field["tfar"])
            zero = code.const(Float32, 0.0)
            for name in ("u", "v"):
                code.masked_store(zero, hit, rays, field[name])
            code.masked_store(code.const(Int32, 0), hit, rays, field["primID"])
            code.masked_store(code.broadcast(Int32, "%args", _GEOMETRY), hit, rays, field["geomID"])
            # Without instancing Embree expects the invalid number here; it copies its own for triangles.
            code.masked_store(code.const(Int32, -1), hit, rays, field["instID"])
    return code


def _by_count(shape: str, occluded: bool) -> list[Code]:
    """Return the callback for any number of rays, with the functions it calls."""
    name = f"{shape}_{'occluded' if occluded else 'intersect'}"
    code = Code(name, [("ptr", "args")], 1)
    count = code.load(Int32, "%args", _COUNT)
    widths = (16, 8, 4, 1)
    for width in widths:
        with code.when(count.eq(width)):
            code.line(f"call void @{name}{width}(ptr %args)")
    return [*(_test(shape, occluded, width) for width in widths), code]


def _bounds() -> Code:
    code = Code("bounds", [("ptr", "args")], 1)
    source, out = code.pointer("%args", _BOUNDS_USER), code.pointer("%args", _BOUNDS_OUT)
    for i in range(3):
        code.store(code.load(Float32, source, analytic.BOX_OFFSET + 4 * i), out, 4 * i)
        code.store(code.load(Float32, source, analytic.BOX_OFFSET + 12 + 4 * i), out, 16 + 4 * i)
    return code


def _single(name: str, offset: int) -> Code:
    """Return a function with the packets' parameters that calls Embree's for one ray, found in the arguments."""
    code = Code(name, [(kind, p) for kind, p in zip(["ptr"] * 4, ("valid", "scene", "ray", "args"), strict=True)], 1)
    with code.when(code.active("%valid")):
        function = code.pointer("%args", offset)
        code.line(f"call void {function}(ptr %scene, ptr %ray, ptr %args)")
    return code


@once
def callbacks() -> CompiledModule:
    """Return the module with `bounds`, `sphere_intersect`, `sphere_occluded`, `disk_intersect`, `disk_occluded`."""
    tests = [f for shape in _SHAPES for occluded in (False, True) for f in _by_count(shape, occluded)]
    return compiled([*tests, _bounds()], "embree_callbacks")


@once
def single_ray() -> CompiledModule:
    """Return the module with `closest1` and `occluded1`, which take packets of one ray."""
    return compiled([_single("closest1", ARGS_INTERSECT1), _single("occluded1", ARGS_OCCLUDED1)], "embree_single")
