"""The state of a training run, and its checkpoints."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ... import decentralized
from ...communicator.collective_errors import allgather_numbers, run_collectively
from ...errors import DataError
from ..solvers.early_stopping import BestModel
from ..solvers.scd_state import SCDState
from ..solvers.sgd import SGD
from ..solvers.sgd_state import SGDState
from .checkpoint import (
    OWN_MODEL,
    SCD_ARRAYS,
    SGD_ARRAYS,
    Checkpoint,
    array_name,
    reshard_local,
    reshard_scd,
    reshard_sgd,
)
from .history import EpochRecord, History
from .neighbors import reshard_neighbors
from .observer import TrainingObserver
from .options import resume_remedy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from ..data.partition import ColumnPartition
    from ..solvers.scd import SCD
    from .config import TrainingConfig
    from .dataset import Dataset

# Names in the checkpoints of version 0.1.
RENAMED = {
    "batch": "batch_size",
    "rate": "learning_rate",
    "steps": "schedule",
    "warm_up": "warmup_epochs",
    "block": "block_size",
    "held_out": "validation_fraction",
    "entries": "nnz",
}


@dataclass
class TrainingRun:
    """A training run: one solver state per target, and the costs so far.

    Attributes:
        comm: The ranks.
        data: The rows.
        solver: The solver.
        stops: Early stopping rule: whether a target's state is its last.
        observer: Receives progress. Without one, a history is recorded for checkpoints only.
        partition: With SCD, the columns, if they are known already.
        config: Options of `sparcml fit`, with those of checkpoints; None without checkpoints.
        states: One per target; empty before the first epoch.
        best: With SGD and a validation set, the best model of each target.
        history: Completed epochs.
        elapsed: Costs of the current epoch so far.
    """

    comm: Communicator
    data: Dataset
    solver: SGD | SCD
    stops: Callable[[Any], bool]
    observer: TrainingObserver | None = None
    config: TrainingConfig | None = None
    partition: ColumnPartition | None = None
    states: list[Any] = field(default_factory=list)
    best: list[BestModel] = field(default_factory=list)
    history: History = field(default_factory=History)
    elapsed: EpochRecord | None = None

    def __post_init__(self) -> None:
        self.uses_sgd = isinstance(self.solver, SGD)
        self.checkpoint: Checkpoint | None = None
        self.resume_key: dict[str, Any] = {}
        self.saved_at = self.comm.now()
        if self.config is not None:
            key = self.config.resume_key() | self.data.metadata()
            self.resume_key = json.loads(json.dumps(key))  # as a checkpoint returns it
            if self.config.checkpoint is not None:
                self.checkpoint = Checkpoint(self.config.checkpoint)
                self.observer = self.observer or TrainingObserver()

    def begin_epoch(self) -> None:
        """Start one target's epoch. Collective.

        The algorithm that `auto` selects depends on the communicator's earlier calls. A run
        that may resume discards them, so that it takes the same steps.
        """
        if self.config is not None:
            self.comm.reset_choices()

    def add_cost(self, cost: EpochRecord) -> None:
        """Add to the costs of the current epoch."""
        self.elapsed = cost.plus(self.elapsed)

    def end_epoch(self, loss: float, validation_loss: float | None) -> None:
        """Record an epoch that all targets have completed. Collective."""
        if self.observer is None:
            return
        assert self.elapsed is not None  # every epoch has a cost
        record = replace(self.elapsed, loss=loss, validation_loss=validation_loss)
        self.elapsed = None
        self.history.epochs.append(record)
        self.observer.on_epoch(record)
        self.save_checkpoint(len(self.history.epochs), 0, None)

    def solution(self, k: int) -> tuple[NDArray[Any], float]:
        """Return the weights and intercept of a target: the best or the last. Collective."""
        if self.best:
            weights = self.best[k].weights
            assert weights is not None  # there is one after the first epoch
            return weights, self.best[k].intercept
        state = self.states[k]
        if isinstance(state, SCDState):
            return state.weights(self.comm, self.data.train.features), state.intercept
        return state.weights, state.intercept

    # ---- checkpoints ----

    def checkpoint_due(self) -> bool:
        """Return whether it is time for a checkpoint within an epoch. Collective."""
        if self.config is None or self.checkpoint is None:
            return False
        if not self.config.checkpoint_every:
            return False
        due = self.comm.now() - self.saved_at >= self.config.checkpoint_every
        return bool(allgather_numbers(self.comm, due)[0, 0])  # by the clock of rank 0

    def save_checkpoint(self, epochs: int, steps: int, elapsed: EpochRecord | None) -> None:
        """Write a checkpoint if there is a folder for it. Collective."""
        if self.checkpoint is None:
            return
        own: dict[str, NDArray[Any]] = {}
        common: dict[str, NDArray[Any]] = {}
        own_names: tuple[str, ...] = SGD_ARRAYS if self.uses_sgd else SCD_ARRAYS
        if self._neighbors() is not None or self._is_within_round():
            own_names += OWN_MODEL
        for k, state in enumerate(self.states):
            arrays = state.arrays() | (self.best[k].arrays() if self.best else {})
            for name, array in arrays.items():
                (own if name.startswith(own_names) else common)[f"{k}/{name}"] = array
        header = {
            "config": self.resume_key,
            "history": self.history.to_json(),
            "elapsed": None if elapsed is None else asdict(elapsed),
        }
        self.checkpoint.save(self.comm, (epochs, steps), header, common, own)
        self.saved_at = self.comm.now()

    def resume(self) -> None:
        """Restore the checkpoint if the configuration says so. Collective."""
        if self.checkpoint is None or self.config is None:
            return
        newest = run_collectively(self.comm, self.checkpoint.newest)
        if not self.config.resume:
            if newest is not None:
                raise DataError(
                    f"{newest}: a checkpoint exists already; add --resume, or choose another "
                    f"folder"
                )
            folder = self.checkpoint.folder  # fail now if it cannot be created
            root = self.comm.rank == 0
            run_collectively(
                self.comm,
                lambda: folder.mkdir(parents=True, exist_ok=True) if root else None,
            )
            return
        reshard = reshard_sgd if self.uses_sgd else reshard_scd
        if isinstance(self.solver, SGD) and self.solver.local_steps > 1:
            reshard = reshard_local
        if (method := self._neighbors()) is not None:
            reshard = partial(reshard_neighbors, self.config, method)
        header, arrays = self.checkpoint.load(self.comm, reshard)
        saved = header.get("config", {})
        _check_resume_key(f"{newest}", self.config, saved, self.resume_key)
        self.history = History.from_json(header["history"])
        elapsed = header["elapsed"]
        self.elapsed = None if elapsed is None else EpochRecord.from_json(elapsed)
        state_type = SGDState if self.uses_sgd else SCDState
        for k in range(self.data.targets):
            own = {array_name(n): a for n, a in arrays.items() if n.startswith(f"{k}/")}
            self.states.append(state_type.of(own))
            self._check_columns(f"{newest}", self.states[-1])
            if self.uses_sgd and self.data.validation is not None:
                self.best.append(BestModel.of(own))

    def _neighbors(self) -> decentralized.Method | None:
        method = self.solver.method if isinstance(self.solver, SGD) else None
        return method if isinstance(method, decentralized.Method) else None

    def _is_within_round(self) -> bool:
        """Return whether ranks have made local steps since their last exchange."""
        return self.uses_sgd and any(state.shared is not None for state in self.states)

    def _check_columns(self, path: str, state: SGDState | SCDState) -> None:
        """Raise DataError for a state of all columns, as it was before version 0.2."""
        features, ranks = self.data.train.features, self.comm.size
        if isinstance(state, SGDState):
            fits = state.features == features
        else:
            fits = state.coordinates.size == len(range(self.comm.rank, features, ranks))
        if not fits:
            raise DataError(
                f"{path}: the checkpoint must have the {features} active columns, got others; "
                f"train again without --resume, in another folder"
            )


def _check_resume_key(
    path: str,
    config: TrainingConfig,
    saved: Mapping[str, Any],
    current: Mapping[str, Any],
) -> None:
    saved = {RENAMED.get(name, name): value for name, value in saved.items()}
    for name, value in current.items():
        then = saved.get(name)
        if then == value:
            continue
        remedy = resume_remedy(config, name, then)
        raise DataError(
            f"{path}: {name.replace('_', '-')} must be {_shown(then)}, as in the checkpoint, "
            f"got {_shown(value)}; {remedy}"
        )


def _shown(value: Any) -> str:
    return "left out" if value is None else str(value)
