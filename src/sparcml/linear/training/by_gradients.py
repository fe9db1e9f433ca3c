"""Passes of stochastic gradient descent, over all targets in turn."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

from sparcml.linear.training.early_stopping import BestModel
from sparcml.linear.training.history import EpochRecord

if TYPE_CHECKING:
    from sparcml.linear import SGD, SGDState, SolverProgress
    from sparcml.linear.training.run import Work


def descend(work: Work, solver: SGD) -> None:
    """Go on until no target has passes left; a collective call.

    Each pass of a target sums on channels of its own: which algorithm `auto` takes depends
    on what a communicator has summed before, so a run that goes on from a checkpoint has to
    begin as any other pass does.
    """
    data = work.data
    if not work.states:
        work.states = [solver.init(data.train) for _ in range(data.targets)]
        held = data.held_out is not None
        work.best = [BestModel() for _ in work.states] if held else []
    while going := [k for k in range(data.targets) if _goes_on(solver, work.states[k])]:
        epoch = len(work.history.passes)
        for turn, k in enumerate(going):
            if work.states[k].epoch == epoch:  # not so after a checkpoint within a pass
                with work.bar.part(turn, len(going)):
                    _pass(work, solver, k)
        held_out = [s.held_out[-1] for s in work.states if s.held_out]
        losses = [state.losses[-1] for state in work.states]
        work.passed(fmean(losses), fmean(held_out) if held_out else None)
    if all(state.stale >= solver.patience for state in work.states):
        work.stopped = f"no better on held-out rows for {solver.patience} passes"


def _goes_on(solver: SGD, state: SGDState) -> bool:
    return state.epoch < solver.epochs and state.stale < solver.patience


def _pass(work: Work, solver: SGD, k: int) -> None:
    """One target's."""
    train, held_out = work.data.target(k)
    state: SGDState = work.states[k]
    known = work.states[0].search  # all targets have the same rows: one search is enough
    if state.search is None and known is not None:
        state.narrow(known)

    def watch(progress: SolverProgress, state: SGDState) -> None:
        work.bar.watch(progress)
        within = progress.step < progress.steps
        if within and work.due():
            spent = EpochRecord.of(progress).after(work.spent)
            passes = len(work.history.passes)
            through = sum(other.epoch > passes for other in work.states)
            work.keep(passes, through * progress.steps + state.step, spent)

    every = None if work.bar.shown or work.settings.checkpoint_every else train.total
    with work.comm.duplicate() as comm:
        replace(solver, epochs=state.epoch + 1).run(
            comm, train, state, held_out=held_out, watch=watch, every=every
        )
    work.spend(EpochRecord.of(work.bar.last))
    if work.best:
        work.best[k].update(state)
