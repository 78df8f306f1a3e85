"""Large steps in mesh optimisation: coordinates in which steps of an optimiser keep a surface smooth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ad.custom import CustomOp, custom
from ..jit.errors import LuxgradError

__all__ = ["LargeSteps"]

Floats = NDArray[np.float64]


class LargeSteps:
    """The change of variables u = (I + lambda L) v of Nicolet et al. 2021, L the graph Laplacian of the mesh.

    `vertices` is the flat array of x, y, z per vertex as scene parameters have it, `faces` the flat array of three
    indices per triangle. Vertices at the same place count as one, so that seams do not open. Optimise
    `to_differential(v)` with `Adam(uniform=True)` and pass `from_differential(u)` to the scene; gradients flow through
    it. The larger `lambda_`, the smoother the steps.
    """

    def __init__(self, verts: Any, faces: Any, lambda_: float = 19.0) -> None:
        if not lambda_ > 0.0:
            raise ValueError(f"LargeSteps: lambda_ must be above 0, found {lambda_}")
        positions = _points(verts, "vertices") + 0.0  # -0 becomes 0: one place
        _, self._first, inverse = np.unique(positions, axis=0, return_index=True, return_inverse=True)
        self._inverse = inverse.reshape(-1)
        self.lambda_ = float(lambda_)
        triangles = np.array(faces, dtype=np.int64).reshape(-1, 3)
        if triangles.size and not (0 <= triangles.min() and triangles.max() < len(positions)):
            raise ValueError(
                f"LargeSteps: faces use indices up to {triangles.max()}, there are {len(positions)} vertices"
            )
        self._connect(self._inverse[triangles])

    def _connect(self, triangles: NDArray[np.int64]) -> None:
        """Build the neighbour lists: row i of the Laplacian is degree(i) on the diagonal, -1 for each neighbour."""
        pairs = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        pairs = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
        degree = np.bincount(pairs[:, 0], minlength=self.n_vertices)
        self._rows, self._starts = np.unique(pairs[:, 0], return_index=True)
        self._columns = pairs[:, 1]
        self._diagonal = (1.0 + self.lambda_ * degree)[:, None]

    @property
    def n_vertices(self) -> int:
        """The number of different places of vertices."""
        return len(self._first)

    def to_differential(self, v: Any) -> Any:
        """Return u of vertex positions, three numbers per place; carries no gradient."""
        return type(v)(self._multiply(_points(v, "vertices")[self._first]).reshape(-1))

    def from_differential(self, u: Any) -> Any:
        """Return the vertex positions of u; differentiable in u."""
        return custom(_FromDifferential, self, u)

    def _multiply(self, x: Floats) -> Floats:
        y = self._diagonal * x
        if len(self._rows):
            y[self._rows] -= self.lambda_ * np.add.reduceat(x[self._columns], self._starts, axis=0)
        return y

    def solve(self, right: Floats) -> Floats:
        """Return x of (I + lambda L) x = right, both (places, 3), by conjugate gradients to 1e-10 of the right side.

        The matrix is symmetric and at least the identity, its condition at most 1 + 2 lambda times the largest degree.
        """
        x = right / self._diagonal
        residual = right - self._multiply(x)
        scaled = residual / self._diagonal
        direction = scaled.copy()
        energy = (residual * scaled).sum(0)
        limit = 1e-10 * np.maximum(np.linalg.norm(right, axis=0), 1e-300)
        for _ in range(20 * self.n_vertices + 100):
            if np.all(np.linalg.norm(residual, axis=0) <= limit):
                return x
            moved = self._multiply(direction)
            step = energy / np.maximum((direction * moved).sum(0), 1e-300)
            x += step * direction
            residual -= step * moved
            scaled = residual / self._diagonal
            before, energy = energy, (residual * scaled).sum(0)
            direction = scaled + energy / np.maximum(before, 1e-300) * direction
        raise LuxgradError("LargeSteps: the smoothing did not converge; are all coordinates finite?")

    def expand(self, places: Floats) -> Floats:
        """Return values per place as values per vertex."""
        return places[self._inverse]

    def gather(self, vertices: Floats) -> Floats:
        """Return the sums of values per vertex over the vertices of each place."""
        out = np.zeros((self.n_vertices, 3))
        np.add.at(out, self._inverse, vertices)
        return out


class _FromDifferential(CustomOp):
    """Solves the system; the matrix is symmetric, so that the derivative is the same solve."""

    def eval(self, system: LargeSteps, u: Any) -> Any:
        self.system, self.kind = system, type(u)
        return self.kind(system.expand(system.solve(_points(u, "u"))).reshape(-1))

    def forward(self) -> None:
        tangent = self.system.solve(_points(self.grad_in("u"), "u"))
        self.set_grad_out(self.kind(self.system.expand(tangent).reshape(-1)))

    def backward(self) -> None:
        gradient = self.system.gather(_points(self.grad_out(), "gradient"))
        self.set_grad_in("u", self.kind(self.system.solve(gradient).reshape(-1)))

    def name(self) -> str:
        return "large steps"


def _points(flat: Any, what: str) -> Floats:
    array = np.array(flat, dtype=np.float64).reshape(-1)
    if array.size % 3:
        raise ValueError(f"LargeSteps: {what} must hold three numbers per vertex, found {array.size}")
    return array.reshape(-1, 3)
