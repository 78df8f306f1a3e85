"""Pearson's chi-square test of samples on a domain that is cut into cells, against the integral of a density."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

Array = npt.NDArray[np.float64]


@dataclass
class Grid:
    """Equal cells over the rectangle [low, high], with `fine` x `fine` points per cell for quadrature."""

    low: tuple[float, float]
    high: tuple[float, float]
    cells: tuple[int, int]
    fine: int = 8

    def points(self) -> tuple[Array, Array, float]:
        """Return both coordinates of all quadrature points (flat) and the area that belongs to one."""
        axes = []
        for low, high, n in zip(self.low, self.high, self.cells, strict=True):
            axes.append(low + (np.arange(n * self.fine) + 0.5) * ((high - low) / (n * self.fine)))
        x, y = np.meshgrid(*axes, indexing="ij")
        area = math.prod((h - lo) / (n * self.fine) for lo, h, n in zip(self.low, self.high, self.cells, strict=True))
        return x.ravel(), y.ravel(), area

    def masses(self, density: Array) -> Array:
        """Return the integral over every cell of a density given at `points` (flat)."""
        area = self.points()[2]
        a, b = self.cells
        return density.reshape(a, self.fine, b, self.fine).sum((1, 3)) * area

    def counts(self, x: Array, y: Array) -> Array:
        """Return how many samples fall into each cell."""
        ranges = list(zip(self.low, self.high, strict=True))
        return np.histogram2d(x, y, bins=self.cells, range=ranges)[0]


def sphere(cells: tuple[int, int] = (24, 36), fine: int = 8) -> Grid:
    """Return cells over (polar angle, azimuth)."""
    return Grid((0.0, -math.pi), (math.pi, math.pi), cells, fine)


def directions(grid: Grid) -> tuple[Array, Array]:
    """Return unit vectors (3, n) at the points of a sphere's grid, and the sine of the polar angle (n)."""
    theta, phi, _ = grid.points()
    s = np.sin(theta)
    return np.stack([s * np.cos(phi), s * np.sin(phi), np.cos(theta)]), s


def angles(d: Array) -> tuple[Array, Array]:
    """Return polar angle and azimuth of vectors (3, n)."""
    return np.arctan2(np.hypot(d[0], d[1]), d[2]), np.arctan2(d[1], d[0])


def chi2_p(counts: Array, expected: Array, total: int) -> float:
    """Return the probability of a deviation as large as this one; `expected` counts may sum to less than `total`.

    The rest, samples outside all cells, is a cell of its own; cells that expect fewer than 5 are pooled. Samples where
    next to none are expected give 0, as does a density that integrates to clearly more than 1. A little more, from
    quadrature or from a fit in the model (Beckmann's G1: 0.35 %), is divided out.
    """
    if expected.sum() > 1.006 * total:
        return 0.0
    expected = expected * min(1.0, total / expected.sum())
    seen = np.append(counts.ravel(), total - counts.sum())
    wanted = np.append(expected.ravel(), max(0.0, total - expected.sum()))
    order = np.argsort(wanted)
    seen, wanted = seen[order], wanted[order]
    if seen[wanted < 1e-6 * total / len(wanted)].sum() > max(5.0, 3e-4 * total):
        return 0.0
    small = int(np.searchsorted(wanted, 5.0))
    while small < len(wanted) and wanted[:small].sum() < 5.0 and small > 0:
        small += 1
    if small:
        seen = np.append(seen[small:], seen[:small].sum())
        wanted = np.append(wanted[small:], wanted[:small].sum())
    if len(wanted) < 2:
        return 1.0
    wanted = np.maximum(wanted, 1e-3)
    return float(stats.chi2.sf(((seen - wanted) ** 2 / wanted).sum(), len(wanted) - 1))


def threshold(tests: int, significance: float = 0.01) -> float:
    """Return the probability below which one of so many independent tests fails (Sidak 1967)."""
    return 1.0 - (1.0 - significance) ** (1.0 / tests)


def assert_follows(grid: Grid, samples: tuple[Array, Array], density: Callable[..., Array] | Array, tests: int) -> None:
    """Assert that samples follow a density (an array at the grid's points, or a function of both coordinates)."""
    x, y = samples
    known = np.isfinite(x) & np.isfinite(y)
    values = density(*grid.points()[:2]) if callable(density) else density
    expected = grid.masses(np.asarray(values, np.float64)) * len(x)
    counts = grid.counts(x[known], y[known])
    p = chi2_p(counts, expected, len(x))
    worst = np.unravel_index(np.argmax(np.abs(counts - expected) / np.sqrt(expected + 5)), counts.shape)
    assert p > threshold(tests), (
        f"samples do not follow the density: p = {p:.2e}, cell {worst} has {counts[worst]:.0f} of {len(x)} samples, "
        f"expected {expected[worst]:.1f}; inside all cells {counts.sum():.0f}, expected {expected.sum():.1f}"
    )
