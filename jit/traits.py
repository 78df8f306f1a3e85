"""Questions about types: what an array type is, and which types belong to it. All take a type or a value."""

from __future__ import annotations

from typing import Any

from . import dtypes
from .arrays import tree
from .arrays.base import ArrayBase
from .arrays.flat import Flat
from .arrays.nested import Nested
from .diagnostics import JitBackend
from .dtypes import Bool, DType

Dynamic = -1


def _type(value: Any) -> Any:
    return value if isinstance(value, type) else type(value)


def is_array_v(value: Any) -> bool:
    """Return whether it is an array of any kind."""
    return issubclass(_type(value), ArrayBase)


def _dtype(value: Any) -> DType | None:
    kind = _type(value)
    if issubclass(kind, ArrayBase):
        return kind.dtype  # type: ignore[no-any-return]
    if issubclass(kind, bool):
        return Bool
    return dtypes.Int64 if issubclass(kind, int) else dtypes.Float64 if issubclass(kind, float) else None


def is_mask_v(value: Any) -> bool:
    """Return whether elements are masks."""
    return _dtype(value) is Bool


def is_float_v(value: Any) -> bool:
    """Return whether elements are floating point."""
    dtype = _dtype(value)
    return dtype is not None and dtype.is_float


def is_half_v(value: Any) -> bool:
    """Return whether elements are of half precision."""
    return _dtype(value) is dtypes.Float16


def is_integral_v(value: Any) -> bool:
    """Return whether elements are integers."""
    dtype = _dtype(value)
    return dtype is not None and dtype.is_integer


def is_arithmetic_v(value: Any) -> bool:
    """Return whether elements are numbers."""
    return is_float_v(value) or is_integral_v(value)


def is_signed_v(value: Any) -> bool:
    """Return whether elements may be negative."""
    dtype = _dtype(value)
    return dtype is not None and dtype.is_signed


def is_unsigned_v(value: Any) -> bool:
    """Return whether elements cannot be negative."""
    dtype = _dtype(value)
    return dtype is not None and not dtype.is_signed


def is_jit_v(value: Any) -> bool:
    """Return whether operations are recorded and compiled."""
    kind = _type(value)
    return is_array_v(kind) and (issubclass(kind, Flat) or kind.is_tensor or kind.ns.backend != "scalar")


def is_diff_v(value: Any) -> bool:
    """Return whether arrays of this type can carry gradients."""
    return is_array_v(value) and bool(_type(value).is_diff)


def is_dynamic_v(value: Any) -> bool:
    """Return whether the number of elements is found at run time."""
    return is_jit_v(value)


def is_matrix_v(value: Any) -> bool:
    """Return whether it is a matrix."""
    return is_array_v(value) and bool(_type(value).is_matrix)


def is_tensor_v(value: Any) -> bool:
    """Return whether it is a tensor."""
    return is_array_v(value) and bool(_type(value).is_tensor)


def is_complex_v(value: Any) -> bool:
    """Return whether it is a complex number."""
    return bool(getattr(_type(value), "is_complex", False))


def is_quaternion_v(value: Any) -> bool:
    """Return whether it is a quaternion."""
    return bool(getattr(_type(value), "is_quaternion", False))


def is_special_v(value: Any) -> bool:
    """Return whether products are not those of components (matrices, complex numbers, quaternions)."""
    return is_matrix_v(value) or is_complex_v(value) or is_quaternion_v(value)


def is_vector_v(value: Any) -> bool:
    """Return whether it is an array of components that is not special and no tensor."""
    return is_array_v(value) and not is_special_v(value) and not is_tensor_v(value)


def is_struct_v(value: Any) -> bool:
    """Return whether it is a class with DRJIT_STRUCT or a dataclass."""
    return not is_array_v(value) and tree.fields(_type(value)) is not None


def size_v(value: Any) -> int:
    """Return the number of components, Dynamic (-1) if found at run time, 1 of other types."""
    kind = _type(value)
    if not is_array_v(kind):
        return 1
    return int(kind.static_shape[0]) if issubclass(kind, Nested) else Dynamic


def depth_v(value: Any) -> int:
    """Return the number of dimensions, 0 of other types."""
    kind = _type(value)
    if not is_array_v(kind):
        return 0
    if issubclass(kind, Nested) and kind.ns.backend == "scalar":
        return len(kind.static_shape)
    return int(kind.depth)


def itemsize_v(value: Any) -> int:
    """Return the bytes of one element."""
    dtype = _dtype(value)
    if dtype is None:
        raise TypeError(f"itemsize_v(): {_type(value).__name__} has no element type")
    return dtype.itemsize


def backend_v(value: Any) -> JitBackend:
    """Return where arrays of this type live."""
    if not is_jit_v(value):
        return JitBackend.Invalid
    return JitBackend.CUDA if _type(value).ns.backend == "cuda" else JitBackend.LLVM


def type_v(value: Any) -> DType:
    """Return the element type's record."""
    dtype = _dtype(value)
    if dtype is None:
        raise TypeError(f"type_v(): {_type(value).__name__} has no element type")
    return dtype


def value_t(value: Any) -> Any:
    """Return the type of a component (of flat arrays and tensors: of an element; of other types: themselves)."""
    kind = _type(value)
    return kind if not is_array_v(kind) else kind.value_t if issubclass(kind, Nested) else scalar_t(kind)


def scalar_t(value: Any) -> Any:
    """Return the Python type of an element."""
    kind = _type(value)
    return {"b": bool, "f": float}.get(kind.dtype.kind, int) if is_array_v(kind) else kind


def leaf_t(value: Any) -> Any:
    """Return the flat type at the bottom of a nested one."""
    kind = _type(value)
    while is_array_v(kind) and issubclass(kind, Nested):
        kind = kind.value_t
    return kind.storage() if is_tensor_v(kind) else kind


def array_t(value: Any) -> Any:
    """Return the plain form: of a matrix the nested array, of a tensor its storage."""
    kind = _type(value)
    if is_tensor_v(kind):
        return kind.storage()
    return kind.ns.nested(kind.static_shape, kind.dtype) if is_matrix_v(kind) else kind


def tensor_t(value: Any) -> Any:
    """Return the tensor type of the same elements."""
    kind = _type(value)
    return kind.ns.tensor(kind.dtype)


def matrix_t(value: Any) -> Any:
    """Return the matrix type whose rows are of this type, or None."""
    kind = _type(value)
    if is_matrix_v(kind):
        return kind
    return kind.ns.matrix(size_v(kind), kind.dtype) if depth_v(kind) and 2 <= size_v(kind) <= 4 else None


def replace_type_t(value: Any, dtype: DType) -> Any:
    """Return the type of the same shape with other elements."""
    kind = _type(value)
    if not is_array_v(kind):
        return {"b": bool, "f": float}.get(dtype.kind, int) if kind in (bool, int, float) else kind
    if kind.is_tensor:
        return kind.ns.tensor(dtype)
    if kind.is_matrix and dtype.is_float:
        return kind.ns.matrix(kind.static_shape[0], dtype)
    return kind.ns.nested(kind.static_shape, dtype) if issubclass(kind, Nested) else kind.ns.flat(dtype)


def mask_t(value: Any) -> Any:
    """Return the type of a comparison of such arrays."""
    return replace_type_t(value, Bool)


def _in_namespace(value: Any, differentiable: bool) -> Any:
    kind = _type(value)
    if not is_array_v(kind):
        return kind
    ns = kind.ns.differentiable if differentiable else kind.ns.detached
    if kind.is_tensor:
        return ns.tensor(kind.dtype)
    if kind.is_matrix:
        return ns.matrix(kind.static_shape[0], kind.dtype)
    return ns.nested(kind.static_shape, kind.dtype) if issubclass(kind, Nested) else ns.flat(kind.dtype)


def detached_t(value: Any) -> Any:
    """Return the type of the same shape that carries no gradients."""
    return _in_namespace(value, False)


def diff_array_t(value: Any) -> Any:
    """Return the type of the same shape that can carry gradients."""
    return _in_namespace(value, True)


def expr_t(*values: Any) -> Any:
    """Return the type of an operation on values of these types."""
    result = _type(values[0])
    for v in values[1:]:
        other = _type(v)
        if other is not result:
            result = type(_sample(result) + _sample(other))
    return result


def _sample(kind: Any) -> Any:
    return kind(0)


def _replacing(dtype: DType) -> Any:
    def replace(value: Any) -> Any:
        return replace_type_t(value, dtype)

    replace.__doc__ = f"Return the type of the same shape with {dtype.name} elements."
    replace.__name__ = replace.__qualname__ = f"{dtype.name.lower()}_array_t"
    return replace


int8_array_t, uint8_array_t = _replacing(dtypes.Int8), _replacing(dtypes.UInt8)
int32_array_t, uint32_array_t = _replacing(dtypes.Int32), _replacing(dtypes.UInt32)
int64_array_t, uint64_array_t = _replacing(dtypes.Int64), _replacing(dtypes.UInt64)
float16_array_t, float32_array_t = _replacing(dtypes.Float16), _replacing(dtypes.Float32)
float64_array_t, bool_array_t = _replacing(dtypes.Float64), _replacing(Bool)


def int_array_t(value: Any) -> Any:
    """Return the type of the same shape with signed integers of the same width."""
    return replace_type_t(value, dtypes.SIGNED[type_v(value).bits])


def uint_array_t(value: Any) -> Any:
    """Return the type of the same shape with unsigned integers of the same width."""
    return replace_type_t(value, dtypes.UNSIGNED[type_v(value).bits])


def float_array_t(value: Any) -> Any:
    """Return the type of the same shape with floats of the same width (at least half precision)."""
    return replace_type_t(value, dtypes.FLOATS[max(16, type_v(value).bits)])
