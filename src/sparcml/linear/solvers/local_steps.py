"""Steps of SGD that each rank makes on its own, with an exchange after every few of them.

    w_m = w - learning_rate * g_m(w), and so on      `local_steps` times, on rank m
    w = w + mean over ranks of (w_m - w)

g_m is the gradient of the rank's own rows of a batch, divided by the mean number of rows per rank:
one step per round is SGD of all ranks. Only columns of the round's rows change, so changes are
sparse. The l2 penalty multiplies all weights of all ranks by the same factor and is not sent: the
weights are `scale * stored`, and the stored numbers are exchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import decentralized
from ...stream import Stream
from .. import loops
from .objective import LOSSES
from .sgd_state import INTERCEPT, SCALE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .gradient_reduction import GradientReduction
    from .sgd import SGD
    from .sgd_state import SGDState

SMALL_SCALE = (
    1e-6  # as in the kernel, which would flush the weights without the shared ones
)


class LocalSteps:
    """The rounds of one rank.

    Args:
        solver: Its settings.
        reduction: Sums changes over ranks, and counts their costs.
    """

    def __init__(self, solver: SGD, reduction: GradientReduction) -> None:
        self.solver, self.reduction = solver, reduction

    def step(self, state: SGDState, steps: loops.SGDSteps, gradient: Stream) -> None:
        """Update this rank's weights with its own gradient."""
        self._begin(state)
        steps.apply(gradient)

    @property
    def is_compiled(self) -> bool:
        """Whether `steps` may be called."""
        return self.solver.decay == 0.0

    def steps(
        self,
        state: SGDState,
        rows: loops.Csr,
        order: NDArray[np.int64],
        offsets: NDArray[np.int64],
        rates: NDArray[np.float64],
    ) -> None:
        """Make steps of one round in one compiled call, without a penalty.

        Args:
            state: The state of this rank.
            rows: Its rows.
            order: Order of its rows.
            offsets: Where its rows of each step start in `order`, and the end.
            rates: Learning rate of each step, divided by the rows per rank.
        """
        self._begin(state)
        solver, counts = self.solver, np.diff(offsets)
        has_rows = counts > 0  # a step without rows changes nothing
        state.pending = loops.SGDSteps(
            rows,
            order,
            np.append(offsets[:-1][has_rows], offsets[-1]),
            (rates * counts)[has_rows],  # the loop divides by the number of rows
            LOSSES[solver.loss].code,
            solver.intercept * solver.intercept_rate,
            state.model,
            losses=state.pending,
        ).run()

    def _begin(self, state: SGDState) -> None:
        if state.shared is None:
            state.shared = self._stored(state)
        scale = state.model.numbers[SCALE]
        if scale < SMALL_SCALE:
            state.shared[: state.model.weights.size] *= scale
            loops.flush(state.model)

    def round_end(self, step: int, steps: int) -> int:
        """Return the last step of the round that step + 1 belongs to."""
        length = self.solver.local_steps
        return min((step // length + 1) * length, steps)

    def ends_round(self, step: int, steps: int) -> bool:
        """Return whether ranks exchange after a step of an epoch; the first is step 1."""
        return step % self.solver.local_steps == 0 or step == steps

    def exchange(self, state: SGDState, step: int) -> None:
        """Give all ranks the same weights, after a step of an epoch. Collective."""
        shared = state.shared
        assert shared is not None  # there was a step
        change = self._stored(state) - shared
        changed = np.flatnonzero(change)
        mean = change[changed] / change.dtype.type(self.reduction.comm.size)
        sent = Stream.unchecked(shared.size, changed.astype(np.uint32), mean)
        made = (step - 1) % self.solver.local_steps + 1
        total, state.method = self.reduction.sum(sent, state.method, made)
        if total.raw_indices is None:
            shared += total.raw_values
        else:
            shared[total.raw_indices] += total.raw_values
        state.model.weights[:] = shared[: state.model.weights.size]
        if self.solver.intercept:
            state.model.numbers[INTERCEPT] = shared[-1]

    def _stored(self, state: SGDState) -> NDArray[Any]:
        """Return a copy of the stored weights, followed by the intercept if there is one."""
        weights = state.model.weights
        if not self.solver.intercept:
            return weights.copy()
        return np.append(weights, weights.dtype.type(state.model.numbers[INTERCEPT]))


def check_local_steps(solver: SGD) -> None:
    """Raise ValueError for settings that local steps do not support."""
    method = solver.method
    excluded = {
        "penalty": (f"without l1, got {solver.penalty}", bool(solver.penalty.l1)),
        "momentum": (f"0, got {solver.momentum}", solver.momentum > 0),
        "adaptive": (f"None, got {solver.adaptive}", solver.adaptive is not None),
        "method": (
            f"an aggregation method that returns a mean, got {method}",
            isinstance(method, decentralized.Method)
            or (method is not None and not method.returns_mean),
        ),
    }
    for setting, (requirement, is_set) in excluded.items():
        if is_set:
            raise ValueError(
                f"SGD: {setting} must be {requirement}, with local_steps={solver.local_steps}"
            )
