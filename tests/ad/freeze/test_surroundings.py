"""What a frozen function depends on without being told: state in every place where Python keeps some."""

from __future__ import annotations

import array
import dataclasses
import enum
import functools
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple

import numpy as np
import pytest

import luxgrad as dr
from luxgrad.llvm import Float

SCALE = 1.0


def data(*values):
    x = dr.opaque(Float, 0, len(values)) + Float(list(values))
    dr.eval(x)
    return x


class Base:
    factor = 1.0

    def scaled(self, x):
        return x * self.factor * SCALE


class Plain(Base):
    offset = 0.0

    def __init__(self):
        self.shift = 0.0

    @property
    def both(self):
        return self.offset + self.shift

    @staticmethod
    def extra(x):
        return x + SCALE

    @classmethod
    def named(cls, x):
        return x + cls.offset

    def __call__(self, x):
        return self.named(self.extra(self.scaled(x))) + self.both


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self):
        self.a, self.b = 1.0, data(1, 2)


@dataclasses.dataclass
class Data:
    a: float = 1.0

    def __post_init__(self):
        self.hidden = 1.0


class Mode(enum.Enum):
    Double = 2
    Triple = 3


Pair = namedtuple("Pair", "a b")


def check(frozen, plain, changes, x=None):
    """Call both after each change, twice, and compare."""
    for change in [lambda: None, *changes, *changes]:
        change()
        for k in range(2):
            argument = data(1 + k, 2) if x is None else x
            assert np.array_equal(frozen(argument).numpy(), plain(argument).numpy()), change


def test_objects_classes_properties_and_methods():
    thing = Plain()
    saved = Base.factor, Plain.offset, SCALE

    def change(owner, name, value):
        return lambda: setattr(owner, name, value)

    module = sys.modules[__name__]
    changes = [
        change(thing, "shift", 3.0), change(Plain, "offset", 5.0), change(Base, "factor", 2.0),
        change(thing, "factor", 4.0), change(module, "SCALE", 7.0), change(Plain, "offset", data(1, 2)),
    ]  # fmt: skip
    try:
        plain = lambda x: thing(x)  # noqa: E731
        check(dr.freeze(plain), plain, changes)
        check(dr.freeze(thing), thing, changes)
        check(dr.freeze(thing.scaled), thing.scaled, changes)
    finally:
        Base.factor, Plain.offset, module.SCALE = saved


def test_containers_of_every_kind():
    kept = {
        "set": {1, 2}, "frozen": frozenset((1,)), "deque": deque([1.0, 2.0]), "bytes": bytearray(b"ab"),
        "array": array.array("d", [1.0, 2.0]), "ordered": OrderedDict(a=1.0), "default": defaultdict(float, a=2.0),
        "counter": Counter("aab"), "space": types.SimpleNamespace(v=1.0), "pair": Pair(1.0, data(1, 1)),
        "numpy": np.ones(2), "nested": [[(1.0, {"k": 2.0})]], "slots": Slotted(), "data": Data(), "mode": Mode.Double,
        "range": range(3), "complex": 1 + 2j, "none": None, "slice": slice(1, 2),
    }  # fmt: skip

    def body(x):
        for v in (len(kept["set"]), len(kept["frozen"]), sum(kept["deque"]), kept["bytes"][0], sum(kept["array"])):
            x = x + v
        x = x + kept["ordered"]["a"] + kept["default"]["a"] + kept["counter"]["a"] + kept["space"].v
        x = x * kept["pair"].a + kept["pair"].b + float(kept["numpy"].sum()) + kept["nested"][0][0][1]["k"]
        x = x + kept["slots"].a + kept["slots"].b + kept["data"].a + kept["data"].hidden + kept["mode"].value
        return x + len(kept["range"]) + kept["complex"].imag + (kept["none"] is None) + kept["slice"].stop

    def write(path, value):
        def change():
            target = kept
            for step in path[:-1]:
                target = getattr(target, step[1:]) if str(step).startswith(".") else target[step]
            last = path[-1]
            if str(last).startswith("."):
                setattr(target, last[1:], value)
            else:
                target[last] = value

        return change

    changes = [
        lambda: kept["set"].add(len(kept["set"]) + 10), write(("frozen",), frozenset((1, 2, 3))),
        write(("deque", 0), 9.0), write(("bytes", 0), 7), write(("array", 1), 5.5), write(("ordered", "a"), 6.0),
        write(("default", "a"), -1.0), lambda: kept["counter"].update("a"), write(("space", ".v"), 3.0),
        write(("pair",), Pair(2.0, data(3, 4))), write(("numpy", 0), 8.0), write(("nested", 0, 0), (1.0, {"k": -3.0})),
        write(("slots", ".a"), 5.0), write(("slots", ".b"), data(9, 9)), write(("data", ".a"), 4.0),
        write(("data", ".hidden"), 4.5), write(("mode",), Mode.Triple), write(("range",), range(5)),
        write(("complex",), 3j), write(("none",), 1), write(("slice",), slice(0, 9)),
    ]  # fmt: skip
    check(dr.freeze(warn_after=1000)(body), body, changes)


def test_modules_of_the_user():
    module = types.ModuleType("settings_of_mine")
    module.gain, module.table = 2.0, data(1, 2)
    body = eval("lambda x: x * settings.gain + settings.table", {"settings": module})
    changes = [lambda: setattr(module, "gain", 3.0), lambda: setattr(module, "table", data(5, 6))]
    check(dr.freeze(body), body, changes)


def test_defaults_partials_attributes_and_nested_functions():
    def inner(x, scale=2.0, *, shift=1.0):
        return x * scale + shift + inner.bias

    inner.bias = 0.5
    part = functools.partial(inner, scale=3.0)
    outer = lambda x: part(x) + inner(x)  # noqa: E731
    changes = [
        lambda: setattr(inner, "bias", 2.5), lambda: setattr(inner, "__defaults__", (4.0,)),
        lambda: setattr(inner, "__kwdefaults__", {"shift": -1.0}), lambda: part.keywords.update(scale=5.0),
    ]  # fmt: skip
    check(dr.freeze(outer), outer, changes)
    check(dr.freeze(part), part, changes)


def test_builtins_that_become_globals():
    scope = {"dr": dr}
    body = eval("lambda x: x + abs(-2.0)", scope)
    frozen = dr.freeze(body)
    assert list(frozen(data(1, 1))) == [3, 3] and list(frozen(data(1, 2))) == [3, 4]
    scope["abs"] = lambda v: 10.0
    assert list(frozen(data(1, 1))) == [11, 11]


def test_sets_and_bytes_changed_inside():
    kept = {"seen": set(), "log": bytearray()}

    @dr.freeze
    def f(x):
        kept["seen"].add("a")
        kept["log"] += b"x"
        return x + len(kept["seen"]) + len(kept["log"])

    for k in range(4):
        assert list(f(data(1, 1))) == [3 + k, 3 + k]
    assert kept == {"seen": {"a"}, "log": bytearray(b"xxxx")}


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_thread_counts(threads):
    x = dr.arange(Float, 100_000) + 1
    f = dr.freeze(lambda x: dr.sum(x * 2))
    expected = np.float32(100_000 * 100_001)
    assert f(x)[0] == expected
    with dr.scoped_thread_count(threads):
        assert f(x)[0] == expected and f(x)[0] == expected
    assert f(x)[0] == expected
