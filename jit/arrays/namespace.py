"""The array types of one backend: made on demand from the table of element types, found by their Dr.Jit names."""

from __future__ import annotations

import functools
import re
from typing import Any

from .. import dtypes
from ..dtypes import DType
from .flat import Flat

_SHORT = {"b": dtypes.Bool, "i8": dtypes.Int8, "u8": dtypes.UInt8, "i": dtypes.Int32, "u": dtypes.UInt32}
_SHORT |= {"i64": dtypes.Int64, "u64": dtypes.UInt64, "f16": dtypes.Float16, "f": dtypes.Float32, "f64": dtypes.Float64}
_SUFFIX = {dtype: short for short, dtype in _SHORT.items()} | {dtypes.Int16: "i16", dtypes.UInt16: "u16"}
_SHORT |= {"i16": dtypes.Int16, "u16": dtypes.UInt16}
_FLAT = {d.name: d for d in dtypes.ALL} | {"Float": dtypes.Float32, "Int": dtypes.Int32, "UInt": dtypes.UInt32}
_NAMES = {dtypes.Float32: "Float", dtypes.Int32: "Int", dtypes.UInt32: "UInt"}
_PATTERN = re.compile(r"(Array|Matrix|Tensor|Texture)(X|[0-4]+)(b|i8|u8|i16|u16|i64|u64|i|u|f16|f64|f)$")


class Namespace:
    """All array types of a backend ("llvm", "cuda" or "scalar"), differentiable or not."""

    frozen_whole = True

    def __init__(self, backend: str, is_diff: bool) -> None:
        self.backend, self.is_diff = backend, is_diff
        self.module = f"luxgrad.{backend}" + (".ad" if is_diff else "")
        self._flat: dict[DType, Any] = {}
        self._made: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<types of {self.module}>"

    def flat(self, dtype: DType) -> Any:
        """Return the flat array type of an element type (Python's own number types in the scalar namespace)."""
        found = self._flat.get(dtype)
        if found is None:
            found = self._flat[dtype] = self._make_flat(dtype)
        return found

    def _make_flat(self, dtype: DType) -> Any:
        if self.backend == "scalar":
            return {"b": bool, "f": float}.get(dtype.kind, int)
        name = _NAMES.get(dtype, dtype.name)
        members = {"__slots__": (), "ns": self, "dtype": dtype, "is_diff": self.is_diff, "__module__": self.module}
        members["__doc__"] = f"An array of {dtype.name} elements."
        cls: Any = type(name, (Flat,), members)
        cls.mask = cls if dtype is dtypes.Bool else self.flat(dtypes.Bool)
        return cls

    def nested(self, shape: tuple[int, ...], dtype: DType) -> Any:
        """Return the array type with leading dimensions of fixed size, such as Array3f for (3,)."""
        key = ("array", shape, dtype)
        if key not in self._made:
            from .nested import Nested

            self._made[key] = self._make("Array", Nested, shape, dtype)
        return self._made[key]

    def matrix(self, n: int, dtype: DType) -> Any:
        """Return the square matrix type of n rows."""
        key = ("matrix", n, dtype)
        if key not in self._made:
            from .matrix import Matrix

            self._made[key] = self._make("Matrix", Matrix, (n, n), dtype)
        return self._made[key]

    def _make(self, kind: str, base: Any, shape: tuple[int, ...], dtype: DType) -> Any:
        digits = str(shape[0]) if kind == "Matrix" else "".join(map(str, shape))
        component = self.flat(dtype) if len(shape) == 1 else self.nested(shape[1:], dtype)
        members = {
            "__slots__": (),
            "ns": self,
            "dtype": dtype,
            "is_diff": self.is_diff,
            "__module__": self.module,
            "static_shape": shape,
            "value_t": component,
            "depth": len(shape) + 1,
            "__doc__": f"{kind} of shape {shape} with {dtype.name} elements.",
        }
        return type(f"{kind}{digits}{_SUFFIX[dtype]}", (base,), members)

    def tensor(self, dtype: DType) -> Any:
        """Return the tensor type of an element type."""
        key = ("tensor", dtype)
        if key not in self._made:
            from .tensor import Tensor

            members = {"__slots__": (), "ns": self, "dtype": dtype, "is_diff": self.is_diff, "__module__": self.module}
            members["__doc__"] = f"An array of any shape with {dtype.name} elements."
            self._made[key] = type(f"TensorX{_SUFFIX[dtype]}", (Tensor,), members)
        return self._made[key]

    def texture(self, dimensions: int, dtype: DType) -> Any:
        """Return the texture type over so many dimensions."""
        key = ("texture", dimensions, dtype)
        if key not in self._made:
            from ..texture import Texture

            members = {"ns": self, "dtype": dtype, "dimensions": dimensions, "__module__": self.module}
            self._made[key] = type(f"Texture{dimensions}{_SUFFIX[dtype]}", (Texture,), members)
        return self._made[key]

    def get(self, name: str) -> Any:
        """Return the type of a Dr.Jit name ("Float", "Array3f", "Matrix4f64", "TensorXf"); raises AttributeError."""
        if name in _FLAT:
            return self.flat(_FLAT[name])
        if name == "PCG32":
            return self.pcg32()
        if name == "Event" and self.backend != "scalar":
            from ..runtime.events import Event

            return Event
        match = _PATTERN.match(name)
        if match:
            kind, digits, short = match.groups()
            dtype = _SHORT[short]
            if kind == "Tensor" and digits == "X":
                return self.tensor(dtype)
            if kind == "Array" and digits != "X":
                return self.nested(tuple(int(d) for d in digits), dtype)
            if kind == "Matrix" and digits in ("2", "3", "4") and dtype.is_float:
                return self.matrix(int(digits), dtype)
            if kind == "Texture" and digits in ("1", "2", "3") and dtype.is_float:
                return self.texture(int(digits), dtype)
        raise AttributeError(f"module '{self.module}' has no type '{name}'")

    def pcg32(self) -> Any:
        """Return the PCG32 generator type."""
        if "pcg32" not in self._made:
            from ..random import PCG32

            self._made["pcg32"] = type("PCG32", (PCG32,), {"ns": self, "__module__": self.module})
        return self._made["pcg32"]

    def names(self) -> list[str]:
        """Return the names of all types, for `dir()`."""
        shapes = ("2", "3", "4")
        out = list(_FLAT)
        out += [f"Array{n}{s}" for n in ("1", *shapes, "22", "33", "44") for s in _SHORT]
        out += [f"Matrix{n}{s}" for n in shapes for s in ("f16", "f", "f64")]
        out += [f"TensorX{s}" for s in _SHORT] + [f"Texture{n}{s}" for n in "123" for s in ("f16", "f", "f64")]
        return [*out, "PCG32", *(["Event"] if self.backend != "scalar" else [])]

    @property
    def differentiable(self) -> Namespace:
        """Return the namespace of the same backend whose arrays carry gradients."""
        return namespace(self.backend, self.backend != "scalar")

    @property
    def detached(self) -> Namespace:
        """Return the namespace of the same backend without gradients."""
        return namespace(self.backend, False)


@functools.cache
def namespace(backend: str, is_diff: bool) -> Namespace:
    """Return the types of a backend."""
    return Namespace(backend, is_diff)
