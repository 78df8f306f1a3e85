"""`luxgrad.stream`: functions over data larger than memory, chunk by chunk. See `docs/streaming.md`."""

from __future__ import annotations

__all__: list[str] = []
