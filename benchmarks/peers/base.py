"""What all sides have in common: the data, the clock, and the loss that they are judged by."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from sparcml.linear import LOSSES, Rows, read_svmlight
from sparcml.linear.solvers.evaluate import margins

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
        name: As tables call it.
        folder: Where the text is, and room for what a program makes of it.
        features: Columns, all of which have a weight.
        quick: To try whether everything runs: one setting each, and few passes.
    """

    name: str
    folder: Path
    features: int
    quick: bool = False

    @property
    def train(self) -> Path:
        """The rows to learn from."""
        return self.folder / "train.svm"

    @property
    def held_out(self) -> Path:
        """The rows to be judged by."""
        return self.folder / "held-out.svm"

    def rows(self, path: Path) -> Rows:
        """The rows in memory, by our own reader."""
        return read_svmlight(path, features=self.features, zero_based=False)

    def some(self, grid: list[T]) -> list[T]:
        """All of it, unless this is to be quick."""
        return grid[:1] if self.quick else grid


@dataclass
class Curve:
    """One setting: the loss on held-out rows after so many passes and seconds."""

    setting: str
    passes: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    def add(self, passes: int, seconds: float, loss: float) -> None:
        """One more point, or a repeated one; seconds are those of all passes so far."""
        if passes in self.passes:
            at = self.passes.index(passes)
            self.seconds[at] = min(self.seconds[at], seconds)
            return
        self.passes.append(passes)
        self.seconds.append(seconds)
        self.losses.append(loss)


@dataclass
class Found:
    """What one program did with one problem.

    Attributes:
        version: Of the program; empty if it is not installed.
        reading: Seconds from text to what the program trains on.
        curves: One a setting.
        runs: Of each setting, of which the shortest time counts.
    """

    version: str = ""
    reading: float | None = None
    curves: list[Curve] = field(default_factory=list)
    runs: int = 1


class Peer(Protocol):
    """A module of this folder."""

    NAME: str
    THREADS: str  # that compute or read
    HELD: str  # where the rows are while it trains
    GRID: Mapping[str, list[Any]]  # of settings, by the name of the data

    def run(self, data: Data) -> Found:
        """All settings; ImportError if the program is not installed."""


class Judge:
    """The mean logistic loss on held-out rows, the same for all."""

    def __init__(self, data: Data) -> None:
        self.rows = data.rows(data.held_out)

    def of(self, weights: NDArray[Any], intercept: float) -> float:
        """By a model."""
        return self.of_margins(margins(self.rows, weights, intercept))

    def of_margins(self, found: NDArray[np.float64]) -> float:
        """By w.x + b of the rows."""
        return float(LOSSES["logistic"].value(found, self.rows.labels).mean())


def timed(job: Callable[[], T]) -> tuple[float, T]:
    """Seconds, and what it gave."""
    start = time.perf_counter()
    result = job()
    return time.perf_counter() - start, result


def scipy_rows(data: Data) -> tuple[float, Any, NDArray[np.float64]]:
    """By scikit-learn's reader: seconds, the matrix of float32 and the labels.

    Its solvers take indices of 32 bits only, and its reader gives 64.
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
