"""Launch lists shaped like one recorded step of a differentiable renderer, made up from a seed.

Each family imitates one way to render: a single big kernel, a wavefront loop with compaction, a reverse loop with
stored states, many parameters with Adam, and mixtures. Sizes, lifetimes and access modes are what such programs have;
nothing is computed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from luxgrad.jit.memory.lifetimes import Access, Buffer, Launch, lifetimes


@dataclass(frozen=True)
class Instance:
    """Half-open lifetimes and sizes in bytes."""

    starts: list[int]
    ends: list[int]
    sizes: list[int]


class Trace:
    """Records launches one wave after the other."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self._reads: list[dict[int, Access]] = []
        self._writes: list[dict[int, Access]] = []

    def step(self, own: Iterable[int] = (), gather: Iterable[int] = ()) -> None:
        """Begin a launch that reads these buffers."""
        self._reads.append({})
        self._writes.append({})
        self.read(own, "own")
        self.read(gather, "gather")

    def read(self, buffers: Iterable[int], access: Access) -> None:
        """Let the present launch read more."""
        for b in buffers:
            if b not in self._writes[-1]:
                self._reads[-1][b] = access

    def update(self, buffers: Iterable[int]) -> None:
        """Let the present launch change buffers in place."""
        for b in buffers:
            self._reads[-1][b] = self._writes[-1][b] = "own"

    def new(self, width: int, count: float, access: Access = "own") -> int:
        """Return a buffer of `count` items that the present launch writes."""
        self.buffers.append(Buffer(max(1, int(count)) * width, width))
        self._writes[-1][len(self.buffers) - 1] = access
        return len(self.buffers) - 1

    def many(self, widths: Iterable[int], count: float) -> list[int]:
        """Return one new buffer per width."""
        return [self.new(w, count) for w in widths]

    def count(self, b: int) -> int:
        """Return the number of items of a buffer."""
        return self.buffers[b].nbytes // self.buffers[b].itemsize

    @property
    def launches(self) -> list[Launch]:
        """The recorded launches."""
        steps = zip(self._reads, self._writes, strict=True)
        return [Launch(tuple(r.items()), tuple(w.items()), k) for k, (r, w) in enumerate(steps)]

    def instance(self) -> Instance:
        """Return all lifetimes and sizes, without in-place reuse."""
        spans = lifetimes(self.launches, self.buffers, inplace=False)
        return Instance(list(spans.starts), list(spans.ends), [b.nbytes for b in self.buffers])


def adam(t: Trace, gradients: Sequence[int]) -> None:
    """Append the optimiser: two corrected moments per gradient, a step, a small rest."""
    for g in gradients:
        n = t.count(g)
        t.step([g])
        moments = t.many([4, 4], n)
        t.step(moments)
        change = t.new(4, n)
        t.step([change])
        t.new(4, n / 3)


def meshes(t: Trace, rng: random.Random, count: int) -> list[int]:
    """Append normals and a tree by radix sort for each mesh; return what the kernels need of them."""
    keep = []
    for _ in range(count):
        vertices = int(10 ** rng.uniform(2.5, 5.3))
        faces = 2 * vertices
        t.step()
        positions = t.new(4, 3 * vertices)
        t.step(gather=[positions])
        corner = t.many([4, 4], 3 * faces)
        t.step(gather=corner)
        sums = t.new(4, 3 * vertices, "scatter")
        t.step([sums])
        normals = t.new(4, 3 * vertices)
        t.step(gather=[positions])
        boxes, codes, key, value = t.new(4, 6 * faces), *t.many([4, 4, 4], faces)
        for _ in range(4):
            t.step([key, codes])
            histogram = t.new(4, 4096, "scatter")
            t.step(gather=[histogram])
            starts = t.new(4, 4096)
            t.read([key, value], "own")
            codes, (key, value) = key, [t.new(4, faces, "scatter") for _ in range(2)]
        t.step(gather=[key, value, boxes])
        nodes = t.new(4, 16 * faces)
        t.step([nodes], gather=[boxes, starts])
        keep += [positions, normals, t.new(4, 8 * faces)]
    return keep


def megakernel(seed: int, parameters: int) -> Trace:
    """Return a step with one kernel for the image and one for the gradients."""
    rng, t = random.Random(seed), Trace()
    side = rng.choice([128, 256, 512])
    pixels, n = side * side, side * side * rng.choice([4, 8, 16, 32])
    keep = meshes(t, rng, rng.randint(0, 2))
    t.step()
    states = t.many([8, 8], n)
    t.step(states, keep)
    light, place, alpha = t.many([4] * 3, n), t.many([4] * 2, n), t.new(4, n)
    t.step([*light, *place, alpha])
    block = t.new(4, 4 * pixels, "scatter")
    t.step(gather=[block])
    image = t.new(4, 3 * pixels)
    t.step([image])
    parts = t.new(4, 1024)
    t.step([parts])
    loss = t.new(4, 1)
    t.step([image], [loss])
    d_image = t.new(4, 3 * pixels)
    t.step([d_image], place)
    d_block = t.new(4, 4 * pixels)
    t.step(gather=[d_block, *place])
    d_light = t.many([4] * 3, n)
    t.step([*d_light, *light, *states, alpha], keep)
    gradients = [t.new(4, 10 ** rng.uniform(1, 7) / 4, "scatter") for _ in range(parameters)]
    adam(t, gradients)
    t.read([loss], "gather")
    return t


STATE = [4] * 20 + [8, 8, 1, 4]  # ray, throughput, radiance, film position, interaction, generator, alive, depth


def wavefront(seed: int, depth: int) -> Trace:
    """Return an evaluated loop: several kernels per bounce, then compaction to the living paths."""
    rng, t = random.Random(seed), Trace()
    n = rng.choice([1 << 16, 1 << 18, 1 << 20, 300 * 300 * 7])
    keep = meshes(t, rng, rng.randint(0, 2))
    t.step()
    result, state = t.many([4] * 3, n), t.many(STATE, n)
    for _ in range(depth):
        t.step(state[:6], keep)
        hit = t.many([4] * 5, n)
        t.step([*hit, *state[:6]], keep)
        surface = t.many([4] * 16, n)
        t.step([*surface, *state[20:22]])
        emitter = t.many([4] * 8, n)
        t.step([*emitter, *surface], keep)
        shadow = t.new(1, n)
        t.step([shadow, *emitter, *surface, *state])
        bounce = t.many([4] * 8, n)
        t.update(result)
        t.step([*bounce, *surface, *state])
        after, alive = t.many(STATE, n), t.new(1, n)
        t.step([alive])
        prefix, sums = t.new(4, n), t.new(4, n // 1024 + 1)
        t.step([prefix, alive], [sums])
        n = max(64, int(n * rng.uniform(0.55, 0.95)))
        index = t.new(4, n, "scatter")
        t.step([index], after)
        state = t.many(STATE, n)
    t.step(result)
    block = t.new(4, 1 << 20, "scatter")
    t.step(gather=[block])
    t.new(4, 3 << 18)
    return t


def reverse(seed: int, depth: int) -> Trace:
    """Return a loop that stores its states, and the loop back that reads them in reverse order."""
    rng, t = random.Random(seed), Trace()
    n = rng.choice([1 << 16, 1 << 18, 123456, 640 * 480])
    parameters = rng.randint(3, 30)
    widths = [4] * 8 + [8, 8]
    t.step()
    state, light = t.many(widths, n), t.many([4] * 3, n)
    saved = []
    for _ in range(depth):
        t.step(state)
        inner = t.many([4] * rng.randint(3, 9), n)
        t.step([*inner, *state])
        following = t.many(widths, n)
        saved.append(([*state[: rng.randint(3, 8)], inner[0]], n))
        state = following
        if rng.random() < 0.5:
            n = int(n * rng.uniform(0.6, 0.95))
    t.step([*light, *state])
    image = t.new(4, 3 * 640 * 480, "scatter")
    t.step([image])
    d_image = t.new(4, 3 * 640 * 480)
    t.step(gather=[d_image])
    adjoint = t.many([4] * 8, n)
    gradients = [t.new(4, 10 ** rng.uniform(2, 6.5) / 4, "whole") for _ in range(parameters)]
    for values, count in reversed(saved):
        t.step([*values, *adjoint])
        inner = t.many([4] * rng.randint(3, 9), count)
        t.step([*inner, *values, *adjoint])
        adjoint = t.many([4] * 8, count)
        t.update(gradients)
    adam(t, gradients)
    return t


def multiparam(seed: int, parameters: int) -> Trace:
    """Return a step with many parameters, each prepared, differentiated and sometimes mapped back."""
    rng, t = random.Random(seed), Trace()
    keep = meshes(t, rng, rng.randint(2, 10))
    n = rng.choice([1 << 18, 1 << 20])
    t.step(gather=keep)
    light = t.many([4] * 5, n)
    ready = []
    for _ in range(parameters):
        count = 10 ** rng.uniform(1, 7) / 4
        t.step()
        raw = t.new(4, count)
        t.step([raw])
        ready.append(t.new(4, count * rng.choice([1, 1, 0.5, 4 / 3])))
    t.step(light, [*ready, *keep])
    image = t.new(4, 1 << 20, "scatter")
    t.step([image])
    d_image = t.new(4, 1 << 20)
    t.step(light, [d_image, *ready, *keep])
    gradients = [t.new(4, t.count(p), "scatter") for p in ready]
    mapped = []
    for g in gradients:
        if rng.random() < 0.5:
            t.step([g])
            inner = t.new(4, t.count(g))
            t.step([inner])
            g = t.new(4, t.count(inner))
        mapped.append(g)
    adam(t, mapped)
    return t


def mixed(seed: int, depth: int | None = None) -> Instance:
    """Return three programs one after the other in random order, with long-lived buffers across them."""
    rng = random.Random(seed)
    parts = [
        multiparam(seed * 3 + 1, rng.randint(5, 60)),
        wavefront(seed * 3 + 2, depth or rng.randint(3, 14)),
        reverse(seed * 3 + 3, depth or rng.randint(4, 24)),
    ]
    rng.shuffle(parts)
    out, base = Instance([], [], []), 0
    for part in (trace.instance() for trace in parts):
        out.starts.extend(base + a for a in part.starts)
        out.ends.extend(base + b for b in part.ends)
        out.sizes.extend(part.sizes)
        base += max(part.ends)
    for _ in range(rng.randint(2, 20)):
        a = rng.randrange(0, base - 2)
        out.starts.append(a)
        out.ends.append(rng.randrange(a + 1, base))
        out.sizes.append(int(10 ** rng.uniform(3, 7.5)))
    return out


def scattered(seed: int, n: int) -> Instance:
    """Return unrelated buffers: short lives, a few long ones, sizes over four decades."""
    rng, out = random.Random(seed), Instance([], [], [])
    for _ in range(n):
        start = rng.randrange(n)
        life = rng.randrange(1, n) if rng.random() < 0.05 else int(rng.expovariate(1 / 20)) + 1
        out.starts.append(start)
        out.ends.append(min(start + life, n + 50))
        out.sizes.append(int(10 ** rng.uniform(2.5, 7)))
    return out


PROGRAMS: dict[str, Callable[[int], Trace]] = {
    "megakernel": lambda seed: megakernel(seed, 6 + seed % 12),
    "megakernel P=60": lambda seed: megakernel(seed, 60),
    "wavefront D=4": lambda seed: wavefront(seed, 4),
    "wavefront D=12": lambda seed: wavefront(seed, 12),
    "wavefront D=24": lambda seed: wavefront(seed, 24),
    "reverse D=8": lambda seed: reverse(seed, 8),
    "reverse D=32": lambda seed: reverse(seed, 32),
    "reverse D=64": lambda seed: reverse(seed, 64),
    "multiparam P=30": lambda seed: multiparam(seed, 30),
    "multiparam P=120": lambda seed: multiparam(seed, 120),
}


def _instance(make: Callable[[int], Trace]) -> Callable[[int], Instance]:
    return lambda seed: make(seed).instance()


# The families of renderers, and with them two of random buffers.
RENDERERS: dict[str, Callable[[int], Instance]] = {
    **{name: _instance(make) for name, make in PROGRAMS.items()},
    "mixed": mixed,
    "mixed large": lambda seed: mixed(seed, 16),
}
FAMILIES: dict[str, Callable[[int], Instance]] = {
    **RENDERERS,
    "random n=300": lambda seed: scattered(seed, 300),
    "random n=1000": lambda seed: scattered(seed, 1000),
}
