"""A model made by all ranks, from text to a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcml.communicator.collective_errors import together
from sparcml.linear import SGD, SCDState
from sparcml.linear.training import by_coordinates, by_gradients
from sparcml.linear.training.config import describe_solver
from sparcml.linear.training.dataset import Data, load, usual_rate
from sparcml.linear.training.model import Model
from sparcml.linear.training.run import Work

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sparcml import Communicator
    from sparcml.linear.training.bar import Bar
    from sparcml.linear.training.config import TrainingConfig
    from sparcml.linear.training.history import History


@dataclass
class Result:
    """A model, and how it came about."""

    model: Model
    history: History
    data: Data
    stopped: str  # why, if not because all passes are made
    accuracy: float | None  # the share of held-out rows with the right class


def train(comm: Communicator, settings: TrainingConfig, bar: Bar) -> Result:
    """Read, train and save; a collective call.

    Raises:
        DataError: On all ranks; also if one of them cannot write.
    """
    with bar.doing("reading"):
        data = load(comm, settings)
    solver = settings.build_solver(usual_rate(settings.loss, data.square))
    work = Work(comm, settings, data, solver, bar)
    work.resume()
    with bar.passes(solver.epochs, len(work.history.passes)):
        if isinstance(solver, SGD):
            by_gradients.descend(work, solver)
        else:
            by_coordinates.descend(work, solver)
    model = _model(work)
    together(comm, lambda: model.save(settings.out) if comm.rank == 0 else None)
    return Result(model, work.history, data, work.stopped, _accuracy(comm, model, data))


def _model(work: Work) -> Model:
    """What the passes have led to, or the best of them; a collective call."""
    about = {
        **work.fixed,
        "solver": describe_solver(work.solver),
        "passes": max(state.epoch for state in work.states),
    }
    pairs = [_found(work, state) for state in work.states]
    if work.best:
        pairs = [(np.asarray(each.weights), each.intercept) for each in work.best]
        about["best"] = [each.epoch for each in work.best]
    weights, intercepts = zip(*pairs, strict=True)
    return Model(
        np.stack(weights),
        np.array(intercepts),
        work.settings.loss,
        work.data.classes,
        bool(work.data.train.zero_based),
        about,
    )


def _found(work: Work, state: Any) -> tuple[NDArray[Any], float]:
    if isinstance(state, SCDState):
        return state.weights(work.comm, work.data.train.features), state.intercept
    return state.weights, state.intercept


def _accuracy(comm: Communicator, model: Model, data: Data) -> float | None:
    """On held-out rows, whose labels are numbers of classes."""
    if data.held_out is None or data.classes is None:
        return None
    labels = np.array(data.classes)[data.held_out.labels.astype(np.int64)]
    right = np.count_nonzero(model.labels(model.margins(data.held_out)) == labels)
    return float(comm.allreduce(np.array([float(right)]))[0]) / data.held_out.total
