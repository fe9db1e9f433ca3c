"""Runs that settings were chosen from, on a seed that is not reported."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sparcml import local

from .forms import CHOSEN, FORMS, SYNCHRONOUS, Form, Job

if TYPE_CHECKING:
    from collections.abc import Iterator

SEEDS = (3,)


def diloco(lr: float, momentum: float) -> partial[local.DiLoCo]:
    """Return DiLoCo with outer settings, as a function of the number of inner steps."""
    return partial(local.DiLoCo, outer_lr=lr, outer_momentum=momentum)


PILOTS = {
    **FORMS,
    "synchronous x 0.5": Form(local.LocalSGD, inner_lr=0.5),
    "half": Form(diloco(1.0, 0.5), inner_lr=0.5),
    "1.5": Form(diloco(1.0, 0.5), inner_lr=1.5),
    "1.0/0.0": Form(diloco(1.0, 0.0)),
    "1.5/0.5": Form(diloco(1.5, 0.5)),
    "averaged": Form(diloco(1.0, 0.5), average=("exp_avg", "exp_avg_sq")),
    "sparse all 512, momentum": Form(
        partial(local.SparseLoCo, k=512, mean="all", outer_momentum=0.5)
    ),
    "sparse senders 512": Form(partial(local.SparseLoCo, k=512)),
}

# Network, form, steps per round, workers, synchronous start.
CASES: tuple[tuple[str, str, int, int, float], ...] = (
    ("gpt", SYNCHRONOUS, 1, 1, 1.0),
    ("gpt-one-worker", SYNCHRONOUS, 1, 1, 1.0),
    ("gpt-one-worker", "synchronous x 0.5", 1, 1, 1.0),
    ("gpt", CHOSEN, 30, 4, 0.3),
    ("gpt", "half", 30, 4, 0.3),
    ("gpt", "1.5", 30, 4, 0.3),
    ("gpt", "1.0/0.0", 30, 4, 0.3),
    ("gpt", "1.5/0.5", 30, 4, 0.3),
    ("gpt", "averaged", 30, 4, 0.3),
    ("gpt", "sparse all 512, momentum", 30, 4, 0.3),
    ("gpt", "sparse senders 512", 30, 4, 0.3),
    ("gpt-large-batch", SYNCHRONOUS, 1, 1, 1.0),
    ("gpt-large-batch", CHOSEN, 30, 4, 0.3),
    ("gpt-long", SYNCHRONOUS, 1, 1, 1.0),
    ("gpt-long", CHOSEN, 30, 4, 0.3),
    ("gpt-long", "averaged", 30, 4, 0.3),
    ("gpt-large-batch-long", SYNCHRONOUS, 1, 1, 1.0),
    ("gpt-large-batch-long", CHOSEN, 30, 4, 0.3),
)


def jobs() -> Iterator[Job]:
    """Yield all jobs: all cases of a seed, then the next seed."""
    for seed in SEEDS:
        for case in CASES:
            yield Job(*case, seed)
