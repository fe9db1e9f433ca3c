"""What a margin w.x + b costs against its label, and how that changes with the margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]
    Function = Callable[[Doubles, Doubles], Doubles]


@dataclass(frozen=True)
class Loss:
    """A convex function of margin and label.

    Attributes:
        name: What users call it.
        code: What the compiled loops call it.
        signs: Whether labels are -1 and 1; otherwise they are any numbers.
        curvature: The largest second derivative by the margin; None if there is none.
        value: Of margins and labels.
        derivative: By the margin.
    """

    name: str
    code: int
    signs: bool
    curvature: float | None
    value: Function
    derivative: Function


def _logistic(z: Doubles, y: Doubles) -> Doubles:
    return np.logaddexp(0.0, -y * z)


def _logistic_slope(z: Doubles, y: Doubles) -> Doubles:
    small = np.exp(-np.abs(z))  # never overflows
    return -y * np.where(y * z > 0, small, 1.0) / (1.0 + small)


def _hinge(z: Doubles, y: Doubles) -> Doubles:
    return np.maximum(0.0, 1.0 - y * z)


def _hinge_slope(z: Doubles, y: Doubles) -> Doubles:
    return np.where(y * z < 1.0, -y, 0.0)


def _squared_hinge(z: Doubles, y: Doubles) -> Doubles:
    return np.square(_hinge(z, y))


def _squared_hinge_slope(z: Doubles, y: Doubles) -> Doubles:
    return -2.0 * y * _hinge(z, y)


def _squared(z: Doubles, y: Doubles) -> Doubles:
    return 0.5 * np.square(z - y)


def _squared_slope(z: Doubles, y: Doubles) -> Doubles:
    return z - y


ROSTER = (
    Loss("logistic", 0, True, 0.25, _logistic, _logistic_slope),
    Loss("hinge", 1, True, None, _hinge, _hinge_slope),
    Loss("squared_hinge", 2, True, 2.0, _squared_hinge, _squared_hinge_slope),
    Loss("squared", 3, False, 1.0, _squared, _squared_slope),
)
LOSSES = {loss.name: loss for loss in ROSTER}


def loss_of(name: str) -> Loss:
    """The loss of that name; ValueError if there is none."""
    if name not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {name!r}")
    return LOSSES[name]
