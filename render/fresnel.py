"""Reflectance of smooth interfaces."""

from __future__ import annotations

from typing import Any

from ..jit.arrays import functions as f


def fresnel(cos_i: Any, eta: Any) -> tuple[Any, Any, Any, Any]:
    """Return (reflectance of unpolarised light, cos of the transmitted direction, eta_it, eta_ti) of a dielectric.

    `cos_i` is the cosine on the side of the incident light (negative: from inside), `eta` the index inside over that
    outside. The transmitted cosine has the opposite sign; total internal reflection gives 1 and 0.
    """
    outside = cos_i >= 0.0
    rcp_eta = f.rcp(eta)
    eta_it, eta_ti = f.select(outside, eta, rcp_eta), f.select(outside, rcp_eta, eta)
    cos_t_2 = 1.0 - f.fma(-cos_i, cos_i, 1.0) * eta_ti * eta_ti
    cos_i_abs, cos_t_abs = f.abs(cos_i), f.safe_sqrt(cos_t_2)
    a_s = f.fma(-eta_it, cos_t_abs, cos_i_abs) / f.fma(eta_it, cos_t_abs, cos_i_abs)
    a_p = f.fma(-eta_it, cos_i_abs, cos_t_abs) / f.fma(eta_it, cos_i_abs, cos_t_abs)
    r = 0.5 * (a_s * a_s + a_p * a_p)
    matched = eta == 1.0
    r = f.select(matched, 0.0, f.select(cos_i_abs == 0.0, 1.0, r))
    return r, f.select(outside, -cos_t_abs, cos_t_abs), eta_it, eta_ti


def fresnel_conductor(cos_i: Any, eta: Any, k: Any) -> Any:
    """Return the reflectance of a conductor with complex index eta + i k, for unpolarised light."""
    cos_2 = cos_i * cos_i
    sin_2 = 1.0 - cos_2
    t0 = eta * eta - k * k - sin_2
    a2b2 = f.safe_sqrt(t0 * t0 + 4.0 * k * k * eta * eta)
    a = f.safe_sqrt(0.5 * (a2b2 + t0))
    term1, term2 = a2b2 + cos_2, 2.0 * cos_i * a
    r_s = (term1 - term2) / (term1 + term2)
    term3, term4 = a2b2 * cos_2 + sin_2 * sin_2, term2 * sin_2
    r_p = r_s * (term3 - term4) / (term3 + term4)
    return 0.5 * (r_s + r_p)


def reflect(wi: Any) -> Any:
    """Return the mirrored direction in the local frame."""
    return type(wi)(-wi.x, -wi.y, wi.z)


def reflect_about(wi: Any, m: Any) -> Any:
    """Return the direction mirrored about the unit vector `m`."""
    from ..jit.arrays.linear import dot

    return type(wi)(m * (2.0 * dot(wi, m)) - wi)


def refract(wi: Any, cos_t: Any, eta_ti: Any) -> Any:
    """Return the refracted direction in the local frame."""
    return type(wi)(-eta_ti * wi.x, -eta_ti * wi.y, cos_t)
