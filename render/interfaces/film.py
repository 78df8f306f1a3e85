"""Films: where samples become pixels."""

from __future__ import annotations

from typing import Any

from .object import Object


class Film(Object):
    """Base of films: sizes in pixels (x, y), a reconstruction filter, and images from samples."""

    plugin_kind = "film"
    rfilter: Any

    def size(self) -> Any:
        """Return (width, height) of the whole film."""
        raise NotImplementedError(f"{type(self).__name__}.size()")

    def crop_size(self) -> Any:
        """Return (width, height) of the part that is rendered."""
        raise NotImplementedError(f"{type(self).__name__}.crop_size()")

    def crop_offset(self) -> Any:
        """Return the first rendered pixel."""
        raise NotImplementedError(f"{type(self).__name__}.crop_offset()")

    @property
    def margin(self) -> int:
        """Return how many pixels outside the rendered part are sampled too, on every side."""
        return 0

    def sampled_size(self) -> tuple[int, int]:
        """Return (width, height) of the part where samples are taken."""
        width, height = self.crop_size()
        return width + 2 * self.margin, height + 2 * self.margin
