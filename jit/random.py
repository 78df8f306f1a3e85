"""Random numbers: the generator PCG32 (O'Neill 2014, XSH-RR, 64-bit state) and the cipher-like hash TEA."""

from __future__ import annotations

import operator
from typing import Any

from .arrays.base import ArrayBase
from .arrays.create import arange
from .arrays.flat import Flat, cast, convert, reinterpret
from .arrays.functions import select
from .dtypes import Bool, Float32, Float64, Int64, UInt32, UInt64

_MULTIPLIER = 0x5851F42D4C957F2D
_STATE = 0x853C49E6748FEA9B
_STREAM = 0xDA3E39CB94B95BDB
_MASK = (1 << 64) - 1


class _PyTree:
    """`DRJIT_STRUCT` of the generator: its fields have the types of its namespace."""

    def __get__(self, instance: Any, owner: Any) -> dict[str, Any]:
        kind = owner.word(UInt64)
        return {"state": kind, "inc": kind}


class PCG32:
    """A stream of random numbers per lane; lane i of `size` starts at initstate + i in stream initseq + i.

    `state` and `inc` are UInt64 arrays; a generator may be loop state.

    >>> import luxgrad as dr
    >>> from luxgrad.llvm import PCG32
    >>> u = PCG32(size=1000).next_float32()
    >>> bool(dr.all((u >= 0) & (u < 1))), 0.45 < dr.mean(u)[0] < 0.55
    (True, True)
    """

    ns: Any
    DRJIT_STRUCT = _PyTree()
    state: Any
    inc: Any

    def __init__(self, size: Any = 1, initstate: Any = _STATE, initseq: Any = _STREAM) -> None:
        if isinstance(size, PCG32):
            self.state, self.inc = size.state.__copy__(), size.inc.__copy__()
            return
        try:
            size = operator.index(size)
        except (TypeError, RuntimeError):
            raise TypeError(f"PCG32(): the size must be an int, found {size!r} of type {type(size).__name__}") from None
        if size < 1:
            raise ValueError(f"PCG32(): the size must be at least 1, found {size}")
        kind = self.word(UInt64)
        start, sequence = _word(kind, initstate), _word(kind, initseq)
        if size > 1:
            lane = arange(kind, size)
            start, sequence = start + lane, sequence + lane
        self.seed(start, sequence)

    @classmethod
    def word(cls, dtype: Any) -> Any:
        """Return the array type of an element type that results have (scalar namespace: arrays of the processor)."""
        if cls.ns.backend == "scalar":
            from .arrays.namespace import namespace

            return namespace("llvm", False).flat(dtype)
        return cls.ns.flat(dtype)

    def seed(self, initstate: Any = _STATE, initseq: Any = _STREAM) -> PCG32:
        """Start again at `initstate` in stream `initseq` (integers or arrays), and return the generator."""
        kind = self.word(UInt64)
        self.inc = (_word(kind, initseq) << 1) | 1
        # The first step from state 0 leaves inc; then the start is added and one more step made.
        self.state = self.inc + _word(kind, initstate)
        self.next_uint32()
        return self

    def next_uint32(self, mask: Any = True) -> Any:
        """Return 32 random bits per lane (UInt32); lanes outside `mask` do not advance."""
        old = self.state
        self._advance(old * _MULTIPLIER + self.inc, mask)
        kind = self.word(UInt32)
        shifted = cast(kind, ((old >> 18) ^ old) >> 27)
        turn = cast(kind, old >> 59)
        return (shifted >> turn) | (shifted << ((~turn + 1) & 31))

    def _advance(self, state: Any, mask: Any) -> None:
        self.state = state if mask is True else select(convert(state.mask, mask), state, self.state)

    def next_uint64(self, mask: Any = True) -> Any:
        """Return 64 random bits per lane (UInt64): the second draw above the first."""
        kind = self.word(UInt64)
        low = cast(kind, self.next_uint32(mask))
        return low + (cast(kind, self.next_uint32(mask)) << 32)

    def next_float32(self, mask: Any = True) -> Any:
        """Return floats in [0, 1), multiples of 2^-23."""
        bits = (self.next_uint32(mask) >> 9) | 0x3F800000
        return reinterpret(self.word(Float32), bits) - 1.0

    def next_float64(self, mask: Any = True) -> Any:
        """Return doubles in [0, 1), multiples of 2^-32 in the leading bits of 52."""
        bits = (cast(self.word(UInt64), self.next_uint32(mask)) << 20) | 0x3FF0000000000000
        return reinterpret(self.word(Float64), bits) - 1.0

    def next_uint32_bounded(self, bound: int, mask: Any = True) -> Any:
        """Return integers in [0, bound), all equally likely: draws that would favour some are repeated per lane."""
        return self._bounded(bound, mask, UInt32, self.next_uint32)

    def next_uint64_bounded(self, bound: int, mask: Any = True) -> Any:
        """Return 64-bit integers in [0, bound), all equally likely."""
        return self._bounded(bound, mask, UInt64, self.next_uint64)

    def _bounded(self, bound: int, mask: Any, dtype: Any, draw: Any) -> Any:
        from .control import while_loop

        if not 0 < bound <= dtype.limits[1]:
            raise ValueError(f"next_{dtype.name.lower()}_bounded(): the bound must be 1 or more, found {bound}")
        kind = self.word(dtype)
        # (2^bits - bound) mod bound = 2^bits mod bound: below it lies the incomplete range that is drawn again.
        threshold = ((1 << dtype.bits) - bound) % bound

        def again(state: Any, value: Any, wanted: Any) -> Any:
            self.state = state
            drawn = draw(wanted)
            value = select(wanted, drawn, value)
            return self.state, value, wanted & (drawn < threshold)

        active = convert(self.word(Bool), mask)
        start = (self.state, kind(0), active)
        labels = ("state", "value", "wanted")
        self.state, value, _ = while_loop(start, lambda s, v, wanted: wanted, again, labels=labels)
        return value % bound

    def __add__(self, steps: Any) -> PCG32:
        return self._jumped(steps)

    def __iadd__(self, steps: Any) -> PCG32:
        self.state = self._jumped(steps).state
        return self

    def __sub__(self, other: Any) -> Any:
        """Return the generator so many steps back, or (of another generator) how many steps lie between them."""
        if isinstance(other, PCG32):
            return self._distance(other)
        return self._jumped(-other if isinstance(other, ArrayBase) else -int(other))

    def __isub__(self, steps: Any) -> PCG32:
        self.state = (self - steps).state
        return self

    def _jumped(self, steps: Any) -> PCG32:
        """Return the generator `steps` draws ahead, by 64 squarings (Brown 1994)."""
        kind = self.word(UInt64)
        multiplier, increment = kind(_MULTIPLIER), self.inc
        total, added = kind(1), kind(0)
        known = not isinstance(steps, ArrayBase)
        left: Any = steps & _MASK if known else convert(kind, convert(self.word(_signed(steps)), steps))
        for _ in range(64):
            if known and not left:
                break
            odd = bool(left & 1) if known else (left & 1) != 0
            if not known or odd:
                total = select(odd, total * multiplier, total)
                added = select(odd, added * multiplier + increment, added)
            increment = (multiplier + 1) * increment
            multiplier = multiplier * multiplier
            left = left >> 1
        result = object.__new__(type(self))
        result.state, result.inc = total * self.state + added, self.inc
        return result

    def _distance(self, other: PCG32) -> Any:
        """Return how many draws of `other` lead to this state, as Int64."""
        kind = self.word(UInt64)
        multiplier, increment = kind(_MULTIPLIER), self.inc
        state, distance = other.state, kind(0)
        for bit in range(64):
            differs = ((self.state ^ state) & (1 << bit)) != 0
            state = select(differs, state * multiplier + increment, state)
            distance = select(differs, distance | (1 << bit), distance)
            increment = (multiplier + 1) * increment
            multiplier = multiplier * multiplier
        return cast(self.word(Int64), distance)

    def __copy__(self) -> PCG32:
        return type(self)(self)

    def __repr__(self) -> str:
        return f"PCG32[state={self.state}, inc={self.inc}]"


def _signed(steps: Any) -> Any:
    return Int64 if steps.dtype.is_signed else UInt64


def _word(kind: Any, value: Any) -> Any:
    return convert(kind, value) if isinstance(value, ArrayBase) else kind(int(value) & _MASK)


def sample_tea_32(v0: Any, v1: Any, rounds: int = 4) -> tuple[Any, Any]:
    """Return two well mixed 32-bit words made of two (Wheeler and Needham's cipher); Python ints or UInt32 arrays."""
    total = 0
    for v in (v0, v1):
        if not isinstance(v, (int, Flat)):
            raise TypeError(f"sample_tea_32(): ints or UInt32 arrays are mixed, found {type(v).__name__}")
    array = next((v for v in (v0, v1) if isinstance(v, Flat)), None)
    if array is None:
        for _ in range(rounds):
            total = (total + 0x9E3779B9) & 0xFFFFFFFF
            v0 = (v0 + ((v1 << 4) + 0xA341316C ^ v1 + total ^ (v1 >> 5) + 0xC8013EA4)) & 0xFFFFFFFF
            v1 = (v1 + ((v0 << 4) + 0xAD90777D ^ v0 + total ^ (v0 >> 5) + 0x7E95761E)) & 0xFFFFFFFF
        return v0, v1
    kind = array.ns.flat(UInt32)
    v0, v1 = (convert(kind, v) if isinstance(v, Flat) else kind(int(v) & 0xFFFFFFFF) for v in (v0, v1))
    for _ in range(rounds):
        total = (total + 0x9E3779B9) & 0xFFFFFFFF
        v0 = v0 + (((v1 << 4) + 0xA341316C) ^ (v1 + total) ^ ((v1 >> 5) + 0xC8013EA4))
        v1 = v1 + (((v0 << 4) + 0xAD90777D) ^ (v0 + total) ^ ((v0 >> 5) + 0x7E95761E))
    return v0, v1


def sample_tea_64(v0: Any, v1: Any, rounds: int = 4) -> Any:
    """Return the words of `sample_tea_32` as one of 64 bits, the second above the first."""
    low, high = sample_tea_32(v0, v1, rounds)
    if not isinstance(low, Flat):
        return low | high << 32
    kind = low.ns.flat(UInt64)
    return cast(kind, low) + (cast(kind, high) << 32)


def sample_tea_float32(v0: Any, v1: Any, rounds: int = 4) -> Any:
    """Return a float in [0, 1) made of the second word of `sample_tea_32`."""
    word = sample_tea_32(v0, v1, rounds)[1]
    if not isinstance(word, Flat):
        return (word >> 9) / 8388608.0
    return reinterpret(word.ns.flat(Float32), (word >> 9) | 0x3F800000) - 1.0
