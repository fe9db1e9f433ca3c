"""The state of SGD: plain arrays, to be saved and resumed bit for bit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import loops
from ..data.column_index import map_columns, nonzero_columns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import DTypeLike, NDArray

    from ...aggregate import State as MethodState
    from ..data.column_index import ColumnIndex
    from ..data.rows import Rows
    from .objective import Penalty

SCALE, CLOCK, INTERCEPT, DRIFT = range(4)  # indices of LazyWeights.numbers
FLUSH_COLUMNS = 64  # columns whose flush may take as long as a step
NEGLIGIBLE = 1e-18  # fraction of a gradient at which momentum is cut off


@dataclass(eq=False)
class SGDState:
    """A model in training, and its progress.

    Attributes:
        model: The weights, and what the lazy penalty and momentum need.
        epoch: Completed epochs.
        step: Completed batches of the current epoch.
        seen: Rows processed by all ranks since the start.
        losses: The mean loss of each epoch; each row's before its step.
        validation_losses: The mean loss on the validation set after each epoch.
        pending: Sum of the losses of this rank's rows in the current epoch.
        method: State of the aggregation method.
        averaged: With a decentralized method, the mean of all ranks' models at the end of the
            last epoch: the weights, and the intercept if there is one. `model` is this rank's.
        consensus_distance: With such a method, the root mean square distance of the models
            from their mean then.
        shared: With local steps, the stored weights (and the intercept) of all ranks at the start
            of the round; None before the first step of an epoch. `model` is this rank's.
        column_index: Index of active columns; the model has numbers for these only.
    """

    model: loops.LazyWeights
    epoch: int = 0
    step: int = 0
    seen: int = 0
    losses: list[float] = field(default_factory=list)
    validation_losses: list[float] = field(default_factory=list)
    pending: float = 0.0
    method: MethodState = field(default_factory=dict)
    averaged: NDArray[Any] | None = None
    consensus_distance: float | None = None
    shared: NDArray[Any] | None = None
    column_index: ColumnIndex | None = None

    @classmethod
    def initial(
        cls,
        features: int,
        dtype: DTypeLike,
        penalty: Penalty,
        momentum: float = 0.0,
        adaptive: float | None = None,
    ) -> SGDState:
        """Return a state with all weights zero."""
        is_lazy = penalty.l1 or momentum or (adaptive is not None and penalty.l2)
        lazy = features if is_lazy else 0
        powers = int(math.log(NEGLIGIBLE) / math.log(momentum)) + 2 if momentum else 0
        numbers = [1.0, 0.0, 0.0, 0.0]
        if adaptive is not None:
            numbers += [0.0, adaptive, penalty.l1, penalty.l2]
        model = loops.LazyWeights(
            weights=np.zeros(features if adaptive is None else 2 * features, dtype),
            velocity=np.zeros(features if momentum else 0, dtype),
            last=np.zeros(lazy, np.uint32),
            table=np.zeros(1 if lazy else 0),
            # NumPy's own power rounds differently on some processors, and a state that was
            # saved on another one would not be recognized.
            powers=np.array([math.pow(momentum, k) for k in range(powers)]),
            numbers=np.array(numbers),
        )
        return cls(model)

    def is_compatible(
        self, penalty: Penalty, momentum: float, adaptive: float | None
    ) -> bool:
        """Return whether the state is one of a solver with these settings."""
        dtype = self.model.weights.dtype
        other = SGDState.initial(1, dtype, penalty, momentum, adaptive).model
        return (
            np.array_equal(self.model.powers, other.powers)
            and np.array_equal(self.model.numbers[DRIFT + 2 :], other.numbers[DRIFT + 2 :])
            and (self.model.table.size > 0) == (other.table.size > 0)
        )

    def set_penalty(self, penalty: Penalty) -> None:
        """Change the penalty between epochs.

        Adaptive weights have a pending time under the penalty; for one that is c times as
        strong, it is divided by c.
        """
        if not self.model.adaptive:
            return
        new, old = np.array([penalty.l1, penalty.l2]), self.model.numbers[-2:]
        if self.model.last.size and not self.flushed:
            factor = old.max() / new.max() if new.any() else 0.0
            if factor and np.allclose(factor * new, old, rtol=1e-12, atol=0.0):
                self.model.table[: int(self.model.numbers[CLOCK]) + 1] *= factor
            else:
                self.flush()
        old[:] = new

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of all columns, without the rows of the column index."""
        expanded = {"model": self._expanded(self.model), "shared": self._expanded_shared()}
        return {**self.__dict__, **expanded, "column_index": None}

    @property
    def features(self) -> int:
        """Number of columns."""
        active = None if self.column_index is None else self.column_index.active
        return self.model.coefficients.size if active is None else active.features

    @property
    def intercept(self) -> float:
        """The intercept."""
        if self.averaged is not None:
            return float(self.averaged[-1]) if self.averaged.size > self.features else 0.0
        return float(self.model.numbers[INTERCEPT])

    @property
    def flushed(self) -> bool:
        """Whether the stored weights are the weights."""
        return bool(self.model.numbers[SCALE] == 1.0 and self.model.numbers[CLOCK] == 0.0)

    @property
    def weights(self) -> NDArray[Any]:
        """The weights without the intercept; a copy unless flushed and not compressed."""
        if self.averaged is not None:
            return self.averaged[: self.features]
        if self.flushed:
            return self._expanded(self.model).coefficients
        weights = np.zeros(self.features, self.model.weights.dtype)
        self.write_weights(weights)
        return weights

    def write_weights(self, out: NDArray[Any]) -> None:
        """Write the weights to an array of zeros; only those that may not be zero."""
        if self.averaged is not None:
            out[:] = self.averaged[: self.features]
            return
        active = None if self.column_index is None else self.column_index.active
        if self.flushed and active is None:
            out[:] = self.model.coefficients
            return
        positions = nonzero_columns(self.model)
        columns = positions if active is None else active.columns[positions]
        out[columns] = self._flushed_at(positions)

    def weights_of(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Return the weights of some columns, at a cost of these columns only."""
        if self.column_index is None and self.averaged is None:
            return self._flushed_at(columns)
        weights: NDArray[Any] = self.weights[columns]
        return weights

    def _flushed_at(self, positions: NDArray[Any]) -> NDArray[Any]:
        """Return the weights at some positions of the model, with everything applied."""
        model = map_columns(self.model, lambda values: values[positions])
        model = model._replace(table=model.table.copy(), numbers=model.numbers.copy())
        loops.flush(model)
        return np.ascontiguousarray(model.coefficients)

    def is_indexed(self, rows: Rows) -> bool:
        """Return whether the column index was built from these rows."""
        return self.column_index is not None and self.column_index.covers(rows)

    def compress(self, index: ColumnIndex) -> None:
        """Drop the numbers of inactive columns."""
        self.column_index = index
        if index.active is not None:
            if self.shared is not None:
                intercept = self.shared[self.model.weights.size :]
                self.shared = np.append(self.shared[index.active.columns], intercept)
            self.model = index.active.compress(self.model)

    def expand(self) -> None:
        """Restore the numbers of all columns, and drop the index with its rows."""
        self.shared = self._expanded_shared()
        self.model, self.column_index = self._expanded(self.model), None

    def _expanded(self, model: loops.LazyWeights) -> loops.LazyWeights:
        active = None if self.column_index is None else self.column_index.active
        return model if active is None else active.expand(model)

    def _expanded_shared(self) -> NDArray[Any] | None:
        active = None if self.column_index is None else self.column_index.active
        if self.shared is None or active is None:
            return self.shared
        columns = self.model.weights.size
        weights = np.zeros(active.features, self.shared.dtype)
        weights[active.columns] = self.shared[:columns]
        return np.append(weights, self.shared[columns:])

    def begin_epoch(self, steps: int) -> None:
        """Extend the table by the steps of an epoch; no effect within one."""
        if self.step or not self.model.last.size:
            return
        used = int(self.model.numbers[CLOCK]) + 1
        if used + steps > self.model.table.size:
            size = used + steps if used == 1 else 2 * used + steps  # after other epochs
            table = np.zeros(size)
            table[:used] = self.model.table[:used]
            self.model = self.model._replace(table=table)

    def end_epoch(self, *, flush: bool = True) -> None:
        """Start the next epoch, with all weights flushed.

        Without `flush` they are flushed only once in many steps, because this takes as long
        as there are columns.
        """
        if flush or self.model.numbers[CLOCK] * FLUSH_COLUMNS >= self.features:
            self.flush()
        self.epoch, self.step, self.pending = self.epoch + 1, 0, 0.0
        self.shared = None

    def flush(self) -> None:
        """Apply everything pending to all weights; the table is empty afterwards."""
        loops.flush(self.model)
        if self.model.last.size:
            self.model = self.model._replace(table=np.zeros(1))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all of it for `np.savez`; most arrays are the state's own."""
        return {
            **self._expanded(self.model)._asdict(),
            "counts": np.array([self.epoch, self.step, self.seen], np.int64),
            "pending": np.array([self.pending]),
            "losses": np.array(self.losses),
            "validation_losses": np.array(self.validation_losses),
            **{f"method/{name}": array for name, array in self.method.items()},
            **self._averaged_arrays(),
            **({} if self.shared is None else {"shared": self._expanded_shared()}),
        }

    def _averaged_arrays(self) -> dict[str, NDArray[Any]]:
        if self.averaged is None:
            return {}
        distance = np.array([self.consensus_distance])
        return {"averaged": self.averaged, "consensus_distance": distance}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> SGDState:
        """Restore what `arrays` returned, also in version 0.1."""
        if "measures" in arrays:  # of 0.1: the best validation loss, then pending
            renamed = {
                "pending": arrays["measures"][1:],
                "validation_losses": arrays["held_out"],
            }
            arrays = {**arrays, **renamed}
        try:
            model = loops.LazyWeights(
                **{n: arrays[n].copy() for n in loops.LazyWeights._fields}
            )
            epoch, step, seen = (int(n) for n in arrays["counts"][:3])
            losses = arrays["losses"].tolist()
            validation_losses = arrays["validation_losses"].tolist()
            (pending,) = (float(x) for x in arrays["pending"])
        except (KeyError, ValueError) as error:
            raise ValueError(
                f"SGDState.of: arrays must be those of SGDState.arrays, got {error}"
            ) from error
        prefix = "method/"
        method = {
            name.removeprefix(prefix): array.copy()
            for name, array in arrays.items()
            if name.startswith(prefix)
        }
        state = cls(model, epoch, step, seen, losses, validation_losses, pending, method)
        if "averaged" in arrays:
            state.averaged = arrays["averaged"].copy()
            state.consensus_distance = float(arrays["consensus_distance"][0])
        if "shared" in arrays:
            state.shared = arrays["shared"].copy()
        return state
