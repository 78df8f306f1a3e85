"""Python's `while` and `if` on arrays."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest

import luxgrad as dr
from luxgrad.llvm.ad import PCG32, Array2f, Bool, Float, Int, UInt

CALLS: list[int] = []


class Pair:
    DRJIT_STRUCT = {"a": Float, "n": Int}

    def __init__(self, a: Any = 0, n: Any = 0) -> None:
        self.a, self.n = Float(a), Int(n)


@dr.syntax
def collatz(n: Int) -> Int:
    """Count."""
    steps = Int(0)
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@dr.syntax
def power(n: Int, x: Float, *, start: float = 1.0) -> Float:
    i, y = Int(0), Float(start)
    while dr.hint(i < n, max_iterations=10, label="power"):
        y *= x
        i += 1
    return y


def test_loops_and_branches_run_per_lane() -> None:
    assert list(collatz(Int(1, 2, 7, 27))) == [0, 1, 16, 111]
    assert list(power(Int(0, 1, 3), Float(2))) == [1, 2, 8] and list(power(Int(2), Float(3), start=2)) == [18]
    assert collatz.__doc__ == "Count." and collatz.__name__ == "collatz"


def test_the_same_in_all_modes() -> None:
    @dr.syntax
    def evaluated(n: Int) -> Int:
        s = Int(0)
        while dr.hint(n > 0, mode="evaluated"):
            if dr.hint(n > 2, mode="evaluated"):
                s += n
            n -= 1
        return s

    assert list(evaluated(Int(0, 2, 4))) == [0, 0, 7]


def test_plain_python_values_run_as_python() -> None:
    @dr.syntax
    def f(n: int) -> int:
        i = 0
        while i < n:
            i += 1
            if i == 3:
                CALLS.append(i)
        return i

    CALLS.clear()
    assert f(5) == 5 and CALLS == [3]


def test_reverse_derivative_of_a_bounded_loop() -> None:
    x = Float(2, 3, 4)
    dr.enable_grad(x)
    dr.backward(power(Int(1, 2, 3), x))
    assert list(dr.grad(x)) == [1, 6, 48]


def test_branches_bind_new_variables_and_keep_helpers_inside() -> None:
    @dr.syntax
    def f(x: Float) -> Float:
        if x > 1:
            half = x / 2
            y = half + 10
        elif x > 0:
            y = x
        else:
            y = -x
        return y

    assert list(f(Float(2, 0.5, -3))) == [11, 0.5, 3]


def test_values_of_sides_must_agree() -> None:
    @dr.syntax
    def types(x: Float) -> Any:
        if x > 0:
            y = Float(1)
        else:
            y = Int(1)
        return y

    @dr.syntax
    def numbers(x: Float) -> int:
        y = 0
        if x > 0:
            y = 1
        return y

    with pytest.raises(RuntimeError, match="'y' different types.*Float.*Int"):
        types(Float(1, -1))
    with pytest.raises(RuntimeError, match="'y': 1 and 0"):
        numbers(Float(1, -1))


def test_state_must_keep_its_type_and_the_message_names_it() -> None:
    @dr.syntax
    def f(x: Float) -> Any:
        i = Int(0)
        while i < 3:
            i = i + 0.5
        return i

    with pytest.raises(RuntimeError, match="the type of state variable 'i' changed from 'luxgrad.llvm.ad.Int' to"):
        f(Float(1))


def test_objects_changed_by_methods_and_attributes_are_state() -> None:
    @dr.syntax
    def draw(rng: PCG32, pair: Pair) -> Float:
        i, total = UInt(0), Float(0)
        while i < 10:
            total += rng.next_float32()
            pair.a += 1
            if pair.a > 5:
                pair.n += 1
            i += 1
        return total

    rng, pair = PCG32(4), Pair(0)
    draw(rng, pair)
    assert list(rng - PCG32(4)) == [10, 10, 10, 10]
    assert pair.a[0] == 10 and pair.n[0] == 5


def test_arrays_that_are_only_read_may_be_scattered_to() -> None:
    @dr.syntax
    def f() -> Float:
        out, i, j = dr.zeros(Float, 6), UInt(0), dr.arange(UInt, 2)
        while i < 3:
            dr.scatter(out, Float(i) + 1, i * 2 + j)
            dr.scatter_add(out, Float(10), i * 2 + j)
            i += 1
        return out

    assert list(f()) == [11, 11, 12, 12, 13, 13]


def test_masked_scatter_in_a_branch() -> None:
    @dr.syntax
    def f(x: Float) -> Float:
        out = dr.zeros(Float, 3)
        if x > 1:
            dr.scatter(out, x, dr.arange(UInt, 3))
        return out

    assert list(f(Float(1, 2, 3))) == [0, 2, 3]


def test_closures_defaults_and_nested_functions() -> None:
    def outer(limit: float) -> Callable[..., Any]:
        @dr.syntax(recursive=True)
        def inner(x: Float, step: float = 2) -> Float:
            def once(y: Float) -> Float:
                while y < 3:
                    y += 3
                return y

            x = once(x)
            while x < limit:
                x += step
            return x

        return inner

    assert list(outer(10)(Float(1, 9))) == [10, 11] and list(outer(5)(Float(2), step=7)) == [5]


def test_scalar_hint_leaves_the_statement_to_python() -> None:
    @dr.syntax
    def f(n: int, x: Float) -> Float:
        while dr.hint(n > 0, mode="scalar"):
            n -= 1
            if dr.hint(n == 2, mode="scalar"):
                break
            for k in range(5):
                if dr.hint(k > 1, mode="scalar"):
                    break
                x = x + k
        return x

    assert list(f(5, Float(0, 1))) == [2, 3]


def test_jumps_out_of_rewritten_statements_are_refused_with_the_line() -> None:
    def returns(x: Float) -> Any:
        while x < 1:
            return x

    def breaks(x: Float) -> Any:
        while x < 1:
            if x > 0:
                break
            x += 1

    def loops(x: Float) -> Any:
        while x < 1:
            for _ in range(3):
                break
            x += 1
        return x

    line = returns.__code__.co_firstlineno + 2
    with pytest.raises(
        SyntaxError, match=rf"test_syntax.py:{line}\): 'return' inside a rewritten 'while'.*mode='scalar'"
    ):
        dr.syntax(returns)
    with pytest.raises(SyntaxError, match="'break'"):
        dr.syntax(breaks)
    assert list(dr.syntax(loops)(Float(-1, 5))) == [1, 5]


def test_hints_are_checked() -> None:
    def unknown(x: Float) -> Any:
        while dr.hint(x < 1, iterations=3):  # type: ignore[call-arg]
            x += 1

    def computed(x: Float, m: str) -> Any:
        while dr.hint(x < 1, mode=m):
            x += 1

    with pytest.raises(SyntaxError, match="no option 'iterations'"):
        dr.syntax(unknown)
    with pytest.raises(SyntaxError, match="mode must be written"):
        dr.syntax(computed)
    assert dr.hint(3, mode="scalar") == 3


def test_errors_point_at_the_line_of_the_source() -> None:
    @dr.syntax
    def f(x: Float) -> Any:
        i = Int(0)
        while i < 3:
            i += 1
            x = x.nothing
        return x

    with pytest.raises(AttributeError) as caught:
        f(Float(1))
    frames = [s for s in traceback.extract_tb(caught.value.__traceback__) if s.filename == __file__]
    assert frames[-1].line == "x = x.nothing"


def test_functions_without_source() -> None:
    scope: dict[str, Any] = {"dr": dr}
    with pytest.raises(RuntimeError, match="source of 'f' cannot be found.*into a file"):
        exec("@dr.syntax\ndef f(x):\n    return x\n", scope)
    with pytest.raises(TypeError, match="lambda|def"):
        dr.syntax(lambda x: x)
    with pytest.raises(TypeError, match="function is needed"):
        dr.syntax(3)  # type: ignore[arg-type]


def test_print_code(capsys: pytest.CaptureFixture[str]) -> None:
    @dr.syntax(print_code=True)
    def f(x: Float) -> Float:
        while x < 1:
            x += 1
        return x

    out = capsys.readouterr().out
    assert "Input code" in out and "while x < 1" in out and "_loop_body_1" in out
    assert list(f(Float(0))) == [1]


def test_gradients_are_kept_by_loops_that_do_not_record_them() -> None:
    @dr.syntax
    def f(a: Float) -> Float:
        i, r = Int(0), dr.zeros(Float, 3)
        with dr.suspend_grad():
            while i < 5:
                r += a
                i += 1
        return r

    a = Float(1, 2, 3)
    dr.enable_grad(a)
    r = f(a)
    assert dr.grad_enabled(a) and not dr.grad_enabled(r) and list(r) == [5, 10, 15]
    dr.backward(a * a)
    assert list(dr.grad(a)) == [2, 4, 6]


def test_nested_arrays_and_masks_as_state() -> None:
    @dr.syntax
    def f(v: Array2f, active: Bool) -> Array2f:
        n = UInt(0)
        while active:
            v = v + Array2f(1, v.x)
            n += 1
            active &= n < 3
        return v

    assert f(Array2f(Float(0, 1), 0), Bool(True, False)).numpy().tolist() == [[3, 1], [3, 0]]
