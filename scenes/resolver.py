"""Finds the files that scenes name."""

from __future__ import annotations

import contextvars
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..jit.errors import MissingFileError

__all__ = ["FileResolver", "ThreadResolver", "default_resolver", "file_resolver", "search_paths"]


class FileResolver:
    """A list of folders searched in order; immutable. Without folders, the current folder is searched."""

    __slots__ = ("folders",)

    def __init__(self, folders: Iterable[str | Path] = ()) -> None:
        self.folders = tuple(dict.fromkeys(Path(folder) for folder in folders))

    def prepend(self, folder: str | Path) -> FileResolver:
        """Return a resolver that searches `folder` first."""
        return FileResolver((Path(folder), *self.folders))

    def append(self, folder: str | Path) -> FileResolver:
        """Return a resolver that searches `folder` last."""
        return FileResolver((*self.folders, Path(folder)))

    def find(self, name: str) -> Path | None:
        """Return the path of the file or folder, or None; backslashes count as slashes where needed."""
        spellings = [name, name.replace("\\", "/")] if "\\" in name else [name]
        for spelling in spellings:
            for folder in self.folders or (Path(),):
                candidate = folder / spelling
                try:
                    if candidate.exists():
                        return candidate
                except (OSError, ValueError):  # too long a name, a zero byte
                    continue
        return None

    def resolve(self, name: str) -> Path:
        """Return the path of an existing file; MissingFileError names it as written and the folders searched."""
        found = self.find(name) if name else None
        if found is None:
            folders = ", ".join(str(folder.absolute()) for folder in self.folders or (Path(),))
            where = "" if Path(name).is_absolute() else f"; searched in {folders}"
            raise MissingFileError(f'file "{name}" not found{where}')
        return found

    def __repr__(self) -> str:
        return f"FileResolver({[str(folder) for folder in self.folders]})"


_default: contextvars.ContextVar[FileResolver] = contextvars.ContextVar("luxgrad_resolver")


def default_resolver() -> FileResolver:
    """Return the resolver that loaders of this thread start from: the current folder and `search_paths`."""
    return _default.get(FileResolver()).append(Path())


class ThreadResolver:
    """The search folders of the current thread, changed in place; `file_resolver()` returns it."""

    def append(self, folder: str | Path) -> None:
        """Search `folder` after the others from now on."""
        _default.set(_default.get(FileResolver()).append(folder))

    def prepend(self, folder: str | Path) -> None:
        """Search `folder` before the others from now on."""
        _default.set(_default.get(FileResolver()).prepend(folder))

    def clear(self) -> None:
        """Search only the current folder from now on."""
        _default.set(FileResolver())

    def resolve(self, name: str | Path) -> Path:
        """Return the path of a file if it is found, else `name` as it is."""
        return default_resolver().find(str(name)) or Path(name)

    def __iter__(self) -> Iterator[Path]:
        return iter(default_resolver().folders)

    def __repr__(self) -> str:
        return f"ThreadResolver({[str(folder) for folder in self]})"


def file_resolver() -> ThreadResolver:
    """Return the object that lists and changes the folders in which this thread's scenes find their files."""
    return ThreadResolver()


@contextmanager
def search_paths(*folders: str | Path) -> Iterator[None]:
    """Search scenes' files also in these folders, within a `with` block of this thread."""
    resolver = _default.get(FileResolver())
    for folder in reversed(folders):
        resolver = resolver.prepend(folder)
    token = _default.set(resolver)
    try:
        yield
    finally:
        _default.reset(token)
