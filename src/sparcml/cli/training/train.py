"""A model made by all ranks, pass by pass, with a checkpoint after each."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcml.cli.training.data import Data, load, usual_rate
from sparcml.cli.training.history import History, Pass
from sparcml.cli.training.settings import brief
from sparcml.errors import DataError
from sparcml.linear import LOSSES, SCD, SGD, Descended, State
from sparcml.linear.checkpoint import Checkpoint
from sparcml.linear.evaluate import mean_loss
from sparcml.linear.model import Model
from sparcml.linear.together import together

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from sparcml import Communicator
    from sparcml.cli.training.bar import Bar
    from sparcml.cli.training.settings import Settings

# What ranks have for themselves; all else is the same on all of them.
OWN = ("measures", "method/", "coordinates", "trust")


@dataclass
class Result:
    """A model, and how it came about."""

    model: Model
    history: History
    data: Data
    stopped: str  # why, if not because all passes are made
    accuracy: float | None  # the share of held-out rows with the right class


def train(comm: Communicator, settings: Settings, bar: Bar) -> Result:
    """Read, train and save; a collective call.

    Raises:
        DataError: On all ranks; also if one of them cannot write.
    """
    with bar.doing("reading"):
        data = load(comm, settings)
    run = _Run(comm, settings, data, bar)
    run.go()
    model = run.model()
    together(comm, lambda: model.save(settings.out) if comm.rank == 0 else None)
    return Result(model, run.history, data, run.stopped, _accuracy(comm, model, data))


@dataclass
class _Run:
    comm: Communicator
    settings: Settings
    data: Data
    bar: Bar
    history: History = field(default_factory=History)
    stopped: str = ""

    def __post_init__(self) -> None:
        rate = usual_rate(self.settings.loss, self.data.square)
        self.solver = self.settings.made(rate)
        self.loss = LOSSES[self.settings.loss]
        folder = self.settings.checkpoint
        self.checkpoint = None if folder is None else Checkpoint(folder)
        self.fixed = json.loads(json.dumps(self.settings.fixed() | self.data.about()))

    def go(self) -> None:
        arrays = self._resumed()
        with self.bar.passes(self.solver.epochs, len(self.history.passes)):
            if isinstance(self.solver, SGD):
                self._descend_by_gradients(self.solver, arrays)
            else:
                self._descend_by_coordinates(self.solver, arrays)

    def model(self) -> Model:
        """What the passes have led to; a collective call."""
        state = self.state
        if isinstance(state, Descended):
            weights = state.weights(self.comm, self.data.train.features)
        else:
            weights = state.weights
        return Model(
            weights,
            state.intercept,
            self.settings.loss,
            self.data.classes,
            self.data.zero_based,
            {**self.fixed, "solver": brief(self.solver), "passes": state.epoch},
        )

    def _descend_by_gradients(self, solver: SGD, arrays: dict[str, Any] | None) -> None:
        """One pass at a time, each on channels of its own.

        Which algorithm `auto` takes depends on what a communicator has summed before; so a
        run that goes on from a checkpoint has to begin as any other pass does.
        """
        data = self.data
        state = solver.init(data.train) if arrays is None else State.of(arrays)
        self.state: State | Descended = state
        while state.epoch < solver.epochs and state.stale < solver.patience:
            once = replace(solver, epochs=state.epoch + 1)
            every = None if self.bar.shown else data.train.total  # then at the end only
            with self.comm.duplicate() as comm:
                once.run(
                    comm,
                    data.train,
                    state,
                    held_out=data.held_out,
                    watch=self.bar.watch,
                    every=every,
                )
            last = self.bar.last
            judged = state.held_out[-1] if state.held_out else None
            how = solver.communication
            self._passed(Pass.of(last, how, state.losses[-1], judged, last.seconds))
        if state.stale >= solver.patience:
            self.stopped = f"no better on held-out rows for {solver.patience} passes"

    def _descend_by_coordinates(self, solver: SCD, arrays: dict[str, Any] | None) -> None:
        state = None if arrays is None else Descended.of(arrays)
        if state is None or not _stands(solver, state):
            stats, since = self.comm.stats, [self.comm.now(), 0.0, 0.0]

            def watch(state: Descended) -> None:
                now, spent, sent = self.comm.now(), sum(stats.seconds.values()), stats.bytes
                self.state = state
                took = (now - since[0], spent - since[1], int(sent - since[2]), None)
                self._passed(Pass(state.objectives[-1], None, *took))
                since[:] = [self.comm.now(), sum(stats.seconds.values()), stats.bytes]

            stats.reset()
            state = solver.run(self.comm, self.data.train, state, watch=watch)
        self.state = state
        if _stands(solver, state):
            self.stopped = "the objective stands still"
        if self.data.held_out is not None and self.history.passes:
            weights = state.weights(self.comm, self.data.train.features)
            found = mean_loss(
                self.comm, self.data.held_out, self.loss, weights, state.intercept
            )
            self.history.passes[-1] = replace(self.history.passes[-1], held_out=found)

    def _passed(self, done: Pass) -> None:
        """One more pass is complete."""
        self.history.passes.append(done)
        self.bar.passed(done)
        if self.checkpoint is not None:
            arrays = self.state.arrays()
            own = {n: a for n, a in arrays.items() if n.startswith(OWN)}
            common = {n: a for n, a in arrays.items() if n not in own}
            header = {"settings": self.fixed, "history": self.history.kept()}
            self.checkpoint.save(self.comm, self.state.epoch, header, common, own)

    def _resumed(self) -> dict[str, NDArray[Any]] | None:
        """The state to go on from, if that is wanted."""
        if self.checkpoint is None:
            return None
        newest = together(self.comm, self.checkpoint.newest)
        if not self.settings.resume:
            if newest is not None:
                raise DataError(
                    f"{newest}: there is a checkpoint already: go on with --resume, or take "
                    f"another folder"
                )
            return None
        header, arrays = self.checkpoint.load(self.comm)
        _compare(f"{newest}", header.get("settings", {}), self.fixed)
        self.history = History.of(header["history"])
        return arrays


def _accuracy(comm: Communicator, model: Model, data: Data) -> float | None:
    if data.held_out is None or data.classes is None:
        return None
    signs = np.where(model.margins(data.held_out) > 0, 1.0, -1.0)
    right = np.count_nonzero(signs == data.held_out.labels)
    return float(comm.allreduce(np.array([float(right)]))[0]) / data.held_out.total


def _stands(solver: SCD, state: Descended) -> bool:
    """Whether the last pass has brought so little that the solver ends."""
    if len(state.objectives) < 2:
        return False
    before, after = state.objectives[-2:]
    return before - after <= solver.tolerance * abs(after)


def _compare(where: str, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for name, value in now.items():
        if then.get(name) != value:
            raise DataError(
                f"{where}: made with {name.replace('_', '-')} {then.get(name)}, which is now "
                f"{value}: go on with what it was made with"
            )
