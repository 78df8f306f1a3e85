"""`render`: the image of a scene, differentiable in its parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ad import api
from ..ad.custom import Hub, install_hub
from ..ad.graph import ADNode, enabled
from ..ad.widen import widened
from ..jit.arrays import tree
from ..jit.arrays.base import ArrayBase
from ..jit.errors import SceneError
from .arguments import check_integrator, check_parameters, find_sensor, samples, seed_number
from .traverse import identity, traverse


def render(
    scene: Any,
    params: Any = None,
    sensor: Any = 0,
    integrator: Any = None,
    seed: Any = 0,
    seed_grad: Any = 0,
    spp: int = 0,
    spp_grad: int = 0,
) -> Any:
    """Return the image of `scene`: a tensor (height, width, channels), computed when it is looked at.

    Gradients pass to every scene parameter that has them enabled (`params` is accepted for compatibility and may add
    inputs). `sensor` is an index or a Sensor; `spp` 0 takes the sampler's count. The gradient pass uses `spp_grad`
    samples (0: as many) and an own random seed `seed_grad` (0: derived from `seed`), so that it is uncorrelated with
    the image; equal seeds are an error. Seeds are ints in 0 .. 2^32 - 1, or UInt32 arrays of size 1 (which a frozen
    function takes as inputs; an int is part of its program). Raises WrongTypeError for arguments of other types
    and SceneError for values that cannot be.

    >>> import luxgrad as dr
    >>> import luxgrad.mi as mi
    >>> from luxgrad.mi import ScalarTransform4f as T
    >>> mi.set_variant("llvm_ad_rgb")
    >>> scene = mi.load_dict({
    ...     "type": "scene",
    ...     "integrator": {"type": "prb"},
    ...     "sensor": {
    ...         "type": "perspective",
    ...         "to_world": T().look_at([0, 0, 4], [0, 0, 0], [0, 1, 0]),
    ...         "film": {"type": "hdrfilm", "width": 4, "height": 4},
    ...     },
    ...     "ball": {"type": "sphere", "bsdf": {"type": "diffuse", "reflectance": {"type": "rgb", "value": 0.5}}},
    ...     "sky": {"type": "constant"},
    ... })
    >>> params = mi.traverse(scene)
    >>> dr.enable_grad(params["ball.bsdf.reflectance.value"])
    >>> image = mi.render(scene, spp=4)
    >>> image.shape
    (4, 4, 3)
    >>> dr.backward(dr.mean(image))
    >>> bool(dr.all(dr.grad(params["ball.bsdf.reflectance.value"]) > 0))
    True
    """
    sensor = find_sensor(scene, sensor)
    check_parameters(params)
    seed, spp, spp_grad = seed_number(seed), samples(spp), samples(spp_grad, "spp_grad")
    seed_grad = seed_number(seed_grad, "seed_grad")
    if integrator is None:
        integrator = scene.integrator() or default_integrator(scene)
    check_integrator(integrator)
    scene.renew_derivatives()
    if not integrator.replays:
        # No derivative of its own: its operations are recorded like any others.
        scene.refresh()
        return integrator.render(scene, sensor, seed, spp)
    if isinstance(seed_grad, int) and seed_grad == 0:
        from ..jit.random import sample_tea_32

        seed_grad = sample_tea_32(seed, 1)[0]
    if isinstance(seed, int) and isinstance(seed_grad, int) and seed_grad == seed:
        raise SceneError(f"render: the gradient pass needs another seed than the image, found {seed} for both")
    inputs = differentiable_inputs(scene, params)
    with api.suspend_grad():
        scene.refresh()
        image = integrator.render(scene, sensor, seed, spp)
    if inputs:
        hub = RenderHub(scene, sensor, integrator, seed_grad, spp_grad or spp, image)
        install_hub(hub, inputs, [image.array])
    return image


def default_integrator(scene: Any) -> Any:
    """Return a path tracer for scenes that name no integrator."""
    from .properties import Properties
    from .registry import entry
    from .slots import build

    plugin = entry("integrator", "path")
    return build(plugin, Properties({}, entry=plugin, types=scene.types))


def differentiable_inputs(scene: Any, params: Any) -> list[ADNode]:
    """Return the derivative nodes of all parameters that have gradients, here and now."""
    found: dict[int, ADNode] = {}
    sources = [traverse(scene)] + ([params] if params is not None else [])
    for source in sources:
        items = source.items() if hasattr(source, "items") else [("", source)]
        for _, value in items:
            for x in tree.arrays(value):
                if enabled(x._ad):
                    found[x._ad.index] = x._ad
    return list(found.values())


def fingerprint(scene: Any) -> dict[str, Any]:
    """Return what changes when the value of a scene parameter does, by name."""
    arrays = [(key, value) for key, value in traverse(scene).items() if isinstance(value, ArrayBase)]
    return {key: [number for number, _ in identity(value)] for key, value in arrays}


class RenderHub(Hub):
    """One rendering in the derivative graph."""

    name = "render"

    def __init__(self, scene: Any, sensor: Any, integrator: Any, seed: Any, spp: int, image: Any) -> None:
        super().__init__()
        self.scene, self.sensor, self.integrator, self.seed, self.spp = scene, sensor, integrator, seed, spp
        self.shape = image.shape
        self.kind = type(image)
        self.seen = fingerprint(scene)

    def backward(self, give: Callable[..., None]) -> None:
        """Add the image's gradient times d image / d parameter to every parameter.

        Raises SceneError if parameters are not those of the image any more: paths would be traced in another scene.
        """
        from ..ad.custom import _isolated

        changed = [key for key, value in fingerprint(self.scene).items() if self.seen.get(key, value) != value]
        if changed:
            raise SceneError(
                f"backward(): the scene parameter '{changed[0]}' was changed after the image was rendered; call "
                "backward() before params.update(), or render again"
            )
        gradient = widened(self.out_grads[0], self.shape[0] * self.shape[1] * self.shape[2])
        with _isolated():
            self.scene.refresh()
            self.integrator.render_backward(
                self.scene, None, self.kind(gradient, self.shape), self.sensor, self.seed, self.spp
            )
        self.scene.refresh()

    def forward(self) -> dict[int, Any]:
        """Return the image's tangent."""
        from ..ad.custom import _isolated

        # What shapes derive from their parameters exists already: its tangents come before the isolated part.
        self.scene.refresh()
        self.scene.prepare()
        derived = self.scene.prepare_tangents()
        with _isolated():
            self.scene.refresh()
            tangent = self.integrator.render_forward(self.scene, None, self.sensor, self.seed, self.spp)
        for node in derived:
            node.grad = None
        self.scene.refresh()
        return {0: tangent.array}
