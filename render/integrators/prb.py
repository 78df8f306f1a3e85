"""Path replay backpropagation: the gradient of a path-traced image in constant memory.

Vicini, Speierer and Jakob 2021, "Path Replay Backpropagation". The adjoint pass traces the same paths as a primal pass
with the same random numbers, knows the radiance that is still to come (the final result minus what was seen so far),
and sends gradients off at every vertex. What is sampled (directions, lights, roulette) stays detached.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ...ad import api
from ...ad.widen import widened
from ...jit.arrays import functions as f
from ...jit.arrays.create import arange
from ...jit.arrays.linear import dot, normalize
from ...jit.arrays.memops import gather
from ...jit.control import while_loop
from ...jit.errors import SceneError
from ...jit.instances import leaves
from ..arguments import find_sensor
from ..interfaces.bsdf import BSDFContext, BSDFFlags
from ..interfaces.records import Preliminary, Ray
from ..registry import Parameter, register
from .common import PASSES, UNLIMITED, PathIntegrator, found_weight, mis_weight, pass_lights


@dataclass
class ReplayState:
    """What a path carries from vertex to vertex. L: radiance so far (primal) or still to come (adjoint)."""

    o: Any
    d: Any
    maxt: Any
    L: Any
    beta: Any  # throughput
    eta: Any
    depth: Any
    prev_p: Any
    prev_n: Any
    prev_pdf: Any
    prev_delta: Any
    active: Any
    valid: Any
    tangent: Any  # of the radiance, in forward mode
    sampler: Any
    previous: Any = None  # ray and hit of the previous vertex, where geometry has gradients


@register("integrator", "prb")
class PRB(PathIntegrator):
    """A path tracer with emitter sampling whose gradients need no more memory than the image.

    Differentiable in colours, textures, lights (moving ones too, as seen from surfaces) and the smooth part of
    geometry. Visibility changes have no gradient here, nor has the path of light that mirrors bend.
    """

    parameters = (
        Parameter("max_depth", "int", 6, "longest path, in segments; -1 without bound"),
        Parameter("rr_depth", "int", 5, "depth from which paths end at random"),
        Parameter("hide_emitters", "bool", False, "do not show lights directly"),
        PASSES,
    )

    continues = False  # replays start every pass anew

    def sample(self, scene: Any, sampler: Any, ray: Ray, active: Any = True) -> tuple[Any, Any, list[Any]]:
        """Return the radiance along the rays."""
        state = self.replay(scene, sampler, ray, active)
        return state.L, state.valid, []

    def replay(
        self, scene: Any, sampler: Any, ray: Ray, active: Any = True,
        primal: Any = None, gradient: Any = None, forward: bool = False,
    ) -> ReplayState:  # fmt: skip
        """Trace paths. With `primal` (the radiance of the same paths), derivatives are sent at every vertex: backwards
        from `gradient` (of the radiance, per path), or forwards into the state's `tangent`."""
        types = self.types
        zero = types.Color3f(0.0)
        if self.hide_emitters:
            ray = pass_lights(scene, ray, active)
        state = ReplayState(
            types.Point3f(ray.o), types.Vector3f(ray.d), types.Float(ray.maxt), zero if primal is None else primal,
            types.Color3f(1.0), types.Float(1.0), types.UInt32(0), types.Point3f(0.0), types.Normal3f(0.0),
            types.Float(1.0), types.Bool(True), types.Bool(active) & (self.max_depth != 0),
            types.Bool(False), zero, sampler.loop_state(),
        )  # fmt: skip
        if primal is not None and self._moving(scene):
            number, index = types.Float(0.0), types.UInt32(0)
            nothing = Preliminary(number, number, number, index, index, types.Bool(False))
            state.previous = (Ray(state.o, state.d, state.maxt), nothing)

        def body(s: ReplayState, g: Any) -> tuple[ReplayState, Any]:
            sampler.set_loop_state(s.sampler)
            self.vertex(scene, sampler, s, primal is None, None if gradient is None else g, forward)
            s.sampler = sampler.loop_state()
            return s, g

        seed = zero if gradient is None else gradient
        state, _ = while_loop((state, seed), lambda s, g: s.active, body, labels=("path", "gradient"))
        sampler.set_loop_state(state.sampler)
        return state  # type: ignore[no-any-return]

    @staticmethod
    def _moving(scene: Any) -> bool:
        """Return whether any geometry has gradients."""
        with api.resume_grad():
            surfaces = scene.surfaces
            return api.grad_enabled(surfaces.arrays(), [leaves(s) for s in scene.shapes() if not s.is_triangles])

    def vertex(self, scene: Any, sampler: Any, s: ReplayState, primal: bool, gradient: Any, forward: bool) -> None:
        """Extend the paths by one vertex."""
        types, ctx = self.types, BSDFContext()
        attach = not primal
        ray = Ray(s.o, s.d, s.maxt)
        pi = scene.ray_intersect_preliminary(ray, s.depth == 0, s.active)
        with api.resume_grad(when=attach):
            si = scene.surfaces.interaction(ray, pi, scene.exact(ray))
            if s.previous is not None:
                self._follow_previous(scene, s, si)
            lights_move = attach and self._lights_move(scene)
            emitted = self.emission(scene, s, si, lights_move)
        active_next = s.active & (s.depth + 1 < self.depth_limit) & si.is_valid()
        index = scene.bsdf_index(si)
        smooth = scene.smooth_mask(index, active_next)
        active_em = active_next & smooth
        plain = _plain(si)
        sample = sampler.next_2d()
        ds, em_weight = scene.sample_emitter_direction(plain, sample, True, active_em)
        active_em = active_em & (ds.pdf != 0.0)
        with api.resume_grad(when=attach):
            d = ds.d
            if attach:
                d, em_weight = self._attached_light(scene, si, ds, em_weight, active_em)
            if lights_move:
                turn, share = self._light_motion(scene, plain, sample, ds, index, active_em)
                d, em_weight = types.Vector3f(d + turn), em_weight * share
            wo = si.to_local(d)
            value, pdf = scene.bsdfs.call(index, lambda b, mask: b.eval_pdf(ctx, si, wo, mask), active=active_em)
            mis = f.select(ds.delta, 1.0, mis_weight(ds.pdf, api.detach(pdf)))
            direct = f.select(active_em, s.beta * mis * value * em_weight, 0.0)
        u1, u2 = sampler.next_1d(), sampler.next_2d()
        bs, weight = scene.bsdfs.call(index, lambda b, mask: b.sample(ctx, plain, u1, u2, mask), active=active_next)
        seen = api.detach(emitted) + api.detach(direct)
        s.L = types.Color3f(f.select(s.active, s.L + seen if primal else s.L - seen, s.L))
        if attach:
            drawn = (bs, u1, u2)
            self._differentiate(scene, s, si, drawn, index, active_next, (emitted, direct), gradient, forward)
        if s.previous is not None:
            s.previous = (ray, pi)
        self.advance(sampler, s, plain, bs, weight, active_next)

    @staticmethod
    def _mirrors_vary(scene: Any) -> bool:
        """Return whether a material with perfectly specular lobes has gradients."""
        return any(int(b.flags()) & int(BSDFFlags.Delta) and api.grad_enabled(leaves(b)) for b in scene.bsdfs.objects)

    def _follow_previous(self, scene: Any, s: ReplayState, si: Any) -> None:
        """Let si.wi move with the previous vertex; this one slides along the ray, which turns nothing."""
        ray, pi = s.previous
        before = scene.surfaces.interaction(ray, pi, True)
        moved = si.to_local(normalize(self.types.Vector3f(before.p - api.detach(si.p))))
        si.wi = type(si.wi)(f.select(si.valid & pi.valid & (s.depth > 0), moved, si.wi))

    @staticmethod
    def _lights_move(scene: Any) -> bool:
        """Return whether a shape that shines has gradients."""
        shapes = [s for s in scene.shapes() if s.emitter is not None]
        return api.grad_enabled([leaves(s) for s in shapes], [getattr(s, "vertex_positions", None) for s in shapes])

    def _light_motion(
        self, scene: Any, plain: Any, sample: Any, ds: Any, index: Any, active: Any
    ) -> tuple[Any, Any]:
        """Return 0 and 1 with the derivatives of direction and 1 / density of a light sample as the light itself moves.

        The point moves with the light, drawn by the same random numbers. A ray that hits the light by chance does not
        see it move, but for edges; so this strategy stands for both, and its weight is divided out. The light's edges
        are counted with that: silhouettes of lights, seen from surfaces, must not be added.
        """
        types, ctx = self.types, BSDFContext()
        with api.suspend_grad():
            wo = plain.to_local(ds.d)
            _, pdf = scene.bsdfs.call(index, lambda b, mask: b.eval_pdf(ctx, plain, wo, mask), active=active)
            weight = mis_weight(ds.pdf, pdf)
            fixed = ~active | ds.delta | scene.is_environment(ds.emitter) | (weight == 0.0)
            inverse = f.select(fixed, 0.0, 1.0 / f.select(fixed, 1.0, weight))
        moved, _ = scene.sample_emitter_direction(plain, sample, False, active)
        turn = types.Vector3f(f.select(fixed, 0.0, (moved.d - api.detach(moved.d)) * inverse))
        fixed = fixed | (moved.pdf == 0.0)
        share = api.detach(moved.pdf) / f.select(fixed, 1.0, moved.pdf)
        return turn, f.select(fixed, 1.0, 1.0 + (share - 1.0) * inverse)

    def emission(self, scene: Any, s: ReplayState, si: Any, lights_move: bool = False) -> Any:
        """Return the throughput-weighted light that the present ray found."""
        types = self.types
        if not scene.emitters():
            return types.Color3f(0.0)
        index = scene.emitter_index(si)
        if self.hide_emitters:
            index = f.select(s.depth == 0, types.UInt32(UNLIMITED), index)
        with api.suspend_grad():
            mis = found_weight(scene, s, _plain(si), index)
        if lights_move:
            # Where lights are sampled too, their motion is seen there.
            sampled = (s.depth > 0) & ~s.prev_delta
            si = replace(si, uv=type(si.uv)(f.select(sampled, api.detach(si.uv), si.uv)))
        radiance = scene.eval_emitter(si, index, s.active)
        return types.Color3f(f.select(s.active, s.beta * mis * radiance, 0.0))

    def _attached_light(self, scene: Any, si: Any, ds: Any, em_weight: Any, active: Any) -> tuple[Any, Any]:
        """Return direction and radiance / pdf of the sampled light with gradients; the density is held fixed.

        The point on the light stays where it is: seen from a surface that moves its direction and solid angle change.
        For lights that move themselves see `_light_motion`.
        """
        d = ds.d
        radiance = scene.eval_emitter_direction(si, ds, active)
        scale = f.select(ds.pdf != 0.0, 1.0 / f.select(ds.pdf != 0.0, ds.pdf, 1.0), 0.0)
        target = scene.emitter_position(ds, active)
        if api.grad_enabled(si.p) or api.grad_enabled(target):
            infinite = scene.is_environment(ds.emitter)
            d = f.select(infinite, ds.d, normalize(self.types.Vector3f(target - si.p)))
            scale = scale * f.select(infinite | ds.delta, 1.0, _solid_angle_change(si.p, ds.p, ds.n))
            d = api.replace_grad(ds.d, self.types.Vector3f(d))
        return d, api.replace_grad(em_weight, f.select(active, radiance * scale, 0.0))

    def _differentiate(
        self, scene: Any, s: ReplayState, si: Any, drawn: tuple[Any, Any, Any], index: Any, active: Any,
        seen: tuple[Any, Any], gradient: Any, forward: bool,
    ) -> None:  # fmt: skip
        """Send the derivative of this vertex: of what was seen here, and of the factor on what is still to come."""
        types = self.types
        bs, u1, u2 = drawn
        plain = _plain(si)
        d = types.Vector3f(plain.to_world(bs.wo))
        hit = None
        if s.previous is not None:
            ray = plain.spawn_ray(d)
            pi = scene.ray_intersect_preliminary(ray, False, active)
            hit = _plain(scene.surfaces.interaction(ray, pi, scene.exact(ray)))
        with api.resume_grad():
            change: Any = 1.0
            if hit is not None:
                # The next vertex stays where it is.
                moved = normalize(types.Vector3f(hit.p - si.p))
                d = api.replace_grad(d, types.Vector3f(f.select(hit.valid, moved, d)))
                change = f.select(hit.valid, _solid_angle_change(si.p, hit.p, hit.n), 1.0)
            wo = types.Vector3f(si.to_local(d))
            # Sampled with a density (not along a delta lobe), the next ray's share is the value over that density.
            specular = active & ((bs.sampled_type & int(BSDFFlags.Delta)) != 0)
            active = active & ~specular
            value = scene.bsdfs.call(index, lambda b, mask: b.eval(BSDFContext(), si, wo, mask), active=active) * change
            if self._mirrors_vary(scene):
                # Along a delta lobe it is the weight: the same lobe is chosen again, with gradients.
                _, weight = scene.bsdfs.call(
                    index, lambda b, mask: b.sample(BSDFContext(), si, u1, u2, mask), active=specular
                )
                value = types.Color3f(f.select(specular, weight, value))
                active = active | specular
            fixed = api.detach(value)
            inverse = f.select(fixed != 0.0, 1.0 / f.select(fixed != 0.0, fixed, 1.0), 0.0)
            # d log(value) on the radiance to come: its factor value / pdf has a fixed density.
            to_come = f.select(active, s.L * (value * inverse), 0.0)
            total = types.Color3f(seen[0] + seen[1] + to_come)
            if not api.grad_enabled(total):
                return
            if forward:
                s.tangent = types.Color3f(s.tangent + f.select(s.active, api.forward_to(total), 0.0))
            else:
                api.set_grad(total, types.Color3f(f.select(s.active, gradient, 0.0)))
                api.backward_from(total)

    def advance(self, sampler: Any, s: ReplayState, si: Any, bs: Any, weight: Any, active_next: Any) -> None:
        """Follow the sampled directions; end paths at random from `rr_depth` on."""
        types = self.types
        ray = si.spawn_ray(types.Vector3f(si.to_world(bs.wo)))
        s.o, s.d, s.maxt = types.Point3f(ray.o), ray.d, types.Float(ray.maxt)
        s.eta = s.eta * bs.eta
        s.beta = types.Color3f(s.beta * weight)
        s.valid = s.valid | (s.active & si.is_valid() & ((bs.sampled_type & int(BSDFFlags.Null)) == 0))
        s.prev_p, s.prev_n, s.prev_pdf = si.p, types.Normal3f(si.n), bs.pdf
        s.prev_delta = (bs.sampled_type & int(BSDFFlags.Delta)) != 0
        largest = f.max(s.beta.x, f.max(s.beta.y, s.beta.z))
        active_next = active_next & (largest != 0.0)
        keep = f.min(largest * s.eta * s.eta, 0.95)
        roulette = s.depth >= self.rr_depth
        s.beta = types.Color3f(f.select(roulette & (keep > 0.0), s.beta / f.select(keep > 0.0, keep, 1.0), s.beta))
        goes_on = sampler.next_1d() < keep
        s.active = active_next & (~roulette | goes_on)
        s.depth = f.select(si.is_valid(), s.depth + 1, s.depth)

    def render_backward(
        self, scene: Any, params: Any, grad_in: Any, sensor: Any = 0, seed: Any = 0, spp: int = 0
    ) -> None:
        """Add the gradients that `grad_in`, of the image, gives to all parameters with gradients enabled.

        `params` is accepted for compatibility.
        """
        sensor = find_sensor(scene, sensor)
        film = sensor.film()
        # What tables and shapes derive from parameters passes its gradients on when all paths are done; it may do so
        # again for the next picture.
        isolated = api.isolate_grad(flags=api.ADFlag.ClearVertices)
        with self._current_tables(scene), isolated, api.suspend_grad():
            scene.prepare()
            block = film.block()
            for one in self.passes(sensor, seed, spp):
                _, position = self.sample_rays(sensor, one.sampler, one.spp, one.lanes)
                block.put_weights(position.x, position.y)
            source = block.adjoint_image(film.convert_adjoint(self._image_channels(film, grad_in)))
            for one in self.passes(sensor, seed, spp):
                ray, position = self.sample_rays(sensor, one.sampler, one.spp, one.lanes)
                per_path = self.types.Color3f(*block.read(position.x, position.y, source)[:3])
                primal = self.replay(scene, one.sampler.clone(), ray)
                self.replay(scene, one.sampler, ray, True, primal.L, per_path)

    def render_forward(self, scene: Any, params: Any, sensor: Any = 0, seed: Any = 0, spp: int = 0) -> Any:
        """Return the image's tangent from those of the parameters (`params` is accepted for compatibility)."""
        sensor = find_sensor(scene, sensor)
        film = sensor.film()
        with self._current_tables(scene):
            scene.prepare()
            derived = scene.prepare_tangents()
            with api.suspend_grad():
                block = film.block()
                for one in self.passes(sensor, seed, spp):
                    ray, position = self.sample_rays(sensor, one.sampler, one.spp, one.lanes)
                    primal = self.replay(scene, one.sampler.clone(), ray)
                    state = self.replay(scene, one.sampler, ray, True, primal.L, None, True)
                    values = self.channels(film, state.tangent, self.types.Bool(False), [])
                    block.put(position.x, position.y, values)
                    one.results.append(block.data)
            for node in derived:
                node.grad = None
            return film.develop(block)

    @staticmethod
    @contextmanager
    def _current_tables(scene: Any) -> Iterator[None]:
        """Give the scene tables of its present parameters, and have them forgotten after: traversals cut them."""
        scene.refresh()
        try:
            yield
        finally:
            scene.refresh()

    def _image_channels(self, film: Any, image: Any) -> list[Any]:
        """Return the channels of an image, one flat array each."""
        width, height = film.crop_size()
        n = len(film.base_channels())
        if tuple(image.shape) != (height, width, n):
            raise SceneError(f"render_backward: the image is {(height, width, n)}, its gradient {tuple(image.shape)}")
        pixel = arange(self.types.UInt32, width * height) * n
        flat = widened(image.array, width * height * n)
        return [gather(self.types.Float, flat, pixel + c) for c in range(n)]


def _solid_angle_change(p: Any, target: Any, n: Any) -> Any:
    """Return 1, with the derivative of the logarithm of the solid angle that a fixed surface element fills from p."""
    offset = type(n)(target - p)
    squared = dot(offset, offset)
    angle = f.abs(dot(offset, n)) / (squared * f.sqrt(squared))
    fixed = api.detach(angle)
    return angle * f.select(fixed > 0.0, 1.0 / f.select(fixed > 0.0, fixed, 1.0), 0.0)


def _plain(value: Any) -> Any:
    return api.detach(value)
