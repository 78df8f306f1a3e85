"""The rays of a packet prepared for box and triangle tests; shared by all traversals of our own tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...jit.dtypes import Float32
from . import analytic
from .bvh_memory import PAD
from .code import Code, Value, maximum, minimum
from .layout import ray_field

Vector = tuple[Value, Value, Value]
PARAMS = [("ptr", name) for name in ("valid", "scene", "rays", "args")]
CALL = ", ".join(f"{kind} %{name}" for kind, name in PARAMS)
# The axes kx, ky, kz of the projection: each if x is the largest component, if y is, if z is.
ORDERS = ((1, 2, 0), (2, 0, 1), (0, 1, 2))
_TINY = 2.0**-60  # of the largest component: what a zero component counts as in the box tests


def three(values: Sequence[Value]) -> Vector:
    """Return three values as a tuple of known length."""
    return values[0], values[1], values[2]


@dataclass
class Rays:
    """The rays of a packet as a traversal needs them; rays that are not active have an empty interval."""

    active: Value
    origin: Vector
    direction: Vector
    tnear: Value
    tfar: Value


def load_rays(code: Code) -> Rays:
    """Return the rays of the packet at `%rays`."""
    field, align = ray_field(code.width), 4 * code.width

    def get(name: str) -> Value:
        return code.load(Float32, "%rays", field[name], align)

    origin = three([get(f"org_{axis}") for axis in "xyz"])
    direction = three([get(f"dir_{axis}") for axis in "xyz"])
    # Rays with a NaN or infinite component or without direction would visit every node, for nothing.
    zero = origin[0] * 0.0
    for value in (*origin[1:], *direction):
        zero = code.fma(value, 0.0, zero)
    moving = direction[0].ne(0.0) | direction[1].ne(0.0) | direction[2].ne(0.0)
    active = code.active("%valid") & zero.eq(0.0) & moving
    far = minimum(code.const(Float32, analytic.LARGEST_FLOAT), get("tfar"))  # NaN stays NaN and hits nothing
    return Rays(
        active,
        origin,
        direction,
        code.select(active, get("tnear"), float("inf")),
        code.select(active, far, float("-inf")),
    )


def largest_axis(code: Code, direction: Vector) -> tuple[Value, Value]:
    """Return masks: whether x is the largest component, and whether y is; else it is z."""
    x, y, z = (code.abs(d) for d in direction)
    is_x = (x >= y) & (x >= z)
    return is_x, (y >= z) & ~is_x


@dataclass
class Slabs:
    """A ray in the form of the box tests: distance to the plane x = a is fma(a, inverse, shift -+ error)."""

    inverse: Vector
    early: Vector  # shift for planes where rays enter, moved towards the origin by the rounding errors
    late: Vector  # shift for planes where rays leave
    scale: Vector  # absolute inverse


def slabs(code: Code, rays: Rays) -> Slabs:
    """Return the packet's rays prepared for box tests; zero components become tiny ones of the same sign."""
    size = [code.abs(d) for d in rays.direction]
    least = maximum(maximum(size[0], size[1]), size[2]) * _TINY
    sizes_o = [code.abs(o) for o in rays.origin]
    pad = maximum(maximum(sizes_o[0], sizes_o[1]), sizes_o[2]) * PAD
    inverse, early, late, scale = [], [], [], []
    for i in range(3):
        whole = code.intrinsic("copysign", Float32, maximum(size[i], least), rays.direction[i])
        inverse.append(1.0 / whole)
        scale.append(code.abs(inverse[i]))
        shift, error = -(rays.origin[i] * inverse[i]), pad * scale[i]
        early.append(shift - error)
        late.append(shift + error)
    return Slabs(three(inverse), three(early), three(late), three(scale))


def permuted(code: Code, is_x: Value, is_y: Value, v: Vector) -> Vector:
    """Return the components of ray vectors along the axes kx, ky and kz."""
    return three([code.select(is_x, v[a], code.select(is_y, v[b], v[c])) for a, b, c in ORDERS])


@dataclass
class Projection:
    """The plane that a ray projects corners onto: x = p[kx] - shear * p[kz] - base, and t from p[kz]."""

    is_x: Value
    is_y: Value
    shear: tuple[Value, Value]
    base: tuple[Value, Value]
    origin_z: Value
    inverse_z: Value


def projection(code: Code, rays: Rays) -> Projection:
    """Return the packet's rays prepared for triangle tests."""
    is_x, is_y = largest_axis(code, rays.direction)
    origin, direction = (permuted(code, is_x, is_y, v) for v in (rays.origin, rays.direction))
    inverse = 1.0 / direction[2]
    shear = direction[0] * inverse, direction[1] * inverse
    base = code.fma(-shear[0], origin[2], origin[0]), code.fma(-shear[1], origin[2], origin[1])
    return Projection(is_x, is_y, shear, base, origin[2], inverse)
