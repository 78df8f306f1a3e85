"""What of a ray intersection is asked for."""

from __future__ import annotations

import enum

__all__ = ["RayFlags"]


class RayFlags(enum.IntFlag):
    """Which parts of an intersection to compute. Accepted everywhere; unused parts cost nothing here anyway."""

    Empty = 0
    Minimal = 1
    UV = 2
    dPdUV = 4
    dNGdUV = 8
    dNSdUV = 16
    ShadingFrame = 32
    FollowShape = 64
    DetachShape = 128
    BoundaryTest = 256
    All = UV | dPdUV | ShadingFrame
    AllNonDifferentiable = All | DetachShape
