"""The records that travel between sensors, shapes, materials, lights and integrators; all fields are arrays.

Frames: `wi`, `wo` are unit vectors in the local shading frame (z along the shading normal) that point away from the
surface; `d` and everything named `p` or `n` is in world space. Densities are per solid angle unless said otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...jit.arrays import functions as f
from ...jit.arrays.linear import dot, norm

# 1500 rounding steps of single precision: intersections are found in single precision in every variant.
RAY_EPSILON = 1500 * 2.0**-24
SHADOW_EPSILON = 10 * RAY_EPSILON


@dataclass
class Ray:
    """A ray o + t d for t in (0, maxt]; `d` is a unit vector."""

    o: Any
    d: Any
    maxt: Any
    time: Any = 0.0

    def __call__(self, t: Any) -> Any:
        return self.o + self.d * t


@dataclass
class Frame:
    """An orthonormal frame; local x, y, z are s, t, n."""

    s: Any
    t: Any
    n: Any

    def to_local(self, v: Any) -> Any:
        """Return a world vector in this frame."""
        return type(v)(dot(v, self.s), dot(v, self.t), dot(v, self.n))

    def to_world(self, v: Any) -> Any:
        """Return a vector of this frame in world space."""
        return self.s * v.x + self.t * v.y + type(v)(self.n) * v.z


def coordinate_system(n: Any) -> tuple[Any, Any]:
    """Return two unit vectors that complete the unit vector `n` to a frame (Duff et al. 2017)."""
    sign = f.sign(n.z)
    a = -f.rcp(sign + n.z)
    b = n.x * n.y * a
    s = type(n)(f.mulsign(n.x * n.x * a, n.z) + 1.0, f.mulsign(b, n.z), -f.mulsign(n.x, n.z))
    t = type(n)(b, f.fma(n.y * n.y, a, sign), -n.y)
    return s, t


@dataclass
class Preliminary:
    """What the accelerator found: distance, position within the primitive, and which one of which shape."""

    t: Any
    u: Any
    v: Any
    prim: Any  # UInt32
    shape: Any  # UInt32, index into the scene's shapes
    valid: Any  # mask


@dataclass
class SurfaceInteraction:
    """A point on a surface; where `valid` is not set a ray that left the scene, then `wi` is -d in world space."""

    t: Any
    p: Any
    n: Any  # geometric normal
    uv: Any
    dp_du: Any
    sh_frame: Frame
    wi: Any
    prim: Any
    shape: Any
    valid: Any
    barycentric: Any = None  # coordinates b1, b2 on triangles
    surfaces: Any = None  # the tables of surfaces (render/surfaces.py), for attributes of meshes

    def is_valid(self) -> Any:
        """Return the mask of rays that hit something."""
        return self.valid

    def to_local(self, v: Any) -> Any:
        """Return a world vector in the shading frame."""
        return self.sh_frame.to_local(v)

    def to_world(self, v: Any) -> Any:
        """Return a vector of the shading frame in world space."""
        return self.sh_frame.to_world(v)

    def spawn_ray(self, d: Any) -> Ray:
        """Return the ray from here in direction `d`, started off the surface on the side it goes to."""
        return Ray(offset_point(self.p, self.n, d), d, type(d.x)(float("inf")))

    def spawn_ray_to(self, target: Any) -> Ray:
        """Return the ray from here towards the point `target` that ends just before it."""
        o = offset_point(self.p, self.n, target - self.p)
        d = target - o
        distance = norm(d)
        return Ray(o, d / distance, distance * (1.0 - SHADOW_EPSILON))


def offset_point(p: Any, n: Any, d: Any) -> Any:
    """Return `p` moved off its surface along the geometric normal, to the side of `d`."""
    largest = f.max(f.abs(p.x), f.max(f.abs(p.y), f.abs(p.z)))
    magnitude = f.mulsign((1.0 + largest) * RAY_EPSILON, dot(n, d))
    return type(p)(f.fma(magnitude, n.x, p.x), f.fma(magnitude, n.y, p.y), f.fma(magnitude, n.z, p.z))


@dataclass
class DirectionSample:
    """A direction from a reference point towards a light: where it ends, its density, and which light it is."""

    p: Any
    n: Any
    uv: Any
    d: Any
    dist: Any
    pdf: Any
    delta: Any  # mask: the light has no extent
    emitter: Any  # UInt32, index into the scene's emitters


@dataclass
class BSDFSample:
    """A sampled scattering direction: `wo` local, density, relative index of refraction crossed, lobe flags."""

    wo: Any
    pdf: Any
    eta: Any
    sampled_type: Any  # UInt32 of BSDFFlags
