"""Textures over one to three dimensions: texels of several channels, read at positions in [0, 1].

Texel i of n has its centre at (i + 0.5) / n. The storage is a tensor whose last dimension are the channels; the first
component of a position belongs to the dimension before it (x to the columns of an image of shape (rows, columns,
channels)). Made of gathers: gradients reach values and positions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from .arrays.base import ArrayBase
from .arrays.create import full
from .arrays.flat import Flat, cast, convert
from .arrays.functions import call, clip, lerp, select
from .arrays.memops import gather
from .arrays.nested import Nested
from .dtypes import DType, Int32
from .modes import FilterMode, WrapMode
from .ops.row import ROWS

__all__ = ["Texture"]


class Texture:
    """A texture; `filter_mode` and `wrap_mode` tell what lies between and outside of the texel centres.

    >>> from luxgrad.llvm import Array2f, TensorXf, Texture2f
    >>> texture = Texture2f(TensorXf([0, 1, 2, 3], shape=(2, 2, 1)))
    >>> print(texture.eval(Array2f(0.5, 0.5))[0])
    [1.5]
    """

    ns: Any
    dtype: DType
    dimensions: int

    def __init__(
        self,
        source: Any,
        channels: int | None = None,
        use_accel: bool = True,
        filter_mode: FilterMode = FilterMode.Linear,
        wrap_mode: WrapMode = WrapMode.Clamp,
        migrate: bool = True,
    ) -> None:
        """Make a texture from a tensor (with the channels last), or of zeros from a shape and a number of channels."""
        self._filter, self._wrap = FilterMode(filter_mode), WrapMode(wrap_mode)
        kind = self.ns.tensor(self.dtype)
        if channels is not None:
            dims = (source,) if isinstance(source, int) else tuple(source)
            self._check((*dims, channels))
            self._tensor = kind(full(kind.storage(), 0, math.prod(dims) * channels), (*dims, channels))
        else:
            self.set_tensor(source)

    def _check(self, shape: Sequence[int]) -> None:
        if len(shape) != self.dimensions + 1 or 0 in shape:
            raise ValueError(
                f"{type(self).__name__}: a tensor with {self.dimensions} dimensions and one of channels is needed, "
                f"none of length 0; found the shape {tuple(shape)}"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the numbers of texels and of channels."""
        found: tuple[int, ...] = self._tensor.shape
        return found

    @property
    def ndim(self) -> int:
        """Return the number of dimensions (without channels)."""
        return self.dimensions

    def filter_mode(self) -> FilterMode:
        """Return how values between texel centres are found."""
        return self._filter

    def wrap_mode(self) -> WrapMode:
        """Return what lies outside of [0, 1]."""
        return self._wrap

    def tensor(self) -> Any:
        """Return the texels as a tensor."""
        return self._tensor

    def value(self) -> Any:
        """Return the texels as a flat array, channels fastest."""
        return self._tensor.array

    def set_tensor(self, tensor: Any, migrate: bool = True) -> None:
        """Replace all texels; the shape may change."""
        tensor = self.ns.tensor(self.dtype)(tensor)
        self._check(tensor.shape)
        self._tensor = tensor

    def set_value(self, value: Any, migrate: bool = True) -> None:
        """Replace all texels by those of a flat array of the same number."""
        tensor = self._tensor.__copy__()
        tensor.array = value
        self._tensor = tensor

    def eval(self, pos: Any, active: Any = True) -> list[Any]:
        """Return the value of each channel at `pos`, filtered; 0 where `active` is false."""
        components = self._components(pos)
        if self._filter is FilterMode.Nearest:
            corner = [self._index(_floor(p * n), n) for p, n in zip(components, self._sizes(), strict=True)]
            return [convert(type(components[0]), v) for v in self._fetch(corner, active)]
        low, weights = self._cell(components)
        values = self._corners(low, active)
        values = [[convert(type(components[0]), v) for v in corner] for corner in values]
        # Corners come with the first dimension fastest: each pass halves their number.
        for w in weights:
            values = [
                [lerp(a, b, w) for a, b in zip(values[k], values[k + 1], strict=True)] for k in range(0, len(values), 2)
            ]
        return values[0]

    def eval_nonaccel(self, pos: Any, active: Any = True) -> list[Any]:
        """Return `eval(pos, active)`."""
        return self.eval(pos, active)

    def eval_fetch(self, pos: Any, active: Any = True) -> list[list[Any]]:
        """Return the channels of the texels around `pos` that linear filtering mixes, the first dimension fastest."""
        low, _ = self._cell(self._components(pos))
        return self._corners(low, active)

    def _components(self, pos: Any) -> list[Any]:
        found = list(pos._c) if isinstance(pos, Nested) else [pos] if isinstance(pos, ArrayBase) else list(pos)
        if len(found) != self.dimensions:
            name, given = type(self).__name__, type(pos).__name__
            raise TypeError(f"{name}: positions of {self.dimensions} components are needed, found {given}")
        return [p if isinstance(p, Flat) else self.ns.flat(self.dtype)(p) for p in found]

    def _sizes(self) -> list[int]:
        """Return the number of texels per component of a position."""
        return list(self.shape[-2::-1])

    def _cell(self, components: list[Any]) -> tuple[list[Any], list[Any]]:
        """Return per component the texel at or before the position, and the fraction of the way to the next."""
        low, weights = [], []
        for p, n in zip(components, self._sizes(), strict=True):
            scaled = call(ROWS["fma"], p, float(n), -0.5)
            start = call(ROWS["floor"], scaled)
            low.append(_integer(start))
            weights.append(scaled - start)
        return low, weights

    def _corners(self, low: list[Any], active: Any) -> list[list[Any]]:
        corners = []
        for steps in itertools.product((0, 1), repeat=self.dimensions):
            index = [
                self._index(i + s if s else i, n) for i, s, n in zip(low, reversed(steps), self._sizes(), strict=True)
            ]
            corners.append(self._fetch(index, active))
        return corners

    def _index(self, i: Any, n: int) -> Any:
        """Return a texel number brought into 0 .. n - 1."""
        if self._wrap is WrapMode.Repeat:
            i = _modulo(i, n)
        elif self._wrap is WrapMode.Mirror:
            i = _modulo(i, 2 * n)
            i = select(i < n, i, 2 * n - 1 - i)
        return clip(i, 0, n - 1)

    def _fetch(self, index: list[Any], active: Any) -> list[Any]:
        """Return the channels of one texel per lane."""
        *sizes, channels = self.shape
        place = index[-1]
        for i, n in zip(reversed(index[:-1]), sizes[1:], strict=True):
            place = place * n + i
        flat = self._tensor.array
        return [gather(type(flat), flat, place * channels + c, active) for c in range(channels)]


def _floor(x: Any) -> Any:
    return _integer(call(ROWS["floor"], x))


def _integer(x: Any) -> Any:
    """Return a whole number as Int32; NaN and what does not fit end up at the limits, not anywhere."""
    limited = call(ROWS["fmax"], call(ROWS["fmin"], x, 1e9), -1e9)
    return cast(x.ns.flat(Int32), limited)


def _modulo(i: Any, n: int) -> Any:
    rest = i % n
    return select(rest < 0, rest + n, rest)
