"""Loops, branches and calls over arrays: the public names, gathered from the modules that implement them."""

from __future__ import annotations

from .agreement import check_state
from .branches import choose, if_stmt, switch
from .loops import symbolic_loop, while_loop
from .recording import copied, finish_effects, merge, outside, recording, refuse_reads, undo

__all__ = [
    "check_state", "choose", "copied", "finish_effects", "if_stmt", "merge", "outside", "recording",
    "refuse_reads", "switch", "symbolic_loop", "undo", "while_loop",
]  # fmt: skip
