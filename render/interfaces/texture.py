"""Textures: colours and numbers that may vary over a surface, by its uv coordinates."""

from __future__ import annotations

from typing import Any

from ...jit.errors import WrongTypeError
from .object import Object
from .records import SurfaceInteraction


class Texture(Object):
    """Base of textures: implement `eval` (a colour) and `eval_1` (a number). Differentiable in the texture's values."""

    plugin_kind = "texture"

    def eval(self, si: SurfaceInteraction, active: Any = True) -> Any:
        """Return the colour (linear RGB)."""
        raise NotImplementedError(f"{type(self).__name__}.eval()")

    def eval_1(self, si: SurfaceInteraction, active: Any = True) -> Any:
        """Return one number; of colours the luminance."""
        raise NotImplementedError(f"{type(self).__name__}.eval_1()")

    def mean(self) -> Any:
        """Return the mean over the surface, one number."""
        raise NotImplementedError(f"{type(self).__name__}.mean()")

    def sample_position(self, sample: Any, active: Any = True) -> tuple[Any, Any]:
        """Return a uv drawn by brightness and its density over the unit square."""
        raise NotImplementedError(f"{type(self).__name__}.sample_position()")

    def pdf_position(self, uv: Any, active: Any = True) -> Any:
        """Return the density of `sample_position`."""
        raise NotImplementedError(f"{type(self).__name__}.pdf_position()")

    def is_sampled(self) -> bool:
        """Return whether positions can be drawn by brightness."""
        return False

    def is_spatially_varying(self) -> bool:
        """Return whether the value depends on the position."""
        return True


def luminance(c: Any) -> Any:
    """Return the luminance of linear sRGB (ITU-R BT.709); raises WrongTypeError for what has no three components."""
    if not hasattr(c, "x") or not hasattr(c, "z"):
        raise WrongTypeError(f"luminance(): a colour of three components is needed, found {type(c).__name__}")
    return c.x * 0.212671 + c.y * 0.715160 + c.z * 0.072169
