"""Shapes: geometry with a material, perhaps a light.

World space throughout. Triangle shapes hand their triangles to the scene; others compute their own surface points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...jit.errors import SceneError
from .emitter import EmitterFlags
from .object import Object, ParamFlags, TraversalCallback
from .records import DirectionSample


class Shape(Object):
    """Base of shapes. `bsdf`, `emitter`: what was nested in it; `flip_normals` turns the normals inside out."""

    plugin_kind = "shape"
    is_triangles = False
    has_uv_map = False  # every uv of the unit square belongs to one point

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self.bsdf = props["bsdf"]
        self.emitter = props["emitter"]
        self.flip_normals: bool = props["flip_normals"]
        self.silhouette_sampling_weight = props["silhouette_sampling_weight"]
        if self.emitter is not None:
            if not self.emitter.flags() & EmitterFlags.Surface:
                raise SceneError(f"a shape can shine by an area light only, found {self.emitter}")
            self.emitter.shape = self
        if self.bsdf is None:
            from ..slots import create

            # Scene format: without a material diffuse 0.5, under a light 0.
            values = {"reflectance": 0.0 if self.emitter is not None else 0.5}
            self.bsdf = create("bsdf", "diffuse", values, props, "bsdf")
        self.version = 0  # counts changes of the geometry

    def traverse(self, callback: TraversalCallback) -> None:
        """Report material and light."""
        if self.bsdf is not None:
            callback.put("bsdf", self.bsdf, ParamFlags.Differentiable)
        if self.emitter is not None:
            callback.put("emitter", self.emitter, ParamFlags.Differentiable)
        callback.put("silhouette_sampling_weight", self.silhouette_sampling_weight, ParamFlags.NonDifferentiable)

    def geometry(self) -> Any:
        """Return what the accelerator needs (render/accel/geometry.py)."""
        raise NotImplementedError(f"{type(self).__name__}.geometry()")

    def bbox(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the corners of the box around the shape, NumPy (3,)."""
        raise NotImplementedError(f"{type(self).__name__}.bbox()")

    def surface_area(self) -> Any:
        """Return the area."""
        raise NotImplementedError(f"{type(self).__name__}.surface_area()")

    def sample_position(self, sample: Any, active: Any = True) -> tuple[Any, Any, Any, Any]:
        """Return point, normal, uv and density per area of a uniformly sampled point."""
        raise NotImplementedError(f"{type(self).__name__}.sample_position()")

    def pdf_position(self, active: Any = True) -> Any:
        """Return the density per area of `sample_position`."""
        raise NotImplementedError(f"{type(self).__name__}.pdf_position()")

    def at_uv(self, uv: Any, active: Any = True) -> tuple[Any, Any, Any]:
        """Return point, normal and area per area of the unit square at a uv, of shapes that `has_uv_map`."""
        raise NotImplementedError(f"{type(self).__name__}.at_uv()")

    def tangent_v(self, uv: Any, active: Any = True) -> Any:
        """Return dp/dv at a uv, of shapes that are no triangles."""
        raise NotImplementedError(f"{type(self).__name__}.tangent_v()")

    def sample_direction(self, ref: Any, sample: Any, active: Any = True) -> DirectionSample:
        """Return a direction from ref.p to a sampled point, density per solid angle."""
        from ...jit.arrays import functions as f
        from ...jit.arrays.linear import dot

        p, n, uv, pdf = self.sample_position(sample, active)
        types = self.types
        d = types.Vector3f(p - ref.p)
        squared = dot(d, d)
        dist = f.sqrt(squared)
        d = d / dist
        cosine = f.abs(dot(d, n))
        density = f.select(cosine != 0.0, pdf * squared / cosine, 0.0)
        return DirectionSample(p, n, uv, d, dist, density, types.Bool(False), types.UInt32(0))

    def pdf_direction(self, ref: Any, ds: DirectionSample, active: Any = True) -> Any:
        """Return the density per solid angle of `sample_direction`."""
        from ...jit.arrays import functions as f
        from ...jit.arrays.linear import dot

        cosine = f.abs(dot(ds.d, ds.n))
        return f.select(cosine != 0.0, self.pdf_position(active) * ds.dist * ds.dist / cosine, 0.0)

    def parameters_changed(self, keys: Sequence[str] = ()) -> None:
        """Count a change of the geometry."""
        if not keys or any(not k.startswith(("bsdf", "emitter")) for k in keys):
            self.version += 1
