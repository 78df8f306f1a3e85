"""Sensors: where rays start."""

from __future__ import annotations

from typing import Any

from ...jit.errors import SceneError
from .object import Object
from .records import Ray


class Sensor(Object):
    """Base of sensors: a film, a sampler, and the ray through a point of the film."""

    plugin_kind = "sensor"

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        from ..slots import create

        self._film = props["film"]
        if self._film is None:
            self._film = create("film", "hdrfilm", {}, props, "film")
        self._sampler = props["sampler"]
        if self._sampler is None:
            self._sampler = create("sampler", "independent", {}, props, "sampler")
        self.shutter_open: float = props["shutter_open"]
        self.shutter_open_time: float = props["shutter_close"] - props["shutter_open"]
        if not self.shutter_open_time >= 0.0:
            raise SceneError(f"shutter_close is {props['shutter_close']}, before shutter_open, {props['shutter_open']}")

    def film(self) -> Any:
        """Return the film."""
        return self._film

    def sampler(self) -> Any:
        """Return the sampler."""
        return self._sampler

    def needs_aperture_sample(self) -> bool:
        """Return whether rays also start from different points of an aperture."""
        return False

    def sample_ray(self, time: Any, position: Any, aperture: Any, active: Any = True) -> Ray:
        """Return the ray through `position` ([0, 1]^2 over the rendered part of the film, y down), in world space."""
        raise NotImplementedError(f"{type(self).__name__}.sample_ray()")
