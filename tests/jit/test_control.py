"""Loops, branches and calls: values, sizes, modes, side effects, and messages that name the variable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import luxgrad as dr
from luxgrad.llvm.ad import Array2f, Array3f, Bool, Float, Int, Matrix2f, UInt

MODES = ["symbolic", "evaluated"]


@pytest.mark.parametrize("mode", MODES)
def test_lanes_leave_a_loop_one_by_one(mode: str) -> None:
    n, total = dr.while_loop((Int(0, 3, 7), Int(0)), lambda n, s: n > 0, lambda n, s: (n - 1, s + n), mode=mode)
    assert list(n) == [0, 0, 0] and list(total) == [0, 6, 28]


def test_a_loop_with_a_python_condition_is_a_python_loop() -> None:
    calls = []

    def body(i: int, x: Float) -> tuple[int, Float]:
        calls.append(i)
        return i + 1, x * 2

    i, x = dr.while_loop((0, Float(1)), lambda i, x: i < 3, body)
    assert i == 3 and x[0] == 8 and calls == [0, 1, 2]


def test_state_may_be_any_tree_and_unchanged_state_costs_nothing() -> None:
    state = ({"a": Float(1, 2)}, [Array2f(1), Matrix2f(1)], UInt(0), "text")
    d, parts, i, text = dr.while_loop(
        state, lambda d, p, i, t: i < 2, lambda d, p, i, t: ({"a": d["a"] * 2}, [p[0] + 1, p[1] * 2], i + 1, t)
    )
    assert list(d["a"]) == [4, 8] and parts[0].x[0] == 3 and parts[1][1, 1][0] == 4 and text == "text"
    x = Float(1, 2)
    _, y = dr.while_loop((UInt(0), x), lambda i, y: i < 3, lambda i, y: (i + 1, y))
    assert y.index == x.index


def test_arguments_are_not_changed_by_the_body() -> None:
    x = Float(1)

    def body(i: UInt, y: Float) -> tuple[UInt, Float]:
        y += 1
        i += 1
        return i, y

    _, y = dr.while_loop((UInt(0), x), lambda i, y: i < 3, body)
    assert x[0] == 1 and y[0] == 4


def test_captured_arrays_widen_the_loop() -> None:
    w = Float(1, 10, 100)
    _, x = dr.while_loop((UInt(0), Float(0)), lambda i, x: i < 2, lambda i, x: (i + 1, x + w))
    assert list(x) == [2, 20, 200]


@pytest.mark.parametrize("mode", MODES)
def test_nested_loops(mode: str) -> None:
    def outer(i: UInt, x: Float) -> tuple[UInt, Float]:
        _, x = dr.while_loop((UInt(0), x), lambda j, x: j < i, lambda j, x: (j + 1, x + 1), mode=mode)
        return i + 1, x

    _, x = dr.while_loop((UInt(0, 2), Float(0)), lambda i, x: i < 4, outer, mode=mode)
    assert list(x) == [6, 5]


def test_messages_name_the_state_variable() -> None:
    def run(state: Any, body: Any, **options: Any) -> None:
        dr.while_loop(state, lambda *s: s[0] < 3, body, **options)

    with pytest.raises(RuntimeError, match="type of state variable 'i' changed from '.*ad.Int' to '.*Float'"):
        run((Int(0),), lambda i: i + 0.5, labels=("i",))
    with pytest.raises(RuntimeError, match="non-array state variable 'arg1' of type 'int' changed from '5' to '6'"):
        run((Int(0), 5), lambda i, y: (i + 1, y + 1))
    with pytest.raises(RuntimeError, match="state variable 'y' is uninitialized"):
        run((Int(0), Float(0)), lambda i, y: (i + 1, None), labels=("i", "y"))
    with pytest.raises(RuntimeError, match="arrays of size 2, while state variable 'a' has an incompatible size 3"):
        run((Int(0, 1), Float(1, 2, 3)), lambda i, a: (i + 1, a), labels=("i", "a"))
    with pytest.raises(RuntimeError, match="must return 2 state variables, found 3"):
        run((Int(0), Float(0)), lambda i, a: (i, a, a))
    with pytest.raises(TypeError, match="must be a mask"):
        dr.while_loop((Int(0),), lambda i: i, lambda i: i)
    with pytest.raises(ValueError, match="unknown mode"):
        run((Int(0),), lambda i: i + 1, mode="fast")


def test_values_inside_a_recorded_loop_cannot_be_looked_at() -> None:
    def body(i: Int) -> Int:
        assert "symbolic" in repr(i)
        print(i[0])
        return i + 1

    with pytest.raises(RuntimeError, match=r"\*symbolic\* variable"):
        dr.while_loop((Int(0, 1),), lambda i: i < 3, body)
    assert list(Int(0, 1) + 1) == [1, 2]


def test_a_failed_recording_leaves_scatter_targets_as_they_were() -> None:
    out = dr.zeros(Float, 2)

    def body(i: Int) -> Int:
        dr.scatter(out, Float(5), UInt(0))
        raise KeyError("stop")

    with pytest.raises(KeyError):
        dr.while_loop((Int(0),), lambda i: i < 3, body)
    assert list(out) == [0, 0]


@pytest.mark.parametrize("mode", MODES)
def test_side_effects_follow_the_lanes(mode: str) -> None:
    counts = dr.zeros(UInt, 4)

    def body(i: UInt) -> UInt:
        dr.scatter_add(counts, UInt(1), i)
        return i + 1

    dr.while_loop((UInt(0, 2, 3),), lambda i: i < 4, body, mode=mode)
    assert list(counts) == [1, 1, 2, 3]


@pytest.mark.parametrize("mode", MODES)
def test_branches_choose_per_lane_and_mask_effects(mode: str) -> None:
    out = dr.zeros(Float, 3)
    lanes = dr.arange(UInt, 3)

    def yes(x: Float) -> Float:
        dr.scatter(out, x, lanes)
        return x * 2

    y = dr.if_stmt((Float(1, 2, 3),), Float(1, 2, 3) > 1, yes, lambda x: -x, mode=mode)
    assert list(y) == [-1, 4, 6] and list(out) == [0, 2, 3]


def test_branches_on_constants_run_one_side() -> None:
    ran = []
    for cond in (True, Bool(True)):
        y = dr.if_stmt((Float(1),), cond, lambda x: x + 1, lambda x: ran.append(1) or x)
        assert y[0] == 2
    assert not ran
    with pytest.raises(TypeError, match="must be a mask"):
        dr.if_stmt((), Float(1), lambda: 1, lambda: 2)
    with pytest.raises(RuntimeError, match="'y' different types"):
        dr.if_stmt((), Float(1, 2) > 1, lambda: Float(1), lambda: Int(1), rv_labels=("y",))


def test_flags_choose_the_mode() -> None:
    seen: list[str] = []

    def body(i: Int) -> Int:
        seen.append(repr(i))
        return i + 1

    with dr.scoped_set_flag(dr.JitFlag.SymbolicLoops, False):
        dr.while_loop((Int(0, 0),), lambda i: i < 2, body)
    assert seen == ["[0, 0]", "[1, 1]"]
    with dr.scoped_set_flag(dr.JitFlag.SymbolicConditionals, False):
        dr.if_stmt((Int(0, 1),), Int(0, 1) > 0, body, body)
    assert seen[-1] == "[0, 1]"


def test_switch() -> None:
    targets = [lambda x: x + 1, lambda x: x * 10, lambda x: -x]
    x = Float(1, 2, 3, 4, 5)
    assert list(dr.switch(UInt(0, 1, 2, 3, 100), targets, x)) == [2, 20, -3, 0, 0]
    assert list(dr.switch(UInt(0, 1, 2, 0, 1), targets, x, active=x > 2)) == [0, 0, -3, 5, 50]
    assert dr.switch(1, targets, 4) == 40
    assert list(dr.switch(UInt(7, 3), {3: lambda: Float(3), 7: lambda: Float(7)})) == [7, 3]
    with pytest.raises(TypeError, match="UInt32"):
        dr.switch(Int(0), targets, x)


def test_switch_returns_trees_and_passes_gradients() -> None:
    x = Float(1, 2, 3)
    dr.enable_grad(x)
    a, b = dr.switch(UInt(0, 1, 2), [lambda x: (x, [x * x]), lambda x: (x * 3, [x]), lambda x: (dr.sin(x), [x])], x)
    dr.backward(a + b[0])
    assert np.allclose(list(dr.grad(x)), [3, 4, np.cos(3) + 1])


@pytest.mark.parametrize("mode", MODES)
def test_derivatives_of_loops_in_both_directions(mode: str) -> None:
    def power(x: Any) -> Any:
        kind = type(x)
        limit = UInt(0, 1, 4)
        options: dict[str, Any] = {"max_iterations": 5} if mode == "symbolic" else {}
        return dr.while_loop(
            (UInt(0), kind(1)), lambda i, y: i < limit, lambda i, y: (i + 1, y * x), mode=mode, **options
        )[1]

    for direction in (dr.forward, dr.backward):
        x = Float(2, 3, 2)
        dr.enable_grad(x)
        y = power(x)
        direction(x if direction is dr.forward else y)
        assert list(dr.grad(y if direction is dr.forward else x)) == [0, 1, 32]


def test_gather_of_nothing_and_counters() -> None:
    v = Array3f([1.0, 2.0], [3.0, 4.0], [5.0, 6.0])
    assert dr.gather(Array3f, v, dr.zeros(UInt, 0)).numpy().shape == (3, 0)
    counter = dr.ones(UInt, 2)
    old = dr.scatter_inc(counter, dr.zeros(UInt, 2), dr.full(Bool, False, 2))
    assert len(old) == 2 and list(counter) == [1, 1]
    slots = dr.scatter_inc(counter, UInt(1, 1, 0))
    assert list(slots) == [1, 2, 1] and list(counter) == [2, 3]


class _Held:
    def __init__(self, value: Any) -> None:
        self.value = value


@pytest.mark.parametrize("start", [Float(0), Float(1, 2)])
def test_loops_do_not_change_what_they_capture(start: Float) -> None:
    x, held, row = Float(start), _Held(Float(start)), [Float(start)]

    def variable(i: Int) -> Int:
        nonlocal x
        x = x + 1
        return i + 1

    def in_place(i: Int) -> Int:
        nonlocal x
        x += 1
        return i + 1

    def attribute(i: Int) -> Int:
        held.value = held.value + 1
        return i + 1

    def element(i: Int) -> Int:
        row[0] += 1
        return i + 1

    def condition(i: Int) -> Bool:
        variable(i)
        return i < 3

    for body, name in [(variable, "x"), (in_place, "x"), (attribute, r"held\.value"), (element, r"row\[0\]")]:
        with pytest.raises(dr.SymbolicError, match=f"code of a loop changes '{name}'.*Pass the value in"):
            dr.while_loop((Int(0),), lambda i: i < 3, body)
    with pytest.raises(dr.SymbolicError, match="changes 'x'"):
        dr.while_loop((Int(0),), condition, lambda i: i + 1)


def test_branches_do_not_change_what_they_capture() -> None:
    held, x = _Held(Float(1, 2)), Float(1, 2)

    def attribute(y: Float) -> Float:
        held.value = held.value * y
        return y

    def constant(y: Float) -> Float:
        held.value = Float(7)
        return y

    for side in (attribute, constant):
        for mode in MODES:
            held.value = Float(1, 2)
            with pytest.raises(dr.SymbolicError, match=r"side of a branch changes 'held\.value'"):
                dr.if_stmt((x,), x > 1, side, lambda y: y, mode=mode)
    held.value = Float(1, 2)
    with pytest.raises(dr.SymbolicError, match=r"changes 'held\.value'"):
        dr.switch(UInt(0, 1), [attribute, lambda y: y], x)


def test_objects_may_hold_what_is_written_before_it_is_read() -> None:
    held = _Held(Float(0))

    def body(i: Int, x: Float) -> tuple[Int, Float]:
        held.value = x
        held.value = held.value + 1
        return i + 1, held.value

    _, x = dr.while_loop((Int(0), Float(1, 2)), lambda i, x: i < 3, body)
    assert list(x) == [4, 5]


def test_values_that_leave_a_branch_cannot_be_used() -> None:
    kept: list[Float] = []

    def side(x: Float) -> Float:
        kept.append(x * 2)
        return x * 2 + 1

    y = dr.if_stmt((Float(1, 2, 3),), Float(1, 2, 3) > 1, side, lambda x: x)
    with pytest.raises(dr.SymbolicError, match="left the side of the branch"):
        list(y + kept[0])
    with pytest.raises(dr.SymbolicError, match="left the side of the branch"):
        list(kept[0])
    assert list(y) == [1, 5, 7]


def test_arrays_computed_for_a_gather_inside_a_branch() -> None:
    table = Float(5, 6, 7)
    x = Float(1, 2, 3)
    y = dr.if_stmt((x,), x > 1, lambda x: dr.gather(Float, table * 3, UInt(x) - 1), lambda x: x)
    assert list(y) == [1, 18, 21]
