"""Mini-batch stochastic gradient descent with sparse gradients.

Every step sums the gradients of all ranks' rows of a batch and changes the weights of the
features in it. Which rows a batch has does not depend on the number of ranks, and nothing is
lost on the way unless a method is asked for; so the weights are the same, up to rounding, for
any number of ranks, with sparse and with dense communication.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ...validation import check_integer, check_real
from .gradient_reduction import COMMUNICATION
from .learning_rate import Constant, LearningRate
from .objective import loss_of
from .penalty import Penalty
from .sgd_run import SGDRun
from .sgd_state import SGDState

if TYPE_CHECKING:
    from ...aggregate import Method
    from ...communicator.communicator import Communicator
    from ..data.rows import Rows
    from .sgd_run import Watch

LEAST = 1e-30  # to be added to sums of squares: above zero in float32, too


@dataclass(frozen=True)
class SGD:
    """Makes mean loss + penalty small, step by step.

        g = mean over the batch of weight * loss'(w.x + b) * x
        m = momentum * m + g
        w = soft((1 - rate * l2 / (1 - momentum)) * w - rate * m, rate * l1)

    where m becomes g / (1 - momentum) if g stays the same, so that the penalty keeps its
    weight against the loss. This is for all coordinates in every step, though only those in
    the batch are written (see `penalty`). The intercept is stepped along its own gradient and
    not penalised.

    With `adaptive` (AdaGrad) each coordinate has a rate of its own, smaller the more it has
    been moved already:

        s = s + g^2, r = rate / sqrt(adaptive + s)
        w = flow(w - r * g, r)

    where s begins with zero, and flow(w, r) follows the penalty's own pull,
    w' = -(l1 sign w + l2 w), for a time r: for a small r the same as soft((1 - r * l2) * w,
    r * l1).

    Reference: Duchi, Hazan, Singer: Adaptive Subgradient Methods for Online Learning and
    Stochastic Optimization, 2011.

    Args:
        loss: logistic, hinge, squared_hinge (labels -1 and 1) or squared.
        penalty: On large weights.
        learning_rate: The learning rate schedule.
        batch_size: Rows of a step, over all ranks.
        epochs: Passes over all rows.
        momentum: How much of the last step goes into the next; not together with l1, for
            then weights that are not in a batch would have to be followed step by step.
        adaptive: As above; None for the same rate everywhere. With a number that is small
            against squared gradients, rare features take steps as long as frequent ones;
            with a large one all rates are about rate / sqrt(adaptive). Not together with
            momentum.
        intercept: Whether there is one.
        intercept_rate: Its rate, against the others'. It is in every row: where features are
            rare and rates large, 0.01 keeps it from swinging.
        seed: Of the order of rows, anew in each pass; None keeps them as they are.
        communication: "sparse", or "dense": the same with sums of dense vectors by the
            engine itself, for comparison.
        algorithm: Of sparse sums, as for `Communicator.allreduce`.
        method: A method of `sparcml.aggregate` that compresses gradients, instead.
        patience: With held-out rows: stop after so many passes without a loss that is
            smaller by `tol` than the smallest before.
        tol: Relative.
    """

    loss: str = "logistic"
    penalty: Penalty = field(default_factory=Penalty)
    learning_rate: LearningRate = field(default_factory=lambda: Constant(0.1))
    batch_size: int = 1
    epochs: int = 5
    momentum: float = 0.0
    adaptive: float | None = None
    intercept: bool = True
    intercept_rate: float = 1.0
    seed: int | None = 0
    communication: str = "sparse"
    algorithm: str = "auto"
    method: Method | None = None
    patience: int = 3
    tol: float = 1e-4

    def __post_init__(self) -> None:
        loss_of(self.loss)
        for name in ("batch_size", "epochs", "patience"):
            check_integer(self, name)
            if getattr(self, name) < 1:
                raise ValueError(f"SGD: {name} must be >= 1, got {getattr(self, name)}")
        check_integer(self, "seed", optional=True)
        if self.seed is not None and self.seed < 0:
            raise ValueError(f"SGD: seed must be >= 0, or None, got {self.seed}")
        check_real(self, "momentum")
        check_real(self, "tol")
        if np.isnan(self.tol):
            raise ValueError("SGD: tol must be a number, got nan")
        check_real(self, "intercept_rate")
        if not 0 < self.intercept_rate < np.inf:
            raise ValueError(
                f"SGD: intercept_rate must be finite and > 0, got {self.intercept_rate}"
            )
        if not 0 <= self.momentum < 1:
            raise ValueError(f"SGD: momentum must be in [0, 1), got {self.momentum}")
        if self.momentum and self.penalty.l1:
            raise ValueError(
                "SGD: momentum and an l1 penalty do not go together; set one to 0"
            )
        if self.adaptive is not None:
            self._check_adaptive(self.adaptive)
        if self.communication not in COMMUNICATION:
            known = " or ".join(COMMUNICATION)
            raise ValueError(
                f"SGD: communication must be {known}, got {self.communication!r}"
            )

    def _check_adaptive(self, damping: float) -> None:
        check_real(self, "adaptive")
        if not LEAST <= damping < np.inf:
            raise ValueError(
                f"SGD: adaptive must be finite and >= {LEAST:g}, got {damping!r}"
            )
        if self.momentum:
            raise ValueError(
                "SGD: momentum and adaptive rates do not go together; leave one out"
            )

    @property
    def decay(self) -> float:
        """What weights shrink by in a step, divided by its rate."""
        return self.penalty.l2 / (1.0 - self.momentum)

    def init(self, rows: Rows) -> SGDState:
        """The state before the first step: all weights zero, of the values' precision."""
        state = SGDState.begin(
            rows.features, rows.values.dtype, self.penalty, self.momentum, self.adaptive
        )
        if self.method is not None:
            state.method = self.method.init(rows.features + self.intercept)
        return state

    def run(
        self,
        comm: Communicator,
        rows: Rows,
        state: SGDState | None = None,
        *,
        held_out: Rows | None = None,
        watch: Watch | None = None,
        every: int | None = None,
    ) -> SGDState:
        """Go on until all passes are made; a collective call.

        Args:
            comm: The ranks.
            rows: This rank's; all ranks' together are rows 0 to total.
            state: Where to go on, from `init` or `SGDState.of`; it is changed.
            held_out: This rank's rows to stop early by.
            watch: Called now and then, on all ranks; the state may be kept by its `arrays`.
            every: Batches between two calls; a twentieth of a pass by default.

        Returns:
            The state after the last pass.
        """
        return SGDRun(
            self, comm, rows, state or self.init(rows), held_out, watch, every
        ).go()
