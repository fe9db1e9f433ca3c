"""Published methods that `compress` does not have: measured to know whether it should.

Each is written as its paper has it, in NumPy, for all ranks at once. Messages are counted as
published: 4 bytes per index and value. None was better than the library's own methods at the same
bytes (docs/training.md), so none was added: LoCo is as good as QSGD with 4 bits, the others lose
more than TopK with a falling density or OneBitAdam.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .aggregators import Arrays
    from .roster import Setting

Array = Any  # of float32; NumPy does not type its reductions

SMALL = 1000  # values; smaller parameters, and vectors, are sent uncompressed
ENTRY = 8  # bytes of an index and a value


class Candidate(ABC):
    """A method with a state per rank and parameter.

    Args:
        setting: The workload and the number of ranks.
    """

    returns_update = True

    def __init__(self, setting: Setting) -> None:
        self.parts = setting.ranks
        self.bytes_sent = 0.0
        self.momentum = np.float32(setting.work.momentum)
        self._states: dict[tuple[str, str], Array] = {}

    def aggregate(self, gradients: Sequence[Arrays], lr: float) -> Arrays:
        """Return the update, or the mean gradient."""
        names = gradients[0]
        stacked = {n: np.stack([own[n] for own in gradients]) for n in names}
        return {n: self.combine(n, g, lr).astype(np.float32) for n, g in stacked.items()}

    @abstractmethod
    def combine(self, name: str, gradients: Array, lr: float) -> Array:
        """Return the result for one parameter; the first axis of `gradients` is the rank."""

    def state(self, kind: str, name: str, like: Array) -> Array:
        """Return an array that is kept from step to step, at first zeros."""
        return self._states.setdefault((kind, name), np.zeros_like(like))

    def count(self, message: float) -> None:
        """Count the bytes of a message that each rank sends to all others."""
        self.bytes_sent += (self.parts - 1) * message

    def is_small(self, gradients: Array) -> bool:
        """Return whether a parameter is sent uncompressed, and count its bytes."""
        small = bool(gradients.ndim < 3 or gradients[0].size <= SMALL)
        if small:
            self.count(gradients[0].nbytes)
        return small


class Sparse(Candidate):
    """A candidate that sends the largest 1 % of the entries."""

    ratio = 0.01

    def largest(self, values: Array) -> Array:
        """Return the values with all but the largest of each rank set to 0."""
        if self.is_small(values):
            return values.copy()
        k = max(1, round(self.ratio * values[0].size))
        self.count(ENTRY * k)
        flat = np.abs(values.reshape(self.parts, -1))
        limit = np.partition(flat, -k, axis=1)[:, -k]
        return np.where(flat >= limit[:, None], values.reshape(flat.shape), 0).reshape(
            values.shape
        )


class EF21(Sparse):
    """EF21-SGDM (Fatkhullin 2023): the change of a momentum against what all know of it."""

    def combine(self, name: str, gradients: Array, lr: float) -> Array:
        """Return lr / (1 - momentum) times the mean of what all know."""
        fresh = ("known", name) not in self._states
        velocity = self.state("velocity", name, gradients)
        known = self.state("known", name, gradients)
        velocity += (1 if fresh else 1 - self.momentum) * (gradients - velocity)
        known += velocity if fresh else self.largest(velocity - known)
        return lr / (1 - self.momentum) * known.mean(axis=0)


class GMC(Sparse):
    """Global momentum compression: every rank adds the momentum of the mean before it selects."""

    def combine(self, name: str, gradients: Array, lr: float) -> Array:
        """Return lr times the mean of what was sent."""
        residual = self.state("residual", name, gradients)
        last = self.state("last", name, gradients[0])
        residual += gradients + self.momentum * last
        sent = self.largest(residual)
        residual -= sent
        last[...] = sent.mean(axis=0)
        return lr * last


class LoCo(Candidate):
    """LoCo (2024): 4 bits per value and a running mean of the errors."""

    returns_update = False
    bucket, share = 256, np.float32(0.2)

    def combine(self, name: str, gradients: Array, lr: float) -> Array:
        """Return the mean gradient."""
        del lr
        if self.is_small(gradients):
            return gradients.mean(axis=0)
        error = self.state("error", name, gradients)
        sent = self.rounded(gradients + error)
        error += self.share * (gradients - sent)
        return sent.mean(axis=0)

    def rounded(self, values: Array) -> Array:
        """Return the nearest of 15 levels, relative to the largest magnitude of a bucket."""
        flat = values.reshape(self.parts, -1)
        padded = np.pad(flat, ((0, 0), (0, -flat.shape[1] % self.bucket)))
        buckets = padded.reshape(self.parts, -1, self.bucket)
        self.count(buckets[0].size / 2 + 4 * buckets.shape[1])
        scale = np.maximum(np.abs(buckets).max(axis=2, keepdims=True) / 7, 1e-30)
        levels = np.rint(buckets / scale) * scale
        return levels.reshape(padded.shape)[:, : flat.shape[1]].reshape(values.shape)


class DeMo(Candidate):
    """DeMo (2024): the largest cosine coefficients of a momentum, and a step by signs."""

    side, k, decay = 64, 32, np.float32(0.999)

    def combine(self, name: str, gradients: Array, lr: float) -> Array:
        """Return lr times the signs."""
        momentum = self.state("momentum", name, gradients)
        momentum *= self.decay
        momentum += np.float32(lr) * gradients
        if self.is_small(gradients):
            total = momentum.mean(axis=0)
            momentum[...] = 0
            return lr * np.sign(total)
        shape = gradients.shape[1:]
        rows, columns = shape[0], gradients[0].size // shape[0]
        pad = [(0, 0), (0, -rows % self.side), (0, -columns % self.side)]
        padded = np.pad(momentum.reshape(self.parts, rows, columns), pad)
        sent = self._largest(_tiles(padded, self.side))
        senders = np.maximum((sent != 0).sum(axis=0), 1)
        step = _untiled(_cosine(sent.sum(axis=0)[None] / senders, back=True), padded.shape)
        own = _untiled(_cosine(sent, back=True), padded.shape)
        momentum -= own[:, :rows, :columns].reshape(momentum.shape)
        return lr * np.sign(step[0, :rows, :columns].reshape(shape))

    def _largest(self, tiles: Array) -> Array:
        coefficients = _cosine(tiles)
        flat = coefficients.reshape(*tiles.shape[:3], -1)
        limit = np.partition(np.abs(flat), -self.k, axis=3)[..., -self.k]
        self.count(ENTRY * self.k * flat.shape[1] * flat.shape[2])
        kept = np.where(np.abs(flat) >= limit[..., None], flat, 0)
        return kept.reshape(coefficients.shape)


class Dion(Candidate):
    """Dion (2025): one step of subspace iteration on a momentum, and an orthonormal update."""

    rank = 16

    def combine(self, name: str, gradients: Array, lr: float) -> Array:
        """Return the update; vectors and small matrices get the signs of a momentum."""
        momentum = self.state("momentum", name, gradients)
        if self.is_small(gradients):
            momentum *= self.momentum
            momentum += gradients
            return lr * np.sign(momentum.mean(axis=0))
        shape = gradients.shape[1:]
        momentum += gradients
        matrix = momentum.reshape(self.parts, shape[0], -1)
        n, m = matrix.shape[1:]
        right = self._states.get(("right", name))
        if right is None:
            right = (
                np.random.default_rng(0).standard_normal((m, self.rank)).astype(np.float32)
            )
        self.count(4 * self.rank * (n + m))
        left, _ = np.linalg.qr((matrix @ right).mean(axis=0))
        factor = np.einsum("inm,nr->imr", matrix, left).mean(axis=0)
        matrix -= (1 - self.momentum) * left @ factor.T
        norms = np.maximum(np.linalg.norm(factor, axis=0), 1e-12)
        self._states["right", name] = factor / norms
        return (lr * np.sqrt(n / m) * left @ (factor / norms).T).reshape(shape)


def _tiles(matrices: Array, side: int) -> Array:
    """Cut matrices into tiles: ranks x rows of tiles x columns of tiles x side x side."""
    ranks, n, m = matrices.shape
    return matrices.reshape(ranks, n // side, side, m // side, side).swapaxes(2, 3)


def _untiled(tiles: Array, shape: tuple[int, ...]) -> Array:
    return tiles.swapaxes(2, 3).reshape(-1, *shape[1:])


def _cosine(tiles: Array, *, back: bool = False) -> Array:
    """Return the orthonormal cosine transform of tiles in both directions, or its inverse."""
    side = tiles.shape[-1]
    i = np.arange(side)
    basis = np.sqrt(2 / side) * np.cos(np.pi / side * (i[None] + 0.5) * i[:, None])
    basis[0] /= np.sqrt(2)
    basis = (basis.T if back else basis).astype(np.float32)
    return np.asarray(basis @ tiles @ basis.T, np.float32)
