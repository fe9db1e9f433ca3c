"""Decentralized methods on all nodes at once: the models are the rows of a matrix.

The steps are those of `sparcml.decentralized`, without messages: a quantizer encodes what a node
would send, with the seed of that node and step, and all receivers decode the same. A hundred nodes
cost milliseconds per step. A test compares the models with those of the library's methods.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sparcml.quantize.code import mix_seed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sparcml.decentralized import Topology
    from sparcml.quantize import Quantizer

    Floats = NDArray[np.float32]


class Mixer:
    """The mixing matrix of a static topology, for matrices with one row per node."""

    def __init__(self, topology: Topology) -> None:
        W = topology.matrix()
        degree = max(int(np.count_nonzero(row)) for row in W)
        self._nodes = np.zeros((len(W), degree), np.intp)
        self._weights = np.zeros((degree, len(W), 1))
        for i, row in enumerate(W):
            chosen = np.flatnonzero(row)  # ascending, as the methods add
            self._nodes[i, : len(chosen)] = chosen
            self._weights[: len(chosen), i, 0] = row[chosen]

    def __call__(self, X: Floats) -> Floats:
        """Return W X, added in float64 and rounded once."""
        total = np.zeros(X.shape)
        for nodes, weights in zip(self._nodes.T, self._weights, strict=True):
            total += weights * X[nodes]
        return total.astype(X.dtype)

    def differences(self, X: Floats) -> NDArray[np.float64]:
        """Return W X - X as a sum of differences to the neighbours."""
        total = np.zeros(X.shape)
        for nodes, weights in zip(self._nodes.T, self._weights, strict=True):
            total += weights * np.subtract(X[nodes], X, dtype=np.float64)
        return total


class VectorizedMethod(Protocol):
    """One method on all nodes."""

    def step(self, X: Floats, G: Floats, lr: float) -> Floats:
        """Return the models after a step with these gradients."""


@dataclass
class Centralized:
    """SGD with the mean gradient of all nodes; all models are equal."""

    def step(self, X: Floats, G: Floats, lr: float) -> Floats:
        """Return the models after a step."""
        mean: Floats = G.mean(0, dtype=np.float64).astype(np.float32)
        return X - np.float32(lr) * mean


@dataclass
class DPSGD:
    """D-PSGD: mix, then descend."""

    mix: Mixer

    def step(self, X: Floats, G: Floats, lr: float) -> Floats:
        """Return the models after a step."""
        return self.mix(X) - np.float32(lr) * G


@dataclass
class Compressing:
    """Base of methods that send quantized vectors.

    Attributes:
        topology: The topology.
        quantizer: The quantizer.
        seed: Random seed.
        number: Number of completed steps.
    """

    topology: Topology
    quantizer: Quantizer
    seed: int = 0
    number: int = 0
    mix: Mixer = field(init=False)

    def __post_init__(self) -> None:
        self.mix = Mixer(self.topology)

    def send(self, Z: Floats) -> Floats:
        """Return what the receivers of each node decode."""
        seed = mix_seed(self.seed, self.number)
        self.number += 1
        return np.array(
            [
                self.quantizer.decode(self.quantizer.encode(z, seed=_own(seed, rank)))
                for rank, z in enumerate(Z)
            ]
        )


def _own(seed: int, rank: int) -> int:
    """Return the seed of a rank that sends one vector to all receivers; see `Call.encode`."""
    return mix_seed(seed, rank, rank, 0)


@dataclass
class NaiveQuantized(Compressing):
    """D-PSGD on quantized models."""

    def step(self, X: Floats, G: Floats, lr: float) -> Floats:
        """Return the models after a step."""
        own = np.diag(self.topology.matrix())[:, None]
        sent = self.send(X)
        mixed = self.mix(sent) + own * (X.astype(np.float64) - sent)
        return mixed.astype(X.dtype) - np.float32(lr) * G


@dataclass
class DCD(Compressing):
    """Difference compression D-PSGD."""

    def step(self, X: Floats, G: Floats, lr: float) -> Floats:
        """Return the models after a step."""
        return X + self.send(self.mix(X) - np.float32(lr) * G - X)


@dataclass
class ECD(Compressing):
    """Extrapolation compression D-PSGD."""

    estimate: Floats | None = None

    def step(self, X: Floats, G: Floats, lr: float) -> Floats:
        """Return the models after a step."""
        old = X if self.estimate is None else self.estimate
        t = self.number + 1
        moved = self.mix(old) - np.float32(lr) * G
        Z = (X + (t / 2) * (moved - X).astype(np.float64)).astype(X.dtype)
        new = (1 - 2 / t) * old.astype(np.float64) + (2 / t) * self.send(Z)
        self.estimate = new.astype(X.dtype)
        return moved


@dataclass
class Choco(Compressing):
    """CHOCO-SGD with a quantizer, which is scaled as the method does."""

    gamma: float = 1.0
    estimate: Floats | None = None

    def step(self, X: Floats, G: Floats, lr: float) -> Floats:
        """Return the models after a step."""
        from sparcml.decentralized.methods.choco import _contracted

        old = X if self.estimate is None else self.estimate
        H = X - np.float32(lr) * G
        difference = np.array([_contracted(self.quantizer, v) for v in H - old])
        self.estimate = old + self.send(difference)
        total = self.mix.differences(self.estimate)
        return (H + self.gamma * total).astype(X.dtype)
