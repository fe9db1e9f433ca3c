"""Methods for an optimizer that keep the accuracy of dense training."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import torch

from ..aggregate import Compressed, Dense, OneBitAdam, PowerSGD, evidence
from ..planning.candidates import KEPT
from ..quantize import TernGrad
from ..validation import as_integer
from .step_hooks import innermost, unwrap_optimizer

if TYPE_CHECKING:
    from ..aggregate import Method

RECOMMENDED = "recommended"
UNKNOWN_RATIO = evidence.UNKNOWN_RATIO


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
        optimizer: The optimizer of the model; wrappers such as Accelerate's are looked through.
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
    optimizer = innermost(unwrap_optimizer("recommended", optimizer))
    if steps is not None:
        as_integer("recommended", "steps", steps, 1)
    name = evidence.SGD if type(optimizer) is torch.optim.SGD else evidence.ADAMW
    return evidence.recommended_method(name, steps, slow_link=slow_link)


def recommended_for(function: str, optimizer: torch.optim.Optimizer | None) -> Method:
    """Return the recommended method of an optimizer that a function was given."""
    if optimizer is None:
        raise TypeError(
            f"{function}: optimizer must be the optimizer of the model if the method is "
            f"'recommended', got None; pass optimizer="
        )
    return recommended(optimizer)


def check_optimizer(
    function: str, method: Method, optimizer: torch.optim.Optimizer, stacklevel: int
) -> None:
    """Warn if a method is known to lose accuracy under an optimizer."""
    momentum = float(getattr(method, "momentum", 0.0))
    doubled = [g for g in optimizer.param_groups if float(g.get("momentum", 0.0)) > 0]
    name, message = type(innermost(optimizer)).__name__, None
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
        warn_once(f"{function}: {message}", stacklevel + 1)


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
        warn_once(
            f"{function}: {poor} loses accuracy on recurrent layers (docs/training.md): "
            f"{', '.join(map(repr, recurrent))} will be sent uncompressed; pass leave=() to "
            f"compress all, or use method='recommended'",
            stacklevel + 1,
        )
    return [f"{name}.*" if name else "*" for name in recurrent]


def keeps_accuracy(method: Method, optimizer: torch.optim.Optimizer) -> bool:
    """Return whether a method is not known to lose accuracy under an optimizer.

    Under Adam these are the dense mean, unbiased quantizers, `OneBitAdam`, and what was measured
    to keep it. All others delay gradients or most of an update, and gradients that are one step
    late lose accuracy there (docs/training.md).
    """
    if not is_adaptive(optimizer) or isinstance(method, OneBitAdam):
        return True
    if evidence.accuracy(method, evidence.ADAMW).verdict == KEPT:
        return True
    if isinstance(method, Compressed):
        quantize = method.quantize
        return method.sparsify is None and (quantize is None or not quantize.biased)
    return isinstance(method, Dense)


def warn_once(message: str, stacklevel: int) -> None:
    """Warn on one rank."""
    if not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0:
        warnings.warn(message, stacklevel=stacklevel)


def is_adaptive(optimizer: torch.optim.Optimizer) -> bool:
    """Return whether an optimizer divides by a mean of squared gradients."""
    others = torch.optim.SGD | torch.optim.LBFGS | torch.optim.ASGD
    return not isinstance(innermost(optimizer), others)
