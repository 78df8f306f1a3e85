"""The examples in docstrings: run as written, in every module of every package."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

PACKAGES = ("jit", "ad", "render", "scenes", "optim", "auto", "cli", "llvm", "mi")
SINGLE = ("luxgrad", "luxgrad.detail", "luxgrad.names", "luxgrad.opt", "luxgrad.scalar")
# What a user tries first; each of these shows how.
SHOWN = {
    "luxgrad.ad.api": ("enable_grad", "backward", "forward"),
    "luxgrad.ad.check": ("check_grad",),
    "luxgrad.jit.arrays.flat": ("Flat",),
    "luxgrad.jit.arrays.memops": ("gather", "scatter_add"),
    "luxgrad.jit.arrays.tensor": ("Tensor",),
    "luxgrad.jit.random": ("PCG32",),
    "luxgrad.jit.texture": ("Texture",),
    "luxgrad.optim.adam": ("Adam",),
    "luxgrad.render.render": ("render",),
    "luxgrad.render.traverse": ("traverse",),
}


def modules() -> list[str]:
    """Return all modules; in an editable install the packages are no children of the facade's folder."""
    found = list(SINGLE)
    for package in PACKAGES:
        name = f"luxgrad.{package}"
        found.append(name)
        found += [m.name for m in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}.")]
    return found


@pytest.mark.parametrize("name", modules())
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert not failed


@pytest.mark.parametrize("name", SHOWN)
def test_what_users_try_first_has_an_example(name: str) -> None:
    module = importlib.import_module(name)
    for entry in SHOWN[name]:
        assert ">>> " in (getattr(module, entry).__doc__ or ""), f"{name}.{entry} shows no example"


@pytest.mark.parametrize("entry", ["while_loop", "if_stmt", "switch"])
def test_control_flow_has_examples(entry: str) -> None:
    import luxgrad

    assert ">>> " in (getattr(luxgrad, entry).__doc__ or "")
