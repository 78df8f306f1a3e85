"""Integrators: from scene to image.

A sampling integrator implements `sample`: the radiance along rays. `render` starts `spp` rays per pixel (all samples
of a pixel are neighbouring lanes), calls it, and lets the film add up. Everything is recorded as one kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...ad import api
from ...jit.arrays import tree
from ...jit.arrays.create import arange
from ...jit.errors import SceneError
from ...jit.runtime.evaluate import evaluate
from ..arguments import find_sensor, samples, seed_number
from .object import Object
from .records import Ray

LANES = 0xFFFFFFFF  # most samples of one pass: lanes are counted in 32 bits


@dataclass
class Pass:
    """A part of an image's samples."""

    sampler: Any
    spp: int  # samples per pixel
    lanes: int
    results: list[Any]  # arrays that the pass computes


class Integrator(Object):
    """Base of integrators."""

    plugin_kind = "integrator"
    hide_emitters = False

    def aov_names(self) -> list[str]:
        """Return the names of channels beside colour and alpha."""
        return []

    def render(self, scene: Any, sensor: Any = 0, seed: Any = 0, spp: int = 0) -> Any:
        """Return the image, a tensor (height, width, channels)."""
        raise NotImplementedError(f"{type(self).__name__}.render()")

    @property
    def replays(self) -> bool:
        """Return whether derivatives take renderings of their own; otherwise the image's operations are recorded."""
        return type(self).render_backward is not Integrator.render_backward

    def render_backward(
        self, scene: Any, params: Any, grad_in: Any, sensor: Any = 0, seed: Any = 0, spp: int = 0
    ) -> None:
        """Add the gradients that `grad_in`, of the image, gives to all parameters with gradients enabled.

        `params` is accepted for compatibility. Plain automatic differentiation, unless a class does better.
        """
        scene.refresh()
        with api.resume_grad():
            image = self.render(scene, sensor, seed, spp)
        self._require_gradients(image)
        api.set_grad(image, grad_in)
        # What shapes derive from parameters serves the next picture too.
        api.backward_from(image, api.ADFlag.ClearVertices)
        scene.refresh()

    def render_forward(self, scene: Any, params: Any, sensor: Any = 0, seed: Any = 0, spp: int = 0) -> Any:
        """Return the image's tangent from those of the parameters; see `render_backward`."""
        scene.refresh()
        with api.resume_grad():
            image = self.render(scene, sensor, seed, spp)
        self._require_gradients(image)
        tangent = api.forward_to(image, flags=api.ADFlag.ClearVertices)
        scene.refresh()
        return tangent

    @staticmethod
    def _require_gradients(image: Any) -> None:
        if not api.grad_enabled(image):
            raise SceneError("no scene parameter has gradients enabled: call enable_grad() and params.update() first")


class SamplingIntegrator(Integrator):
    """Base of integrators that follow rays from the sensor: implement `sample`."""

    # Whether the passes of `samples_per_pass` draw from one stream of random numbers, as Mitsuba's do.
    continues = True
    samples_per_pass: int | None = None

    def __init__(self, props: Any = None) -> None:
        super().__init__(props)
        given = None if props is None else props.get("samples_per_pass")
        self.samples_per_pass = None if given == -1 else given
        if self.samples_per_pass is not None and self.samples_per_pass < 1:
            raise SceneError(f"samples_per_pass must be positive, or -1 for as many as fit, found {given}")

    def sample(self, scene: Any, sampler: Any, ray: Ray, active: Any = True) -> tuple[Any, Any, list[Any]]:
        """Return radiance (RGB), whether a surface was hit (alpha), and further channels, per ray."""
        raise NotImplementedError(f"{type(self).__name__}.sample()")

    def plan(self, sensor: Any, spp: int) -> list[int]:
        """Return how many samples each pass takes of every pixel: `samples_per_pass`, or as many as there are lanes."""
        spp = samples(spp) or sensor.sampler().sample_count
        if spp < 1:
            raise SceneError(f"render: at least one sample per pixel is needed, found {spp}")
        width, height = sensor.film().sampled_size()
        most = LANES // (width * height)
        if most == 0:
            raise SceneError(f"render: a film of {width} x {height} pixels has more than {LANES} of them; crop it")
        each = min(self.samples_per_pass or spp, spp)
        if spp % each:
            raise SceneError(f"render: {spp} samples per pixel are no multiple of samples_per_pass, which is {each}")
        if each > most:
            passes = -(-spp // most)
            each = -(-spp // passes)
        return [each] * (spp // each) + [spp % each] * (spp % each > 0)

    def passes(self, sensor: Any, seed: Any, spp: int) -> Iterator[Pass]:
        """Yield one pass after the other; their `results` are computed before the next one starts.

        With `samples_per_pass` the sampler goes on where the pass before left it (its state is kept per lane),
        otherwise every pass has a seed of its own, `pass_seed`.
        """
        counts = self.plan(sensor, spp)
        width, height = sensor.film().sampled_size()
        continued = self.continues and counts[0] == self.samples_per_pass
        one: Any = None
        for number, count in enumerate(counts):
            if one is not None:
                state = one.sampler.loop_state() if continued else []
                evaluate([x._n for x in tree.arrays([one.results, state])])
            lanes = width * height * count
            if one is not None and continued:
                sampler = one.sampler
            else:
                sampler = sensor.sampler().clone()
                sampler.set_sample_count(sum(counts))
                sampler.seed(pass_seed(seed, number), lanes)
            one = Pass(sampler, count, lanes, [])
            yield one

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

    def render(self, scene: Any, sensor: Any = 0, seed: Any = 0, spp: int = 0) -> Any:
        """Return the image, a tensor (height, width, channels)."""
        sensor = find_sensor(scene, sensor)
        film = sensor.film()
        scene.prepare()
        block: Any = None
        for one in self.passes(sensor, seed, spp):
            ray, position = self.sample_rays(sensor, one.sampler, one.spp, one.lanes)
            values = self.channels(film, *self.sample(scene, one.sampler, ray))
            block = block or self.block(film, len(values))
            block.put(position.x, position.y, values)
            one.results.append(block.data)
        return self.develop(film, block)

    def block(self, film: Any, channels: int) -> Any:
        """Return an empty block for samples of so many channels."""
        return film.block(channels - 3 - film.has_alpha)

    def develop(self, film: Any, block: Any) -> Any:
        """Return the image of a block."""
        return film.develop(block)

    def channels(self, film: Any, color: Any, alpha: Any, extra: list[Any]) -> list[Any]:
        """Return the film's channels of one sample."""
        from ...jit.arrays.functions import select

        types = self.types
        coverage = [select(alpha, types.Float(1.0), types.Float(0.0))] if film.has_alpha else []
        return [color.x, color.y, color.z, *coverage, *extra]


def pass_seed(seed: Any, number: int) -> Any:
    """Return the seed of a pass: the first has that of the whole."""
    from ...jit.random import sample_tea_32

    seed = seed_number(seed)
    # Of the two words the other one: `render` seeds the gradients' pass with the first.
    return sample_tea_32(seed, number)[1] if number else seed
