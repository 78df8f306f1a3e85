"""Byte offsets of the ray packets that every accelerator reads and writes.

A packet of W rays is a structure of arrays: each field is W consecutive 4-byte values. The order of fields is that of
Embree 4 (RTCRayW, RTCRayHitW), so its functions can be called without copying. A ray packet is the first part of a
ray-hit packet. The validity mask is a separate array of W 32-bit integers: -1 for a ray to trace, 0 for one to skip.
"""

from __future__ import annotations

RAY_FIELDS = (
    "org_x", "org_y", "org_z", "tnear", "dir_x", "dir_y", "dir_z", "time", "tfar", "mask", "id", "flags",
)  # fmt: skip
HIT_FIELDS = ("Ng_x", "Ng_y", "Ng_z", "u", "v", "primID", "geomID", "instID", "instPrimID")

WIDTHS = (1, 8, 16)
INVALID_ID = 0xFFFFFFFF  # geomID of a ray that hit nothing


def alignment(width: int) -> int:
    """Return the alignment in bytes that packets of `width` rays need; their validity mask needs 4 * width."""
    return max(16, 4 * width)


def ray_field(width: int) -> dict[str, int]:
    """Return the byte offset of every field in a ray-hit packet of `width` rays, by name (`tfar`, `geomID` ...)."""
    return {name: 4 * width * i for i, name in enumerate(RAY_FIELDS + HIT_FIELDS)}


def ray_size(width: int) -> int:
    """Return the bytes of a ray packet, which is what `occluded` functions take."""
    return 4 * width * len(RAY_FIELDS)


def rayhit_size(width: int) -> int:
    """Return the bytes of a ray-hit packet, which is what `closest` functions take."""
    align = alignment(width)
    return -(-4 * width * len(RAY_FIELDS + HIT_FIELDS) // align) * align
