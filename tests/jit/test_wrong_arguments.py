"""Wrong arguments of the array functions: each is one error that names the function and what was found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import luxgrad as dr
from luxgrad.llvm.ad import PCG32, Array3f, Bool, Float, TensorXf, UInt

X, U, M, V = Float(1, 2, 3), UInt(0, 1, 2), Bool(True, False, True), Array3f(1, 2, 3)
T = TensorXf(np.ones((2, 3)))


def same(a: Any) -> Any:
    return a


_WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: dr.gather(Float, X, 1.5), r"an index must be an integer or an integer array, found 1\.5"),
    (lambda: dr.scatter(Float(X), 1.0, [0.5]), r"an index must be an integer"),
    (lambda: dr.scatter_reduce(None, Float(X), 1.0, U), r"scatter_reduce\(\): the operation is a ReduceOp or its name"),
    (lambda: dr.set_thread_count(2.5), r"the number of threads must be an int, found 2\.5"),
    (lambda: dr.block_sum(X, "a"), r"block size must be an int, found 'a'"),
    (lambda: dr.binary_search(0, 3, 3), r"binary_search\(\): pred must be a function"),
    (lambda: dr.dispatch(3, same), r"dispatch\(\): an array of instances is needed"),
    (lambda: dr.sample_tea_32("a", 1), r"sample_tea_32\(\): ints or UInt32 arrays"),
    (lambda: dr.max([]), r"max\(\): the smallest or largest of nothing"),
    (lambda: dr.sum("abc"), r"a reduction needs an array, a number or a sequence"),
    (lambda: dr.sin("a"), r"sin\(\): an array or a number is needed, found str"),
    (lambda: dr.sin(None), r"sin\(\): an array or a number is needed, found NoneType"),
    (lambda: dr.sqrt([1, 2]), r"sqrt\(\): an array or a number is needed, found list"),
    (lambda: dr.exp(np.ones(3)), r"exp\(\): an array or a number is needed, found ndarray"),
    (lambda: dr.select("a", X, 2), r"select\(\): the mask must be a bool or a mask array, found str"),
    (lambda: dr.select("a", 1, 2), r"select\(\): the mask must be a bool or a mask array, found str"),
    (lambda: dr.select(X, 1, 2), r"select\(\): the mask must be a mask array, found Float"),
    (lambda: dr.select(None, X, X), r"select\(\): the mask must be a bool"),
    (lambda: V[3], r"Array3f: component 3 was asked for, there are 3"),
    (lambda: dr.tile(X, 2.5), r"tile\(\): the count must be an int, found 2\.5"),
    (lambda: dr.tile(X, -1), r"tile\(\): the count must not be negative"),
    (lambda: dr.repeat(X, "a"), r"repeat\(\): the count must be an int"),
    (lambda: dr.repeat(X, -2), r"repeat\(\): the count must not be negative"),
    (lambda: dr.take(T, 0, axis=7), r"take\(\): axis 7 is out of range for 2 dimensions"),
    (lambda: dr.take("a", 0), r"take\(\): an array is needed, found str"),
    (lambda: dr.reverse(T, 5), r"reverse\(\): axis 5 is out of range"),
    (lambda: dr.meshgrid(X, "a"), r"meshgrid\(\): flat arrays are needed, found str"),
    (lambda: dr.replace_grad(X, 3), r"replace_grad\(\): 1 arrays cannot take the derivatives of 0"),
    (lambda: dr.replace_grad(X, Float(1, 2)), r"replace_grad\(\): sizes 3 and 2"),
    (lambda: dr.while_loop(X, same, same), r"while_loop\(\): the state must be a tuple or list .* found Float"),
    (lambda: dr.while_loop((X,), 3, same), r"while_loop\(\): cond must be a function"),
    (lambda: dr.while_loop((X,), same, "a"), r"while_loop\(\): body must be a function"),
    (lambda: dr.while_loop((X,), same, same, labels="x"), r"while_loop\(\): labels must be a list of names"),
    (lambda: dr.if_stmt(X, M, same, same), r"if_stmt\(\): the arguments must be a tuple or list"),
    (lambda: dr.if_stmt((X,), M, 3, same), r"if_stmt\(\): true_fn must be a function"),
    (lambda: dr.if_stmt((X,), M, same, same, mode="fast"), r"if_stmt\(\): unknown mode 'fast'"),
    (lambda: dr.if_stmt((X,), Bool(True, False), same, lambda a: a + 1), r"masks .* have size 2, their results size 3"),
    (lambda: dr.switch(UInt(0, 1), [same, lambda a: a + 1], X), r"masks .* have size 2, their results size 3"),
    (lambda: dr.switch(5, [same], X), r"switch\(\): there is no target 5; there are 1"),
    (lambda: dr.switch(-1, [same], X), r"switch\(\): there is no target -1"),
    (lambda: dr.switch(U, 3), r"switch\(\): the targets must be a list or dict of functions, found int"),
    (lambda: dr.switch(U, [3]), r"switch\(\): the targets must be a list or dict of functions"),
    (lambda: PCG32("a"), r"PCG32\(\): the size must be an int, found 'a'"),
    (lambda: PCG32(2.5), r"PCG32\(\): the size must be an int"),
    (lambda: PCG32(0), r"PCG32\(\): the size must be at least 1"),
]


@pytest.mark.parametrize(("call", "message"), _WRONG)
def test_wrong_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError, RuntimeError, IndexError), match=message):
        call()


def test_nothing_is_left_of_a_branch_whose_sizes_disagree() -> None:
    out = dr.zeros(Float, 3)

    def side(a: Float) -> Float:
        dr.scatter(out, a, U)
        return a

    with pytest.raises(RuntimeError, match="incompatible sizes"):
        dr.if_stmt((X,), Bool(True, False), side, same)
    assert list(out) == [0, 0, 0] and list(X + 1) == [2, 3, 4]
