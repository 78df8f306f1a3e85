"""`mi.math`: the constants that scripts look up."""

from __future__ import annotations

from luxgrad.render.interfaces.records import RAY_EPSILON, SHADOW_EPSILON

RayEpsilon, ShadowEpsilon = RAY_EPSILON, SHADOW_EPSILON

__all__ = ["RayEpsilon", "ShadowEpsilon"]
