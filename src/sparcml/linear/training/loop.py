"""The epoch loop of linear models, and training from files to a model.

1. `train` reads the rows, builds the solver and restores the checkpoint.
2. `run_epochs` trains every target for one epoch after the other until each has stopped.
3. `train` writes the model and evaluates it on the validation set.

The estimators call `run_epochs` with their own rows and early stopping rule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ...communicator.collective_errors import run_collectively
from ..data.partition import partition_columns
from ..solvers.early_stopping import BestModel
from ..solvers.learning_rate import default_learning_rate
from ..solvers.objective import LOSSES, mean_loss, zero_loss
from ..solvers.scd import SCD, SCDRun
from ..solvers.scd_state import SCDState
from ..solvers.sgd import SGD
from .checkpoint import Checkpoint
from .config import default_batch_size
from .dataset import Dataset, load_dataset
from .history import EpochRecord
from .model import Model
from .options import describe_solver
from .run import TrainingRun

if TYPE_CHECKING:
    from ...communicator.communicator import Communicator
    from ..solvers.sgd_state import SGDState
    from ..solvers.solver_progress import SolverProgress
    from .config import TrainingConfig
    from .history import History
    from .observer import TrainingObserver

DIVERGED = 1e6  # times the loss of zero weights


def run_epochs(run: TrainingRun) -> None:
    """Train all targets epoch by epoch until each has stopped. Collective."""
    trainer: _Trainer
    if isinstance(run.solver, SGD):
        trainer = _SGDTrainer(run, run.solver)
    else:
        trainer = _SCDTrainer(run, run.solver)
    last_epoch = run.solver.epochs
    while active := [
        k
        for k, state in enumerate(run.states)
        if state.epoch < last_epoch and not run.stops(state)
    ]:
        epoch = min(run.states[k].epoch for k in active)
        for position, k in enumerate(active):
            # After a checkpoint within an epoch, some targets have completed it.
            if run.states[k].epoch == epoch:
                if run.observer is not None:
                    run.observer.on_target(position, len(active))
                trainer.epoch(k)
        run.end_epoch(*trainer.losses())
    trainer.finish()


class _Trainer(Protocol):
    """How a solver trains a target for one epoch. All methods are collective."""

    def epoch(self, k: int) -> None:
        """Train target k for one epoch."""

    def losses(self) -> tuple[float, float | None]:
        """Return the mean loss and validation loss over all targets."""

    def finish(self) -> None:
        """Complete the history after the last epoch."""


class _SGDTrainer:
    def __init__(self, run: TrainingRun, solver: SGD) -> None:
        self.run, self.solver = run, solver
        if not run.states:
            run.states = [solver.init(run.data.train) for _ in range(run.data.targets)]
            if run.data.validation is not None:
                run.best = [BestModel() for _ in run.states]

    def epoch(self, k: int) -> None:
        run = self.run
        train, validation = run.data.target(k)
        state: SGDState = run.states[k]
        index = run.states[0].column_index  # all targets have the same rows
        if state.column_index is None and index is not None:
            state.compress(index)
        observer, last = run.observer, None
        run.begin_epoch()
        if observer is None:
            self.solver.run_epoch(run.comm, train, state, validation=validation)
        else:
            # What a dense allreduce would send has all columns of the files.
            full = run.data.features + self.solver.intercept
            ratio = full / (train.features + self.solver.intercept)

            def watch(progress: SolverProgress, state: SGDState) -> None:
                nonlocal last
                dense_bytes = progress.dense_bytes * ratio
                last = progress = replace(progress, dense_bytes=dense_bytes)
                observer.on_progress(progress)
                if progress.step < progress.steps and run.checkpoint_due():
                    self._save_within_epoch(progress, state)

            within = observer.wants_progress or (
                run.config is not None and run.config.checkpoint_every
            )
            self.solver.run_epoch(
                run.comm,
                train,
                state,
                validation=validation,
                watch=watch,
                every=None if within else train.total,
            )
        if last is not None:
            distance = state.consensus_distance
            run.add_cost(replace(EpochRecord.of(last), consensus_distance=distance))
        if run.best:
            run.best[k].update(state)

    def _save_within_epoch(self, progress: SolverProgress, state: SGDState) -> None:
        run = self.run
        completed = len(run.history.epochs)
        targets = sum(other.epoch > completed for other in run.states)
        elapsed = EpochRecord.of(progress).plus(run.elapsed)
        run.save_checkpoint(completed, targets * progress.steps + state.step, elapsed)

    def losses(self) -> tuple[float, float | None]:
        states = self.run.states
        validation = [s.validation_losses[-1] for s in states if s.validation_losses]
        loss = fmean(state.losses[-1] for state in states)
        return loss, fmean(validation) if validation else None

    def finish(self) -> None:
        """Raise FloatingPointError if a model is much worse than zero weights."""
        run = self.run
        for k, state in enumerate(run.states):
            final = run.best[k].loss if run.best else state.losses[-1]
            zero = zero_loss(run.comm, run.data.target(k)[0], LOSSES[self.solver.loss])
            if final > DIVERGED * zero > 0:
                raise FloatingPointError(
                    f"SGD: the loss must be near that of zero weights or below, {zero:.3g}, "
                    f"got {final:.3g}; lower the learning rate, {self.solver.learning_rate}"
                )


class _SCDTrainer:
    def __init__(self, run: TrainingRun, solver: SCD) -> None:
        self.run, self.solver = run, solver
        self.partition = run.partition or partition_columns(run.comm, run.data.train)
        self.single: SCDRun | None = None
        if not run.states:
            columns = self.partition.columns.indptr.size - 1
            rows = self.partition.labels.size
            run.states = [SCDState.initial(columns, rows) for _ in range(run.data.targets)]

    def epoch(self, k: int) -> None:
        comm, stats = self.run.comm, self.run.comm.stats
        start = comm.now()
        seconds_before, bytes_before = sum(stats.seconds.values()), stats.bytes
        solver_run = self._solver_run(k)
        self.run.begin_epoch()
        solver_run.epoch()
        communication = sum(stats.seconds.values()) - seconds_before
        sent = int(stats.bytes - bytes_before)
        cost = EpochRecord(np.nan, None, comm.now() - start, communication, sent, None)
        self.run.add_cost(cost)

    def _solver_run(self, k: int) -> SCDRun:
        """Return the run of a target; that of a single target is reused for all epochs."""
        if self.single is not None:
            return self.single
        run = self.run
        labels = run.data.target_labels(self.partition.labels, k)
        train, _ = run.data.target(k)
        partition = replace(self.partition, labels=labels)
        solver_run = SCDRun(self.solver, run.comm, train, run.states[k], partition)
        if run.data.targets == 1:
            self.single = solver_run
        return solver_run

    def losses(self) -> tuple[float, float | None]:
        return fmean(state.objectives[-1] for state in self.run.states), None

    def finish(self) -> None:
        """Evaluate the validation set; SCD does not need it in between."""
        run, epochs = self.run, self.run.history.epochs
        if run.data.validation is None or not epochs:
            return
        losses = []
        for k, state in enumerate(run.states):
            train, validation = run.data.target(k)
            assert validation is not None  # checked above
            weights = state.weights(run.comm, train.features)
            loss = LOSSES[self.solver.loss]
            losses.append(mean_loss(run.comm, validation, loss, weights, state.intercept))
        epochs[-1] = replace(epochs[-1], validation_loss=fmean(losses))


@dataclass
class TrainingResult:
    """A model, and how it was trained.

    Attributes:
        model: The model.
        history: Losses and costs of all epochs.
        data: The rows.
        stop_reason: Why training stopped before the last epoch; empty if it did not.
        accuracy: Fraction of validation rows with the right class, if there are any.
    """

    model: Model
    history: History
    data: Dataset
    stop_reason: str
    accuracy: float | None


def train(
    comm: Communicator, config: TrainingConfig, observer: TrainingObserver
) -> TrainingResult:
    """Read the data, train, and write the model. Collective.

    Raises:
        DataError: On all ranks; also if one of them cannot write.
    """
    with observer.task("reading"):
        data = load_dataset(comm, config)
    config = replace(config, batch_size=_batch_size(comm, config, data))
    rate = default_learning_rate(config.loss, data.mean_squared_norm)
    solver = run_collectively(comm, lambda: config.build_solver(rate, comm.size))
    stops = solver.stops if isinstance(solver, SGD) else solver.converged
    run = TrainingRun(comm, data, solver, stops, observer, config)
    run.resume()
    with observer.training(solver.epochs, len(run.history.epochs)):
        run_epochs(run)
    model = _model(run, config)
    run_collectively(comm, lambda: model.save(config.out) if comm.rank == 0 else None)
    accuracy = _accuracy(comm, model, data)
    return TrainingResult(model, run.history, data, _stop_reason(run), accuracy)


def _batch_size(comm: Communicator, config: TrainingConfig, data: Dataset) -> int:
    """Return the configured batch size, that of the checkpoint, or the default. Collective."""
    saved = None
    if config.batch_size is None and config.resume and config.checkpoint is not None:
        saved = run_collectively(comm, Checkpoint(config.checkpoint).saved_batch_size)
    default = default_batch_size(comm.size, data.train.total)
    return config.batch_size or saved or default


def _stop_reason(run: TrainingRun) -> str:
    if not all(run.stops(state) for state in run.states):
        return ""
    if isinstance(run.solver, SCD):
        return "converged"
    return f"no better validation loss for {run.solver.patience} epochs"


def _model(run: TrainingRun, config: TrainingConfig) -> Model:
    """Return the model of the best epoch or of the last. Collective."""
    metadata = {
        **run.resume_key,
        "solver": describe_solver(run.solver),
        "epochs": max(state.epoch for state in run.states),
    }
    if run.best:
        metadata["best_epochs"] = [best.epoch for best in run.best]
    solutions = [run.solution(k) for k in range(run.data.targets)]
    weights, intercepts = zip(*solutions, strict=True)
    return Model(
        np.stack(weights),
        np.array(intercepts),
        config.loss,
        run.data.classes,
        bool(run.data.train.zero_based),
        metadata,
        run.data.columns,
        run.data.width if run.data.columns is not None else 0,
    )


def _accuracy(comm: Communicator, model: Model, data: Dataset) -> float | None:
    """Return the accuracy on the validation set, whose labels are class numbers."""
    if data.validation is None or data.classes is None:
        return None
    labels = np.array(data.classes)[data.validation.labels.astype(np.int64)]
    correct = np.count_nonzero(
        model.labels(model.column_margins(data.validation)) == labels
    )
    return float(comm.allreduce(np.array([float(correct)]))[0]) / data.validation.total
