"""Names of choices that functions take as arguments."""

from __future__ import annotations

import enum

__all__ = ["ADMode", "Choice", "FilterMode", "ReduceMode", "ReduceOp", "VarState", "WrapMode"]


class Choice(enum.IntEnum):
    """A named number that prints its name."""

    __str__ = enum.Enum.__str__
    __format__ = enum.Enum.__format__


class ReduceOp(Choice):
    """How values of one place are combined."""

    Identity = 0
    Add = 1
    Mul = 2
    Min = 3
    Max = 4
    And = 5
    Or = 6


class ReduceMode(Choice):
    """How a scatter resolves conflicts. Accepted everywhere; the fastest way that keeps results is always chosen."""

    Auto = 0
    Direct = 1
    Local = 2
    NoConflicts = 3
    Expand = 4
    Permute = 5


class ADMode(Choice):
    """The direction of a traversal: `Primal` computes values only."""

    Primal = 0
    Forward = 1
    Backward = 2


class FilterMode(Choice):
    """How a texture is read between texel centres."""

    Nearest = 0
    Linear = 1


class WrapMode(Choice):
    """What a texture is outside of [0, 1]."""

    Repeat = 0
    Clamp = 1
    Mirror = 2


class VarState(Choice):
    """What is known of an array's elements; `Mixed`: components differ."""

    Invalid = 0
    Undefined = 1
    Literal = 2
    Unevaluated = 3
    Evaluated = 4
    Dirty = 5
    Symbolic = 6
    Mixed = 7
