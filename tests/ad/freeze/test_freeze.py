"""Frozen functions: what is recorded, what is replayed, and what makes a recording anew."""

from __future__ import annotations

import dataclasses
import gc
import warnings

import numpy as np
import pytest

import luxgrad as dr
from luxgrad.jit.errors import FreezeError
from luxgrad.llvm import PCG32, Array3f, Bool, Float, Float64, Int32, Matrix3f, TensorXf, UInt32


def data(*values, kind=Float):
    x = dr.opaque(kind, 0, len(values)) + kind(list(values))
    dr.eval(x)
    return x


def launches():
    return dr.launch_stats()[0]


def test_replays_compute_with_other_values_and_trace_nothing():
    @dr.freeze
    def f(x, y):
        assert f.n_recordings == 0, "the Python function ran again"
        return dr.sin(x) * y + dr.sum(x)

    for k in range(4):
        x, y = np.array([1, 2, 3 + k], np.float32), np.array([4, 5, 6 * k], np.float32)
        got = f(Float(x), Float(y))
        assert np.allclose(got.numpy(), np.sin(x) * y + x.sum(), rtol=1e-6)
    assert f.n_recordings == 1 and f.n_cached_recordings == 1
    assert f.__name__ == "f"


def test_python_values_types_and_structure_are_part_of_the_key():
    @dr.freeze
    def f(x, power, options=None):
        return x * power + (len(options) if options else 0)

    x = data(1, 2)
    assert list(f(x, 2)) == [2, 4] and list(f(x, 3)) == [3, 6] and list(f(x, 2)) == [2, 4]
    assert f.n_recordings == 2
    assert list(f(x, 2.0)) == [2, 4] and list(f(x, True)) == [1, 2]
    assert list(f(x, 2, options=[1, 2])) == [4, 6] and list(f(x, 2, options=[1, 2, 3])) == [5, 7]
    assert list(f(data(1, 2, kind=UInt32), 2)) == [2, 4]
    assert f.n_recordings == 7


def test_other_sizes_are_recorded_without_counting():
    @dr.freeze
    def f(x):
        return x / len(x), dr.mean(x), dr.arange(Float, dr.width(x))

    for size in (2, 5, 17, 100_003, 2, 5, 0, 1, 1, 0):
        values = np.arange(size, dtype=np.float32) + 1
        a, b, c = f(Float(values) + 0)
        assert np.array_equal(a.numpy(), values / np.float32(max(size, 1))) and len(c) == size
        if size:
            assert np.isclose(b[0], values.mean())
    assert f.n_recordings == 3  # arrays, single elements, nothing


def test_constants_become_arrays_when_they_change():
    @dr.freeze
    def f(x, w):
        return x * w

    for k in range(5):
        assert list(f(data(1, 2), Float(k + 0.5))) == [k + 0.5, 2 * k + 1]
    assert f.n_recordings == 2

    @dr.freeze(auto_opaque=False)
    def g(x, w):
        return x * w

    for k in range(4):
        assert list(g(data(1, 2), Float(k))) == [k, 2 * k]
    assert g.n_recordings == 4


def test_the_same_array_twice_is_another_structure():
    @dr.freeze
    def f(x, y):
        x += 1
        return x + y

    a, b = data(1, 2), data(1, 2)
    assert list(f(a, b)) == [3, 5] and list(a) == [2, 3] and list(b) == [1, 2]
    c = data(1, 2)
    assert list(f(c, c)) == [4, 6] and list(c) == [2, 3]
    assert list(f(a, b)) == [4, 6] and list(a) == [3, 4]
    shared = Float(b)
    assert list(f(b, shared)) == [3, 5] and list(b) == [2, 3] and list(shared) == [1, 2]
    assert f.n_recordings == 3


@dataclasses.dataclass
class Point:
    position: Array3f
    weight: Float
    name: str = "p"


class Struct:
    DRJIT_STRUCT = {"a": Float, "b": UInt32}

    def __init__(self):
        self.a, self.b = Float(), UInt32()


def test_trees_go_in_and_out():
    @dr.freeze
    def f(tree):
        s = Struct()
        s.a, s.b = tree["p"].weight * 2, tree["list"][1] + UInt32(1)
        moved = Point(tree["p"].position + 1, tree["p"].weight, tree["p"].name + "!")
        return {"s": s, "p": moved, "t": (tree["t"] * 2, None, "text", 3.5), "m": tree["m"] @ tree["p"].position}

    for k in range(3):
        w, i = data(1, 2 + k), data(3, 4 + k, kind=UInt32)
        t = TensorXf(np.arange(6, dtype=np.float32) + k, shape=(2, 3)) + 0
        m = Matrix3f(1, 2, 3, 4, 5, 6, 7, 8, 9 + k)
        out = f({"p": Point(Array3f(w, w + 1, w + 2), w), "list": [w, i], "t": t, "m": m})
        assert list(out["s"].a) == [2, 4 + 2 * k] and list(out["s"].b) == [4, 5 + k] and type(out["s"]) is Struct
        assert list(out["p"].position.z) == [4, 5 + k] and out["p"].name == "p!"
        assert out["t"][0].shape == (2, 3) and out["t"][1:] == (None, "text", 3.5)
        assert np.array_equal(out["t"][0].numpy().ravel(), (np.arange(6) + k) * 2)
        assert np.allclose(out["m"].z.numpy(), [7 + 16 + (9 + k) * 3, 7 * (2 + k) + 8 * (3 + k) + (9 + k) * (4 + k)])
    assert f.n_recordings <= 2


def test_arguments_changed_in_place():
    @dr.freeze
    def f(x, v, d, values):
        x *= 2
        v.y = v.y + x
        d["new"] = x + 1
        d["old"] += 1
        del values[0]
        values.append(x)
        dr.scatter_add(d["target"], x, UInt32([0, 0]))
        return v

    x, target = data(1, 2), data(0, 0, 0)
    v, d = Array3f(x, x, x), {"old": data(5, 6), "target": target}
    values = [data(1), data(2)]
    for k in range(4):
        d.pop("new", None)
        assert f(x, v, d, values) is v
        assert list(x) == [2 ** (k + 1), 2 ** (k + 2)]
        assert list(v.y) == [2 ** (k + 2) - 1, 2 ** (k + 3) - 2] and list(v.x) == [1, 2]
        assert list(d["new"]) == [2 ** (k + 1) + 1, 2 ** (k + 2) + 1] and list(d["old"]) == [6 + k, 7 + k]
        assert len(values) == 2 and list(values[-1]) == list(x)
        assert d["target"] is target and target[0] == 3 * (2 ** (k + 2) - 2)


class Counter:
    def __init__(self):
        self.total, self.steps, self.history = data(0, 0), 0, []

    @dr.freeze
    def add(self, x):
        self.total = self.total + x
        return self.total * 2

    @dr.freeze(state_fn=lambda self, x: (self.total,))
    def add_in_place(self, x):
        self.total += x


def test_methods_change_their_object():
    a, b = Counter(), Counter()
    for k in range(3):
        assert list(a.add(data(1, 2))) == [2 * (k + 1), 4 * (k + 1)]
    b.add(data(5, 5))
    b.add_in_place(data(1, 1))
    b.add_in_place(data(1, 1))
    assert list(a.total) == [3, 6] and list(b.total) == [7, 7]


weights = None


def helper(x):
    return x * weights


def test_closure_variables_and_globals_are_inputs():
    global weights
    scale, count = data(2, 2), 0

    @dr.freeze
    def f(x):
        nonlocal count
        count = count + x
        return helper(x) * scale

    count = data(0, 0)
    weights = data(10, 100)
    assert list(f(data(1, 1))) == [20, 200]
    weights, scale = data(3, 4), data(1, 2)
    assert list(f(data(1, 1))) == [3, 8] and list(count) == [2, 2] and f.n_recordings == 1
    weights = 7.0
    assert list(f(data(1, 1))) == [7, 14] and f.n_recordings == 2


def test_hidden_arrays_are_refused():
    import threading

    module = threading.local()
    module.x = data(1, 2)

    @dr.freeze
    def f(y):
        return y + module.x

    with pytest.raises(FreezeError, match=r"'f': an array of \d+ bytes .*state_fn.*test_freeze\.py"):
        f(data(1, 2))
    assert f.n_cached_recordings == 0

    @dr.freeze(state_fn=lambda y: module.x)
    def g(y):
        return y + module.x

    assert list(g(data(1, 2))) == [2, 4]
    module.x = data(5, 5)
    assert list(g(data(1, 2))) == [6, 7] and g.n_recordings == 1


@pytest.mark.parametrize(
    "body",
    [
        lambda x: x[0], lambda x: x.numpy(), lambda x: str(x), lambda x: bool(dr.any(x > 0)),
        lambda x: dr.compress(x > 1), lambda x: float(dr.sum(x)), lambda x: dr.flush_malloc_cache(),
    ],
)  # fmt: skip
def test_reading_values_while_recording_is_an_error(body):
    f = dr.freeze(lambda x: body(x + 1))
    with pytest.raises((FreezeError, RuntimeError), match="record"):
        f(data(1, 2))
    assert list(data(1, 2) + 1) == [2, 3]  # everything goes on


def test_an_exception_leaves_nothing_behind():
    @dr.freeze
    def f(x, wrong):
        y = x + 1
        dr.eval(y)
        if wrong:
            raise KeyError("mine")
        return y

    with pytest.raises(KeyError, match="mine"):
        f(data(1, 2), True)
    assert f.n_cached_recordings == 0 and list(f(data(1, 2), False)) == [2, 3]
    assert data(1, 2)[0] == 1


def test_limit_and_warning():
    @dr.freeze(limit=2)
    def f(x, k):
        return x + k

    for k in (1, 2, 3, 1, 3):
        assert list(f(data(1, 2), k)) == [1 + k, 2 + k]
    assert f.n_cached_recordings == 2 and f.n_recordings == 4
    f.clear()
    assert f.n_cached_recordings == 0

    @dr.freeze(warn_after=2)
    def g(x, k):
        return x + k

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        g(data(1), 1), g(data(1), 2)
    with pytest.warns(UserWarning, match="'g' was recorded 3 times"):
        g(data(1), 3)
    with pytest.raises(ValueError, match="limit must be at least 1"):
        dr.freeze(limit=0)
    with pytest.raises(TypeError, match="a function is needed, found int"):
        dr.freeze()(3)


calls = 0


def counted(x):
    globals()["calls"] += 1  # behind the back of the frozen function
    return x + 1


def test_switched_off():
    before = calls
    f = dr.freeze(enabled=False)(counted)
    f(data(1)), f(data(1))
    g = dr.freeze(counted)
    with dr.scoped_set_flag(dr.JitFlag.KernelFreezing, False):
        g(data(1)), g(data(1))
    assert calls == before + 4 and g.n_recordings == 0
    g(data(1)), g(data(2))
    assert calls == before + 5 and g.n_recordings == 1
    outer = dr.freeze(lambda x: g(x) * 2)
    assert outer(data(4))[0] == 10 and outer(data(5))[0] == 12
    assert g.n_recordings == 1 and calls == before + 6  # inside of a recording it is a plain function


def test_numpy_inputs_of_odd_sizes():
    @dr.freeze
    def f(x, i):
        return x * 2, dr.gather(Float, x, i), dr.sum(x)

    for size in (5, 33, 64, 1000):
        for _ in range(3):
            values = np.random.default_rng(size).random(size).astype(np.float32)
            at = np.array([0, size - 1], np.uint32)
            x = Float(values)
            values += 1  # arrays of NumPy are borrowed: they show what is there when they are used
            a, b, c = f(x, UInt32(at))
            assert np.array_equal(a.numpy(), values * 2) and np.array_equal(b.numpy(), values[at])
            assert np.isclose(c[0], values.sum())
    assert f.n_recordings == 2  # whole packets or not


def test_loops_branches_calls_and_scans():
    @dr.freeze
    def f(x, n):
        i, y = dr.while_loop((UInt32(0), x), lambda i, y: i < n, lambda i, y: (i + 1, y * 2))
        y = dr.if_stmt((y,), y > 10, lambda y: y - 10, lambda y: y + 0.5)
        y = dr.switch(UInt32([0, 1, 0]), [lambda a: a + 1, lambda a: a * 3], y)
        return dr.prefix_sum(y), dr.block_sum(y, 2), dr.concat((y, x))

    plain = f.fn
    for k in range(4):
        x, n = data(1, 2 + k, 30), data(k, kind=UInt32)
        for a, b in zip(f(x, n), plain(x, n), strict=True):
            assert np.array_equal(a.numpy(), b.numpy())
    assert f.n_recordings == 1


def test_random_numbers_go_on():
    a, b = PCG32(10), PCG32(10)

    @dr.freeze
    def f(rng):
        return rng.next_float32() + rng.next_float32()

    for _ in range(4):
        assert np.array_equal(f(a).numpy(), (b.next_float32() + b.next_float32()).numpy())
    assert f.n_recordings <= 2


def test_nothing_returned_and_passed_through():
    @dr.freeze
    def f(x, y):
        return x, [y], Float(3), Bool(True), None, Float([7, 8])

    x, y = data(1, 2), data(3)
    for _ in range(3):
        out = f(x, y)
        assert out[0] is x and out[1][0] is y and out[2][0] == 3 and out[3][0] and out[4] is None
        assert list(out[5]) == [7, 8]

    nothing = dr.freeze(lambda: None)
    assert nothing() is None and nothing() is None

    with pytest.raises(FreezeError, match="function made inside of it cannot be replayed"):
        dr.freeze(lambda x: (lambda: x))(data(1))


def test_results_outlive_the_next_replay():
    @dr.freeze
    def f(x):
        y = x + 1
        return y, dr.sum(y * 2)

    results = [f(data(*range(k, k + 40))) for k in range(20)]
    for k, (y, total) in enumerate(results):
        assert list(y) == list(range(k + 1, k + 41)) and total[0] == 2 * sum(range(k + 1, k + 41))


def test_recordings_do_not_keep_arrays_of_the_call():
    @dr.freeze
    def f(x):
        return x * 2

    gc.collect()
    before = dr.memory_stats()["live"]
    x = dr.arange(Float, 1 << 20) + 1
    y = f(x)
    y = f(x)
    del x, y
    gc.collect()
    dr.sync_thread()
    dr.eval(data(1))
    assert dr.memory_stats()["live"] - before < 1 << 20


@pytest.mark.parametrize("seed", range(25))
def test_random_programs_equal_themselves_unfrozen(seed):
    rng = np.random.default_rng(seed)
    plan = rng.integers(0, 8, 30), rng.integers(0, 10_000, (30, 3))

    def program(x, y, state):
        values = [x, y, state["s"]]
        for what, (a, b, c) in zip(*plan, strict=True):
            p, q = values[a % len(values)], values[b % len(values)]
            if what == 0:
                values.append(p * 0.5 + q)
            elif what == 1:
                values.append(dr.sin(p))
            elif what == 2:
                values.append(p - dr.mean(q))
            elif what == 3:
                dr.eval(values)
            elif what == 4:
                values.append(dr.gather(Float, p, UInt32(dr.arange(UInt32, 3000) * int(c | 1)) % 3000))
            elif what == 5:
                target = p + 0
                dr.scatter_add(target, q, (dr.arange(UInt32, 3000) * 7) % 3000)
                values.append(target * 0.5)
            elif what == 6:
                values.append(dr.select(p > q, p, -q))
            else:
                state["s"] = state["s"] * 0.9 + p * 0.1
        return values[-1], values[-2]

    frozen = dr.freeze(program)
    a, b = ({"s": dr.arange(Float, 3000) * 0.001} for _ in range(2))
    dr.eval(a, b)
    for k in range(3):
        x, y = (Float(rng.random(3000).astype(np.float32)) for _ in range(2))
        for u, v in zip(frozen(x, y, a), program(x, y, b), strict=True):
            assert np.array_equal(u.numpy(), v.numpy()), k
        assert np.array_equal(a["s"].numpy(), b["s"].numpy())
    assert frozen.n_recordings == 1


def test_types_of_all_widths():
    @dr.freeze
    def f(a, b, c):
        return Float64(a) * 2, b + 1, c & (a > 0)

    for k in range(3):
        a, b, c = f(data(1, -2 - k), data(k, 2, kind=Int32), Bool([True, True]))
        assert (list(a), list(b), list(c)) == ([2, -4 - 2 * k], [k + 1, 3], [True, False])
