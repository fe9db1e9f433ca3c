"""Where a solver stands: plain arrays, to be kept and gone on from, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...kernels import linear as loops

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import DTypeLike, NDArray

    from ...aggregate import State as MethodState
    from ..data.column_index import ColumnIndex
    from ..data.rows import Rows
    from .penalty import Penalty

SCALE, CLOCK, INTERCEPT, DRIFT = range(4)  # of LazyWeights.numbers
NEGLIGIBLE = 1e-18  # a share of a gradient that momentum no longer needs to hand on


@dataclass(eq=False)
class SGDState:
    """A model in the making, and how far it is made.

    Attributes:
        model: The weights, and what the lazy penalty and momentum need to know about them.
        epoch: Passes that are complete.
        step: Batches of the present pass that are done.
        seen: Rows that all ranks have gone through since the beginning.
        best: The smallest loss on held-out rows so far.
        stale: Passes since then.
        losses: The mean loss of each pass, over its rows, each before its step.
        held_out: The mean loss on held-out rows after each pass.
        pending: Losses and weights of this rank's rows in the present pass.
        method: What a compression method remembers.
        search: For unused columns; the model has numbers only for those that it found.
    """

    model: loops.LazyWeights
    epoch: int = 0
    step: int = 0
    seen: int = 0
    best: float = np.inf
    stale: int = 0
    losses: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    pending: float = 0.0
    method: MethodState = field(default_factory=dict)
    search: ColumnIndex | None = None

    @classmethod
    def begin(
        cls,
        features: int,
        dtype: DTypeLike,
        penalty: Penalty,
        momentum: float = 0.0,
        adaptive: float | None = None,
    ) -> SGDState:
        """All weights zero."""
        owed = penalty.l1 or momentum or (adaptive is not None and penalty.l2)
        lazy = features if owed else 0
        count = int(np.log(NEGLIGIBLE) / np.log(momentum)) + 2 if momentum else 0
        numbers = [1.0, 0.0, 0.0, 0.0]
        if adaptive is not None:
            numbers += [0.0, adaptive, penalty.l1, penalty.l2]
        model = loops.LazyWeights(
            weights=np.zeros(features if adaptive is None else 2 * features, dtype),
            velocity=np.zeros(features if momentum else 0, dtype),
            last=np.zeros(lazy, np.uint32),
            table=np.zeros(1 if lazy else 0),
            powers=momentum ** np.arange(count, dtype=np.float64),
            numbers=np.array(numbers),
        )
        return cls(model)

    def suits(self, penalty: Penalty, momentum: float, adaptive: float | None) -> bool:
        """Whether it is one that `begin` makes for these."""
        other = SGDState.begin(
            1, self.model.weights.dtype, penalty, momentum, adaptive
        ).model
        return (
            np.array_equal(self.model.powers, other.powers)
            and np.array_equal(self.model.numbers[DRIFT + 2 :], other.numbers[DRIFT + 2 :])
            and (self.model.table.size > 0) == (other.table.size > 0)
        )

    def __getstate__(self) -> dict[str, Any]:
        """All columns, and none of the rows."""
        return {**self.__dict__, "model": self._wide(self.model), "search": None}

    @property
    def features(self) -> int:
        """Columns that the model is for."""
        used = None if self.search is None else self.search.used
        return self.model.coefficients.size if used is None else used.features

    @property
    def intercept(self) -> float:
        """The intercept."""
        return float(self.model.numbers[INTERCEPT])

    @property
    def settled(self) -> bool:
        """Whether the stored weights are the weights; so after a complete pass."""
        return bool(self.model.numbers[SCALE] == 1.0 and self.model.numbers[CLOCK] == 0.0)

    @property
    def weights(self) -> NDArray[Any]:
        """The weights without the intercept; a copy in the middle of a pass, or if narrow."""
        model = self.model
        if not self.settled:
            model = loops.LazyWeights._make(array.copy() for array in model)
            loops.flush(model)
        return self._wide(model).coefficients

    def knows(self, rows: Rows) -> bool:
        """Whether the unused columns of these rows have been searched for."""
        return self.search is not None and self.search.was_of(rows)

    def narrow(self, search: ColumnIndex) -> None:
        """Have numbers only for the columns in use."""
        self.search = search
        if search.used is not None:
            self.model = search.used.narrow(self.model)

    def widen(self) -> None:
        """Have numbers for all columns again, and forget the rows that were searched."""
        self.model, self.search = self._wide(self.model), None

    def _wide(self, model: loops.LazyWeights) -> loops.LazyWeights:
        used = None if self.search is None else self.search.used
        return model if used is None else used.widen(model)

    def open_pass(self, steps: int) -> None:
        """Make room for the steps of a pass; without effect in the middle of one."""
        if self.step == 0 and self.model.last.size:
            self.model = self.model._replace(table=np.zeros(steps + 1))

    def close_pass(self) -> None:
        """Write what is due to all weights: the next pass begins with an empty table."""
        loops.flush(self.model)
        if self.model.last.size:
            self.model = self.model._replace(table=np.zeros(1))
        self.epoch, self.step, self.pending = self.epoch + 1, 0, 0.0

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it, for `np.savez`; most arrays are the state's own."""
        counts = [self.epoch, self.step, self.seen, self.stale]
        return {
            **self._wide(self.model)._asdict(),
            "counts": np.array(counts, np.int64),
            "measures": np.array([self.best, self.pending]),
            "losses": np.array(self.losses),
            "held_out": np.array(self.held_out),
            **{f"method/{name}": array for name, array in self.method.items()},
        }

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> SGDState:
        """From what `arrays` gave."""
        try:
            model = loops.LazyWeights(
                **{n: arrays[n].copy() for n in loops.LazyWeights._fields}
            )
            epoch, step, seen, stale = (int(n) for n in arrays["counts"])
            best, pending = (float(x) for x in arrays["measures"])
            losses, held_out = arrays["losses"].tolist(), arrays["held_out"].tolist()
        except (KeyError, ValueError) as error:
            raise ValueError(f"SGDState.of: these arrays are no state: {error}") from error
        within = {n: arrays[n] for n in arrays if n.startswith("method/")}
        method = {n.removeprefix("method/"): array.copy() for n, array in within.items()}
        return cls(model, epoch, step, seen, best, stale, losses, held_out, pending, method)
