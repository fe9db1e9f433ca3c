"""Methods for an optimizer that keep the accuracy of dense training."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import torch

from ..aggregate import DGC, Compressed
from ..quantize import QSGD
from ..sparsify import TopK

if TYPE_CHECKING:
    from ..aggregate import Method

RECOMMENDED = "recommended"
WARM_UP_STEPS = 1000  # if the number of steps is unknown
WARM_UP = 0.2  # of all steps
DENSE_BELOW = 1000  # values; smaller matrices are sent uncompressed


def recommended(optimizer: torch.optim.Optimizer, steps: int | None = None) -> Method:
    """Return the method that keeps the accuracy of dense training under an optimizer.

    - SGD, with or without momentum: TopK 1 % of 8-bit values with error feedback, after a
      warm-up of the density. Momentum stays in the optimizer, where it acts on the mean.
    - Adam, AdamW and all others: 4-bit gradients (`QSGD`), which are unbiased and need no error
      feedback. Sparse gradients lose accuracy under Adam.

    Pass the optimizer to `compress` or `wrap` as well, so that residuals follow its learning
    rate.

    Args:
        optimizer: The optimizer of the model.
        steps: Number of optimizer steps of the full run, which the length of the warm-up
            depends on. Default: a warm-up of 1,000 steps.

    Example:
        >>> model = torch.nn.Linear(2, 2)
        >>> recommended(torch.optim.SGD(model.parameters(), lr=0.1), steps=500).sparsify.ratio
        0.01
    """
    if type(optimizer) is torch.optim.SGD:
        share = WARM_UP_STEPS if steps is None else WARM_UP
        return Compressed(
            TopK(0.01), QSGD(8), warm_up=share, steps=steps, dense_below=DENSE_BELOW
        )
    return Compressed(quantize=QSGD(4), error_feedback=False, dense_below=DENSE_BELOW)


def recommended_for(function: str, optimizer: torch.optim.Optimizer | None) -> Method:
    """Return the recommended method of an optimizer that a function was given."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(
            f"{function}: optimizer must be the optimizer of the model if the method is "
            f"'recommended', got {optimizer!r}"
        )
    return recommended(optimizer)


def check_optimizer(
    function: str, method: Method, optimizer: torch.optim.Optimizer, stacklevel: int
) -> None:
    """Warn if a method is known to lose accuracy under an optimizer."""
    momentum = float(getattr(method, "momentum", 0.0))
    doubled = [g for g in optimizer.param_groups if float(g.get("momentum", 0.0)) > 0]
    name, message = type(optimizer).__name__, None
    if momentum and is_adaptive(optimizer):
        message = (
            f"{method} contains momentum, and {name} adds its own; use plain SGD with it, or "
            f"method='recommended'"
        )
    elif momentum and doubled:
        message = (
            f"momentum is applied twice: by {method} and by {name}; set momentum=0 in one of "
            f"them"
        )
    elif not keeps_accuracy(method, optimizer):
        message = (
            f"sparse gradients lose accuracy under {name} (docs/torch.md); use "
            f"method='recommended' or sparcml.QSGD(4)"
        )
    if message is not None:
        warnings.warn(f"{function}: {message}", stacklevel=stacklevel)


def keeps_accuracy(method: Method, optimizer: torch.optim.Optimizer) -> bool:
    """Return whether a method is not known to lose accuracy under an optimizer."""
    return not (is_adaptive(optimizer) and _sparsifies(method))


def is_adaptive(optimizer: torch.optim.Optimizer) -> bool:
    """Return whether an optimizer divides by a mean of squared gradients."""
    return not isinstance(optimizer, torch.optim.SGD | torch.optim.LBFGS | torch.optim.ASGD)


def _sparsifies(method: Method) -> bool:
    return isinstance(method, DGC) or (
        isinstance(method, Compressed) and method.sparsify is not None
    )
