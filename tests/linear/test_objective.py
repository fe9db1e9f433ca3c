"""Tests of losses, penalties and learning rate schedules."""

import numpy as np
import pytest

from sparcml.linear import LOSSES, Constant, ExponentialDecay, InverseDecay, Penalty, WarmUp

MARGINS = np.array([-800.0, -3.0, -1.0, -0.2, 0.0, 0.7, 1.5, 900.0])


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_derivatives_are_differences(loss, label):
    z = MARGINS + 0.01  # away from the hinge's kink
    labels, h = np.full(z.size, label), 1e-5
    difference = (loss.value(z + h, labels) - loss.value(z - h, labels)) / (2 * h)
    np.testing.assert_allclose(loss.derivative(z, labels), difference, rtol=1e-4, atol=1e-8)
    if loss.curvature is not None:
        bend = (loss.derivative(z + h, labels) - loss.derivative(z - h, labels)) / (2 * h)
        assert bend.max() <= loss.curvature * (1 + 1e-6)


def test_penalty():
    weights = np.array([1.0, -2.0, 0.0])
    assert Penalty(l1=0.5, l2=2.0).value(weights) == pytest.approx(0.5 * 3 + 5)
    assert Penalty.mixed(0.5, 0.25) == Penalty(0.125, 0.375)
    with pytest.raises(ValueError, match="l1 must be finite and >= 0, got -1"):
        Penalty(l1=-1)


def test_schedules():
    epochs = np.array([0.0, 1.0, 3.0])
    np.testing.assert_allclose(Constant(0.3).at(epochs), 0.3)
    np.testing.assert_allclose(InverseDecay(1.0, 2.0).at(epochs), [1, 1 / 3, 1 / 7])
    np.testing.assert_allclose(InverseDecay(1.0, 1.0, 0.5).at(epochs), [1, 0.5**0.5, 0.5])
    np.testing.assert_allclose(ExponentialDecay(2.0, 0.5).at(epochs), [2, 1, 0.25])
    ramp = WarmUp(Constant(1.0), 2.0).at(epochs)
    np.testing.assert_allclose(ramp, [0.01, 0.51, 1.0])
    with pytest.raises(
        ValueError, match="InverseDecay: learning_rate must be finite and > 0"
    ):
        InverseDecay(0.0)
