"""What `sys.getrefcount` counts: needed where memory is written in place because nobody else holds it."""

from __future__ import annotations

from sys import getrefcount


def _measured() -> int:
    probe = object()
    return getrefcount(probe)


# References that a local variable and its use as the argument are counted as: 2 up to Python 3.13; from 3.14 on the
# argument borrows from the variable and it is 1. Assuming more than there are would overwrite arrays that others hold.
LOCAL = _measured()

__all__ = ["LOCAL"]
