"""Mitsuba's log levels, mapped to Python's logger `luxgrad` and to the warnings of scene files."""

from __future__ import annotations

import enum
import logging
import warnings

from luxgrad.scenes.nodes import SceneWarning

__all__ = ["LogLevel", "log_level", "set_log_level"]


class LogLevel(enum.IntEnum):
    """How important a message is."""

    Trace = 0
    Debug = 100
    Info = 200
    Warn = 300
    Error = 400


_PYTHON = {LogLevel.Trace: 5, LogLevel.Debug: logging.DEBUG, LogLevel.Info: logging.INFO,
           LogLevel.Warn: logging.WARNING, LogLevel.Error: logging.ERROR}  # fmt: skip
_level = LogLevel.Warn


def set_log_level(level: LogLevel | int) -> None:
    """Show messages from this level on; at `Error` the warnings about scene files are silent too."""
    global _level
    _level = LogLevel(level)
    logging.getLogger("luxgrad").setLevel(_PYTHON[_level])
    warnings.filterwarnings("ignore" if _level > LogLevel.Warn else "default", category=SceneWarning)


def log_level() -> LogLevel:
    """Return the level that was set."""
    return _level
