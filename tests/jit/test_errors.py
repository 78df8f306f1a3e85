"""The exceptions: what each can be caught as, and that the tree in the docstring is the real one."""

from __future__ import annotations

import inspect

import pytest

from luxgrad.jit import errors


@pytest.mark.parametrize(
    ("name", "bases"),
    [
        ("SceneError", [errors.LuxgradError, ValueError]),
        ("FileFormatError", [errors.SceneError, ValueError]),
        ("MissingFileError", [errors.SceneError, FileNotFoundError, OSError]),
        ("CompileError", [errors.LuxgradError, RuntimeError]),
    ],
)
def test_errors_can_be_caught_as_what_they_are(name: str, bases: list[type[Exception]]) -> None:
    error = getattr(errors, name)("the message")
    assert all(isinstance(error, base) for base in bases)
    assert str(error) == "the message"


def test_the_docstring_draws_every_class() -> None:
    classes = {n for n, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, Exception)}
    assert classes == set(errors.__all__)
    assert errors.__doc__ is not None and all(name in errors.__doc__ for name in classes)
