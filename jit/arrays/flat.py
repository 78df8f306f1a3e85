"""Flat arrays: n elements of one type, recorded lazily and computed when somebody looks."""

from __future__ import annotations

from collections.abc import Iterator
from sys import getrefcount
from typing import Any

from ..dtypes import BY_NUMPY, Bool, DType, Float32, Int32, promote
from ..modes import VarState
from ..ops import arith, bits, math  # noqa: F401  (enter their rows in the table)
from ..ops.row import Row
from ..references import LOCAL
from ..runtime.evaluate import evaluate
from ..trace import AFTER, BITS, CAST, LITERAL, REDUCE, Node, is_symbolic, literal, value_of
from . import transfer
from .base import ArrayBase, hooks, make_binary, make_node, make_unary

_new = object.__new__


class Flat(ArrayBase):
    """A one-dimensional array. `+=`, masked assignment and scatter rebind the object, never a shared buffer.

    >>> from luxgrad.llvm import Float
    >>> x = Float([1, 2, 3])
    >>> y = x * 2 + 1
    >>> print(y, len(y), y[2])
    [3, 5, 7] 3 7.0
    """

    __slots__ = ("_n", "_ad")
    _n: Node
    _ad: Any
    mask: type[Flat]
    is_diff = False
    depth = 1

    def __init__(self, *args: Any) -> None:
        self._ad = None
        if len(args) == 1:
            value = args[0]
            if value.__class__ is self.__class__:
                self._n, self._ad = value._n, value._ad
                return
            other = convert(self.__class__, value)
            self._n, self._ad = other._n, other._ad
        elif not args:
            self._n = transfer.from_values(self.dtype, [])
        else:
            other = convert(self.__class__, args)
            self._n, self._ad = other._n, other._ad

    @classmethod
    def wrap(cls, n: Node, ad: Any = None) -> Any:
        """Return an array of this type for a node."""
        r = _new(cls)
        r._n = n
        r._ad = ad
        return r

    @classmethod
    def promote(cls, a: Any, b: Any) -> Any:
        """Return both operands as one type, or NotImplemented if `b` is for another type's method to handle."""
        kind = b.__class__
        dtype = cls.dtype
        if kind is float:
            if dtype.is_float:
                return a, wrap_literal(cls, b)
            target = cls.ns.flat(Float32)
            return convert(target, a), wrap_literal(target, b)
        if kind is int or kind is bool:
            if dtype is Bool and kind is int:
                target = cls.ns.flat(Int32)
                return convert(target, a), wrap_literal(target, b)
            return a, wrap_literal(cls, b if dtype is Bool else int(b))
        if isinstance(b, Flat):
            target = promoted(cls, kind)
            return convert(target, a), convert(target, b)
        if isinstance(b, ArrayBase):
            return NotImplemented
        if hasattr(b, "dtype") and hasattr(b, "shape"):  # NumPy scalars and arrays
            if b.shape == ():
                return cls.promote(a, b.item())
            found = BY_NUMPY.get(str(b.dtype))
            if found is None:
                raise TypeError(f"{cls.__name__} arrays cannot be combined with NumPy arrays of type {b.dtype}")
            other = cls.ns.flat(found)(b)
            return cls.promote(a, other) if other.__class__ is not cls else (a, other)
        return NotImplemented

    __add__, __radd__ = make_binary("add"), make_binary("add", True)
    __sub__, __rsub__ = make_binary("sub"), make_binary("sub", True)
    __mul__, __rmul__ = make_binary("mul"), make_binary("mul", True)
    __truediv__, __rtruediv__ = make_binary("div"), make_binary("div", True)
    __floordiv__, __rfloordiv__ = make_binary("idiv"), make_binary("idiv", True)
    __mod__, __rmod__ = make_binary("imod"), make_binary("imod", True)
    __and__, __rand__ = make_binary("and"), make_binary("and", True)
    __or__, __ror__ = make_binary("or"), make_binary("or", True)
    __xor__, __rxor__ = make_binary("xor"), make_binary("xor", True)
    __lshift__, __rlshift__ = make_binary("shl"), make_binary("shl", True)
    __rshift__, __rrshift__ = make_binary("shr"), make_binary("shr", True)
    __lt__, __le__ = make_binary("lt"), make_binary("le")
    __gt__, __ge__ = make_binary("gt"), make_binary("ge")
    __neg__, __invert__, __abs__ = make_unary("neg"), make_unary("not"), make_unary("abs")
    _eq, _ne = make_binary("eq"), make_binary("neq")

    def __eq__(self, other: object) -> Any:
        return _comparable(self._eq(other), self, other)

    def __ne__(self, other: object) -> Any:
        return _comparable(self._ne(other), self, other)

    __hash__ = ArrayBase.__hash__
    __array_priority__ = 1000  # NumPy's operators leave mixed expressions to ours

    def __pos__(self) -> Any:
        return self

    def __pow__(self, exponent: Any) -> Any:
        from .functions import power

        return power(self, exponent)

    def __rpow__(self, base: Any) -> Any:
        from .functions import power

        return power(self.__class__(base), self)

    def assign(self, other: Any) -> Any:
        """Make this object the value `other` (what `+=` and masked assignment do) and return it."""
        self._n, self._ad = other._n, other._ad
        return self

    def __iadd__(self, other: Any) -> Any:
        return self._inplace(self + other)

    def __isub__(self, other: Any) -> Any:
        return self._inplace(self - other)

    def __imul__(self, other: Any) -> Any:
        return self._inplace(self * other)

    def __itruediv__(self, other: Any) -> Any:
        return self._inplace(self / other)

    def __ifloordiv__(self, other: Any) -> Any:
        return self._inplace(self // other)

    def __imod__(self, other: Any) -> Any:
        return self._inplace(self % other)

    def __iand__(self, other: Any) -> Any:
        return self._inplace(self & other)

    def __ior__(self, other: Any) -> Any:
        return self._inplace(self | other)

    def __ixor__(self, other: Any) -> Any:
        return self._inplace(self ^ other)

    def __ilshift__(self, other: Any) -> Any:
        return self._inplace(self << other)

    def __irshift__(self, other: Any) -> Any:
        return self._inplace(self >> other)

    def _inplace(self, result: Any) -> Any:
        if result.__class__ is not self.__class__:
            return result
        old, new = self._n, result._n
        # References to the old value: `old`, this array, the new node's arguments. If there is no other, nobody can
        # read it any more once this array is rebound, and the new value may take its memory.
        plain = new.op.__class__ is Row and new is not old and self._ad is None is result._ad
        if plain and getrefcount(old) == LOCAL + 2:
            for k, a in enumerate(new.args):
                if a is old:
                    new.attr = k
        return self.assign(result)

    def __len__(self) -> int:
        return self._n.size

    def __iter__(self) -> Iterator[Any]:
        return iter(transfer.to_list(self._n))

    def __bool__(self) -> bool:
        if self.dtype is not Bool or self._n.size != 1:
            raise RuntimeError(
                f"bool(): only a mask of size 1 has a truth value, found {self.__class__.__name__} of size "
                f"{self._n.size}; use any() or all()"
            )
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if not self.dtype.is_integer:
            raise TypeError(f"a {self.__class__.__name__} array cannot be used as an index")
        return int(self.item())

    def item(self) -> Any:
        """Return the only element as a Python number; raises RuntimeError for other sizes."""
        if self._n.size != 1:
            raise RuntimeError(f"item(): the array must have size 1, found size {self._n.size}")
        return transfer.read(self._n, 0)

    def __getitem__(self, key: Any) -> Any:
        from .indexing import get_flat

        return get_flat(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        from .indexing import set_flat

        set_flat(self, key, value)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return (number of elements,)."""
        return (self._n.size,)

    @property
    def ndim(self) -> int:
        """Return 1."""
        return 1

    @property
    def index(self) -> int:
        """Return the number of the node behind this value; equal numbers mean the same value."""
        return self._n.index

    @property
    def state(self) -> VarState:
        """Return what is known of the elements: a constant, still to be computed, in memory, ..."""
        n = self._n
        if n.op is LITERAL:
            return VarState.Literal
        if n.op is AFTER and n.buf is None:
            return VarState.Dirty
        if n.buf is not None:
            return VarState.Evaluated
        return VarState.Symbolic if is_symbolic(n) else VarState.Unevaluated

    @property
    def index_ad(self) -> int:
        """Return the number of the derivative node, 0 if there is none."""
        return 0 if self._ad is None else int(self._ad.index)

    @property
    def array(self) -> Any:
        """Return the array itself (tensors return their flat storage)."""
        return self

    @property
    def grad(self) -> Any:
        """Return the accumulated gradient (zeros if there is none)."""
        return hooks.custom("grad", self)  # type: ignore[misc]

    @grad.setter
    def grad(self, value: Any) -> None:
        hooks.custom("set_grad", self, value)  # type: ignore[misc]

    def numpy(self) -> Any:
        """Return the elements as a NumPy array that shares this array's memory."""
        return transfer.to_numpy(self._n)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        result = self.numpy()
        return result.astype(dtype) if dtype is not None and result.dtype != dtype else result

    def __dlpack__(self, **options: Any) -> Any:
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __repr__(self) -> str:
        from .printing import format_flat

        return format_flat(self)

    def __copy__(self) -> Any:
        return self.__class__.wrap(self._n, self._ad)

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()

    def __reduce__(self) -> Any:
        return _restore, (self.__class__.__module__, self.__class__.__name__, self.numpy().copy())


def _restore(module: str, name: str, values: Any) -> Any:
    import importlib

    return getattr(importlib.import_module(module), name)(values)


def _comparable(result: Any, a: Any, b: Any) -> Any:
    if result is NotImplemented and not isinstance(b, ArrayBase):
        raise RuntimeError(f"cannot compare a {a.__class__.__name__} array with {type(b).__name__}")
    return result


def wrap_literal(cls: Any, value: bool | int | float, size: int = 1) -> Any:
    """Return a constant of an array type."""
    r = _new(cls)
    r._n = literal(cls.dtype, value, size)
    r._ad = None
    return r


def promoted(a: type[Flat], b: type[Flat]) -> Any:
    """Return the type of an operation on two flat types: later element type, differentiable if either is."""
    ns = a.ns if a.is_diff or not b.is_diff else b.ns
    return ns.flat(promote(a.dtype, b.dtype))


def convert(cls: Any, value: Any) -> Any:
    """Return `value` (number, array, sequence, NumPy or DLPack array) as an array of type `cls`, values converted."""
    kind = value.__class__
    if kind is cls:
        return value
    if kind in (int, float, bool):
        if cls.dtype.is_integer and kind is float:
            value = transfer.integer(cls.dtype, value)
        return wrap_literal(cls, value)
    if isinstance(value, Flat):
        return cast(cls, value)
    if isinstance(value, ArrayBase):
        if hasattr(value, "array") and not hasattr(value, "_c"):
            return convert(cls, value.array)
        raise TypeError(
            f"{cls.__name__}(): cannot convert a {kind.__name__}; use ravel() for its elements in one array"
        )
    return cls.wrap(transfer.from_any(cls, value))


def cast(cls: Any, value: Any) -> Any:
    """Return a flat array converted to another element type; gradients pass between float types."""
    source = value._n
    dtype: DType = cls.dtype
    if source.dtype is dtype:
        n = source
    elif source.op is LITERAL:
        n = literal(dtype, _clamped(dtype, value_of(source)), source.size)
    else:
        n = make_node(CAST, dtype, source.size, (source,))
    r = _new(cls)
    r._n = n
    r._ad = None
    if value._ad is not None and cls.is_diff and dtype.is_float:
        r._ad = value._ad if n is source and value.__class__ is cls else hooks.custom("cast", r, value)  # type: ignore[misc]
    return r


def _clamped(dtype: DType, value: Any) -> Any:
    if dtype is Bool:
        return bool(value)
    if not dtype.is_integer:
        return float(value)
    if value != value or value in (float("inf"), float("-inf")):
        return dtype.limits[0]
    low, high = dtype.limits
    value = int(value)
    return value if low <= value <= high else (value - low) % (high - low + 1) + low


def reinterpret(cls: Any, value: Any) -> Any:
    """Return the bits of a flat array read as another type of equal width; no gradient passes."""
    if cls.dtype.bits != value.dtype.bits:
        raise TypeError(f"reinterpret_array(): {value.__class__.__name__} and {cls.__name__} differ in width")
    source = value._n
    if source.op is LITERAL:
        from ..dtypes import unpack

        return wrap_literal(cls, unpack(cls.dtype, source.attr), source.size)
    return cls.wrap(make_node(BITS, cls.dtype, source.size, (source,)))


def reduce_node(cls: Any, value: Any, op: str) -> Node:
    """Return the node of a reduction over all elements (computed later, fused into what produces them)."""
    return make_node(REDUCE, cls.dtype, 1, (value._n,), op)


def evaluate_arrays(arrays: list[Any]) -> bool:
    """Compute flat arrays; return whether there was work."""
    return evaluate([a._n for a in arrays])
