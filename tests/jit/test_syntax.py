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


class Plain:
    """No PyTree: its attributes are no fields."""

    def __init__(self) -> None:
        self.v, self.count = Float(0), 0


class Partly:
    DRJIT_STRUCT = {"v": Float}

    def __init__(self) -> None:
        self.v, self.w, self.n = Float(0), Float(0), 0


BOX = Plain()
PAIR = Pair()
TABLE = {"a": Float(0)}
ROW = [Float(0, 1)]


def _attribute_of_an_argument(o: Any) -> None:
    i = Int(0)
    while i < 3:
        o.v = o.v + 1
        i += 1


def _number_of_an_argument(o: Any) -> None:
    i = Int(0)
    while i < 3:
        o.count = o.count + 1
        i += 1


def _attribute_of_a_global(o: Any) -> None:
    i = Int(0)
    while i < 3:
        BOX.v += 1
        i += 1


def _field_of_a_global_struct(o: Any) -> None:
    i = Int(0)
    while i < 3:
        PAIR.a = PAIR.a * 2 + 1
        i += 1


def _key_of_a_global(o: Any) -> None:
    i = Int(0)
    while i < 3:
        TABLE["a"] = TABLE["a"] + 1
        i += 1


def _element_of_a_global(o: Any) -> None:
    i = Int(0)
    while i < 3:
        ROW[0] = ROW[0] + 1
        i += 1


def _attribute_in_a_branch(o: Any) -> None:
    if Int(0, 1) > 0:
        o.v = Float(3)


def _attribute_by_a_helper(o: Any) -> None:
    def helper() -> None:
        o.v = o.v + 1

    i = Int(0)
    while i < 3:
        helper()
        i += 1


def _element_of_a_tuple(o: Any) -> None:
    both = (o, 1)
    i = Int(0)
    while i < 3:
        both[0].v = both[0].v + 1
        i += 1


@pytest.mark.parametrize(
    ("function", "name", "line"),
    [
        (_attribute_of_an_argument, r"'o\.v'", 2),
        (_number_of_an_argument, r"'o\.count'", 2),
        (_attribute_of_a_global, r"'BOX\.v'", 2),
        (_field_of_a_global_struct, r"'PAIR\.a'", 2),
        (_key_of_a_global, r"'TABLE\['a'\]'", 2),
        (_element_of_a_global, r"'ROW\[0\]'", 2),
        (_attribute_in_a_branch, r"'o\.v'", 1),
        (_attribute_by_a_helper, r"'o\.v'", 5),
        (_element_of_a_tuple, r"'both\[0\]\.v'", 3),
    ],
)
def test_changes_that_would_not_be_per_lane_are_refused(function: Any, name: str, line: int) -> None:
    BOX.v, PAIR.a, TABLE["a"], ROW[0] = Float(0), Float(0), Float(0), Float(0, 1)
    place = rf"test_syntax\.py:{function.__code__.co_firstlineno + line}\)"
    with pytest.raises(dr.SymbolicError, match=rf"changes {name}.*{place}.*DRJIT_STRUCT"):
        dr.syntax(function)(Plain())


def test_python_loops_may_change_anything() -> None:
    @dr.syntax
    def f(n: int) -> None:
        i = 0
        while i < n:
            BOX.v = BOX.v + 1
            i += 1

    BOX.v = Float(0)
    f(3)
    assert BOX.v[0] == 3


def test_local_containers_and_structs_are_state() -> None:
    @dr.syntax
    def f(pair: Pair) -> Any:
        d, row, i = {"a": Float(0)}, [Float(0), Float(5)], Int(0)
        while i < 3:
            d["a"] = d["a"] + 1
            row[0] = row[0] + 2
            pair.a = pair.a + 3
            if i > 0:
                row[1] = row[1] * 2
            i += 1
        return d["a"][0], row[0][0], row[1][0], pair.a[0]

    assert f(Pair()) == (3, 6, 20, 9)


def test_attributes_that_are_no_fields_are_named() -> None:
    @dr.syntax
    def array(o: Partly) -> None:
        i = Int(0)
        while i < 3:
            o.w = o.w + 1
            i += 1

    @dr.syntax
    def number(o: Partly) -> None:
        if Int(0, 1) > 0:
            o.n = 5

    with pytest.raises(RuntimeError, match="attribute 'w' of state variable 'o' is assigned.*DRJIT_STRUCT"):
        array(Partly())
    with pytest.raises(RuntimeError, match="attribute 'n' of 'o' is assigned.*DRJIT_STRUCT"):
        number(Partly())


def test_nonlocal_variables_are_refused_with_the_line() -> None:
    x = Float(0)

    def f() -> None:
        nonlocal x
        i = Int(0)
        while i < 3:
            x += 1
            i += 1

    line = f.__code__.co_firstlineno + 3
    with pytest.raises(SyntaxError, match=rf"test_syntax.py:{line}\): 'x' is declared global or nonlocal.*argument"):
        dr.syntax(f)
