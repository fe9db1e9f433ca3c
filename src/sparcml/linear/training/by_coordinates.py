"""Passes of coordinate descent, over all targets in turn."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from sparcml.linear import LOSSES
from sparcml.linear.data.partition import partition_columns
from sparcml.linear.solvers.evaluate import mean_loss
from sparcml.linear.training.history import EpochRecord

if TYPE_CHECKING:
    from sparcml.linear import SCD, SCDState
    from sparcml.linear.data.partition import Share
    from sparcml.linear.training.run import Work


def descend(work: Work, solver: SCD) -> None:
    """Go on until the objectives of all targets stand still; a collective call."""
    data = work.data
    share = partition_columns(work.comm, data.train)
    work.states = work.states or [None] * data.targets
    while going := [k for k in range(data.targets) if _goes_on(solver, work.states[k])]:
        for turn, k in enumerate(going):
            with work.bar.part(turn, len(going)):
                _pass(work, solver, share, k)
        work.passed(fmean(state.objectives[-1] for state in work.states), None)
    if all(solver.stands(state) for state in work.states):
        work.stopped = "the objective stands still"
    _judge(work)


def _goes_on(solver: SCD, state: SCDState | None) -> bool:
    return state is None or (state.epoch < solver.epochs and not solver.stands(state))


def _pass(work: Work, solver: SCD, share: Share, k: int) -> None:
    """One target's."""
    comm, state = work.comm, work.states[k]
    train, _ = work.data.target(k)
    epochs = 1 if state is None else state.epoch + 1
    labels = work.data.signs(share.labels, k)
    start, stats = comm.now(), comm.stats
    spent, sent = sum(stats.seconds.values()), stats.bytes
    work.states[k] = replace(solver, epochs=epochs).run(
        comm, train, state, share=replace(share, labels=labels)
    )
    talking = sum(stats.seconds.values()) - spent
    seconds = comm.now() - start
    work.spend(EpochRecord(np.nan, None, seconds, talking, int(stats.bytes - sent), None))


def _judge(work: Work) -> None:
    """What the last pass has led to, on held-out rows."""
    comm, data, passes = work.comm, work.data, work.history.passes
    if data.held_out is None or not passes:
        return
    loss, found = LOSSES[work.settings.loss], []
    for k, state in enumerate(work.states):
        train, held_out = data.target(k)
        assert held_out is not None  # so it is above
        weights = state.weights(comm, train.features)
        found.append(mean_loss(comm, held_out, loss, weights, state.intercept))
    passes[-1] = replace(passes[-1], held_out=fmean(found))
