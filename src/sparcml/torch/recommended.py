"""Methods for an optimizer that keep the accuracy of dense training."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import torch

from ..aggregate import Adaptive, Compressed, Dense, OneBitAdam, PowerSGD, Schedule
from ..quantize import QSGD, TernGrad
from ..validation import as_integer

if TYPE_CHECKING:
    from ..aggregate import Method

RECOMMENDED = "recommended"
RATIO = 0.03  # in the second half of a run
MULTIPLES = (0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0, 16.0)  # of the ratio, for one layer
UNKNOWN_RATIO, WARM_UP_STEPS = 0.025, 1000  # if the number of steps is unknown
DENSE_BELOW = 1000  # values; smaller matrices are sent uncompressed


def recommended(
    optimizer: torch.optim.Optimizer, steps: int | None = None, *, slow_link: bool = False
) -> Method:
    """Return the method that keeps the accuracy of dense training under an optimizer.

    - SGD, with or without momentum: the largest entries as 4-bit values, with error feedback.
      Their ratio falls from 25 % to 3 % over the run (`Schedule.falling`); if the number of
      steps is unknown, to 2.5 % within 500 steps. Layers share the bytes of that ratio by
      their measured errors (`Adaptive`). Momentum stays in the optimizer, where it acts on
      the mean.
    - Adam, AdamW and all others: 3-bit gradients (`QSGD`), which are unbiased and need no error
      feedback. Whatever delays gradients, such as error feedback, loses accuracy under Adam.

    Pass the optimizer to `compress` or `wrap` as well, so that residuals follow its learning
    rate.

    Args:
        optimizer: The optimizer of the model.
        steps: Number of optimizer steps of the full run. Pass it if you know it: fewer bytes
            are sent at the same accuracy.
        slow_link: Under Adam, send 60 to 80 % fewer bytes: 2-bit gradients, 3-bit sums and a
            Rice code, which take more processor time. The method for SGD stays the same.

    Example:
        >>> model = torch.nn.Linear(2, 2)
        >>> sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> recommended(sgd, steps=500).sparsify.at(499).ratio
        0.03
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(
            f"recommended: optimizer must be an optimizer of torch, got {optimizer!r}"
        )
    if steps is not None:
        as_integer("recommended", "steps", steps, 1)
    if type(optimizer) is torch.optim.SGD:
        falling = Schedule.warm_up(UNKNOWN_RATIO, WARM_UP_STEPS)
        if steps is not None:
            falling = Schedule.falling(RATIO, steps)
        return Adaptive(falling, QSGD(4), dense_below=DENSE_BELOW, options=MULTIPLES)
    quantize, small = QSGD(3, bucket=512), None
    if slow_link:
        quantize = QSGD(2, bucket=1024, coder="rice", reduced_bits=3)
        small = QSGD(8, bucket=128)
    return Compressed(
        quantize=quantize, error_feedback=False, dense_below=DENSE_BELOW, small=small
    )


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
            f"{method} delays gradients, which loses accuracy under {name} "
            f"(docs/training.md); use method='recommended'"
        )
    if message is not None:
        _warn_once(f"{function}: {message}", stacklevel + 1)


def unsuitable_layers(
    function: str, method: Method, model: torch.nn.Module, stacklevel: int
) -> list[str]:
    """Return patterns of the layers that a method does not suit, and warn of them.

    These are recurrent layers, where TernGrad and PowerSGD lose 4 to 6 % of the perplexity of a
    word LSTM. Output layers of many classes are recognized by their gradients instead, see
    `sparcml.aggregate.fence`.
    """
    poor = method if isinstance(method, PowerSGD) else getattr(method, "quantize", None)
    if not isinstance(poor, TernGrad | PowerSGD):
        return []
    recurrent = [n for n, m in model.named_modules() if isinstance(m, torch.nn.RNNBase)]
    if recurrent:
        _warn_once(
            f"{function}: {poor} loses accuracy on recurrent layers (docs/training.md): "
            f"{', '.join(map(repr, recurrent))} will be sent uncompressed; pass leave=() to "
            f"compress all, or use method='recommended'",
            stacklevel + 1,
        )
    return [f"{name}.*" if name else "*" for name in recurrent]


def keeps_accuracy(method: Method, optimizer: torch.optim.Optimizer) -> bool:
    """Return whether a method is not known to lose accuracy under an optimizer.

    Under Adam these are the dense mean, unbiased quantizers and `OneBitAdam`. All others delay
    gradients or most of an update, and gradients that are one step late lose accuracy there
    (docs/training.md).
    """
    if not is_adaptive(optimizer) or isinstance(method, OneBitAdam):
        return True
    if isinstance(method, Compressed):
        quantize = method.quantize
        return method.sparsify is None and (quantize is None or not quantize.biased)
    return isinstance(method, Dense)


def _warn_once(message: str, stacklevel: int) -> None:
    """Warn on one rank."""
    if not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0:
        warnings.warn(message, stacklevel=stacklevel)


def is_adaptive(optimizer: torch.optim.Optimizer) -> bool:
    """Return whether an optimizer divides by a mean of squared gradients."""
    return not isinstance(optimizer, torch.optim.SGD | torch.optim.LBFGS | torch.optim.ASGD)
