"""Microfacet distributions: Beckmann and GGX, anisotropic, with sampling of visible normals.

Walter et al. 2007; Heitz 2014 and 2018; the visible Beckmann normals by the approximation of Jakob 2014.
"""

from __future__ import annotations

import math
from typing import Any

from ..jit.arrays import functions as f
from ..jit.arrays.linear import dot, normalize
from .warp import sincos, square_to_uniform_disk_concentric


class Microfacets:
    """Normals of a rough surface with root-mean-square slopes `alpha_u`, `alpha_v`; unit vectors in the local frame."""

    def __init__(self, kind: str, alpha_u: Any, alpha_v: Any, sample_visible: bool) -> None:
        self.kind, self.sample_visible = kind, sample_visible
        # Below this roughness single precision cannot represent the peak.
        self.alpha_u, self.alpha_v = f.max(alpha_u, 1e-4), f.max(alpha_v, 1e-4)

    def eval(self, m: Any) -> Any:
        """Return the density of normals D(m), per solid angle of projected area."""
        alpha_uv = self.alpha_u * self.alpha_v
        cos = m.z
        cos_2 = cos * cos
        x, y = m.x / self.alpha_u, m.y / self.alpha_v
        if self.kind == "beckmann":
            result = f.exp(-(x * x + y * y) / cos_2) / (math.pi * alpha_uv * cos_2 * cos_2)
        else:
            q = x * x + y * y + cos_2
            result = f.rcp(math.pi * alpha_uv * q * q)
        # Grazing normals produce 0 * inf.
        return f.select(result * cos > 1e-20, result, 0.0)

    def smith_g1(self, v: Any, m: Any) -> Any:
        """Return the share of facets with normal m that are visible from v."""
        x, y = self.alpha_u * v.x, self.alpha_v * v.y
        xy_2 = x * x + y * y
        tan_2 = xy_2 / (v.z * v.z)
        if self.kind == "beckmann":
            a = f.rsqrt(tan_2)
            a2 = a * a
            rational = (3.535 * a + 2.181 * a2) / (1.0 + 2.276 * a + 2.577 * a2)
            result = f.select(a >= 1.6, 1.0, rational)
        else:
            result = 2.0 / (1.0 + f.sqrt(1.0 + tan_2))
        result = f.select(xy_2 == 0.0, 1.0, result)
        return f.select(dot(v, m) * v.z <= 0.0, 0.0, result)

    def g(self, wi: Any, wo: Any, m: Any) -> Any:
        """Return the shadowing and masking of both directions (separable)."""
        return self.smith_g1(wi, m) * self.smith_g1(wo, m)

    def pdf(self, wi: Any, m: Any) -> Any:
        """Return the density of `sample` per solid angle of m."""
        d = self.eval(m)
        if self.sample_visible:
            return d * self.smith_g1(wi, m) * f.abs(dot(wi, m)) / wi.z
        return d * m.z

    def sample(self, wi: Any, u: Any) -> tuple[Any, Any]:
        """Return a normal and its density."""
        if not self.sample_visible:
            return self._sample_all(wi, u)
        stretched = normalize(type(wi)(self.alpha_u * wi.x, self.alpha_v * wi.y, wi.z))
        length = f.sqrt(stretched.x * stretched.x + stretched.y * stretched.y)
        straight = length < 1e-10
        inverse = 1.0 / f.select(straight, 1.0, length)
        cos_phi = f.select(straight, 1.0, stretched.x * inverse)
        sin_phi = f.select(straight, 0.0, stretched.y * inverse)
        slope_x, slope_y = self._visible_slopes(stretched.z, u)
        x = f.fma(cos_phi, slope_x, -(sin_phi * slope_y)) * self.alpha_u
        y = f.fma(sin_phi, slope_x, cos_phi * slope_y) * self.alpha_v
        m = normalize(type(wi)(-x, -y, 1.0))
        pdf = self.eval(m) * self.smith_g1(wi, m) * f.abs(dot(wi, m)) / wi.z
        return m, pdf

    def _sample_all(self, wi: Any, u: Any) -> tuple[Any, Any]:
        s, c = sincos(u.y * (2.0 * math.pi))
        ratio = self.alpha_v / self.alpha_u
        # The azimuth of an ellipse: equal steps of the parameter are not equal steps of the angle.
        x, y = c, s * ratio
        norm = f.rsqrt(x * x + y * y)
        cos_phi, sin_phi = x * norm, y * norm
        a, b = cos_phi / self.alpha_u, sin_phi / self.alpha_v
        alpha_2 = f.rcp(a * a + b * b)
        if self.kind == "beckmann":
            cos_2 = f.rcp(f.fma(-alpha_2, f.log(1.0 - u.x), 1.0))
        else:
            cos_2 = f.rcp(1.0 + alpha_2 * u.x / (1.0 - u.x))
        cos = f.sqrt(cos_2)
        sin = f.safe_sqrt(1.0 - cos_2)
        m = type(wi)(cos_phi * sin, sin_phi * sin, cos)
        return m, self.eval(m) * m.z

    def _visible_slopes(self, cos_i: Any, u: Any) -> tuple[Any, Any]:
        """Return slopes visible from a direction with this cosine, for roughness 1."""
        if self.kind == "ggx":
            x, y = square_to_uniform_disk_concentric(u)
            s = 0.5 * (1.0 + cos_i)
            y = (1.0 - s) * f.safe_sqrt(1.0 - x * x) + s * y
            z = f.safe_sqrt(1.0 - x * x - y * y)
            sin_i = f.safe_sqrt(1.0 - cos_i * cos_i)
            norm = f.rcp(f.fma(sin_i, y, cos_i * z))
            return f.fma(cos_i, y, -(sin_i * z)) * norm, x * norm
        return self._visible_beckmann(cos_i, u)

    def _visible_beckmann(self, cos_i: Any, u: Any) -> tuple[Any, Any]:
        """Invert the distribution of visible slopes by Newton steps, in terms of erf of the slope."""
        tan = f.safe_sqrt(f.fma(-cos_i, cos_i, 1.0)) / cos_i
        cot = f.rcp(tan)
        upper = f.erf(cot)
        # At 0 and 1 the slopes are infinite.
        ux, uy = f.clip(u.x, 1e-6, 1.0 - 1e-6), f.clip(u.y, 1e-6, 1.0 - 1e-6)
        x = upper - (upper + 1.0) * f.erf(f.sqrt(-f.log(ux)))
        scaled = ux * (1.0 + upper + (1.0 / math.sqrt(math.pi)) * tan * f.exp(-cot * cot))
        for _ in range(3):
            slope = erfinv(x)
            value = 1.0 + x + (1.0 / math.sqrt(math.pi)) * tan * f.exp(-slope * slope) - scaled
            derivative = 1.0 - slope * tan
            x = x - value / derivative
        return erfinv(x), erfinv(f.fma(2.0, uy, -1.0))


def erfinv(x: Any) -> Any:
    """Return the inverse error function for |x| < 1 (Giles 2010, single precision)."""
    w = -f.log((1.0 - x) * (1.0 + x))
    small = w < 5.0
    a, b = w - 2.5, f.sqrt(f.max(w, 5.0)) - 3.0
    p1 = _horner(a, (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
                     -0.00417768164, 0.246640727, 1.50140941))  # fmt: skip
    p2 = _horner(b, (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
                     0.00943887047, 1.00167406, 2.83297682))  # fmt: skip
    return f.select(small, p1, p2) * x


def _horner(x: Any, coefficients: tuple[float, ...]) -> Any:
    total: Any = coefficients[0]
    for c in coefficients[1:]:
        total = f.fma(total, x, c) if not isinstance(total, float) else x * total + c
    return total
