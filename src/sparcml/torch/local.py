"""Forms of local training for PyTorch: one class for each method of `sparcml.local`."""

from __future__ import annotations

import torch

from .. import local
from .local_training import LocalTraining


class LocalSGD(LocalTraining):
    """Model averaging, see `sparcml.local.LocalSGD` and `LocalTraining`."""

    form = local.LocalSGD


class BMUF(LocalTraining):
    """Blockwise model-update filtering, see `sparcml.local.BMUF` and `LocalTraining`."""

    form = local.BMUF


class DiLoCo(LocalTraining):
    """DiLoCo and Streaming DiLoCo, see `sparcml.local.DiLoCo` and `LocalTraining`."""

    form = local.DiLoCo


class SparseLoCo(LocalTraining):
    """SparseLoCo, see `sparcml.local.SparseLoCo` and `LocalTraining`."""

    form = local.SparseLoCo


class DeMo(LocalTraining):
    """DeMo, see `sparcml.local.DeMo` and `LocalTraining`.

    The optimizer must be `torch.optim.SGD(model.parameters(), lr=...)` without momentum and
    weight decay: DeMo has a momentum and a decoupled weight decay of its own, and its step is a
    sign. Without `outer_lr`, the length of its step is the learning rate of the optimizer.

    Raises:
        TypeError: If the optimizer is of another class.
        ValueError: If it has momentum or weight decay.
    """

    form = local.DeMo

    def _check_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        if not isinstance(optimizer, torch.optim.SGD):
            raise TypeError(
                f"DeMo: optimizer must be a torch.optim.SGD, got {type(optimizer).__name__}; DeMo "
                f"has a momentum of its own and steps by a sign, so pass "
                f"torch.optim.SGD(model.parameters(), lr=...)"
            )
        for group in optimizer.param_groups:
            for setting, remedy in (
                ("momentum", "pass decay= to DeMo, which is its momentum"),
                (
                    "weight_decay",
                    "pass weight_decay= to DeMo, which decouples it from the sign",
                ),
            ):
                if group[setting]:
                    raise ValueError(
                        f"DeMo: {setting} of the optimizer must be 0, got {group[setting]}; "
                        f"{remedy}"
                    )

    def _outer_lr(self) -> float | None:
        if "outer_lr" in self._given:
            return None
        rates = {float(group["lr"]) for group in self.optimizer.param_groups}
        if len(rates) > 1:
            raise ValueError(
                f"DeMo: all parameter groups must have the same learning rate, got "
                f"{', '.join(map(str, sorted(rates)))}; or pass outer_lr="
            )
        return rates.pop()


class SPARTA(LocalTraining):
    """SPARTA, see `sparcml.local.SPARTA` and `LocalTraining`."""

    form = local.SPARTA
