"""Shared parts of the comparison: data, clock and validation loss."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from sparcml.linear import LOSSES, Rows, read_svmlight
from sparcml.linear.solvers.objective import margins

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

T = TypeVar("T")

REPEATS = 3  # of settings that take seconds; the shortest time of each point counts


@dataclass(frozen=True)
class Data:
    """A problem as LIBSVM text, labels -1 and 1, indices from 1.

    Attributes:
        name: Name in tables.
        folder: Folder of the text and of files that programs make from it.
        features: Number of columns, all of which have a weight.
        quick: Whether to use one setting per program and few epochs, as a trial.
    """

    name: str
    folder: Path
    features: int
    quick: bool = False

    @property
    def train(self) -> Path:
        """File of the training rows."""
        return self.folder / "train.svm"

    @property
    def held_out(self) -> Path:
        """File of the validation rows."""
        return self.folder / "held-out.svm"

    def rows(self, path: Path) -> Rows:
        """Return the rows, read by our own reader."""
        return read_svmlight(path, features=self.features, zero_based=False)

    def some(self, grid: list[T]) -> list[T]:
        """Return all settings, or the first if this is a trial."""
        return grid[:1] if self.quick else grid


@dataclass
class Curve:
    """One setting: validation loss by epochs and seconds."""

    setting: str
    passes: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    def add(self, passes: int, seconds: float, loss: float) -> None:
        """Add a point, or a repeated one; seconds are those of all epochs so far."""
        if passes in self.passes:
            at = self.passes.index(passes)
            self.seconds[at] = min(self.seconds[at], seconds)
            return
        self.passes.append(passes)
        self.seconds.append(seconds)
        self.losses.append(loss)


@dataclass
class Found:
    """Results of one program on one problem.

    Attributes:
        version: Version of the program; empty if it is not installed.
        reading: Seconds from text to the program's own format.
        curves: One per setting.
        runs: Number of runs per setting, of which the fastest counts.
    """

    version: str = ""
    reading: float | None = None
    curves: list[Curve] = field(default_factory=list)
    runs: int = 1


class Peer(Protocol):
    """Module of a program."""

    NAME: str
    THREADS: str  # that compute or read
    HELD: str  # where the rows are while it trains
    GRID: Mapping[str, list[Any]]  # of settings, by the name of the data

    def run(self, data: Data) -> Found:
        """Run all settings; raise ImportError if the program is not installed."""


class Judge:
    """Mean logistic loss on the validation set, the same for all programs."""

    def __init__(self, data: Data) -> None:
        self.rows = data.rows(data.held_out)

    def of(self, weights: NDArray[Any], intercept: float) -> float:
        """Return the loss of a model."""
        return self.of_margins(margins(self.rows, weights, intercept))

    def of_margins(self, found: NDArray[np.float64]) -> float:
        """Return the loss of margins w.x + b."""
        return float(LOSSES["logistic"].value(found, self.rows.labels).mean())


def timed(job: Callable[[], T]) -> tuple[float, T]:
    """Return the seconds of a call, and its result."""
    start = time.perf_counter()
    result = job()
    return time.perf_counter() - start, result


def scipy_rows(data: Data) -> tuple[float, Any, NDArray[np.float64]]:
    """Read with scikit-learn: return seconds, the float32 matrix and the labels.

    Its solvers accept 32-bit indices only, and its reader returns 64-bit ones.
    """
    from sklearn.datasets import load_svmlight_file

    def read() -> Any:
        X, y = load_svmlight_file(
            str(data.train), n_features=data.features, dtype=np.float32, zero_based=False
        )
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        return X, y

    seconds, (X, y) = timed(read)
    return seconds, X, y
