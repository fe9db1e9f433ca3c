"""The time that one process would take, to compare several ranks with."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from ...communicator.communicator import Communicator
from ...transport import ThreadGroup, ThreadTransport
from ..solvers.learning_rate import Constant
from ..solvers.objective import Penalty
from ..solvers.sgd import SGD
from .config import SINGLE_BATCH

if TYPE_CHECKING:
    from .config import TrainingConfig
    from .dataset import Dataset

SMALL_RATE = 1e-9  # the steps are not used, and must be valid with any penalty


def single_process_seconds(config: TrainingConfig, data: Dataset) -> float:
    """Measure an epoch of SGD over this rank's rows, and estimate one over all rows.

    A rank's time outside communication is no substitute: ranks may share cores, and each of
    their steps returns to Python.

    Args:
        config: Options of the run.
        data: Rows of the run.
    """
    rows, _ = data.target(0)
    if not len(rows):
        return 0.0
    own = replace(rows, first=0, total=len(rows))
    sgd = SGD(
        config.loss,
        Penalty(config.l1, config.l2),
        Constant(SMALL_RATE),
        batch_size=SINGLE_BATCH,
        momentum=config.momentum,
    )
    with Communicator(ThreadTransport(ThreadGroup(1), 0)) as comm:
        state = sgd.init(own)
        start = time.perf_counter()
        sgd.run_epoch(comm, own, state)
        seconds = time.perf_counter() - start
    return seconds * rows.total / len(own) * data.targets
