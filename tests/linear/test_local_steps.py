"""SGD with local steps: ranks average the changes of their weights after several of their own."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import sparcml
from sparcml import Compressed, TopK
from sparcml import decentralized as dec
from sparcml.aggregate import MajorityVote
from sparcml.linear import LOSSES, SGD, Constant, ExponentialDecay, Penalty, SGDState
from sparcml.linear.data.shuffle import permuted_positions

from .problems import dense, problem, reference_sgd
from .test_column_index import spread


def solver(local_steps, **settings: Any):
    chosen: dict[str, Any] = {
        "epochs": 3,
        "batch_size": 12,
        "penalty": Penalty(l2=0.01),
        "learning_rate": ExponentialDecay(0.4, 0.8),
        "intercept_rate": 0.5,
    }
    return SGD(local_steps=local_steps, **(chosen | settings))


def on_ranks(sgd, rows, ranks, **more):
    return sparcml.launch(lambda c: sgd.run(c, rows.part(c.rank, c.size), **more), ranks)


def reference(sgd, rows, ranks):
    """Return weights and intercept of dense models, one per rank, that are averaged."""
    X, total, loss = dense(rows), rows.total, LOSSES[sgd.loss]
    owner = np.empty(total, int)
    for rank in range(ranks):
        owner[rank * total // ranks : (rank + 1) * total // ranks] = rank
    w, b = np.zeros((ranks, rows.features)), np.zeros(ranks)
    for epoch in range(sgd.epochs):
        order = np.argsort(permuted_positions(np.arange(total), total, sgd.seed, epoch))
        starts = range(0, total, sgd.batch_size)
        for number, start in enumerate(starts, 1):
            batch = order[start : start + sgd.batch_size]
            rate = sgd.learning_rate.at(np.array([epoch + start / total]))[0]
            for m in range(ranks):
                mine = batch[owner[batch] == m]
                slopes = loss.derivative(X[mine] @ w[m] + b[m], rows.labels[mine])
                slopes = slopes * ranks / len(batch)
                w[m] = (1 - rate * sgd.decay) * w[m] - rate * (slopes @ X[mine])
                b[m] -= rate * sgd.intercept_rate * slopes.sum() * sgd.intercept
            if number % sgd.local_steps == 0 or number == len(starts):
                w[:], b[:] = w.mean(0), b.mean()
    return w[0], b[0]


@pytest.mark.parametrize("l2", [0.01, 0.0])  # one step at a time, and compiled rounds
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("local_steps", [2, 3, 100])
def test_weights_are_the_mean_of_dense_models(local_steps, ranks, intercept, l2):
    sgd, rows = solver(local_steps, intercept=intercept, penalty=Penalty(l2=l2)), problem()
    states = on_ranks(sgd, rows, ranks)
    w, b = reference(sgd, rows, ranks)
    for state in states:
        np.testing.assert_allclose(state.weights, w, rtol=1e-9, atol=1e-12)
        assert state.intercept == pytest.approx(b, rel=1e-9)
        np.testing.assert_array_equal(state.weights, states[0].weights)
    if ranks == 1:
        assert states[0].losses == pytest.approx(
            on_ranks(solver(1, intercept=intercept, penalty=Penalty(l2=l2)), rows, 1)[
                0
            ].losses
        )


def test_reference_with_one_step_per_round_is_sgd():
    sgd, rows = solver(1), problem()
    for expected, found in zip(
        reference_sgd(sgd, rows), reference(sgd, rows, 3), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_strong_penalty():
    """The factor of the weights is folded into them in mid-round."""
    sgd, rows = (
        solver(7, penalty=Penalty(l2=0.9), learning_rate=Constant(1.0), batch_size=3),
        problem(),
    )
    w, b = reference(sgd, rows, 3)
    state = on_ranks(sgd, rows, 3)[0]
    np.testing.assert_allclose(state.weights, w, rtol=1e-8, atol=1e-12)
    assert state.intercept == pytest.approx(b, rel=1e-8)


@pytest.mark.parametrize("how", ["all", "topk", "dense"])
def test_other_exchanges(how):
    """Without losses the weights are the same; else what is not sent stays in the residual."""
    rows, plain = problem(), on_ranks(solver(4), problem(), 3)[0]
    settings: dict[str, dict[str, Any]] = {
        "all": {"method": Compressed(sparsify=TopK(1.0))},
        "topk": {"method": Compressed(sparsify=TopK(0.05))},
        "dense": {"communication": "dense"},
    }
    states = on_ranks(solver(4, **settings[how]), rows, 3)
    for state in states:
        np.testing.assert_array_equal(state.weights, states[0].weights)
    if how != "topk":
        np.testing.assert_allclose(states[0].weights, plain.weights, atol=1e-12)
        return
    assert any(np.any(state.method["residual"]) for state in states)
    assert states[0].losses[-1] < states[0].losses[0]


def continued(sgd, rows, states, comm):
    return sgd.run(comm, rows.part(comm.rank, comm.size), states[comm.rank])


@pytest.mark.parametrize("is_wide", [False, True])  # with an index of active columns
@pytest.mark.parametrize("l2", [0.01, 0.0])
@pytest.mark.parametrize("method", [None, Compressed(sparsify=TopK(0.05))])
def test_resume_at_any_step(method, l2, is_wide):
    """A state saved within a round continues bit for bit."""
    settings = {"method": method, "algorithm": "ssar_ring", "penalty": Penalty(l2=l2)}
    sgd, rows, ranks = solver(4, **settings), problem(), 3
    if is_wide:
        rows = spread(rows)
    saved: list[dict[int, Any]] = [{} for _ in range(ranks)]

    def body(comm):
        def keep(progress, state):
            arrays = {n: np.array(a) for n, a in state.arrays().items()}
            saved[comm.rank][10 * progress.epoch + progress.step] = arrays

        return sgd.run(comm, rows.part(comm.rank, ranks), watch=keep, every=1)

    whole = sparcml.launch(body, ranks)
    assert {"shared" in a for a in saved[0].values()} == {True}
    for number in (13, 14, 19):
        states = [SGDState.of(arrays[number]) for arrays in saved]
        resumed = sparcml.launch(partial(continued, sgd, rows, states), ranks)
        for state, expected in zip(resumed, whole, strict=True):
            np.testing.assert_array_equal(state.weights, expected.weights)
            assert (state.intercept, state.losses) == (expected.intercept, expected.losses)


def test_bytes_are_fewer():
    """Rows share columns, so a round sends less than its steps would."""
    rows = problem(count=600, features=200, dtype=np.float32)
    sent = {}
    for steps in (1, 10):
        seen: list[Any] = []
        watch = seen.append
        on_ranks(
            solver(steps, epochs=1), rows, 2, watch=lambda p, _, w=watch: w(p), every=50
        )
        sent[steps] = seen[-1]
    assert 3 * sent[10].bytes < sent[1].bytes
    assert sent[10].dense_bytes == sent[1].dense_bytes


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"local_steps": 0}, "SGD: local_steps must be >= 1, got 0"),
        ({"penalty": Penalty(l1=1.0)}, "penalty must be without l1, got .*local_steps=2"),
        ({"momentum": 0.9}, "momentum must be 0, got 0.9, with local_steps=2"),
        ({"adaptive": 1.0}, "adaptive must be None, got 1.0"),
        ({"method": MajorityVote()}, "method must be an aggregation method that returns a"),
        ({"method": dec.DPSGD(dec.ring(4))}, "method must be an aggregation method"),
    ],
)
def test_invalid_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        SGD(**({"local_steps": 2} | settings))


@pytest.mark.parametrize("ranks", [2, 15])  # some of 15 have no rows
def test_a_penalty_that_is_dropped_between_epochs(ranks):
    """The scale that it leaves is folded into the weights of all ranks before the first step."""
    rows = problem(count=12)
    strong = solver(
        3, epochs=1, batch_size=3, penalty=Penalty(l2=0.97), learning_rate=Constant(1.0)
    )
    plain = solver(
        3, epochs=2, batch_size=3, penalty=Penalty(), learning_rate=Constant(0.1)
    )

    def body(comm):
        part = rows.part(comm.rank, comm.size)
        state = strong.init(part)
        strong.run_epoch(comm, part, state, flush=False)
        scale = state.model.numbers[0]
        plain.run_epoch(comm, part, state)
        return scale, state.weights

    found = sparcml.launch(body, ranks)
    assert found[0][0] < 1e-6
    w, _ = reference(strong, rows, ranks)
    assert np.abs(w).max() < 1
    for _, weights in found:
        np.testing.assert_array_equal(weights, found[0][1])
        assert np.abs(weights).max() < 1


@pytest.mark.parametrize("local_steps", [1, 4])
def test_resume_at_the_end_of_an_epoch_with_a_shorter_last_batch(local_steps):
    rows, sgd = problem(count=125), solver(local_steps)
    saved: dict[int, Any] = {}

    def keep(progress, state):
        if progress.step == progress.steps:
            saved.setdefault(
                progress.epoch, {n: np.array(a) for n, a in state.arrays().items()}
            )

    whole = sgd.run(sparcml.world(), rows, watch=keep, every=1)
    resumed = sgd.run(sparcml.world(), rows, SGDState.of(saved[0]))
    np.testing.assert_array_equal(resumed.weights, whole.weights)
    assert resumed.losses == whole.losses
