"""`luxgrad.stream`: functions over data larger than memory, chunk by chunk. See `docs/streaming.md`."""

from __future__ import annotations

from luxgrad.ad.stream import backward
from luxgrad.jit.stream.current import index, length
from luxgrad.jit.stream.evaluate import evaluate
from luxgrad.jit.stream.report import Report, Result
from luxgrad.jit.stream.sources import raw

__all__ = ["Report", "Result", "backward", "evaluate", "index", "length", "raw"]
