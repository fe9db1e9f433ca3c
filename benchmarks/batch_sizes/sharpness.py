"""Sharpness of a minimum: the largest increase of the loss in a small box.

Keskar et al., "On large-batch training for deep learning" (2017), metric 2.1 in the full space:

    box = {z: |z_i| <= eps (|w_i| + 1)}
    sharpness = 100 (max over z in the box of f(w + z) - f(w)) / (1 + f(w))

f is the loss over all training images. The maximum is approximated from below by projected
gradient ascent: steps of a quarter of the box along the sign of the gradient, clipped to the
box; the largest value counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from .problem import loss

if TYPE_CHECKING:
    from torch import nn

    from .problem import Images

EPSILON = 1e-3
STEPS = 10


def sharpness(model: nn.Module, data: Images, epsilon: float = EPSILON) -> float:
    """Return the sharpness of the loss over `data` at the weights of a network."""
    parameters = list(model.parameters())
    saved = [p.detach().clone() for p in parameters]
    sides = [epsilon * (w.abs() + 1) for w in saved]
    start = largest = _gradients(model, data)
    for _ in range(STEPS):
        with torch.no_grad():
            for p, w, side in zip(parameters, saved, sides, strict=True):
                p.add_(p.grad.sign() * side / 4)
                p.copy_(torch.clamp(p, w - side, w + side))
        largest = max(largest, _gradients(model, data))
    with torch.no_grad():
        for p, w in zip(parameters, saved, strict=True):
            p.copy_(w)
            p.grad = None
    return 100 * (largest - start) / (1 + start)


def _gradients(model: nn.Module, data: Images) -> float:
    """Compute gradients over all images, and return the loss."""
    model.zero_grad()
    value = loss(model, data, slice(None))
    value.backward()
    return float(value.detach())
