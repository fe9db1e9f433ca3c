"""Recipes for large batches: optimizer, learning rate by batch size, compression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sparcml import QSGD, Compressed, TopK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from torch import Tensor

    from sparcml import Method

MIDDLE = 256  # batch size at which learning rates are chosen
MOMENTUM = 0.9
TRUST = 0.02  # of LARS
RHO = 0.05  # of SAM


@dataclass(frozen=True)
class Recipe:
    """An optimizer and its learning rate.

    Attributes:
        title: Name in tables.
        optimizer: Creates the optimizer for parameters and a learning rate.
        rate: Learning rate at the middle batch size.
        power: Exponent of the batch size in the learning rate.
        method: Creates the compression method for a seed.
        method_title: Its name in tables.
        two_passes: Whether a step computes two gradients, as SAM does.
    """

    title: str
    optimizer: Callable[[Iterable[Tensor], float], Any]
    rate: float
    power: float
    method: Callable[[int], Method]
    method_title: str
    two_passes: bool = False

    def rate_at(self, batch: int) -> float:
        """Return the learning rate at a batch size."""
        return float(self.rate * (batch / MIDDLE) ** self.power)


def _sgd(parameters: Iterable[Tensor], rate: float) -> Any:
    from torch.optim import SGD

    return SGD(parameters, lr=rate, momentum=MOMENTUM)


def _lars(parameters: Iterable[Tensor], rate: float) -> Any:
    from pytorch_optimizer import LARS

    return LARS(parameters, lr=rate, momentum=MOMENTUM, trust_coefficient=TRUST)


def _lamb(parameters: Iterable[Tensor], rate: float) -> Any:
    from pytorch_optimizer import Lamb

    return Lamb(parameters, lr=rate)


def _sam(parameters: Iterable[Tensor], rate: float) -> Any:
    from pytorch_optimizer import SAM
    from torch.optim import SGD

    return SAM(parameters, SGD, rho=RHO, lr=rate, momentum=MOMENTUM)


def _sparse(seed: int) -> Method:
    return Compressed(TopK(k=16, bucket=512), seed=seed)


def _quantized(seed: int) -> Method:
    return Compressed(quantize=QSGD(4), error_feedback=False, seed=seed)


SPARSE, QUANTIZED = "TopK 16 of 512", "QSGD 4 bit"

# Learning rates were chosen from dense runs at the middle batch size, before all others: the
# smallest within one standard error of the fewest steps to the target, mean of 3 seeds, among
# those of claim 29's table. The length of a step of LARS and LAMB does not depend on that of the
# gradient, and noise falls as the square root of the batch size.
RECIPES = {
    "sgd": Recipe("SGD", _sgd, 0.1, 1.0, _sparse, SPARSE),
    "lars": Recipe("LARS", _lars, 0.4, 0.5, _sparse, SPARSE),
    "lamb": Recipe("LAMB", _lamb, 0.02, 0.5, _quantized, QUANTIZED),
    "sam": Recipe("SAM", _sam, 0.1, 1.0, _sparse, SPARSE, two_passes=True),
}
