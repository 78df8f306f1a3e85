"""The fitting loop: change parameters of a scene until its pictures look like the targets."""

from __future__ import annotations

import math
import os
import re
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..ad import api as ad
from ..jit.arrays import functions as f
from ..jit.arrays import tree
from ..jit.errors import LuxgradError, SceneError, WrongTypeError
from ..render.arguments import check_integrator, check_scene, samples, seed_number, shown
from ..render.image.bitmap import Bitmap
from ..render.registry import nearest
from ..render.render import render
from ..render.traverse import traverse
from . import losses as _losses
from .adam import Adam
from .base import Optimizer
from .checkpoint import read_checkpoint, write_checkpoint
from .fit_integrator import replay_of
from .fit_views import View, fitting, make_views
from .progress import FitProgress
from .result import FitResult, FitStep, numbers

__all__ = ["LIMITS", "fit", "select_keys"]

Limits = Mapping[str, tuple[float, float]]
# Physical ranges by the last words of a parameter's path; the first pattern found in the path counts.
LIMITS: Limits = {
    r"reflectance|transmittance|albedo|base_color|opacity|metallic|roughness|clearcoat|sheen|flatness": (0.0, 1.0),
    r"radiance|irradiance|intensity|sigma_t|scale$|emitter\.data": (0.0, math.inf),
    r"alpha": (1e-3, 1.0),
}


def fit(
    scene: Any,
    target: Any,
    params: str | Iterable[str] | None = None,
    optimizer: Optimizer | Callable[[float], Optimizer] | None = None,
    steps: int = 100,
    spp: int = 16,
    *,
    lr: float = 0.02,
    lr_end: float | None = None,
    loss: Callable[[Any, Any], Any] = _losses.l2,
    sensor: Any = 0,
    integrator: Any = None,
    spp_grad: int = 0,
    seed: int = 0,
    limits: Limits | None = LIMITS,
    callback: Callable[[FitStep], bool | None] | None = None,
    progress: bool = True,
    checkpoint_path: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 10,
    image_spp: int | None = None,
) -> FitResult:
    """Return how `steps` steps of an optimiser went that made the picture of a scene resemble `target`.

    `target` is an image file, bitmap, array or tensor (linear, height x width x channels) as large as the film; or a
    list of them with a list of sensors. `params` is a regular expression to be found in the paths of parameters, or a
    list of paths; None takes everything differentiable that is no geometry. The scene keeps the fitted values.

    The scene's integrator is used, path replay (`prb`) in place of plain path tracing, unless `integrator` is given.
    `optimizer`: Adam unless an optimiser or a function of the learning rate is given; the rate runs geometrically from
    `lr` to `lr_end` if that is set. Each step renders `spp` samples per pixel with a seed of its own, derived from
    `seed`, and `spp_grad` (0: as many) for the gradient. `loss(image, target)` returns a size-1 value. Values are kept
    within `limits`, a mapping from patterns to (low, high). `callback(FitStep)` runs after each step and may return
    True to stop. `image_spp` is the quality of the pictures in the result (None: max(spp, 64); 0: none).

    With `checkpoint_path` the state is saved every `checkpoint_every` steps and at the end, and a run that finds the
    file goes on from there, to the same result. Raises SceneError for unknown parameters and targets of other sizes,
    LuxgradError if loss or parameters stop being finite.
    """
    _check_numbers(steps, spp, lr, lr_end, checkpoint_every)
    seed, spp_grad = seed_number(seed, where="fit()"), samples(spp_grad, "spp_grad", "fit()")
    check_scene(scene, "fit()")
    if integrator is not None:
        check_integrator(integrator, "fit()")
    for name, value in (("optimizer", optimizer), ("loss", loss), ("callback", callback)):
        if value is not None and not callable(value) and not isinstance(value, Optimizer):
            raise WrongTypeError(
                f"fit(): {name} must be an object or function (optim.adam.Adam, losses.l2), found {shown(value)}"
            )
    views = make_views(target, sensor)
    integrator = replay_of(scene) if integrator is None else integrator
    parameters = traverse(scene)
    keys = select_keys(parameters, params)
    opt = _make_optimizer(optimizer, lr)
    opt.update({key: parameters[key] for key in keys if key not in opt})
    result = FitResult(keys, settings={
        "steps": steps, "spp": spp, "lr": lr, "lr_end": lr_end, "seed": seed, "optimizer": type(opt).__name__,
        "loss": getattr(loss, "__name__", str(loss)), "integrator": getattr(integrator, "plugin_name", "") or "",
    })  # fmt: skip
    quality = max(spp, 64) if image_spp is None else image_spp
    bounds = {key: _limits_of(key, limits) for key in keys}
    _settle(opt, bounds)
    first = _resume(checkpoint_path, opt, result)
    parameters.update(opt)
    if first == 0:
        for key in keys:
            result.record(key, opt[key])
        _picture(result, "start", scene, views, integrator, quality)
    picture = partial(render, scene, params=parameters, integrator=integrator, spp=spp, spp_grad=spp_grad)
    targets: list[Any] = []
    begin = time.perf_counter()
    with FitProgress(steps, first, progress) as bar:
        for step in range(first, steps):
            _set_rate(opt, lr, lr_end, step, steps)
            seeds = [_mixed(seed, step, number) for number in range(len(views))]
            total, image, pixels = _descend(picture, views, targets, seeds, loss, step)
            result.samples += spp * pixels
            if step == first:
                _warn_of_zeros(opt, keys)
            opt.step(grad_scale=1.0 / len(views) if len(views) > 1 else None)
            _settle(opt, bounds)
            parameters.update(opt)
            result.losses.append(total)
            for key in keys:
                result.record(key, _finite_value(opt[key], key, step))
            result.seconds = time.perf_counter() - begin
            bar.advance(total, result.samples_per_second)
            if checkpoint_path is not None and (step + 1) % checkpoint_every == 0:
                _save(checkpoint_path, opt, result)
            if callback is not None and callback(FitStep(step, steps, total, opt, image)):
                break
    if checkpoint_path is not None and result.steps > first:
        _save(checkpoint_path, opt, result)
    result.values = {key: numbers(opt[key]) for key in keys}
    _picture(result, "fitted", scene, views, integrator, quality)
    return result


def _check_numbers(steps: Any, spp: Any, lr: Any, lr_end: Any, every: Any) -> None:
    """Raise SceneError naming the first number that a fit cannot have."""
    for name, value, least in (("steps", steps, 0), ("spp", spp, 1), ("checkpoint_every", every, 1)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise WrongTypeError(f"fit(): {name} must be an int, found {shown(value)}")
        if value < least:
            raise SceneError(f"fit(): {name} must be at least {least}, found {value}")
    for name, rate in (("lr", lr), ("lr_end", lr_end)):
        if rate is None and name == "lr_end":
            continue
        if isinstance(rate, bool) or not isinstance(rate, (int, float, np.number)):
            raise WrongTypeError(f"fit(): {name} must be a number, found {shown(rate)}")
        if not 0 < rate < math.inf:
            raise SceneError(f"fit(): {name} must be a positive, finite number, found {rate}")


def _descend(
    picture: Callable[..., Any], views: Sequence[Any], targets: list[Any], seeds: list[int],
    loss: Callable[[Any, Any], Any], step: int,
) -> tuple[float, Any, int]:  # fmt: skip
    """Send the gradients of all views' losses back; return the mean loss, the last picture and the pixels rendered.

    `targets` is filled on the first call: what a target has to fit is known from the picture.
    """
    total, pixels = 0.0, 0
    for number, view in enumerate(views):
        image = picture(sensor=view.sensor, seed=seeds[number])
        if len(targets) <= number:
            targets.append(fitting(image, view.target, view.sensor))
        value = loss(image, targets[number])
        if not ad.grad_enabled(value):
            raise SceneError(
                "fit(): the loss does not depend on the parameters: the pictures of this integrator do not, or the "
                "loss detaches them. Fit with an integrator such as prb."
            )
        ad.backward(value)
        total += _finite(float(np.asarray(value).ravel()[0]), step) / len(views)
        pixels += int(image.shape[0]) * int(image.shape[1])
    return total, image, pixels


def _settle(opt: Optimizer, bounds: Mapping[str, Any]) -> None:
    """Move all fitted values into their limits."""
    for key, limits in bounds.items():
        _clamp(opt, key, limits)


def select_keys(parameters: Any, params: str | Iterable[str] | None) -> list[str]:
    """Return the paths of scene parameters that `params` (see `fit`) selects, in the scene's order.

    Raises SceneError if a path does not exist or cannot be differentiated, or if a pattern matches nothing.
    """
    flags = {key: parameters.flags(key) for key in parameters.keys()}
    free = [key for key, flag in flags.items() if not int(flag) & 1 and _is_float(parameters[key])]
    if params is None:
        return [key for key in free if not int(flags[key]) & 2]
    if isinstance(params, str):
        try:
            pattern = re.compile(params)
        except re.error as error:
            raise SceneError(f"fit(): '{params}' is no regular expression: {error}") from error
        found = [key for key in free if pattern.search(key)]
        if not found:
            fixed = [key for key in flags if pattern.search(key)]
            what = f"only parameters without derivative match: {', '.join(fixed)}" if fixed else "no parameter matches"
            known = ", ".join(free) or "none"
            raise SceneError(f'fit(): {what} the pattern "{params}". Differentiable parameters: {known}')
        return found
    wanted = list(params) if isinstance(params, Iterable) else [params]
    for key in wanted:
        if not isinstance(key, str):
            raise WrongTypeError(f"fit(): params must be a pattern or a list of paths, found {shown(key)}")
        if key not in flags:
            hint = nearest(key, free) or "traverse(scene) lists them"
            raise SceneError(f'fit(): the scene has no parameter "{key}"; {hint}')
        if key not in free:
            raise SceneError(f'fit(): the parameter "{key}" has no derivative')
    return wanted


def _is_float(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)
    return bool(getattr(dtype, "is_float", False)) and bool(getattr(value, "is_diff", False))


def _make_optimizer(optimizer: Any, lr: float) -> Optimizer:
    if optimizer is None:
        return Adam(lr)
    made: Optimizer = optimizer if isinstance(optimizer, Optimizer) else optimizer(lr)
    return made


def _mixed(seed: int, step: int, view: int) -> int:
    """Return a 32-bit seed for one rendering: well spread, so that fits with neighbouring seeds share no pictures.

    The last step is the finaliser of MurmurHash3 (Appleby).
    """
    h = (seed * 0x9E3779B1 + step * 0x85EBCA77 + view * 0xC2B2AE3D + 0x27D4EB2F) & 0xFFFFFFFF
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = ((h ^ (h >> shift)) * factor) & 0xFFFFFFFF
    return h ^ (h >> 16)


def _set_rate(opt: Optimizer, lr: float, lr_end: float | None, step: int, steps: int) -> None:
    if lr_end is not None:
        opt.set_learning_rate(lr * (lr_end / lr) ** (step / max(steps - 1, 1)))


def _limits_of(key: str, limits: Limits | None) -> tuple[float, float]:
    for pattern, bounds in (limits or {}).items():
        if re.search(pattern, key):
            return bounds
    return -math.inf, math.inf


def _clamp(opt: Optimizer, key: str, bounds: tuple[float, float]) -> None:
    low, high = bounds
    if low == -math.inf and high == math.inf:
        return

    def clamp(x: Any) -> Any:
        x = f.max(x, low) if low > -math.inf else x
        return f.min(x, high) if high < math.inf else x

    with ad.suspend_grad():
        opt[key] = tree.map_arrays(clamp, opt[key])


def _finite(loss: float, step: int) -> float:
    if not math.isfinite(loss):
        raise LuxgradError(f"fit(): the loss is {loss} in step {step}; a smaller learning rate or limits may help")
    return loss


def _finite_value(value: Any, key: str, step: int) -> Any:
    if not np.isfinite(np.asarray(value)).all():
        raise LuxgradError(f'fit(): the parameter "{key}" is no longer finite after step {step}')
    return value


def _warn_of_zeros(opt: Optimizer, keys: Sequence[str]) -> None:
    for key in keys:
        if not np.asarray(ad.grad(opt[key])).any():
            warnings.warn(f'the gradient of "{key}" is exactly 0: the pictures do not depend on it', stacklevel=3)


def _picture(result: FitResult, name: str, scene: Any, views: list[View], integrator: Any, spp: int) -> None:
    if spp <= 0:
        return
    for number, view in enumerate(views):
        suffix = f" {number + 1}" if number else ""
        with ad.suspend_grad():
            image = render(scene, sensor=view.sensor, integrator=integrator, spp=spp, seed=2**31 + number)
        result.images[f"target{suffix}"] = Bitmap(view.target)
        result.images[name + suffix] = Bitmap(np.array(image))


def _resume(path: Any, opt: Optimizer, result: FitResult) -> int:
    """Load a checkpoint into the optimiser and the result, if there is one, and return the first step to take."""
    if path is None or not Path(path).exists():
        return 0
    notes, arrays = read_checkpoint(path)
    ours = _identity(result)
    for name, value in ours.items():
        if notes["identity"].get(name) != value:
            raise SceneError(
                f'fit(): the checkpoint "{path}" is of another fit: {name} was {notes["identity"].get(name)!r}, '
                f"now {value!r}; delete the file to start afresh"
            )
    opt.load_state_arrays({k[4:]: v for k, v in arrays.items() if k.startswith("opt/")})
    result.losses = list(notes["losses"])
    result.history = {key: list(arrays[f"history/{key}"]) for key in result.keys}
    result.images = {k[6:]: Bitmap(v) for k, v in arrays.items() if k.startswith("image/")}
    return result.steps


def _identity(result: FitResult) -> dict[str, Any]:
    """Return what must agree between a fit and a checkpoint for the fit to go on as if it had never stopped."""
    same = {name: result.settings[name] for name in ("spp", "lr", "lr_end", "seed", "optimizer", "loss")}
    if same["lr_end"] is not None:
        same["steps"] = result.settings["steps"]
    return {"keys": result.keys, **same}


def _save(path: Any, opt: Optimizer, result: FitResult) -> None:
    arrays = {f"opt/{name}": array for name, array in opt.state_arrays().items()}
    arrays |= {f"history/{key}": np.array(rows) for key, rows in result.history.items()}
    arrays |= {f"image/{k}": v.array for k, v in result.images.items() if k.startswith("start")}
    write_checkpoint(path, {"identity": _identity(result), "losses": result.losses}, arrays)
