"""`mi.util`: pictures from rendered arrays."""

from __future__ import annotations

from luxgrad.render.image.util import convert_to_bitmap, write_bitmap

__all__ = ["convert_to_bitmap", "write_bitmap"]
