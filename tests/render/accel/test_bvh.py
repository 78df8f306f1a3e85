"""Our own tree: the builder, the wide tree made from it, and that a ray's hit depends on nothing but the ray."""

from __future__ import annotations

import importlib.util
import threading
from pathlib import Path

import numpy as np
import pytest

from luxgrad.render.accel import bvh, query
from luxgrad.render.accel.bvh import BvhAccelerator
from luxgrad.render.accel.bvh_build import LEAF, LEAF_BITS, STACK, Tree, build_tree
from luxgrad.render.accel.bvh_memory import PAD, Primitives
from luxgrad.render.accel.bvh_wide_build import FAN, NUMBER_OFFSET, wide_arrays
from luxgrad.render.accel.geometry import Disk, Geometry, Sphere, Triangles

_spec = importlib.util.spec_from_file_location("accel_reference", Path(__file__).parent / "reference.py")
assert _spec and _spec.loader
ref = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(ref)


def points(name: str) -> np.ndarray:
    rng = np.random.default_rng(3)
    return {
        "cloud": rng.uniform(-1, 1, (3000, 3)),
        "same": np.ones((500, 3)),
        "shrinking": 2.0 ** -rng.uniform(0, 120, (3000, 1)) * np.ones(3),
        "line": np.arange(100)[:, None] * [1.0, 0, 0],
        "few": rng.uniform(-1, 1, (LEAF + 1, 3)),
        "one": np.zeros((1, 3)),
        "none": np.zeros((0, 3)),
    }[name].astype(np.float32)


def check_tree(tree: Tree, lower: np.ndarray, upper: np.ndarray, tight: bool) -> None:
    """Walk the whole tree: every primitive in one leaf, every box around (or the exact union of) what is below."""
    seen: list[int] = []

    def visit(node: int) -> tuple[np.ndarray, np.ndarray]:
        for k in range(2):
            code = int(tree.child[node, k])
            if code >= 0:
                lo, hi = visit(code)
            else:
                start, count = ~code >> LEAF_BITS, ~code & (1 << LEAF_BITS) - 1
                part = tree.order[start : start + count]
                seen.extend(part.tolist())
                assert count <= LEAF
                empty = np.full((1, 3), np.inf, np.float32)
                lo = np.concatenate([empty, lower[part]]).min(0)
                hi = np.concatenate([-empty, upper[part]]).max(0)
            assert (tree.lower[node, k] <= lo).all() and (tree.upper[node, k] >= hi).all()
            if tight:
                np.testing.assert_array_equal(tree.lower[node, k], lo)
                np.testing.assert_array_equal(tree.upper[node, k], hi)
        return tree.lower[node].min(0), tree.upper[node].max(0)

    visit(0)
    assert sorted(seen) == list(range(len(lower)))


@pytest.mark.parametrize("name", ["cloud", "same", "shrinking", "line", "few", "one", "none"])
def test_trees_hold_every_primitive_once_inside_its_boxes(name: str) -> None:
    lower = points(name)
    upper = lower + np.float32(0.01)
    tree = build_tree(lower, upper)
    check_tree(tree, lower, upper, tight=False)
    assert tree.depth < STACK
    rng = np.random.default_rng(0)
    moved = lower + rng.uniform(-1, 1, lower.shape).astype(np.float32)
    tree.refit(moved, moved + np.float32(0.5))
    check_tree(tree, moved, moved + np.float32(0.5), tight=True)


def test_empty_boxes_take_part_and_widen_nothing() -> None:
    lower = points("cloud")
    upper = lower.copy()
    lower[::3], upper[::3] = np.inf, -np.inf
    tree = build_tree(lower, upper)
    assert sorted(tree.order.tolist()) == list(range(3000))
    np.testing.assert_array_equal(tree.root()[0], lower.min(0))
    assert np.isfinite(tree.cost()) and tree.cost() > 1


def test_the_heuristic_beats_halving() -> None:
    """A dense cluster in a wide sparse scene: splits by cost find it, splits by count would not."""
    rng = np.random.default_rng(1)
    lower = np.concatenate([rng.uniform(0, 1, (1000, 3)) * 1e-3, rng.uniform(-1, 1, (1000, 3))]).astype(np.float32)
    tree = build_tree(lower, lower + np.float32(1e-3))
    order = Tree(tree.lower.copy(), tree.upper.copy(), tree.child, rng.permutation(2000), tree.levels)
    order.refit(lower, lower + np.float32(1e-3))
    assert tree.cost() < 0.05 * order.cost()


def test_wide_tree_holds_every_record_once() -> None:
    primitives = Primitives([ref.soup(700, 2), Sphere([0, 0, 0], 0.1), Disk(np.eye(4)), ref.icosphere(1)])
    tree = build_tree(primitives.lower, primitives.upper)
    nodes, blocks = wide_arrays(tree, primitives.records()[tree.order])
    codes = nodes.view(np.int32)[:, -2 * FAN : -FAN]
    leaves, inner = ~codes[codes < -1], codes[codes >= 0]
    assert sorted(leaves.tolist()) == list(range(1, len(blocks)))
    assert sorted(inner.tolist()) == list(range(1, len(nodes)))
    numbers = blocks.view(np.int32)[:, NUMBER_OFFSET // 4 : NUMBER_OFFSET // 4 + FAN]
    shapes = blocks.view(np.int32)[:, NUMBER_OFFSET // 4 + FAN]
    filled = np.isfinite(blocks[:, :FAN]) | (shapes[:, None] >> np.arange(FAN) & 1 == 1)
    assert sorted(numbers[filled].tolist()) == list(range(len(primitives)))
    assert sum(bin(bits).count("1") for bits in shapes.tolist()) == 2


def scene() -> list[Geometry]:
    """A closed surface, coplanar doubles that tie exactly, and shapes."""
    mesh = ref.icosphere(3, 0.03)
    return [mesh, Sphere([0.2, 0, 0], 0.3), ref.box((-0.5, -0.5, -0.5), (0.5, 0.5, 0.5)), mesh, Disk(np.eye(4) * 0.9)]


@pytest.mark.cpu
@pytest.mark.parametrize("width", [16, 8])
def test_hits_do_not_depend_on_the_packet_or_the_arguments(width: int) -> None:
    o, d = ref.random_rays(4000, 12, 0.8)
    o[1000:], d[1000:2000] = o[0], d[0] + d[1000:2000] * np.float32(0.01)  # a coherent part, and a common origin
    perm = np.random.default_rng(5).permutation(4000)
    back = np.argsort(perm)
    with BvhAccelerator(scene(), width) as accelerator, BvhAccelerator(scene(), 1) as alone:
        first = query.closest(accelerator, o, d, coherent=True)
        hit = first.geom >= 0
        assert hit.mean() > 0.9 and set(first.geom[hit].tolist()) == {0, 1, 2, 4}
        for other, index in (
            (query.closest(accelerator, o, d), slice(None)),
            (query.closest(accelerator, o[perm], d[perm], coherent=True), back),
            (query.closest(alone, o, d), slice(None)),
        ):
            for name in ("t", "prim", "geom"):
                np.testing.assert_array_equal(getattr(first, name), getattr(other, name)[index])
            for name in ("u", "v"):
                np.testing.assert_array_equal(getattr(first, name)[hit], getattr(other, name)[index][hit])
        shadows = [query.occluded(accelerator, o, d, 0.1, 0.7, coherent=c) for c in (True, False)]
        np.testing.assert_array_equal(*shadows)
        np.testing.assert_array_equal(shadows[0], query.closest(accelerator, o, d, 0.1, 0.7).geom >= 0)


@pytest.mark.cpu
def test_deep_trees_are_traced() -> None:
    """Walls whose distances from the origin halve over and over make the deepest trees there are."""
    x = np.sort(2.0 ** -np.random.default_rng(3).uniform(0, 120, 5000)).astype(np.float32)
    corners = np.array([[0, -1, -1], [0, 3, -1], [0, -1, 3]]) + x[:, None, None].astype(float) * [1, 0, 0]
    mesh = Triangles(corners.reshape(-1, 3), np.arange(3 * len(x)).reshape(-1, 3))
    with BvhAccelerator([mesh]) as accelerator:
        assert 48 < accelerator.tree.depth < STACK
        chosen = np.random.default_rng(4).integers(1, len(x), 300)
        o = np.stack([x[chosen], *np.random.default_rng(5).uniform(-0.5, 0.5, (2, 300))], 1)
        d = np.broadcast_to(np.float32([-1, 0, 0]), o.shape)
        for coherent in (True, False):
            hits = query.closest(accelerator, o, d, coherent=coherent)
            # The wall in which a ray starts is at distance 0, which is not beyond tnear; the next one is hit.
            np.testing.assert_array_equal(x[hits.prim], [x[x < start].max() for start in x[chosen]])
            assert query.occluded(accelerator, o, d, coherent=coherent).all()


@pytest.mark.cpu
def test_rays_far_outside_still_meet_flat_boxes() -> None:
    """A wall without thickness seen from afar: rounding of the origin must not move the ray past the box."""
    wall = Triangles([[-1, -1, 0.1], [1, -1, 0.1], [1, 1, 0.1], [-1, 1, 0.1]], [[0, 1, 2], [0, 2, 3]])
    rng = np.random.default_rng(0)
    target = np.concatenate([rng.uniform(-0.9, 0.9, (3000, 2)), np.full((3000, 1), 0.1)], 1)
    o = (target + rng.uniform(-1, 1, (3000, 3)) * [3e3, 3e3, 1e4]).astype(np.float32)
    with BvhAccelerator([wall]) as accelerator:
        for coherent in (True, False):
            assert (query.closest(accelerator, o, (target - o).astype(np.float32), coherent=coherent).geom == 0).all()
    assert 1e4 * PAD < 0.01


@pytest.mark.cpu
def test_a_worn_tree_is_built_anew() -> None:
    mesh = ref.soup(500, 4, 0.02)
    with BvhAccelerator([mesh]) as accelerator:
        tree = accelerator.tree
        accelerator.update(0, mesh.vertices * np.float32(2))
        assert accelerator.tree.child is tree.child
        shuffled = mesh.vertices.reshape(-1, 3, 3)[np.random.default_rng(0).permutation(500)].reshape(-1, 3)
        accelerator.update(0, shuffled)
        assert accelerator.tree.child is not tree.child
        o, d = ref.random_rays(500, 1)
        _, prim, _ = ref.brute_force([Triangles(shuffled, mesh.faces)], o, d)
        assert (query.closest(accelerator, o, d).prim != prim).mean() <= 2e-3


@pytest.mark.cpu
def test_threads_trace_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bvh, "PACKETS_UP_TO", 10)
    o, d = ref.random_rays(20_000, 7)
    with BvhAccelerator(scene()) as accelerator:
        batches = [query.Batch(accelerator, o, d, coherent=bool(i % 2)) for i in range(4)]
        threads = [threading.Thread(target=batch.run) for batch in batches]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    hit = batches[0].outputs[4].view(np.uint32) != 0xFFFFFFFF
    for batch in batches[1:]:
        np.testing.assert_array_equal(batch.outputs[0], batches[0].outputs[0])
        np.testing.assert_array_equal(batch.outputs[1:, hit], batches[0].outputs[1:, hit])
