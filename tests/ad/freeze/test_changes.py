"""What frozen functions change and hand out: moved objects, lists, views, constants; threads, forks and suspension."""

from __future__ import annotations

import functools
import os
import threading
from collections import deque

import numpy as np
import pytest

import luxgrad as dr
from luxgrad.jit.errors import FreezeError
from luxgrad.llvm import Float, TensorXf, UInt32
from luxgrad.llvm.ad import Float as DiffFloat


def data(*values, kind=Float):
    x = dr.opaque(kind, 0, len(values)) + kind(list(values))
    dr.eval(x)
    return x


class Holder:
    def __init__(self, v):
        self.v = v


def both(body, make, calls=5):
    """Compare a function's effects on fresh arguments, frozen and not, over a number of calls."""
    frozen = dr.freeze(warn_after=100)(body)
    a, b = make(), make()
    for k in range(calls):
        x = data(k, k + 1)
        shown = [repr(f(args, x)) + repr(describe(args)) for f, args in ((body, a), (frozen, b))]
        assert shown[0] == shown[1], k


def describe(value):
    if isinstance(value, dict):
        return {k: describe(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, deque)):
        return [describe(v) for v in value]
    if isinstance(value, set):
        return sorted(value)
    return describe(vars(value)) if isinstance(value, Holder) else str(value)


def swap_and_add(o, x):
    o["a"], o["b"] = o["b"], o["a"]
    o["a"] += 1


def swap_and_set(o, x):
    o["a"], o["b"] = o["b"], o["a"]
    o["a"].v = o["a"].v + x


def reverse_and_add(o, x):
    o.reverse()
    o[0] += x


def grow(o, x):
    o.append(x * 2)
    return len(o)


def shrink(o, x):
    if len(o) > 2:
        o.pop(0)
        o.pop(0)
    o.append(x)


def clear(o, x):
    o.clear()
    o.extend([x, x + 1])


def into_set(o, x):
    o[0].add(len(o[0]))
    return x + len(o[0])


def rekey(o, x):
    o["new"] = o.pop("old") * 2
    o["old"] = x


def forget(o, x):
    o["c"] = None
    o["p"].v = o["p"].v + 1


CHANGES = {
    "swap": (swap_and_add, lambda: {"a": data(1, 2), "b": data(3, 4)}),
    "swap objects": (swap_and_set, lambda: {"a": Holder(data(1, 2)), "b": Holder(data(3, 4))}),
    "reverse": (reverse_and_add, lambda: [data(1, 2), data(3, 4)]),
    "grow": (grow, list),
    "grow a deque": (grow, deque),
    "shrink": (shrink, lambda: [data(k, k) for k in range(9)]),
    "clear": (clear, lambda: [data(1, 1)] * 3),
    "set": (into_set, lambda: ({5},)),
    "keys": (rekey, lambda: {"old": data(1, 1), "other": data(2, 2)}),
    "shared": (forget, lambda: (lambda h: {"p": h, "c": h})(Holder(data(1, 2)))),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_containers(name):
    both(*CHANGES[name])


@pytest.mark.parametrize("numpy", [False, True])
def test_views_as_inputs(numpy):
    a = np.arange(300, dtype=np.float32).reshape(10, 30)
    t = TensorXf(a) if numpy else TensorXf(a - 1) + 1
    dr.eval(t)
    f = dr.freeze(lambda v: (v * 2, v[1:] + 1, dr.sum(v, axis=None)))
    for k in range(7):
        part = a[k : k + 3]
        for got, want in zip(f(t[k : k + 3]), (part * 2, part[1:] + 1, part.sum()), strict=True):
            assert np.allclose(got.numpy(), want), k
    g = dr.freeze(lambda v, whole: v + whole[0])
    for k in range(4):
        assert np.array_equal(g(t[k], t).numpy(), a[k] + a[0])
    holder = Holder(t[0:2])
    h = dr.freeze(lambda: holder.v * 1.5)
    for k in (0, 2, 4):
        holder.v = t[k : k + 2]
        assert np.array_equal(h().numpy(), a[k : k + 2] * 1.5)


def test_constants_handed_out_are_copies():
    f = dr.freeze(lambda x: (x * 2, Float([1, 2, 3])))
    for _ in range(3):
        constant = f(data(1, 2))[1].numpy()
        assert list(constant) == [1, 2, 3]
        constant[0] = 99


@pytest.mark.parametrize(
    "body", [lambda x: (y for y in [x]), lambda x: zip([x], [x], strict=True), lambda x: {"k": x}.values(),
             lambda x: [frozenset([x * 2])], lambda x: iter([x])],
)  # fmt: skip
def test_results_that_cannot_be_made_again(body):
    with pytest.raises(FreezeError, match="made inside of it cannot be replayed"):
        dr.freeze(body)(data(1, 2))


step = None


def test_surroundings_of_the_short_way():
    global step
    f = dr.freeze(lambda x: step(x))
    a, b = data(1, 2, 3), data(1, 2, 3, 4, 5)
    for factor in (2.0, 3.0, 4.0):
        step = eval("lambda x: x * factor", {"factor": factor})
        for _ in range(3):
            assert np.array_equal(f(a).numpy(), a.numpy() * factor)
        assert np.array_equal(f(b).numpy(), b.numpy() * factor)
        for _ in range(3):
            f(b)

    @functools.wraps(dr.sin)
    def mine(x):
        return x * a

    assert list(dr.freeze(lambda x: mine(x))(a)) == [1, 4, 9]


def test_suspended_gradients_are_another_program():
    def body(x):
        y = dr.sum(x * x)
        if dr.grad_enabled(y):
            dr.backward(y)
        return dr.detach(y)

    f = dr.freeze(body)
    x = data(1, 2, kind=DiffFloat)
    dr.enable_grad(x)
    for suspended in (False, True, False, True):
        dr.clear_grad(x)
        if suspended:
            with dr.suspend_grad():
                f(x)
        else:
            f(x)
        assert list(dr.grad(x)) == ([0, 0] if suspended else [2, 4])


def test_threads_share_a_function():
    x = data(1, 2, kind=DiffFloat)
    dr.enable_grad(x)
    f = dr.freeze(lambda x: dr.backward(dr.sum(x * x)))
    f(x)

    def work():
        for _ in range(40):
            f(x)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert list(dr.grad(x)) == [2 * 161, 4 * 161]


def test_thread_counts_may_change_while_arrays_are_unread():
    kept = []
    for k in range(20):
        y = dr.cumsum(dr.sin(dr.arange(Float, 200_000) + k))
        dr.eval(y)
        kept.append(y)
    with dr.scoped_thread_count(1):
        dr.eval(Float([1, 2]) + 1)
        assert np.isfinite(kept[-1].numpy()).all()
    assert np.isfinite(kept[-2].numpy()).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_finds_what_was_launched_before_the_fork():
    for k in range(10):
        y = dr.cumsum(dr.arange(UInt32, 500_000) + k)
        dr.eval(y)
    expected = (np.arange(500_000, dtype=np.uint32) + 9).cumsum(dtype=np.uint32)
    child = os.fork()
    if child == 0:
        z = dr.arange(Float, 1000) * 2 + 1
        dr.eval(z)
        os._exit(0 if np.array_equal(y.numpy(), expected) and z[999] == 1999 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_methods_show_their_recordings():
    class Thing:
        @dr.freeze
        def double(self, x):
            return x * 2

    thing = Thing()
    assert list(thing.double(data(1, 2))) == [2, 4] and thing.double.n_recordings == 1
