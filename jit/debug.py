"""The settings that environment variables make: each is declared here once, with what it means and how it is read.

`value("level")` is what holds now: the innermost `scoped(...)` block decides, else the variable, else the default.

    >>> from luxgrad.jit import debug
    >>> with debug.scoped(level=1, verify=True):
    ...     debug.value("level"), debug.value("verify")
    (1, True)
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["SETTINGS", "Setting", "level", "markdown_table", "say", "scoped", "value", "verifying"]


@dataclass(frozen=True)
class Setting:
    """One setting: its variable, its short name in code, how a text becomes a value, the default, and help."""

    variable: str
    name: str
    read: Callable[[str], Any]
    default: str  # as it would stand in the variable; "" where the value is None
    meaning: str
    in_code: str  # the form that holds within a `with` block

    def parse(self, text: str) -> Any:
        """Return the value a text stands for; raises ValueError that names the variable."""
        try:
            return self.read(text)
        except ValueError as error:
            raise ValueError(f"{self.variable} must be {error}, found '{text}'") from None


def _level(text: str) -> int:
    if text not in ("0", "1", "2", "3", "4"):
        raise ValueError("a number from 0 to 4")
    return int(text)


def _switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError("0 or 1")
    return text == "1"


def _count(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise ValueError("a positive number")
    return int(text)


def _nbytes(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    asked = text.strip().upper()
    digits = (asked[:-1] if asked[-1:] in units else asked).strip()
    try:
        found = float(digits) * units.get(asked[-1:], 1)
        if found >= 0:
            return int(found)
    except (ValueError, OverflowError):
        pass
    raise ValueError("like '512M' or '2G'")


def _limit(text: str) -> int | None:
    if not text:
        return None
    from .memory.source import physical_memory

    try:
        share = float(text)
    except ValueError:
        share = 2.0  # a text with a unit
    try:
        if 0 < share <= 1:
            return int(share * physical_memory())
        found = _nbytes(re.sub("i?b$", "", text.strip().lower()))
        if 0 < found < 1 << 62:
            return found
    except ValueError:
        pass
    raise ValueError("like '8G', '8 GiB' or a fraction of the memory such as 0.5")


def _folder(text: str) -> str | None:
    return text or None


SETTINGS: dict[str, Setting] = {
    s.name: s
    for s in (
        Setting(
            "LUXGRAD_DEBUG", "level", _level, "0",
            "what is printed to standard error: 1 every launch with its times, 2 also the passes and how many nodes "
            "they leave, 3 also the program before and after numbering, 4 also the LLVM text. From 1 on launches are "
            "waited for one by one",
            "debug.scoped(level=2)",
        ),
        Setting(
            "LUXGRAD_DUMP", "dump", _folder, "",
            "folder into which the LLVM text of every compiled kernel is written, in numbered files",
            'debug.scoped(dump="folder")',
        ),
        Setting(
            "LUXGRAD_VERIFY", "verify", _switch, "0",
            "1 checks every numbered program before code is made from it (the tests do)",
            "debug.scoped(verify=True)",
        ),
        Setting(
            "LUXGRAD_CACHE_DIR", "cache_dir", _folder, "",
            "folder of compiled kernels, instead of the platform's place for caches (`luxgrad info` shows it)",
            'debug.scoped(cache_dir="folder")',
        ),
        Setting(
            "LUXGRAD_CACHE_MAXSIZE", "cache_maxsize", _nbytes, "1G",
            "how much that folder may hold, such as `512M` or `2G`; the longest unused go first",
            'debug.scoped(cache_maxsize="512M")',
        ),
        Setting(
            "LUXGRAD_DATA_CACHE_MAXSIZE", "data_cache_maxsize", _nbytes, "1G",
            "how much decoded textures, meshes, sampling tables and ray structures may take in memory so that a scene "
            "loads faster again; `0` keeps none",
            'debug.scoped(data_cache_maxsize="256M")',
        ),
        Setting(
            "LUXGRAD_DATA_CACHE_DIR", "data_cache_dir", _folder, "",
            "folder in which these are kept for other processes too (docs/caches.md); none are unless it is given",
            'debug.scoped(data_cache_dir="folder")',
        ),
        Setting(
            "LUXGRAD_DATA_CACHE_DISK", "data_cache_disk", _nbytes, "4G",
            "how much that folder may hold; the longest unused go first",
            'debug.scoped(data_cache_disk="20G")',
        ),
        Setting(
            "LUXGRAD_MEMORY_LIMIT", "memory_limit", _limit, "",
            "how much arrays may hold together, such as `8G` or `0.5` (of the memory), instead of all memory",
            'luxgrad.set_memory_limit("8G")',
        ),
        Setting(
            "LUXGRAD_THREADS", "threads", _count, "",
            "number of threads, instead of all processors this process may use",
            "luxgrad.scoped_thread_count(2)",
        ),
    )
}  # fmt: skip
_SCOPED = ("level", "dump", "verify", "cache_dir", "cache_maxsize", "data_cache_maxsize", "data_cache_dir",
           "data_cache_disk")  # fmt: skip
_scoped: dict[str, Any] = {}
_known: dict[str, Any] = {}  # of level and verify, which every launch asks for: read from the environment once


def value(name: str) -> Any:
    """Return what a setting is now; raises ValueError if its variable holds nonsense."""
    if name in _scoped:
        return _scoped[name]
    setting = SETTINGS[name]
    return setting.parse(os.environ.get(setting.variable) or setting.default)


def _often(name: str) -> Any:
    if name not in _known:
        _known[name] = value(name)
    return _known[name]


def level() -> int:
    """Return how much is printed, 0 to 4."""
    return int(_often("level"))


def verifying() -> bool:
    """Return whether programs are checked before code is made."""
    return bool(_often("verify"))


@contextmanager
def scoped(**settings: Any) -> Iterator[None]:
    """Within the block settings hold: `level`, `dump`, `verify`, and those of the caches; in all threads.

    Values may be given as in the variable ("512M") or as Python values. Raises ValueError for what has no meaning and
    TypeError for an unknown name.
    """
    for name in settings:
        if name not in _SCOPED:
            raise TypeError(f"debug.scoped(): unknown setting '{name}'; there are {', '.join(_SCOPED)}")
    values = {name: SETTINGS[name].parse(_text(v)) for name, v in settings.items()}
    before = dict(_scoped)
    _scoped.update(values)
    _known.clear()
    try:
        yield
    finally:
        _scoped.clear()
        _scoped.update(before)
        _known.clear()


def _text(given: Any) -> str:
    if given is None:
        return ""
    return str(int(given)) if isinstance(given, bool) else str(given)


def say(text: str) -> None:
    """Print a line of debugging output to standard error."""
    print(text, file=sys.stderr)


def markdown_table() -> str:
    """Return the settings as the table that stands in README.md."""
    rows = ["| variable | default | meaning | within a block of code |", "|---|---|---|---|"]
    for s in SETTINGS.values():
        default = f"`{s.default}`" if s.default else "none"
        rows.append(f"| `{s.variable}` | {default} | {s.meaning} | `{s.in_code}` |")
    return "\n".join(rows)
