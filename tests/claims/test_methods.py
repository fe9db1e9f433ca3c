"""Experiments on compression methods, on small inputs: bounds, slopes and counts."""

import numpy as np
import pytest
from claims import (
    averaging,
    gradient_error,
    mean_estimation,
    one_bit,
    powersgd,
    qsgd_bounds,
    qsgd_converges,
    three_questions,
    topk_converges,
)
from methods import ROSTER
from workloads.data import place

import sparcml

needs_data = pytest.mark.skipif(not place().is_dir(), reason="no data")


def test_the_example_of_the_talk():
    rows = one_bit.measure("example")
    assert [row["got"] for row in rows] == pytest.approx(one_bit.SAID)
    assert all(row["bits"] < 1.1 for row in one_bit.measure("bits"))


@pytest.mark.parametrize("shape", qsgd_bounds.SHAPES)
def test_qsgd_keeps_its_bounds(shape):
    (row,) = qsgd_bounds.measure(shape, 256, 7, trials=60)
    assert abs(row["bias_sigma"]) < qsgd_bounds.SIGMAS
    most = qsgd_bounds.bounds(row)
    for key in ("nnz", "second", "variance", "bits"):
        assert row[key] <= 1.001 * most[key]


def test_a_bias_would_be_noticed(monkeypatch):
    """Decoded values that are 2 % too small are biased."""
    right = sparcml.QSGD.decode

    def wrong(self, code, out=None):
        return right(self, code) * np.float32(0.98)

    monkeypatch.setattr(sparcml.QSGD, "decode", wrong)
    (row,) = qsgd_bounds.measure("gaussian", 256, 127, trials=60)
    assert row["bias_sigma"] > qsgd_bounds.SIGMAS


def test_code_sizes():
    fixed = qsgd_converges.sizes("QSGD s = 32, fixed width")
    elias = qsgd_converges.sizes("QSGD s = 32, Elias")
    assert fixed["bits"] == pytest.approx(7 + 32 / 1024, rel=1e-3)
    assert elias["entropy"] < elias["bits"] < 3.2
    assert elias["moment"] == fixed["moment"] <= 2


def test_levels_that_halve_spread_less():
    uniform, halved = (qsgd_converges.spread(name, 1024) for name in ("QSGD", "NUQSGD"))
    assert halved["variance"] < uniform["variance"]


@pytest.mark.parametrize("family", mean_estimation.families())
def test_no_code_beats_the_bounds(family):
    (row,) = mean_estimation.measure(family, 0, trials=1)
    assert row["error"] >= mean_estimation.any_code(row["bits"])
    if not row["biased"] and row["bits"] < 1:
        assert row["error"] >= mean_estimation.few_bits(row["bits"])


def test_codes_of_more_ranks_average_out():
    errors = [averaging.measure("exact sum", p, trials=3)[0] for p in (2, 8)]
    assert errors[0]["error"] / errors[1]["error"] == pytest.approx(4, rel=0.2)
    assert errors[0]["steps"] > 2 * errors[1]["steps"]


def test_powersgd_of_ranks_is_that_of_their_mean():
    (row,) = powersgd.measure(2, 2)
    assert row["apart"] < powersgd.SAME
    assert row["best"] <= row["errors"][-1] < row["errors"][0]


def test_the_slope_is_that_of_the_loss():
    rng = np.random.default_rng(0)
    a, y, x = rng.standard_normal((9, 4)), rng.random(9), rng.standard_normal(4)

    def loss(x):
        return np.mean((1 / (1 + np.exp(-a @ x)) - y) ** 2)

    rises = [(loss(x + h) - loss(x - h)) / 2e-6 for h in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(topk_converges.slope(a, y, x), rises, rtol=1e-3)


def test_every_method_is_asked_all_questions():
    asked = [case[2:] for case in three_questions.cases() if case[0] == "scan"]
    assert len(three_questions.SEEDS) >= 3
    assert sorted(asked) == sorted(
        (e.name, 1.0, seed) for e in ROSTER for seed in three_questions.SEEDS
    )
    assert len({entry.name for entry in ROSTER}) == len(ROSTER)


@needs_data
@pytest.mark.slow
def test_more_bytes_say_more_of_a_real_gradient():
    few, many = (gradient_error.measure(f"TopK {i}") for i in (0, 4))
    assert few["nbytes"] < many["nbytes"]
    assert few["error"] > many["error"]
    assert few["seeds"] == len(gradient_error.SEEDS) >= 3
    one = gradient_error.error_of(sparcml.TopK(0.001), 2)
    assert one["bias"] == pytest.approx(-(one["error"] ** 2), rel=1e-4)
