"""Mini-batch stochastic gradient descent (SGD) with sparse gradients.

Every step sums the gradients of all ranks' rows of a batch and updates the weights of the
features in it. The rows of a batch do not depend on the number of ranks, and the sum is lossless
unless a method is given. The weights are therefore the same, up to rounding, for any number of
ranks, with sparse and with dense communication.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ... import decentralized
from ...communicator.collective_errors import require_same
from ...validation import check_integer, check_real
from .early_stopping import no_improvement
from .gradient_reduction import COMMUNICATION
from .learning_rate import Constant, LearningRate
from .local_steps import check_local_steps
from .neighbor_steps import check_decentralized
from .objective import Penalty, loss_of
from .sgd_run import SGDRun
from .sgd_state import SGDState

if TYPE_CHECKING:
    from ...aggregate import Method
    from ...communicator.communicator import Communicator
    from ..data.rows import Rows
    from .sgd_run import Watch

MIN_ADAPTIVE = 1e-30  # above zero in float32, too


@dataclass(frozen=True)
class SGD:
    """Minimise mean loss + penalty by mini-batch gradient steps.

        g = mean over the batch of weight * loss'(w.x + b) * x
        m = momentum * m + g
        w = soft((1 - learning_rate * l2 / (1 - momentum)) * w - learning_rate * m,
                 learning_rate * l1)

    m tends to g / (1 - momentum) for a constant g; the factor of l2 keeps the balance between
    penalty and loss. The equations hold for all coordinates in every step, though only those
    in the batch are written (see `objective`). The intercept has its own gradient and no
    penalty.

    With `adaptive` (AdaGrad) each coordinate has its own learning rate, which decreases with
    its squared gradients:

        s = s + g^2, r = learning_rate / sqrt(adaptive + s)
        w = flow(w - r * g, r)

    where s starts at zero, and flow(w, r) follows the penalty's gradient flow,
    w' = -(l1 sign w + l2 w), for a time r. For small r that is soft((1 - r * l2) * w, r * l1).

    Reference: Duchi, Hazan, Singer: Adaptive Subgradient Methods for Online Learning and
    Stochastic Optimization, 2011.

    Args:
        loss: logistic, hinge, squared_hinge (labels -1 and 1) or squared.
        penalty: Penalty on the weights.
        learning_rate: Learning rate schedule.
        batch_size: Rows per step, over all ranks.
        epochs: Number of epochs.
        momentum: Momentum. Not with l1, since weights outside the batch would have to be
            followed step by step.
        adaptive: As above; None for one learning rate. If it is small compared with squared
            gradients, rare features take steps as long as frequent ones; if it is large, all
            learning rates are about learning_rate / sqrt(adaptive). Not with momentum.
        intercept: Whether to fit an intercept.
        intercept_rate: Factor on the learning rate of the intercept. The intercept is in every
            row: for rare features and large learning rates, 0.01 keeps it from oscillating.
        seed: Seed of the shuffle in each epoch; None keeps the given order.
        communication: "sparse", or "dense" for the engine's own dense allreduce, for
            comparison.
        algorithm: Algorithm of the sparse allreduce.
        method: An aggregation method of `sparcml.aggregate`, used instead; or a method of
            `sparcml.decentralized`, by which each rank trains its own model and mixes it with its
            neighbours'. The result is then the mean of all models after each epoch. The penalty
            must be l2, and momentum is an option of `DPSGD`.
        local_steps: Steps that each rank makes on its own rows of the batches before the ranks
            average the changes of their weights; the last round of an epoch may be shorter. The
            result depends on the number of ranks. With an aggregation method, changes are
            compressed. The penalty must be l2, without momentum and adaptive learning rates.
        patience: With a validation set: epochs without a loss that is smaller by `tol` than
            the best before, after which training stops.
        tol: Relative improvement of the validation loss that counts.
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
    method: Method | decentralized.Method | None = None
    local_steps: int = 1
    patience: int = 3
    tol: float = 1e-4

    def __post_init__(self) -> None:
        loss_of(self.loss)
        for name in ("batch_size", "epochs", "local_steps", "patience"):
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
                f"SGD: momentum must be 0 with an l1 penalty, got {self.momentum}"
            )
        if self.adaptive is not None:
            self._check_adaptive(self.adaptive)
        if self.communication not in COMMUNICATION:
            raise ValueError(
                f"SGD: communication must be {' or '.join(COMMUNICATION)}, got "
                f"{self.communication!r}"
            )
        if isinstance(self.method, decentralized.Method):
            check_decentralized(self)
        if self.local_steps > 1:
            check_local_steps(self)

    def _check_adaptive(self, adaptive: float) -> None:
        check_real(self, "adaptive")
        if not MIN_ADAPTIVE <= adaptive < np.inf:
            raise ValueError(
                f"SGD: adaptive must be finite and >= {MIN_ADAPTIVE:g}, got {adaptive!r}"
            )
        if self.momentum:
            raise ValueError(
                f"SGD: momentum must be 0 with adaptive learning rates, got {self.momentum}"
            )

    @property
    def decay(self) -> float:
        """Shrinkage of the weights per step, divided by the learning rate."""
        return self.penalty.l2 / (1.0 - self.momentum)

    def init(self, rows: Rows) -> SGDState:
        """Return the state before the first step: zero weights of the values' dtype."""
        state = SGDState.initial(
            rows.features, rows.values.dtype, self.penalty, self.momentum, self.adaptive
        )
        if isinstance(self.method, decentralized.Method):
            x = np.zeros(rows.features + self.intercept, rows.values.dtype)
            state.method = self.method.init(x)
        elif self.method is not None:
            state.method = self.method.init(rows.features + self.intercept)
        return state

    def run(
        self,
        comm: Communicator,
        rows: Rows,
        state: SGDState | None = None,
        *,
        validation: Rows | None = None,
        watch: Watch | None = None,
        every: int | None = None,
    ) -> SGDState:
        """Train until `epochs` are complete or the validation loss stops improving. Collective.

        Args:
            comm: The ranks.
            rows: This rank's rows; all ranks' rows are rows 0 to total.
            state: State to resume, from `init` or `SGDState.of`; it is changed.
            validation: This rank's rows of the validation set.
            watch: Callback on all ranks, during and after each epoch; it may save the state's
                `arrays`.
            every: Batches between two calls; by default, a twentieth of an epoch.

        Returns:
            The state after the last epoch.
        """
        require_same("SGD", comm, vars(self))
        state = state or self.init(rows)
        run = SGDRun(self, comm, rows, state, validation, watch, every)
        while state.epoch < self.epochs and not self.stops(state):
            run.epoch()
        return state

    def stops(self, state: SGDState) -> bool:
        """Return whether the validation loss has stopped improving."""
        return no_improvement(state.validation_losses, self.patience, self.tol)

    def run_epoch(
        self,
        comm: Communicator,
        rows: Rows,
        state: SGDState,
        *,
        validation: Rows | None = None,
        watch: Watch | None = None,
        every: int | None = None,
        flush: bool = True,
    ) -> None:
        """Complete one epoch, whatever `epochs` and the validation loss are. Collective.

        Args:
            comm: This and all others up to `every`: see `run`.
            rows: This rank's rows.
            state: State to continue; it is changed.
            validation: This rank's rows of the validation set.
            watch: Callback.
            every: Batches between two calls of it.
            flush: Whether to apply the penalty to all weights at the end. If not, the cost of
                few rows follows their entries instead of the number of columns.
        """
        once = replace(self, epochs=state.epoch + 1)
        SGDRun(once, comm, rows, state, validation, watch, every, flush).epoch()
