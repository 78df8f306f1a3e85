"""Calls on Python objects chosen per lane."""

from __future__ import annotations

import numpy as np
import pytest

import luxgrad as dr
from luxgrad.jit.instances import NONE, InstanceSet
from luxgrad.llvm.ad import Float, UInt


class Scale:
    merge_fields = ("factor",)

    def __init__(self, factor: float) -> None:
        self.factor = Float(factor)

    def apply(self, x: Float) -> Float:
        return x * self.factor


class Shift(Scale):
    def apply(self, x: Float) -> Float:
        return x + self.factor


class Lookup:
    """Holds an array of its own, so that it shares code with nobody."""

    def __init__(self, table: list[float]) -> None:
        self.table = Float(table)

    def apply(self, x: Float) -> Float:
        return dr.gather(Float, self.table, UInt(x) % len(self.table))


def call(objects, index, x):
    return dr.dispatch(dr.instances(objects, UInt(index)), lambda o, v, active: o.apply(v), Float(x))


def test_objects_of_one_structure_share_code():
    assert len(InstanceSet([Scale(2), Scale(3), Scale(4)], Float.ns).groups) == 1
    assert len(InstanceSet([Scale(2), Shift(3), Lookup([1, 2]), Lookup([3, 4])], Float.ns).groups) == 4
    assert call([Scale(2), Scale(3)], [0, 1, 0], [1, 2, 3]).numpy().tolist() == [2, 6, 6]


def test_several_structures():
    objects = [Scale(2), Shift(10), Lookup([5, 6, 7]), Scale(3)]
    index, x = [0, 1, 2, 3, 2], [1, 2, 1, 4, 2]
    assert call(objects, index, x).numpy().tolist() == [2, 12, 6, 12, 7]


def test_lanes_without_object_get_zero():
    assert call([Scale(2), Shift(3)], [0, NONE, 1, 7], [1, 1, 1, 1]).numpy().tolist() == [2, 0, 4, 0]
    assert call([Scale(2)], [NONE, 0], [1, 1]).numpy().tolist() == [0, 2]


def test_methods_are_calls():
    chosen = dr.instances([Scale(2), Shift(3)], UInt([0, 1]))
    assert chosen.apply(Float([5, 6])).numpy().tolist() == [10, 9]
    with pytest.raises(AttributeError, match="no method 'missing'"):
        chosen.missing(Float(1))


@pytest.mark.parametrize("second", [Scale, Shift])
def test_gradients_reach_every_object(second):
    a, b = Scale(2), second(3)
    x = Float([1, 2, 3, 4])
    dr.enable_grad(a.factor, b.factor, x)
    index = UInt([0, 1, 1, 0])
    y = dr.dispatch(dr.instances([a, b], index), lambda o, v, active: o.apply(v), x)
    dr.backward(y * Float([1, 10, 100, 1000]))
    assert a.factor.grad.numpy().tolist() == [1 + 4000]
    assert b.factor.grad.numpy().tolist() == [20 + 300 if second is Scale else 110]
    assert np.allclose(x.grad.numpy(), [2, 30, 300, 2000] if second is Scale else [2, 10, 100, 2000])


def test_calls_inside_loops():
    objects = [Scale(2), Shift(1)]

    def body(i, x):
        return i + 1, dr.dispatch(dr.instances(objects, i % 2), lambda o, v, active: o.apply(v), x)

    _, x = dr.while_loop((UInt([0, 1]), Float([1, 1])), lambda i, x: i < 4, body)
    assert x.numpy().tolist() == [((1 * 2 + 1) * 2 + 1), ((1 + 1) * 2 + 1)]
