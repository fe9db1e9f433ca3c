"""OneBit: the properties of 1-bit SGD, on columns and buckets."""

import numpy as np
import pytest

from sparcml import OneBit

BOTH = (OneBit(), OneBit(threshold="mean"))


def matrix(rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((rows, columns)) + rng.standard_normal(columns)).astype(
        "f4"
    )


def coded(quantizer, values):
    return quantizer.decode(quantizer.encode(values))


def test_the_example_of_the_talk():
    values = np.array([0.1, -0.3, 0.5, -0.1, 0], np.float32)
    np.testing.assert_array_equal(
        coded(OneBit(), values), np.array([0.2, -0.2, 0.2, -0.2, 0.2], np.float32)
    )


def test_the_residual_of_every_column_sums_to_zero():
    acc = matrix(1000, 30)
    residual = acc.astype(np.float64) - coded(OneBit(), acc)
    np.testing.assert_allclose(residual.sum(axis=0), 0, atol=1e-3)
    flat = acc.ravel()
    left = flat.astype(np.float64) - coded(OneBit(bucket=500), flat)
    np.testing.assert_allclose(left.reshape(-1, 500).sum(axis=1), 0, atol=1e-3)


def test_the_levels_of_the_mean_threshold():
    acc = matrix(777, 5).astype(np.float64)
    mean = acc.mean(axis=0)
    spread = np.abs(acc - mean).sum(axis=0) / len(acc)
    want = np.where(acc >= mean, mean + spread, mean - spread)
    np.testing.assert_allclose(coded(OneBit(threshold="mean"), acc), want, rtol=1e-5)


@pytest.mark.parametrize("quantizer", BOTH, ids=str)
def test_what_is_owed_is_sent_in_the_end(quantizer):
    """Telescoping: what was sent and the last residual are all gradients together."""
    sent, owed, residual = 0.0, 0.0, np.zeros((64, 9), np.float32)
    for step in range(50):
        gradient = matrix(64, 9, step)
        acc = residual + gradient
        message = coded(quantizer, acc)
        residual = acc - message
        sent, owed = sent + message.astype(np.float64), owed + gradient.astype(np.float64)
    np.testing.assert_allclose(sent + residual, owed, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("quantizer", BOTH, ids=str)
@pytest.mark.parametrize(("rows", "columns"), [(8, 1), (5, 7), (1000, 3), (1, 64), (3, 1)])
def test_a_bit_a_value_and_two_floats_a_column(quantizer, rows, columns):
    code = quantizer.encode(matrix(rows, columns))
    assert code.nbytes == -(-(rows * columns + 64 * columns) // 8)
    assert code.shape == (rows, columns)


def test_no_other_levels_are_nearer():
    """Moving a level of the zero threshold, either way, makes the error larger."""
    values = matrix(500, 1).ravel()
    decoded = coded(OneBit(), values).astype(np.float64)
    error = ((values - decoded) ** 2).sum()
    for high in (False, True):
        for by in (-0.1, -0.01, 0.01, 0.1):
            moved = decoded + by * ((values >= 0) == high)
            assert ((values - moved) ** 2).sum() > error


def test_columns_are_coded_one_by_one():
    acc = matrix(100, 6)
    for quantizer in BOTH:
        apart = np.stack([coded(quantizer, column) for column in acc.T], axis=1)
        np.testing.assert_array_equal(coded(quantizer, acc), apart)
    whole = coded(OneBit(bucket=600), acc)  # buckets take the array as it lies in memory
    np.testing.assert_array_equal(whole.ravel(), coded(OneBit(), acc.ravel()))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (1,), (2, 3, 4)])
@pytest.mark.parametrize("quantizer", [*BOTH, OneBit(bucket=4)], ids=str)
def test_shapes(quantizer, shape):
    values = np.ones(shape)
    decoded = coded(quantizer, values)
    assert decoded.dtype == np.float32
    np.testing.assert_array_equal(decoded, values)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("quantizer", BOTH, ids=str)
def test_what_is_no_number_never_becomes_one(quantizer, bad):
    acc = matrix(40, 3)
    acc[7, 1] = bad
    with pytest.raises(ValueError, match=f"got {bad} at index 22;"):  # by rows
        quantizer.encode(acc)
    decoded = coded(quantizer.propagating(), acc)
    assert not np.isfinite(decoded[7, 1])
    assert np.isfinite(decoded[:, [0, 2]]).all()  # other columns do not suffer
    if quantizer.threshold == "zero":
        np.testing.assert_equal(decoded[7, 1], np.float32(bad))


def test_bad_settings_and_codes():
    with pytest.raises(ValueError, match="bucket must be from 1 to"):
        OneBit(bucket=0)
    with pytest.raises(ValueError, match="threshold must be 'zero' or 'mean'"):
        OneBit(threshold="median")
    code = OneBit().encode(np.ones(9, np.float32))
    with pytest.raises(ValueError, match="code of 17 values must have"):
        OneBit().decode(type(code)(17, code.data))
    code.data[-1] |= 2
    with pytest.raises(ValueError, match="bits beyond the last"):
        OneBit().decode(code)


def resting_place(feedback):
    """Where the first value of a parabola around 0 ends up, on average.

    Its noise is 3 in a quarter of all steps and -1 otherwise: none on average, but the sign
    says -1. The noise of the others is larger, so that they set the levels.
    """
    rng = np.random.default_rng(2)
    x, residual, places = np.zeros(20, np.float32), np.zeros(20, np.float32), []
    for _ in range(6000):
        noise = 10 * rng.choice([-1, 1], 20)
        noise[0] = 3 if rng.random() < 0.25 else -1
        acc = (x + noise).astype(np.float32) + residual
        message = coded(OneBit(), acc)
        if feedback:
            residual = acc - message
        x = x - np.float32(0.01) * message
        places.append(x[0])
    return abs(np.mean(places[3000:]))


@pytest.mark.slow
def test_only_error_feedback_makes_it_converge():
    assert resting_place(feedback=False) > 0.8
    assert resting_place(feedback=True) < 0.08
