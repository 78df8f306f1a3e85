"""Arrays with fixed leading dimensions: vectors of flat arrays (or of Python numbers in the scalar namespace)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from ..dtypes import BY_NUMPY, Bool, Float32, promote
from .base import ArrayBase
from .flat import Flat

_new = object.__new__


class Nested(ArrayBase):
    """A vector of components; operations act on each, and arrays of fewer dimensions are broadcast to all."""

    __slots__ = ("_c",)
    _c: list[Any]
    static_shape: tuple[int, ...]
    value_t: Any
    is_diff = False
    __array_priority__ = 1001
    __hash__ = ArrayBase.__hash__

    def __init__(self, *args: Any, **named: Any) -> None:
        if len(args) == 1:
            self._c = self._from_one(args[0])
        elif not args:
            self._c = [_component(self.value_t, 0) for _ in range(self.static_shape[0])]
        elif len(args) == self.static_shape[0]:
            self._c = [_component(self.value_t, a) for a in args]
        else:
            count = self.static_shape[0]
            raise TypeError(
                f"{type(self).__name__}(): expected {count} components (or one to broadcast), found {len(args)}"
            )

    def _from_one(self, value: Any) -> list[Any]:
        n = self.static_shape[0]
        if isinstance(value, Nested):
            if value.static_shape[0] == n and value.depth == self.depth:
                return [_component(self.value_t, c) for c in value._c]
            if value.depth < self.depth:
                return [_component(self.value_t, value) for _ in range(n)]
            raise TypeError(f"{type(self).__name__}(): cannot convert a {type(value).__name__}")
        if isinstance(value, (int, float, bool, Flat)):
            return [_component(self.value_t, value) for _ in range(n)]
        if hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__"):
            return self._from_numpy(value)
        if hasattr(value, "array") and hasattr(value, "shape"):
            return self._from_numpy(value.numpy())
        try:
            items = None if isinstance(value, (str, bytes, dict)) else list(value)
        except TypeError:
            items = None
        if items is None:
            raise TypeError(f"{type(self).__name__}(): cannot convert an object of type {type(value).__name__}")
        if len(items) == 1 and n != 1:
            items = items * n
        if len(items) != n:
            raise TypeError(f"{type(self).__name__}(): expected {n} components, found {len(items)}")
        return [_component(self.value_t, i) for i in items]

    def _from_numpy(self, value: Any) -> list[Any]:
        import numpy as np

        array = np.asarray(value)
        n = self.static_shape[0]
        wanted = (*self.static_shape, "N")
        if array.ndim == len(self.static_shape) and tuple(array.shape) == self.static_shape:
            return [_component(self.value_t, array[k] if array[k].ndim else array[k].item()) for k in range(n)]
        if array.ndim != len(self.static_shape) + 1 or tuple(array.shape[:-1]) != self.static_shape:
            text = ", ".join(map(str, wanted))
            raise TypeError(f"{type(self).__name__}(): expected an array of shape ({text}), found {tuple(array.shape)}")
        return [_component(self.value_t, np.ascontiguousarray(array[k])) for k in range(n)]

    @classmethod
    def of(cls, components: list[Any]) -> Any:
        """Return an array of this type from components of the right type."""
        r = _new(cls)
        r._c = components
        return r

    def __iter__(self) -> Iterator[Any]:
        return iter(self._c)

    def __len__(self) -> int:
        return len(self._c)

    def __bool__(self) -> bool:
        raise RuntimeError(f"bool(): a {type(self).__name__} has no truth value; use all() or any()")

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the fixed dimensions and the number of elements."""
        return (*self.static_shape, width(self)) if self.ns.backend != "scalar" else self.static_shape

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return self.depth

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (Flat, Nested)) and key.dtype is Bool:
            return self.__copy__()  # `x[mask] += 1` changes what is returned here in place
        if isinstance(key, tuple):
            rest = key[1:]
            item = self[key[0]]
            return item[rest if len(rest) > 1 else rest[0]] if rest else item
        try:
            return self._c[key]
        except IndexError:
            raise self._no_component(key) from None

    def _no_component(self, key: Any) -> IndexError:
        return IndexError(f"{type(self).__name__}: component {key} was asked for, there are {len(self._c)} (from 0)")

    def __setitem__(self, key: Any, value: Any) -> None:
        from .functions import select

        if isinstance(key, (Flat, Nested)) and key.dtype is Bool:
            self.assign(type(self)(select(key, type(self)(value), self)))
        elif isinstance(key, tuple) and len(key) > 1:
            item = self._c[key[0]]
            item[key[1:] if len(key) > 2 else key[1]] = value
        else:
            self._c[key if not isinstance(key, tuple) else key[0]] = _component(self.value_t, value)

    def assign(self, other: Any) -> Any:
        """Make this object the value `other` and return it."""
        self._c = list(other._c)
        return self

    def __pow__(self, exponent: Any) -> Any:
        from .functions import power

        return power(self, exponent)

    def __rpow__(self, base: Any) -> Any:
        from .functions import power

        return power(type(self)(base), self)

    def __neg__(self) -> Any:
        return type(self).of([-c for c in self._c])

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return type(self).of([abs(c) for c in self._c])

    def __invert__(self) -> Any:
        return type(self).of([(not c) if isinstance(c, bool) else ~c for c in self._c])

    def __matmul__(self, other: Any) -> Any:
        from .linear import dot

        return dot(self, other)

    @property
    def grad(self) -> Any:
        """Return the gradients of the components."""
        return type(self)([getattr(c, "grad", 0) for c in self._c])

    @grad.setter
    def grad(self, value: Any) -> None:
        value = type(self)(value)
        for c, g in zip(self._c, value._c, strict=True):
            c.grad = g

    def numpy(self) -> Any:
        """Return a NumPy array of shape (fixed dimensions, elements)."""
        import numpy as np

        if self.ns.backend == "scalar":
            return np.array([c.numpy() if isinstance(c, ArrayBase) else c for c in self._c], self.dtype.numpy)
        parts = [c.numpy() for c in self._c]
        size = max((p.shape[-1] for p in parts), default=0)
        return np.stack([np.broadcast_to(p, (*p.shape[:-1], size)) for p in parts])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        result = self.numpy()
        return result.astype(dtype) if dtype is not None and result.dtype != dtype else result

    def __repr__(self) -> str:
        from .printing import format_nested

        return format_nested(self)

    def __copy__(self) -> Any:
        return type(self).of([c.__copy__() if isinstance(c, ArrayBase) else c for c in self._c])

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()

    def __reduce__(self) -> Any:
        return _restore, (type(self), self.numpy().copy())


def _restore(cls: Any, values: Any) -> Any:
    return cls(values)


def _component(kind: Any, value: Any) -> Any:
    if value.__class__ is kind:
        return value.__copy__() if isinstance(value, ArrayBase) else value
    return kind(value)


def width(value: Any) -> int:
    """Return the number of elements along the last (dynamic) dimension."""
    if isinstance(value, Flat):
        return value._n.size
    if isinstance(value, Nested):
        sizes = {width(c) for c in value._c} - {1}
        return 1 if not sizes else sizes.pop() if len(sizes) == 1 else -1
    return len(value.array) if hasattr(value, "array") else 1


def result_type(a: Any, b: Any, mask: bool) -> Any:
    """Return the type of an operation between a nested array and another value; None if shapes do not agree."""
    nested = a if isinstance(a, Nested) else b
    other = b if nested is a else a
    if isinstance(other, Nested):
        if other.depth > nested.depth:
            nested, other = other, nested
        elif other.depth == nested.depth and other.static_shape != nested.static_shape:
            return None
    dtype = nested.dtype
    is_diff = nested.is_diff
    if isinstance(other, ArrayBase):
        dtype = promote(dtype, other.dtype)
        is_diff = is_diff or getattr(other, "is_diff", False)
    elif isinstance(other, float) and not dtype.is_float:
        dtype = Float32
    elif hasattr(other, "dtype") and getattr(other, "shape", None) == ():
        dtype = promote(dtype, BY_NUMPY[str(other.dtype)])
    if not mask and dtype is nested.dtype and is_diff == nested.is_diff:
        return type(nested)
    ns = other.ns if isinstance(other, ArrayBase) and nested.ns.backend == "scalar" else nested.ns
    ns = ns.differentiable if is_diff and not ns.is_diff else ns
    return ns.nested(nested.static_shape, Bool if mask else dtype)


def elementwise(fn: Callable[..., Any], a: Any, b: Any, mask: bool = False) -> Any:
    """Return fn applied to the components of two values, of which at least one is nested."""
    cls = result_type(a, b, mask)
    if cls is None:
        raise RuntimeError(
            f"Incompatible arguments: {type(a).__name__} and {type(b).__name__} have different numbers of components"
        )
    n = cls.static_shape[0]
    left = a._c if isinstance(a, Nested) and a.depth == cls.depth else [a] * n
    right = b._c if isinstance(b, Nested) and b.depth == cls.depth else [b] * n
    kind = cls.value_t
    out = [fn(x, y) for x, y in zip(left, right, strict=True)]
    return cls.of([c if c.__class__ is kind else kind(c) for c in out])


def _accepts(value: Any) -> bool:
    return isinstance(value, (int, float, bool, Flat, Nested)) or getattr(value, "shape", None) == ()


def _binary(fn: Callable[..., Any], swap: bool = False, mask: bool = False) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if isinstance(other, Nested) and other.is_matrix and not mask:
            return NotImplemented
        if not _accepts(other):
            if isinstance(other, (list, tuple)) or hasattr(other, "__array_interface__"):
                other = self.ns.nested(self.static_shape, self.dtype)(other)
            else:
                return NotImplemented
        return elementwise(fn, other, self, mask) if swap else elementwise(fn, self, other, mask)

    return method


def _inplace(fn: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        result = fn(self, other)
        return self.assign(result) if type(result) is type(self) else result

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift"):
    _fn = getattr(operator, {"and": "and_", "or": "or_"}.get(_name, _name))
    setattr(Nested, f"__{_name}__", _binary(_fn))
    setattr(Nested, f"__r{_name}__", _binary(_fn, swap=True))
    setattr(Nested, f"__i{_name}__", _inplace(_fn))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Nested, f"__{_name}__", _binary(getattr(operator, _name), mask=True))
for _position, _name in enumerate("xyzw"):

    def _get(self: Any, k: int = _position) -> Any:
        if k >= len(self._c):
            raise AttributeError(f"{type(self).__name__} has no component '{'xyzw'[k]}'")
        return self._c[k]

    def _set(self: Any, value: Any, k: int = _position) -> None:
        self._c[k] = _component(self.value_t, value)

    setattr(Nested, _name, property(_get, _set))


def _swizzle(self: Any, name: str) -> Any:
    if len(name) in (2, 3, 4) and all(ch in "xyzw"[: len(self._c)] for ch in name):
        return self.ns.nested((len(name), *self.static_shape[1:]), self.dtype).of(
            [_component(self.value_t, self._c["xyzw".index(ch)]) for ch in name]
        )
    raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


Nested.__getattr__ = _swizzle  # type: ignore[attr-defined]
