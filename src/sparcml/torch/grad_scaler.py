"""Detection of a GradScaler, which skips the steps of single ranks."""

from __future__ import annotations

import sys
from typing import Any

MODULE, FUNCTION = "torch.amp.grad_scaler", "_maybe_opt_step"
MAX_FRAMES = (
    16  # between a hook of the optimizer and the scaler, with wrappers of schedulers
)


def called_by_scaler() -> bool:
    """Return whether a scaler that may skip steps is calling `optimizer.step()`.

    Torch keeps no reference from an optimizer to its scaler, so the stack has to tell. A disabled
    scaler, and one that leaves the decision to a fused optimizer, call `step` on every rank.
    """
    frame = sys._getframe(1)
    for _ in range(MAX_FRAMES):
        if frame.f_code.co_name == FUNCTION and frame.f_globals.get("__name__") == MODULE:
            return True
        if frame.f_back is None:
            break
        frame = frame.f_back
    return False


def unscales_in_step(optimizer: Any) -> bool:
    """Return whether a scaler leaves the gradients scaled, for a fused optimizer.

    It sets these attributes for the time of the step.
    """
    return hasattr(optimizer, "grad_scale") or hasattr(optimizer, "found_inf")
