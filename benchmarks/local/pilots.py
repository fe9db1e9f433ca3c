"""Runs that were made to find settings, on seeds that are not reported."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sparcml import local

from .forms import FORMS, SYNCHRONOUS, Form, Job

if TYPE_CHECKING:
    from collections.abc import Iterator

SEEDS = (3, 4)


def diloco(lr: float, momentum: float) -> partial[local.DiLoCo]:
    """Return DiLoCo with outer settings, as a function of the number of inner steps."""
    return partial(local.DiLoCo, outer_lr=lr, outer_momentum=momentum)


PILOTS = {
    **FORMS,
    "synchronous x 0.5": Form(local.LocalSGD, inner_lr=0.5),
    "synchronous x 2": Form(local.LocalSGD, inner_lr=2),
    "half": Form(diloco(1.0, 0.5), inner_lr=0.5),
    "0.7": Form(diloco(1.0, 0.5), inner_lr=0.7),
    "1.5": Form(diloco(1.0, 0.5), inner_lr=1.5),
    "1.0/0.0": Form(diloco(1.0, 0.0)),
    "0.9/0.3": Form(diloco(0.9, 0.3)),
    "0.4/0.9": Form(diloco(0.4, 0.9)),
    "2.0/0": Form(diloco(2.0, 0.0)),
    "1.5/0.3": Form(diloco(1.5, 0.3)),
    "1.0/0.7": Form(diloco(1.0, 0.7)),
    "2.0/0.5": Form(diloco(2.0, 0.5)),
    "1.5/0.5, 0.7": Form(diloco(1.5, 0.5), inner_lr=0.7),
    "1.5/0.5": Form(diloco(1.5, 0.5)),
    "1.5/0": Form(diloco(1.5, 0.0)),
    "cosine 1.5/0.5": Form(diloco(1.5, 0.5), outer_cosine=True),
    "averaged": Form(diloco(1.0, 0.5), average=("exp_avg", "exp_avg_sq")),
    "averaged v": Form(diloco(1.0, 0.5), average=("exp_avg_sq",)),
    "sparse all 512": Form(partial(local.SparseLoCo, k=512, mean="all")),
    "sparse all 512, momentum": Form(
        partial(local.SparseLoCo, k=512, mean="all", outer_momentum=0.5)
    ),
    "sparse senders 512": Form(partial(local.SparseLoCo, k=512)),
    "sparse all 256, decay 1": Form(
        partial(local.SparseLoCo, k=256, mean="all", decay=1.0)
    ),
    "betas 0.95": Form(diloco(1.0, 0.5), betas=(0.9, 0.95)),
    "betas 0.99": Form(diloco(1.0, 0.5), betas=(0.9, 0.99)),
}

C = "DiLoCo, outer 1.0 and 0.5"
CASES: tuple[tuple[str, str, int, int, float], ...] = (
    ("gpt", SYNCHRONOUS, 1, 1, 1.0),
    ("gpt", C, 30, 4, 0.3),
    ("gpt", "half", 30, 4, 0.3),
    ("gpt", "1.0/0.0", 30, 4, 0.3),
    ("gpt", "averaged", 30, 4, 0.3),
    ("gpt", C, 5, 4, 0.3),
    ("gpt", "betas 0.99", 30, 4, 0.3),
    ("gpt", "1.5/0", 30, 4, 0.3),
    ("gpt", "2.0/0", 30, 4, 0.3),
    ("gpt", "1.5/0.3", 30, 4, 0.3),
    ("gpt", "1.5/0.5", 30, 4, 0.3),
    ("gpt", "1.0/0.7", 30, 4, 0.3),
    ("gpt", "2.0/0.5", 30, 4, 0.3),
    ("gpt", "1.5/0.5, 0.7", 30, 4, 0.3),
    ("gpt-one-worker", SYNCHRONOUS, 1, 1, 1.0),
    ("gpt-one-worker", "synchronous x 0.5", 1, 1, 1.0),
    ("gpt", "0.7", 30, 4, 0.3),
    ("gpt", "1.5", 30, 4, 0.3),
    ("gpt", C, 10, 4, 0.3),
    ("gpt", "sparse all 512", 30, 4, 0.3),
    ("gpt", "sparse all 512, momentum", 30, 4, 0.3),
    ("gpt", "sparse senders 512", 30, 4, 0.3),
    ("gpt", "sparse all 256, decay 1", 30, 4, 0.3),
    ("gpt", C, 30, 4, 0.5),
    ("gpt-large-batch", SYNCHRONOUS, 1, 1, 1.0),
    ("gpt-large-batch", "synchronous x 0.5", 1, 1, 1.0),
    ("gpt-large-batch", "synchronous x 2", 1, 1, 1.0),
    ("gpt-large-batch", C, 30, 4, 0.3),
)


def jobs() -> Iterator[Job]:
    """Yield all jobs: all cases of a seed, then the next seed."""
    for seed in SEEDS:
        for case in CASES:
            yield Job(*case, seed)
