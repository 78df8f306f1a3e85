"""Wrong arguments under Mitsuba's names: loaders, transforms, and optimisers say what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import luxgrad.mi as mi
import luxgrad.opt as opt
from luxgrad import LuxgradError
from luxgrad.llvm.ad import Float, UInt

T = mi.ScalarTransform4f


@pytest.fixture(autouse=True)
def variant() -> Iterator[None]:
    """Load for the processor."""
    with mi.variant_context("llvm_ad_rgb"):
        yield


def sphere(**values: Any) -> Callable[[], Any]:
    return lambda: mi.load_dict({"type": "sphere", **values})


IMAGE = mi.Bitmap(np.ones((4, 4, 3), np.float32))


def sensor(**values: Any) -> Callable[[], Any]:
    return lambda: mi.load_dict({"type": "perspective", **values})


def sampler(**values: Any) -> Callable[[], Any]:
    return lambda: mi.load_dict({"type": "independent", **values})


_SCENES: list[tuple[Callable[[], Any], str]] = [
    (lambda: mi.load_file(3), r"mi.load_file\(\): the name of a file is needed, found int"),  # type: ignore[arg-type]
    (lambda: mi.load_file(None), r"mi.load_file\(\): the name of a file is needed, found NoneType"),  # type: ignore[arg-type]
    (lambda: mi.load_string(3), r"mi.load_string\(\): XML text is needed, found int"),  # type: ignore[arg-type]
    (sphere(to_world=T().scale(0)), "to_world: the transform flattens everything"),
    (sphere(to_world=T().scale([1, 0, 0])), "to_world: the transform flattens everything"),
    (sphere(to_world=T().scale(float("nan"))), "to_world: the transform has numbers that are not finite"),
    (sphere(to_world=np.full((4, 4), np.inf)), "to_world: the transform has numbers that are not finite"),
    (sensor(to_world=T().scale(0)), "to_world"),
    (sensor(shutter_open=2, shutter_close=1), "shutter_close is 1.0, before shutter_open, 2.0"),
    (sampler(sample_count=0), "sample_count must be at least 1, found 0"),
    (sampler(sample_count=-4), "sample_count must be at least 1, found -4"),
    (sampler(seed=-1), "seed must lie in 0 .*, found -1"),
    (sampler(seed=2**32), "seed must lie in 0 .*, found 4294967296"),
    (lambda: mi.load_dict({"type": "roughconductor", "alpha": -0.5}), r"alpha must not be negative, found -0\.5"),
    (lambda: mi.load_dict({"type": "diffuse", "reflectance": object()}), '"reflectance" has the wrong type'),
    (lambda: mi.luminance("a"), r"luminance\(\): a colour of three components is needed, found str"),
    (lambda: IMAGE.convert("nope"), "'nope' is no pixel format; use one of Y, YA, RGB"),
    (lambda: IMAGE.convert(3), "3 is no pixel format"),
    (lambda: IMAGE.resample("a"), r"resample\(\): the size is \(width, height\), two ints; found 'a'"),
    (lambda: IMAGE.write(3), r"write\(\): a file name is needed, found int"),
    (lambda: mi.Bitmap(np.ones((2, 2, 3)), pixel_format="zz"), "'zz' is no pixel format"),
]


@pytest.mark.parametrize(("call", "message"), _SCENES)
def test_scenes(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(LuxgradError, match=message):
        call()


_TRANSFORMS: list[tuple[Callable[[], Any], str]] = [
    (lambda: T("a"), "ScalarTransform4f: a matrix is needed, found str"),
    (lambda: T().translate(None), "expected 3 numbers, found None"),
    (lambda: T().translate("abc"), "expected 3 numbers, found str"),
    (lambda: T().scale("a"), "expected 3 numbers, found str"),
    (lambda: T().rotate("x", 90), "expected 3 numbers, found str"),
]


@pytest.mark.parametrize(("call", "message"), _TRANSFORMS)
def test_transforms(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def made() -> Any:
    return opt.Adam(lr=0.1, params={"a": Float(1, 2)})


_OPTIMISERS: list[tuple[Callable[[], Any], str]] = [
    (lambda: made()["nope"], 'Adam: no parameter is called "nope"; there are a'),
    (lambda: made()[3], 'Adam: no parameter is called "3"'),
    (lambda: made().__delitem__("nope"), 'no parameter is called "nope"'),
    (lambda: made().reset("nope"), 'no parameter is called "nope"'),
    (lambda: made().learning_rate("nope"), 'no parameter is called "nope"'),
    (lambda: made().set_learning_rate({"nope": 1}), 'no parameter is called "nope"'),
    (lambda: made().update(3), r"\(name, value\) pairs are needed, found int"),
    (lambda: opt.Adam(lr=0.1, params=[1]), r"\(name, value\) pairs are needed, found list"),  # type: ignore[arg-type]
    (lambda: made().__setitem__("a", UInt(1)), 'cannot optimise "a"'),
    (lambda: opt.Adam(lr=0.1, beta_1="a"), r"beta_1 must lie in \[0, 1\), found 'a'"),  # type: ignore[arg-type]
    (lambda: opt.Adam(lr=0.1, epsilon="a"), "epsilon must be above 0, found 'a'"),  # type: ignore[arg-type]
    (lambda: opt.SGD(lr=0.1, momentum="a"), "momentum must lie in .* found 'a'"),  # type: ignore[arg-type]
    (lambda: opt.RMSProp(lr=0.1, alpha="a"), "alpha must lie in .* found 'a'"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "message"), _OPTIMISERS)
def test_optimisers(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((KeyError, TypeError, ValueError), match=message):
        call()
