"""Variants: the array types that a scene is rendered with, such as `llvm_ad_rgb` or `llvm_ad_rgb_double`."""

from __future__ import annotations

import functools
from typing import Any

from ..jit.arrays.namespace import namespace
from ..jit.dtypes import Bool, DType, Float32, Float64, Int32, UInt32, UInt64
from ..jit.errors import SceneError

VARIANTS = ("llvm_ad_rgb", "llvm_ad_rgb_double", "llvm_rgb", "llvm_rgb_double", "scalar_rgb", "scalar_rgb_double")


class Types:
    """The array types of one variant. Points, vectors, normals and colours are kinds of three-component arrays."""

    def __init__(self, variant: str) -> None:
        self.variant = variant
        parts = variant.split("_")
        self.is_double = parts[-1] == "double"
        self.is_diff = "ad" in parts
        self.dtype: DType = Float64 if self.is_double else Float32
        if self.is_diff:
            from ..ad import api  # noqa: F401  (array operations record derivatives from now on)
        self.ns = ns = namespace(parts[0], self.is_diff)
        dtype = self.dtype
        self.Float, self.Bool = ns.flat(dtype), ns.flat(Bool)
        self.Mask = self.Bool
        self.Int32, self.UInt32, self.UInt64 = ns.flat(Int32), ns.flat(UInt32), ns.flat(UInt64)
        self.Int, self.UInt = self.Int32, self.UInt32
        self.Float32, self.Float64 = ns.flat(Float32), ns.flat(Float64)
        self.TensorXf, self.TensorXu = ns.tensor(dtype), ns.tensor(UInt32)
        self.Array2f, self.Array3f = ns.nested((2,), dtype), ns.nested((3,), dtype)
        self.Point2f, self.Vector2f = self._kind("Point2f", 2), self._kind("Vector2f", 2)
        self.Point3f, self.Vector3f = self._kind("Point3f", 3), self._kind("Vector3f", 3)
        self.Normal3f, self.Color3f = self._kind("Normal3f", 3), self._kind("Color3f", 3)
        self.Point4f, self.Vector4f = self._kind("Point4f", 4), self._kind("Vector4f", 4)
        self.Color1f, self.Spectrum, self.UnpolarizedSpectrum = self._kind("Color1f", 1), self.Color3f, self.Color3f
        self.Point2u, self.Vector2u = ns.nested((2,), UInt32), ns.nested((2,), UInt32)
        self.Point2i, self.Vector2i = ns.nested((2,), Int32), ns.nested((2,), Int32)
        self.Vector3u, self.Vector3i = ns.nested((3,), UInt32), ns.nested((3,), Int32)
        self.Matrix2f, self.Matrix3f, self.Matrix4f = (ns.matrix(n, dtype) for n in (2, 3, 4))
        self.PCG32 = ns.pcg32()

    def _kind(self, name: str, size: int) -> Any:
        base = self.ns.nested((size,), self.dtype)
        members = {"__slots__": (), "__module__": self.ns.module, "__doc__": f"A {base.__name__} used as {name}."}
        return type(name, (base,), members)

    def __repr__(self) -> str:
        return f"<types of variant {self.variant}>"


@functools.cache
def types(variant: str) -> Types:
    """Return the types of a variant; raises SceneError for an unknown one."""
    if variant not in VARIANTS:
        raise SceneError(f"unknown variant '{variant}'; available are {', '.join(VARIANTS)}")
    return Types(variant)


def available() -> list[str]:
    """Return the variants that run on this machine."""
    return list(VARIANTS)
