"""Tensors: flat storage in row-major order with a shape of any rank, and NumPy's rules of broadcasting."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

from ..dtypes import BY_NUMPY
from .base import ArrayBase, hooks
from .flat import Flat, convert
from .nested import Nested
from .strides import broadcast, broadcast_shape, contiguous, strided, transposed


class Tensor(ArrayBase):
    """An array of any shape; `array` is its storage. Slices are copies, assignments to slices scatter.

    >>> from luxgrad.llvm import TensorXf
    >>> t = TensorXf([1, 2, 3, 4, 5, 6], shape=(2, 3))
    >>> print(t[1].array, (t + t[0]).shape, t[:, 2].array)
    [4, 5, 6] (2, 3) [3, 6]
    """

    __slots__ = ("_array", "_shape")
    _array: Any
    _shape: tuple[int, ...]
    is_tensor = True
    is_diff = False
    __array_priority__ = 1002
    __hash__ = ArrayBase.__hash__

    def __init__(self, value: Any = (), shape: Any = None, flip_axes: bool = False) -> None:
        cls = self.storage()
        if value is None:
            raise TypeError(f"{type(self).__name__}(): cannot convert an object of type NoneType")
        flat, found = _storage_of(cls, value, flip_axes)
        if shape is not None:
            wanted = (shape,) if isinstance(shape, int) else tuple(int(d) for d in shape)
            if math.prod(wanted) != flat._n.size:
                if flat._n.size != 1:
                    raise TypeError(f"{type(self).__name__}(): {flat._n.size} elements do not fill the shape {wanted}")
                from .shape import widen

                flat = widen(flat, math.prod(wanted))
            found = wanted
        self._array, self._shape = flat.__copy__(), found

    @classmethod
    def storage(cls) -> Any:
        """Return the type of the storage (in the scalar namespace: an array of the processor's)."""
        if cls.ns.backend == "scalar":
            from .namespace import namespace

            return namespace("llvm", False).flat(cls.dtype)
        return cls.ns.flat(cls.dtype)

    @property
    def array(self) -> Any:
        """Return the storage; a scatter into it changes the tensor."""
        return self._array

    @array.setter
    def array(self, value: Any) -> None:
        value = convert(self.storage(), value)
        if value._n.size != self._array._n.size:
            raise RuntimeError(f"the storage has {self._array._n.size} elements, found {value._n.size}")
        self._array = value.__copy__()

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of elements along each dimension."""
        return self._shape

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self._shape)

    @property
    def index(self) -> int:
        """Return the number of the storage's node."""
        return int(self._array.index)

    @property
    def index_ad(self) -> int:
        """Return the number of the storage's derivative node, 0 if there is none."""
        return int(self._array.index_ad)

    @property
    def T(self) -> Any:
        """Return the tensor with its dimensions reversed."""
        return transposed(self, range(len(self._shape) - 1, -1, -1))

    @property
    def grad(self) -> Any:
        """Return the accumulated gradient, a tensor of the same shape."""
        return hooks.custom("grad", self)  # type: ignore[misc]

    @grad.setter
    def grad(self, value: Any) -> None:
        hooks.custom("set_grad", self, value)  # type: ignore[misc]

    def with_array(self, flat: Any) -> Any:
        """Return a tensor of the same shape with other storage; its type follows the storage's."""
        return flat.ns.tensor(flat.dtype)(flat, self._shape)

    def assign(self, other: Any) -> Any:
        """Make this object the value `other` and return it."""
        self._array, self._shape = other._array, other._shape
        return self

    def __pos__(self) -> Any:
        return self

    def __neg__(self) -> Any:
        return self.with_array(-self._array)

    def __abs__(self) -> Any:
        return self.with_array(abs(self._array))

    def __invert__(self) -> Any:
        return self.with_array(~self._array)

    def __pow__(self, exponent: Any) -> Any:
        from .functions import power

        return power(self, exponent)

    def __rpow__(self, base: Any) -> Any:
        from .functions import power

        return power(type(self)(base), self)

    def __matmul__(self, other: Any) -> Any:
        if not isinstance(other, ArrayBase) and hasattr(type(other), "__rmatmul__") and not hasattr(other, "__array__"):
            return NotImplemented  # a sparse matrix
        return matmul(self, other)

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of a tensor without dimensions")
        return self._shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self._array)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        return self._array.__index__()  # type: ignore[no-any-return]

    def item(self) -> Any:
        """Return the only element as a Python number; raises RuntimeError for other sizes."""
        return self._array.item()

    def __getitem__(self, key: Any) -> Any:
        from .tensor_index import get_tensor

        return get_tensor(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        from .tensor_index import set_tensor

        set_tensor(self, key, value)

    def numpy(self) -> Any:
        """Return a NumPy array of this shape over the storage's memory."""
        return self._array.numpy().reshape(self._shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        result = self.numpy()
        return result.astype(dtype) if dtype is not None and result.dtype != dtype else result

    def __dlpack__(self, **options: Any) -> Any:
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __repr__(self) -> str:
        from .printing import format_tensor

        return format_tensor(self)

    def __copy__(self) -> Any:
        return type(self)(self)

    def __deepcopy__(self, memo: Any) -> Any:
        return type(self)(self)

    def __reduce__(self) -> Any:
        return _restore, (type(self).__module__, type(self).__name__, self.numpy().copy())


def _restore(module: str, name: str, values: Any) -> Any:
    import importlib

    return getattr(importlib.import_module(module), name)(values)


def _storage_of(cls: Any, value: Any, flip_axes: bool) -> tuple[Any, tuple[int, ...]]:
    """Return the elements of anything a tensor can be made of, in row-major order, and its shape."""
    if isinstance(value, Tensor):
        return convert(cls, value.array), value.shape
    if isinstance(value, Flat):
        return convert(cls, value), (value._n.size,)
    if isinstance(value, (int, float, bool)):
        return cls(value), ()
    if isinstance(value, Nested):
        from .shape import ravel

        flat = ravel(value, "F" if flip_axes else "C")
        shape = value.shape if value.ns.backend != "scalar" else value.static_shape
        return convert(cls, flat), shape[::-1] if flip_axes else shape
    import numpy as np

    if hasattr(value, "__dlpack__") and not hasattr(value, "__array_interface__"):
        value = np.from_dlpack(value)
    if isinstance(value, (list, tuple)) and any(isinstance(v, ArrayBase) for v in value):
        value = [np.asarray(v) if isinstance(v, ArrayBase) else v for v in value]
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"cannot make a tensor of an object of type {type(value).__name__} ({array.dtype})")
    return cls(np.ascontiguousarray(array).reshape(-1)), tuple(array.shape)


def _operand(like: Any, value: Any) -> Any:
    """Return an operand as a number, a flat array or a tensor."""
    if isinstance(value, Nested):
        raise RuntimeError(f"Incompatible arguments: {type(like).__name__} and {type(value).__name__}")
    if isinstance(value, (int, float, bool, ArrayBase)):
        return value
    if hasattr(value, "__array_interface__"):
        kind = BY_NUMPY.get(str(value.dtype))
        return value.item() if value.shape == () or kind is None else like.ns.tensor(kind)(value)
    if isinstance(value, (list, tuple)):
        return type(like)(value)
    raise TypeError(f"unsupported operand of type {type(value).__name__} for {type(like).__name__}")


def elementwise(fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return fn applied to the storage of tensors, flat arrays and numbers, broadcast to one shape."""
    like = next(a for a in args if isinstance(a, Tensor))
    args = tuple(_operand(like, a) for a in args)
    arrays = [a for a in args if isinstance(a, ArrayBase)]
    shape = broadcast_shape([a.shape if isinstance(a, Tensor) or a._n.size != 1 else () for a in arrays])
    result = fn(*[_flat(a, shape) for a in args])
    from .shape import widen

    return result.ns.tensor(result.dtype)(widen(result, math.prod(shape)), shape)


def _flat(value: Any, shape: tuple[int, ...]) -> Any:
    if not isinstance(value, ArrayBase):
        return value
    flat = value.array
    if flat._n.size == 1 or value.shape == shape:
        return flat
    return broadcast(flat, value.shape, shape)


def call_tensor(row: Any, args: tuple[Any, ...]) -> Any:
    """Return row(*args) of tensors, flat arrays and numbers."""
    from .functions import call

    return elementwise(lambda *flats: call(row, *flats), args)


def reduce_tensor(op: str, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the reduction `op` over all dimensions (`axis` None), one of them or several."""
    from .reduce import reduce
    from .scan import block_reduce
    from .shape import widen

    rank = len(x.shape)
    if axis is None:
        return x.with_array(x.array).__class__(reduce(op, x.array), (1,) * rank if keepdims else ())
    axes = {a % rank if -rank <= a < rank else -1 for a in ((axis,) if isinstance(axis, int) else axis)}
    if -1 in axes:
        raise RuntimeError(f"reduce(): axis {axis} is out of range for {rank} dimensions")
    kept = [k for k in range(rank) if k not in axes]
    steps = contiguous(x.shape)
    rows = strided(x.array, [(x.shape[k], steps[k]) for k in (*kept, *sorted(axes))])
    shape = tuple(1 if k in axes else x.shape[k] for k in range(rank) if keepdims or k not in axes)
    block = math.prod(x.shape[k] for k in axes)
    if block == 0:
        return x.with_array(x.array).__class__(widen(reduce(op, rows), math.prod(shape)), shape)
    result = block_reduce(op, rows, block)
    return result.ns.tensor(result.dtype)(result, shape)


def matmul(a: Any, b: Any) -> Any:
    """Return the matrix product over the last two dimensions, the others broadcast (as numpy.matmul)."""
    a, b = (v if isinstance(v, Tensor) else (a if isinstance(a, Tensor) else b).__class__(v) for v in (a, b))
    if not a.shape or not b.shape:
        raise RuntimeError("matmul(): tensors without dimensions cannot be multiplied; use *")
    left = (1, *a.shape) if len(a.shape) == 1 else a.shape
    right = (*b.shape, 1) if len(b.shape) == 1 else b.shape
    (m, k), (k2, n) = left[-2:], right[-2:]
    if k != k2:
        raise RuntimeError(f"matmul(): shapes {a.shape} and {b.shape} do not agree")
    x = type(a)(a.array, (*left[:-2], m, 1, k))
    y = type(b)(b.array, right)
    y = transposed(y, (*range(len(right) - 2), len(right) - 1, len(right) - 2))
    y = type(b)(y.array, (*right[:-2], 1, n, k))
    total = reduce_tensor("add", x * y, -1)
    shape = list(total.shape)
    if len(b.shape) == 1:
        del shape[-1]
    if len(a.shape) == 1:
        del shape[-1 if len(b.shape) == 1 else -2]
    return type(total)(total.array, shape)


def _binary(fn: Callable[..., Any], swap: bool = False) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return elementwise(fn, (other, self) if swap else (self, other))

    return method


def _inplace(fn: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        result = fn(self, other)
        same = type(result) is type(self) and result.shape == self.shape
        return self.assign(result) if same else result

    return method


def _comparison(fn: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if other is None or isinstance(other, str):
            raise RuntimeError(f"cannot compare a {type(self).__name__} with {type(other).__name__}")
        return elementwise(fn, (self, other))

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift"):
    _fn = getattr(operator, {"and": "and_", "or": "or_"}.get(_name, _name))
    setattr(Tensor, f"__{_name}__", _binary(_fn))
    setattr(Tensor, f"__r{_name}__", _binary(_fn, swap=True))
    setattr(Tensor, f"__i{_name}__", _inplace(_fn))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Tensor, f"__{_name}__", _comparison(getattr(operator, _name)))
