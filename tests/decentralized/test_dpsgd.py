"""D-PSGD: the numbers of the problem Q8, and the mean."""

import numpy as np
import pytest

import sparcml
from sparcml import decentralized as dec

from .training import EIGHT, mix_only, quadratic, random_models, simulate, spread, train

RING = dec.ring(8)


def test_first_step_of_both_orders():
    combine_first = quadratic(dec.DPSGD(RING), 1)
    np.testing.assert_allclose(combine_first, EIGHT / 10, atol=1e-15)
    adapt_first = quadratic(dec.DPSGD(RING, adapt_then_combine=True), 1)
    expected = [0.266667, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.433333]
    np.testing.assert_allclose(adapt_first, expected, atol=5e-7)


@pytest.mark.parametrize(("adapt_first", "error"), [(False, 0.879746), (True, 0.770117)])
def test_fixed_point_has_the_bias_of_different_data(adapt_first, error):
    models = quadratic(dec.DPSGD(RING, adapt_then_combine=adapt_first), 60, start=3.5)
    assert np.abs(models - 3.5).max() == pytest.approx(error, abs=1e-6)
    W, c = RING.matrix(), 0.1
    if adapt_first:
        fixed = np.linalg.solve(np.eye(8) - (1 - c) * W, c * W @ EIGHT)
    else:
        fixed = np.linalg.solve(np.eye(8) - W + c * np.eye(8), c * EIGHT)
    np.testing.assert_allclose(models, fixed, atol=1e-7)


def test_the_mean_moves_by_the_mean_gradient():
    models = quadratic(dec.DPSGD(RING), 7, start=EIGHT**2)
    mean = (EIGHT**2).mean()
    for _ in range(7):
        mean -= 0.1 * (mean - 3.5)
    assert models.mean() == pytest.approx(mean, abs=1e-12)


def test_complete_graph_is_centralized_sgd():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((5, 12, 4))  # rows of each rank
    b = rng.standard_normal((5, 12))

    def body(comm):
        a, y = A[comm.rank], b[comm.rank]
        method = dec.DPSGD(dec.complete(5), adapt_then_combine=True)
        return train(comm, method, np.zeros(4), lambda x: a.T @ (a @ x - y), 20, 0.01)[0]

    x = np.zeros(4)
    for _ in range(20):
        x -= 0.01 * np.mean([a.T @ (a @ x - y) for a, y in zip(A, b, strict=True)], axis=0)
    for model in sparcml.launch(body, 5):
        np.testing.assert_allclose(model, x, rtol=1e-12)


def test_differences_shrink_by_lambda_2():
    models = random_models(8)
    before, _ = mix_only(dec.DPSGD(RING), models, 40)
    after, _ = mix_only(dec.DPSGD(RING), models, 50)
    rate = (spread(after) / spread(before)) ** 0.1
    assert rate == pytest.approx(RING.lambda_2, abs=1e-3)
    np.testing.assert_allclose(after.mean(0), models.mean(0), atol=1e-14)


def test_one_peer_graph_averages_exactly_in_log_n_steps():
    models, _ = mix_only(dec.DPSGD(dec.one_peer_exponential(16)), random_models(16), 4)
    np.testing.assert_allclose(models, np.tile(models.mean(0), (16, 1)), atol=1e-15)


def test_bytes_of_a_rank_do_not_depend_on_the_number_of_ranks():
    def body(comm):
        method, x = dec.DPSGD(dec.ring(comm.size)), np.ones(1000, np.float32)
        state = method.init(x)
        x, state = method.step(comm, x, x, state, lr=0.1)  # compares the settings
        comm.stats.reset()
        method.step(comm, x, x, state, lr=0.1)
        return comm.stats.bytes

    for n in (4, 16):
        assert set(simulate(body, n)) == {2 * (32 + 4000)}


@pytest.mark.parametrize(
    "method", [dec.DPSGD(RING), dec.GradientTracking(RING)], ids=["dpsgd", "tracking"]
)
def test_an_exchange_begun_before_the_gradient_gives_the_same_bits(method):
    def body(comm, *, overlapped):
        x = random_models(8, 50, np.float32)[comm.rank]
        state = method.init(x)
        for _ in range(4):
            begun = method.begin(comm, x, state) if overlapped else None
            x, state = method.step(comm, x, x - comm.rank, state, lr=0.1, begun=begun)
        return x

    plain = sparcml.launch(lambda comm: body(comm, overlapped=False), 8)
    overlapped = sparcml.launch(lambda comm: body(comm, overlapped=True), 8)
    np.testing.assert_array_equal(plain, overlapped)


def test_what_cannot_begin_early_returns_none():
    def body(comm):
        x = np.zeros(3)
        method = dec.DPSGD(dec.ring(2), adapt_then_combine=True)
        return method.begin(comm, x, method.init(x))

    assert sparcml.launch(body, 2) == [None, None]


def test_momentum_has_the_bias_of_a_larger_learning_rate():
    method = dec.DPSGD(RING, adapt_then_combine=True, momentum=0.9)
    W = RING.matrix()
    fixed = np.linalg.solve(np.eye(8) - 0.9 * W, 0.1 * W @ EIGHT)  # of lr = 0.1
    models = quadratic(method, 150, lr=0.01, start=fixed)
    assert np.abs(models - 3.5).max() == pytest.approx(0.770117, abs=1e-6)
    plain = quadratic(dec.DPSGD(RING, adapt_then_combine=True), 60, lr=0.01, start=fixed)
    assert np.abs(plain - 3.5).max() < 0.2


def test_momentum_of_one_rank_is_heavy_ball():
    models = quadratic(dec.DPSGD(dec.ring(1), momentum=0.5), 3, targets=[1.0])
    x, m = 0.0, 0.0
    for _ in range(3):
        m = 0.5 * m + (x - 1)
        x -= 0.1 * m
    assert models[0] == pytest.approx(x, abs=1e-15)
