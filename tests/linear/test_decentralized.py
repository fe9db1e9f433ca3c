"""Linear models trained with neighbours: each rank has a model, the result is their mean."""

from typing import Any

import numpy as np
import pytest

import sparcml
from sparcml import QSGD, TopK
from sparcml import decentralized as dec
from sparcml.linear import SGD, Constant, LogisticRegression, Penalty, SGDState

from .problems import problem, reference_sgd

RANKS = 4
TREE = dec.star(RANKS)
RING = dec.ring(RANKS)
METHODS = {
    "dpsgd": dec.DPSGD(RING, momentum=0.5),
    "one_peer": dec.DPSGD(dec.one_peer_exponential(RANKS)),
    "naive_quantized": dec.NaiveQuantized(RING, QSGD(8)),
    "dcd": dec.DCD(RING, QSGD(4)),
    "ecd": dec.ECD(RING, None),
    "choco": dec.Choco(RING, TopK(0.1), gamma=0.2),
    "push_sum": dec.PushSum(dec.exponential(RANKS)),
    "d2": dec.D2(RING.lazy()),
    "gradient_tracking": dec.GradientTracking(RING),
    "relay_sum": dec.RelaySum(TREE),
    "moniqua": dec.Moniqua(RING, theta=4.0),
    "adpsgd": dec.ADPSGD(RING),
}


def solver(method, **settings: Any):
    chosen: dict[str, Any] = {"epochs": 3, "batch_size": 12, "penalty": Penalty(l2=0.01)}
    return SGD(learning_rate=Constant(0.2), method=method, **(chosen | settings))


def on_ranks(sgd, rows, ranks=RANKS, **more):
    return sparcml.launch(lambda c: sgd.run(c, rows.part(c.rank, c.size), **more), ranks)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("ranks", [1, 3])
def test_complete_graph_equals_centralized_sgd(ranks, intercept):
    method = dec.DPSGD(dec.complete(ranks), adapt_then_combine=True)
    sgd = solver(method, intercept=intercept, intercept_rate=0.5)
    rows = problem()
    w, b = reference_sgd(sgd, rows)
    for state in on_ranks(sgd, rows, ranks):
        np.testing.assert_allclose(state.weights, w, rtol=1e-10, atol=1e-12)
        assert state.intercept == pytest.approx(b, rel=1e-10)
        assert state.consensus_distance < 1e-12


def test_all_methods_are_in_the_roster():
    assert {method.name for method in METHODS.values()} == set(dec.METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_mean_of_the_models(name):
    """All ranks end with the mean of their models, which learns as SGD with an allreduce does."""
    sgd, rows = solver(METHODS[name], epochs=6), problem()
    states = on_ranks(sgd, rows)
    for state in states:
        np.testing.assert_array_equal(state.averaged, states[0].averaged)
        assert state.losses == states[0].losses
        assert state.consensus_distance == states[0].consensus_distance
    if name != "push_sum":  # whose mean has weights
        own = [np.append(s.model.weights, s.model.numbers[2]) for s in states]
        np.testing.assert_allclose(states[0].averaged, np.mean(own, axis=0), atol=1e-9)
    allreduce = on_ranks(solver(None, epochs=6), rows, 1)[0]
    assert states[0].losses[-1] < 1.1 * allreduce.losses[-1] < 0.85 * allreduce.losses[0]
    assert states[0].weights.shape == (rows.features,)
    assert (
        states[0].weights_of(np.array([5, 7])).tolist()
        == states[0].weights[[5, 7]].tolist()
    )


@pytest.mark.parametrize("name", [name for name in METHODS if name != "adpsgd"])
def test_saved_state_resumes_bit_for_bit(name):
    sgd, rows = solver(METHODS[name]), problem(60)
    saved = {}

    def interrupted(comm):
        def watch(progress, state):
            if (progress.epoch, progress.step) == (1, 2):
                saved[comm.rank] = {k: v.copy() for k, v in state.arrays().items()}

        part = rows.part(comm.rank, comm.size)
        whole = sgd.run(comm, part, watch=watch, every=1)
        return whole, sgd.run(comm, part, SGDState.of(saved[comm.rank]))

    for whole, resumed in sparcml.launch(interrupted, RANKS):
        assert whole.arrays().keys() == resumed.arrays().keys()
        for key, array in whole.arrays().items():
            np.testing.assert_array_equal(array, resumed.arrays()[key], err_msg=key)


def test_validation_loss_is_that_of_the_mean_model():
    rows = problem()
    (state, *_) = sparcml.launch(
        lambda c: solver(METHODS["dcd"]).run(
            c, rows.part(c.rank, c.size), validation=rows.part(c.rank, c.size)
        ),
        RANKS,
    )
    margins = rows.to_scipy() @ state.weights + state.intercept
    loss = np.logaddexp(0.0, -rows.labels * margins).mean()
    assert state.validation_losses[-1] == pytest.approx(loss, rel=1e-9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"penalty": Penalty(l1=0.1)}, "SGD: penalty must be without l1"),
        ({"momentum": 0.9}, r"SGD: momentum must be 0, got 0.9; use DPSGD\(momentum=\)"),
        ({"adaptive": 1e-6}, "SGD: adaptive must be None, got 1e-06"),
        ({"communication": "dense"}, "SGD: communication must be sparse"),
        ({"algorithm": "ring"}, "SGD: algorithm must be auto, got ring"),
    ],
)
def test_settings_without_meaning_are_refused(settings, message):
    with pytest.raises(ValueError, match=f"{message}.*decentralized method"):
        solver(dec.DPSGD(RING), **settings)


def test_topology_for_another_number_of_ranks():
    with pytest.raises(ValueError, match=r"topology must be for 3 ranks, got ring\(4\)"):
        on_ranks(solver(dec.DPSGD(RING)), problem(), 3)


@pytest.mark.filterwarnings("ignore:LogisticRegression. not converged")
def test_estimators():
    """`fit` and `partial_fit` give all ranks the mean model, close to that of SGD."""
    rows = problem(400, 40, 9)
    X, y = rows.to_scipy(), rows.labels

    def work(comm):
        part = slice(comm.rank, None, comm.size)
        settings = {"comm": comm, "random_state": 1, "batch_size": 8, "max_iter": 5}
        model = LogisticRegression(method=dec.DCD(RING, QSGD(8)), **settings)
        model.fit(X[part], y[part])
        fitted = model.coef_.copy(), model.score(X, y)
        model.partial_fit(X[part], y[part])
        return *fitted, model.coef_

    results = sparcml.launch(work, RANKS)
    for coef, score, later in results:
        np.testing.assert_array_equal(coef, results[0][0])
        np.testing.assert_array_equal(later, results[0][2])
        assert score > 0.9
        assert not np.array_equal(coef, later)
