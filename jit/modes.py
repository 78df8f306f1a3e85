"""Names of choices that functions take as arguments."""

from __future__ import annotations

import enum

__all__ = ["ADMode", "FilterMode", "ReduceMode", "ReduceOp", "VarState", "WrapMode"]


class ReduceOp(enum.IntEnum):
    """How values of one place are combined."""

    Identity = 0
    Add = 1
    Mul = 2
    Min = 3
    Max = 4
    And = 5
    Or = 6


class ReduceMode(enum.IntEnum):
    """How a scatter resolves conflicts. Accepted everywhere; the fastest way that keeps results is always chosen."""

    Auto = 0
    Direct = 1
    Local = 2
    NoConflicts = 3
    Expand = 4
    Permute = 5


class ADMode(enum.IntEnum):
    """The direction of a traversal: `Primal` computes values only."""

    Primal = 0
    Forward = 1
    Backward = 2


class FilterMode(enum.IntEnum):
    """How a texture is read between texel centres."""

    Nearest = 0
    Linear = 1


class WrapMode(enum.IntEnum):
    """What a texture is outside of [0, 1]."""

    Repeat = 0
    Clamp = 1
    Mirror = 2


class VarState(enum.IntEnum):
    """What is known of an array's elements; `Mixed`: components differ."""

    Invalid = 0
    Undefined = 1
    Literal = 2
    Unevaluated = 3
    Evaluated = 4
    Dirty = 5
    Symbolic = 6
    Mixed = 7
