"""The scene: shapes, lights, sensors, and the questions integrators ask of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ad.api import resume_grad
from ..jit.arrays import functions as f
from ..jit.arrays.linear import dot
from ..jit.arrays.memops import gather
from ..jit.control import outside
from ..jit.errors import SceneError, WrongTypeError
from ..jit.instances import NONE, InstanceSet, leaves
from .accel.operation import trace
from .accel.select import build
from .interfaces.bsdf import BSDFFlags
from .interfaces.emitter import EmitterFlags
from .interfaces.object import Object, ParamFlags, TraversalCallback
from .interfaces.records import DirectionSample, Preliminary, Ray, SurfaceInteraction
from .registry import register
from .slots import create
from .surfaces import Surfaces


@register("scene", "scene")
class Scene(Object):
    """Everything a rendering needs. `types` is the variant it was loaded with."""

    plugin_kind = "scene"

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self._children: list[tuple[str, Any]] = props.objects()
        by_kind: dict[str, list[Any]] = {}
        for _, child in self._children:
            by_kind.setdefault(child.plugin_kind, []).append(child)
        self._shapes: list[Any] = by_kind.get("shape", [])
        self._sensors: list[Any] = by_kind.get("sensor", [])
        integrators = by_kind.get("integrator", [])
        if len(integrators) > 1:
            raise SceneError(f"a scene has one integrator, found {len(integrators)}")
        self._integrator = integrators[0] if integrators else None
        # In the order of the file: which light a random number picks depends on it.
        lights = [
            c.emitter if c.plugin_kind == "shape" else c
            for _, c in self._children
            if c.plugin_kind in ("shape", "emitter")
        ]
        self._emitters: list[Any] = [e for e in lights if e is not None]
        for light in self._emitters:
            if light.flags() & EmitterFlags.Surface and light.shape is None:
                raise SceneError(f"an area light belongs into the shape that shines, found {light} beside the shapes")
        around = [e for e in self._emitters if e.is_environment()]
        if len(around) > 1:
            raise SceneError(f"a scene has one environment light, found {len(around)}: {around}")
        self._environment = around[0] if around else None
        self._surfaces: Surfaces | None = None
        self._bsdfs: InstanceSet | None = None
        self._emitter_set: InstanceSet | None = None
        # Calls need something to be recorded for, also where no lane makes them.
        self._nothing = [] if self._shapes else [create("bsdf", "diffuse", {"reflectance": 0.0}, props, "bsdf")]
        self.accelerator_kind = "auto"
        self._accelerator: Any = None
        self._geometry: list[Any] = []
        self._versions: list[int] = []
        self._bounded: list[int] = []
        self.parameters_changed()

    def shapes(self) -> list[Any]:
        """Return the shapes in the order of the file."""
        return list(self._shapes)

    def emitters(self) -> list[Any]:
        """Return the lights."""
        return list(self._emitters)

    def sensors(self) -> list[Any]:
        """Return the sensors; a scene without any gets a default one."""
        return list(self._sensors)

    def integrator(self) -> Any:
        """Return the integrator, None if the scene has none."""
        return self._integrator

    def environment(self) -> Any:
        """Return the light around the scene, None if there is none."""
        return self._environment

    def bbox(self) -> Any:
        """Return the box around all shapes, with attributes `min` and `max` (Point3f)."""
        low, high = self._bounds()
        return BoundingBox(self.types.Point3f([float(x) for x in low]), self.types.Point3f([float(x) for x in high]))

    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        boxes = [s.bbox() for s in self._shapes]
        if not boxes:
            return np.full(3, np.inf), np.full(3, -np.inf)
        return np.min([b[0] for b in boxes], axis=0), np.max([b[1] for b in boxes], axis=0)

    def traverse(self, callback: TraversalCallback) -> None:
        """Report all children under their names."""
        for name, child in self._children:
            callback.put(child.id() or name, child, ParamFlags.Differentiable)

    def parameters_changed(self, keys: Sequence[str] = ()) -> None:
        """Build tables and accelerator again as far as something changed; without `keys` everything may have."""
        shapes = [s.version for s in self._shapes]
        if not keys or shapes != self._bounded:
            bounds = self._bounds()
            for emitter in self._emitters:
                emitter.set_scene(bounds)
            self._bounded = shapes
        self.refresh()
        if not keys:
            self._link()
        if not keys or any(k.endswith("sampling_weight") for k in keys):
            self._weights = self._selection()

    def _link(self) -> None:
        """Number materials and lights, and note which shape has which."""
        types = self.types
        unique = {id(s.bsdf): s.bsdf for s in self._shapes if s.bsdf is not None}
        self._bsdf_list = list(unique.values()) or self._nothing
        order = {key: k for k, key in enumerate(unique)}
        self._shape_bsdf = types.UInt32([order.get(id(s.bsdf), NONE) for s in self._shapes] or [NONE])
        lights = {id(e): k for k, e in enumerate(self._emitters)}
        self._shape_emitter = types.UInt32([lights.get(id(s.emitter), NONE) for s in self._shapes] or [NONE])

    def _selection(self) -> Any:
        """Return the cumulative selection probabilities of the lights, None if all are equal."""
        weights = [float(e.sampling_weight) for e in self._emitters]
        if not weights or all(w == 1.0 for w in weights):
            return None
        total = sum(weights)
        if min(weights) < 0 or total <= 0:
            raise SceneError(f"sampling_weight: weights must be >= 0 and not all 0, found {weights}")
        return np.cumsum(np.array(weights) / total)

    @property
    def surfaces(self) -> Surfaces:
        """Return the tables of surfaces."""
        if self._surfaces is None:
            with outside(), resume_grad():
                self._surfaces = Surfaces(self._shapes, self.types)
        return self._surfaces

    @property
    def bsdfs(self) -> InstanceSet:
        """Return the materials as a set to call by index."""
        if self._bsdfs is None:
            with outside(), resume_grad():
                self._bsdfs = InstanceSet(self._bsdf_list, self.types.ns)
        return self._bsdfs

    @property
    def emitter_set(self) -> InstanceSet:
        """Return the lights as a set to call by index."""
        if self._emitter_set is None:
            with outside(), resume_grad():
                self._emitter_set = InstanceSet(self._emitters, self.types.ns)
        return self._emitter_set

    def prepare(self) -> None:
        """Build all tables and the accelerator now: within a loop their derivatives would come after the loop's."""
        _ = self.accelerator, self.surfaces, self.bsdfs
        if self._emitters:
            _ = self.emitter_set

    def frozen_prepare(self) -> None:
        """Build what a recording cannot hold, for it is made on the host: the accelerator, and triangles."""
        _ = self.accelerator, self.surfaces

    def refresh(self) -> None:
        """Forget tables that are out of date or hold gradients of an earlier rendering."""
        if self._bsdfs is not None and not self._bsdfs.is_current():
            self._bsdfs = None
        if self._emitter_set is not None and not self._emitter_set.is_current():
            self._emitter_set = None
        if self._surfaces is not None and not self._surfaces.is_current():
            self._surfaces = None

    def renew_derivatives(self) -> None:
        """Let shapes derive again what an earlier backward pass has cut from their parameters."""
        for shape in self._shapes:
            renew = getattr(shape, "renew_derivatives", None)
            if renew is not None:
                renew()

    def prepare_tangents(self) -> list[Any]:
        """Compute the tangents of all tables from those of the parameters (forward mode).

        Return the nodes that got one.
        """
        from ..ad.traverse import ADFlag, forward_into

        sets = [self.bsdfs, *([self.emitter_set] if self._emitters else []), *self.surfaces.sets()]
        # A single object is called as it is, without tables.
        groups = [g.tables if g.count > 1 else leaves(g.first) for s in sets for g in s.groups]
        arrays = [*self.surfaces.arrays(), *(a for group in groups for a in group)]
        nodes = {a._ad.index: a._ad for a in arrays if a._ad is not None}
        return forward_into(list(nodes.values()), ADFlag.ClearNone, keep=True)

    @property
    def accelerator(self) -> Any:
        """Return the accelerator, brought up to date with moved shapes."""
        versions = [s.version for s in self._shapes]
        if self._accelerator is None:
            with outside(), resume_grad():
                self._geometry = self.surfaces.geometry
            self._accelerator = build(self._geometry, self.accelerator_kind, remember=True)
        elif versions != self._versions:
            self._rebuild(versions)
        self._versions = versions
        return self._accelerator

    def _rebuild(self, versions: list[int]) -> None:
        from ..jit.runtime.engine import runtime

        runtime.reading("rebuilding the acceleration structure of shapes that moved")
        # Kernels in flight may still trace rays.
        runtime.sync()
        self._surfaces = None
        self._geometry = self.surfaces.geometry
        self._accelerator = build(self._geometry, self.accelerator_kind)

    def use_accelerator(self, kind: str) -> None:
        """Trace rays with "embree", "bvh" (our own) or "auto" from now on."""
        self.accelerator_kind = kind
        self._accelerator = None

    def ray_intersect_preliminary(self, ray: Ray, coherent: Any = False, active: Any = True) -> Preliminary:
        """Return what the rays hit first: distance, place within the primitive, primitive and shape."""
        types = self.types
        t, u, v, prim, shape = trace("closest", self.accelerator, ray.o, ray.d, ray.maxt, coherent, active)
        valid = (shape != NONE) & active
        return Preliminary(types.Float(t), types.Float(u), types.Float(v), prim, shape, valid)

    def ray_intersect(
        self, ray: Ray, coherent: Any = False, active: Any = True, ray_flags: Any = None
    ) -> SurfaceInteraction:
        """Return the surface points that the rays hit first; raises WrongTypeError if `ray` is none."""
        if not hasattr(ray, "o") or not hasattr(ray, "maxt"):
            raise WrongTypeError(f"ray_intersect(): a Ray3f is needed, found {type(ray).__name__}")
        pi = self.ray_intersect_preliminary(ray, coherent, active)
        return self.surfaces.interaction(ray, pi, self.exact(ray))

    def exact(self, ray: Ray) -> bool:
        """Return whether hits are computed again from the primitive: double precision, or geometry with gradients."""
        from ..ad.api import grad_enabled

        records = self.surfaces.tables.records if self.surfaces.triangles else None
        return self.types.is_double or grad_enabled(ray.o, ray.d) or (records is not None and grad_enabled(records))

    def ray_test(self, ray: Ray, coherent: Any = False, active: Any = True) -> Any:
        """Return the mask of rays that hit anything before their end."""
        return trace("occluded", self.accelerator, ray.o, ray.d, ray.maxt, coherent, active)[0] & active

    def emitter_index(self, si: SurfaceInteraction) -> Any:
        """Return the index of the light that each ray found: the shape's own, or the environment, or NONE."""
        around = NONE if self._environment is None else self._emitters.index(self._environment)
        index = gather(self.types.UInt32, self._shape_emitter, si.shape, si.valid)
        return f.select(si.valid, index, self.types.UInt32(around))

    def bsdf_index(self, si: SurfaceInteraction) -> Any:
        """Return the index of the material at each surface point."""
        return f.select(
            si.valid, gather(self.types.UInt32, self._shape_bsdf, si.shape, si.valid), self.types.UInt32(NONE)
        )

    def smooth_mask(self, index: Any, active: Any = True) -> Any:
        """Return the mask of materials with a lobe that light sampling can reach; True if all have one."""
        flags = [bool(b.flags() & BSDFFlags.Smooth) for b in self.bsdfs.objects]
        return True if all(flags) else gather(self.types.Bool, self.types.Bool(flags), index, active)

    def sample_emitter(self, u: Any) -> tuple[Any, Any, Any]:
        """Return the index of a light chosen by `u`, its probability, and `u` stretched to be used again."""
        types = self.types
        n = len(self._emitters)
        if self._weights is None:
            scaled = u * float(n)
            index = f.min(types.UInt32(scaled), n - 1)
            return index, types.Float(1.0 / n), scaled - types.Float(index) if n > 1 else u
        index, low, high = types.UInt32(0), types.Float(0.0), types.Float(float(self._weights[0]))
        for k in range(1, n):
            beyond = u >= float(self._weights[k - 1])
            index = f.select(beyond, types.UInt32(k), index)
            low = f.select(beyond, float(self._weights[k - 1]), low)
            high = f.select(beyond, float(self._weights[k]), high)
        probability = high - low
        return index, probability, (u - low) / f.max(probability, 1e-30)

    def emitter_probability(self, index: Any) -> Any:
        """Return the probability with which `sample_emitter` chooses a light."""
        types = self.types
        if self._weights is None:
            return types.Float(1.0 / max(1, len(self._emitters)))
        table = types.Float([float(x) for x in np.diff(np.concatenate([[0.0], self._weights]))])
        return gather(types.Float, table, index, index < len(self._emitters))

    def sample_emitter_direction(
        self, ref: SurfaceInteraction, sample: Any, test_visibility: bool = True, active: Any = True
    ) -> tuple[DirectionSample, Any]:
        """Return a direction to a light, chosen first, and radiance / density (0 where it is hidden)."""
        types = self.types
        if not self._emitters:
            return self.no_direction(), types.Color3f(0.0)
        index, probability, u = self.sample_emitter(sample.x)
        sample = types.Point2f(u, sample.y)
        at = Reference(ref.p)
        ds, weight = self.emitter_set.call(index, lambda e, mask: e.sample_direction(at, sample, mask), active=active)
        ds.emitter = index
        ds.pdf = ds.pdf * probability
        weight = weight / probability
        if test_visibility:
            seen = (ds.pdf != 0.0) & active
            hidden = self.ray_test(ref.spawn_ray_to(ds.p), active=seen)
            weight = f.select(hidden, 0.0, weight)
            ds.pdf = f.select(hidden, 0.0, ds.pdf)
        return ds, weight

    def no_direction(self) -> DirectionSample:
        """Return the direction sample of a scene without lights."""
        t = self.types
        zero = t.Float(0.0)
        return DirectionSample(
            t.Point3f(0.0),
            t.Normal3f(0.0, 0.0, 1.0),
            t.Point2f(0.0),
            t.Vector3f(0.0, 0.0, 1.0),
            zero,
            zero,
            t.Bool(False),
            t.UInt32(NONE),
        )

    def pdf_emitter_direction(self, ref: Any, ds: DirectionSample, active: Any = True) -> Any:
        """Return the density with which `sample_emitter_direction` chooses the direction of `ds`."""
        if not self._emitters:
            return self.types.Float(0.0)
        at = Reference(ref.p)
        pdf = self.emitter_set.call(ds.emitter, lambda e, mask: e.pdf_direction(at, ds, mask), active=active)
        return pdf * self.emitter_probability(ds.emitter)

    def eval_emitter_direction(self, ref: Any, ds: DirectionSample, active: Any = True) -> Any:
        """Return the radiance along a sampled direction, with gradients."""
        at = Reference(ref.p)
        return self.emitter_set.call(ds.emitter, lambda e, mask: e.eval_direction(at, ds, mask), active=active)

    def emitter_position(self, ds: DirectionSample, active: Any = True) -> Any:
        """Return the place of a sampled light, with gradients where lights without extent can be moved."""
        from ..ad.api import grad_enabled

        if not grad_enabled([getattr(e, "position", None) for e in self._emitters]):
            return ds.p
        return self.emitter_set.call(ds.emitter, lambda e, mask: e.place(ds), active=active)

    def is_environment(self, index: Any) -> Any:
        """Return the mask of indices of the light around the scene."""
        if self._environment is None:
            return self.types.Bool(False)
        return index == self._emitters.index(self._environment)

    def eval_emitter(self, si: SurfaceInteraction, index: Any, active: Any = True) -> Any:
        """Return the radiance of the lights that rays found."""
        if not self._emitters:
            return self.types.Color3f(0.0)
        return self.emitter_set.call(index, lambda e, mask: e.eval(si, mask), active=active)

    def direction_to(self, si: SurfaceInteraction, ref: Any, index: Any) -> DirectionSample:
        """Return the direction sample that would have led from `ref` to the light found at `si`."""
        types = self.types
        offset = si.p - ref.p
        dist = f.sqrt(dot(offset, offset))
        d = f.select(si.valid, offset / f.select(si.valid, dist, 1.0), -si.wi)
        return DirectionSample(
            si.p,
            si.sh_frame.n,
            si.uv,
            types.Vector3f(d),
            f.select(si.valid, dist, 0.0),
            types.Float(0.0),
            types.Bool(False),
            index,
        )


class Reference:
    """A point that directions are sampled from."""

    def __init__(self, p: Any) -> None:
        self.p = p


class BoundingBox:
    """An axis-aligned box."""

    def __init__(self, low: Any, high: Any) -> None:
        self.min, self.max = low, high

    def __repr__(self) -> str:
        return f"BoundingBox[min={self.min}, max={self.max}]"
