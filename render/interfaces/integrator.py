"""Integrators: from scene to image.

A sampling integrator implements `sample`: the radiance along rays. `render` starts `spp` rays per pixel (all samples
of a pixel are neighbouring lanes), calls it, and lets the film add up. Everything is recorded as one kernel.
"""

from __future__ import annotations

from typing import Any

from ...jit.arrays.create import arange
from ...jit.errors import SceneError
from .object import Object
from .records import Ray


class Integrator(Object):
    """Base of integrators."""

    plugin_kind = "integrator"
    hide_emitters = False

    def aov_names(self) -> list[str]:
        """Return the names of channels beside colour and alpha."""
        return []

    def render(self, scene: Any, sensor: Any, seed: int = 0, spp: int = 0) -> Any:
        """Return the image, a tensor (height, width, channels)."""
        raise NotImplementedError(f"{type(self).__name__}.render()")


class SamplingIntegrator(Integrator):
    """Base of integrators that follow rays from the sensor: implement `sample`."""

    def sample(self, scene: Any, sampler: Any, ray: Ray, active: Any = True) -> tuple[Any, Any, list[Any]]:
        """Return radiance (RGB), whether a surface was hit (alpha), and further channels, per ray."""
        raise NotImplementedError(f"{type(self).__name__}.sample()")

    def prepare(self, sensor: Any, seed: int, spp: int) -> tuple[Any, int, int]:
        """Return a seeded sampler, the samples per pixel, and the number of lanes."""
        sampler = sensor.sampler().clone()
        spp = spp or sampler.sample_count
        if spp < 1:
            raise SceneError(f"render: at least one sample per pixel is needed, found {spp}")
        width, height = sensor.film().sampled_size()
        lanes = width * height * spp
        if lanes > 1 << 32:
            raise SceneError(
                f"render: {width} x {height} pixels x {spp} samples are more than 2^32 lanes; render several times "
                "with other seeds and average"
            )
        sampler.set_sample_count(spp)
        sampler.seed(seed, lanes)
        return sampler, spp, lanes

    def sample_film(self, sensor: Any, sampler: Any, spp: int, lanes: int) -> tuple[Any, Any, Any, Any]:
        """Return what a sensor needs for rays: time, position in [0, 1]^2, aperture sample; and film positions."""
        types = self.types
        film = sensor.film()
        width, height = film.crop_size()
        across, margin = film.sampled_size()[0], film.margin
        pixel = arange(types.UInt32, lanes) // spp if spp > 1 else arange(types.UInt32, lanes)
        y = pixel // across
        x = pixel - y * across
        jitter = sampler.next_2d()
        position = types.Point2f(types.Float(x) + jitter.x, types.Float(y) + jitter.y)
        if margin:
            position = position - float(margin)
        aperture = sampler.next_2d() if sensor.needs_aperture_sample() else types.Point2f(0.5)
        time = types.Float(sensor.shutter_open)
        if sensor.shutter_open_time > 0:
            time = time + sampler.next_1d() * sensor.shutter_open_time
        return time, types.Point2f(position.x * (1.0 / width), position.y * (1.0 / height)), aperture, position

    def sample_rays(self, sensor: Any, sampler: Any, spp: int, lanes: int) -> tuple[Ray, Any]:
        """Return camera rays and film positions (pixels, relative to the rendered part)."""
        time, scaled, aperture, position = self.sample_film(sensor, sampler, spp, lanes)
        return sensor.sample_ray(time, scaled, aperture), position

    def render(self, scene: Any, sensor: Any, seed: int = 0, spp: int = 0) -> Any:
        """Return the image, a tensor (height, width, channels)."""
        film = sensor.film()
        sampler, spp, lanes = self.prepare(sensor, seed, spp)
        scene.prepare()
        ray, position = self.sample_rays(sensor, sampler, spp, lanes)
        color, alpha, extra = self.sample(scene, sampler, ray)
        block = film.block(len(extra))
        block.put(position.x, position.y, self.channels(film, color, alpha, extra))
        return film.develop(block)

    def channels(self, film: Any, color: Any, alpha: Any, extra: list[Any]) -> list[Any]:
        """Return the film's channels of one sample."""
        from ...jit.arrays.functions import select

        types = self.types
        coverage = [select(alpha, types.Float(1.0), types.Float(0.0))] if film.has_alpha else []
        return [color.x, color.y, color.z, *coverage, *extra]
