"""Delayed Nesterov, and its server and workers in a store."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sparcml.errors import TransportError
from sparcml.local.asynchronous import Server, Worker
from sparcml.local.delayed_nesterov import DelayedNesterov
from sparcml.local.outer import Outer

SIZE = 50
RULE = DelayedNesterov(1)


def changes(count, seed=0):
    return list(np.random.default_rng(seed).normal(size=(count, SIZE)))


@pytest.mark.parametrize("period", [1, 2, 5])
def test_a_period_of_pushes_is_a_nesterov_step_with_their_mean(period):
    rule, outer = DelayedNesterov(period), Outer(0.7, 0.9)
    x = np.ones(SIZE)
    state, shared, momentum = rule.init(x), x, None
    for start in range(3):
        pushed = changes(period, start)
        for change in pushed:
            state = rule.push(state, change)
        shared, momentum = outer.step(shared, momentum, np.mean(pushed, axis=0))
        assert momentum is not None
        np.testing.assert_allclose(state["shared"], shared, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(state["momentum"], momentum, rtol=1e-12, atol=1e-12)
        assert not state["buffer"].any()
    assert state["arrivals"] == 3 * period
    np.testing.assert_array_equal(x, 1.0)


def test_formula_with_activation():
    """Within a period each arrival takes a part c of the momentum, the last one the rest."""
    rule = DelayedNesterov(3, outer_lr=0.5, outer_momentum=0.8, activation=0.2)
    x, m = np.zeros(SIZE), np.zeros(SIZE)
    state = rule.init(x)
    for first in range(2):
        pushed = changes(3, first)
        for change in pushed[:2]:
            x = x - 0.5 * (change / 3 + 0.2 * 0.8 * m)
        m = 0.8 * m + np.mean(pushed, axis=0)
        x = x - 0.5 * (pushed[2] / 3 + (1 - 0.2 * 3 + 0.2) * 0.8 * m)
        for change in pushed:
            state = rule.push(state, change)
    np.testing.assert_allclose(state["shared"], x, rtol=1e-12, atol=1e-12)


def test_without_momentum_each_push_is_a_step():
    rule = DelayedNesterov(4, outer_lr=0.5, outer_momentum=0.0)
    state = rule.init(np.zeros(SIZE, np.float32))
    (change,) = changes(1)
    state = rule.push(state, change.astype(np.float32))
    np.testing.assert_allclose(state["shared"], -0.5 * change / 4, rtol=1e-6)
    assert state["shared"].dtype == np.float32


def store():
    return pytest.importorskip("torch.distributed").HashStore()


def test_workers_of_different_speed():
    """The server's model is that of the changes in the order in which they arrived."""
    meeting, target = store(), np.linspace(-1, 1, SIZE)
    rule = DelayedNesterov(2, outer_lr=0.5, outer_momentum=0.5)
    server = Server(meeting, rule, {"w": np.zeros(SIZE)})
    seen = []

    def work(member):
        worker = Worker(meeting, member, sync_every=2 + member, timeout=20)
        x = worker.join({"w": np.zeros(SIZE)})
        for _ in range(6 * worker.round_steps):
            x = {"w": x["w"] - 0.2 * (x["w"] - target)}
            x = worker.step(x)
        seen.append(x["w"])

    with ThreadPoolExecutor(3) as threads:
        jobs = [threads.submit(work, member) for member in range(3)]
        server.serve(3 + 3 * 6, timeout=20)
        for job in jobs:
            job.result()
    assert server.state["arrivals"] == 18
    assert server.dropped == 0
    assert any(np.array_equal(x, server.model["w"]) for x in seen)
    assert np.abs(server.model["w"] - target).max() < 0.2
    resumed = Server(store(), rule, {"w": np.zeros(SIZE)}, state=server.state)
    np.testing.assert_array_equal(resumed.model["w"], server.model["w"])


def test_a_worker_that_died_and_one_with_nan():
    meeting, x = store(), np.zeros(SIZE)
    server = Server(meeting, DelayedNesterov(1, outer_momentum=0.0), x, grace=0.05)
    meeting.add("arrived", 1)  # a worker that took a number, and died
    worker = Worker(meeting, 0, sync_every=1, timeout=20)

    def serve():
        server.serve(4, timeout=20)

    thread = threading.Thread(target=serve)
    thread.start()
    worker.join(x)
    np.testing.assert_array_equal(worker.step(np.full(SIZE, np.nan)), x)
    np.testing.assert_allclose(worker.step(x + 1), 0.7)
    thread.join()
    assert (server.dropped, int(server.state["arrivals"])) == (2, 1)


def test_slow_workers_make_fewer_steps():
    meeting, x = store(), np.zeros(3)
    server = Server(meeting, DelayedNesterov(2), x)
    thread = threading.Thread(target=lambda: server.serve(6, timeout=20))
    thread.start()
    fast, slow = (Worker(meeting, m, 8, dynamic=True, timeout=20) for m in range(2))
    for worker, pause in ((fast, 0.001), (slow, 0.02)):
        worker.join(x)
        for _ in range(2):
            for _ in range(worker.round_steps):
                time.sleep(pause)
                worker.step(x)
    thread.join()
    assert fast.round_steps > slow.round_steps >= 1


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: DelayedNesterov(0), "period must be >= 1, got 0"),
        (
            lambda: DelayedNesterov(2, outer_momentum=1.0),
            "outer_momentum must be from 0 to",
        ),
        (lambda: DelayedNesterov(4, activation=0.3), "at most 1 / period, 0.25, got 0.3"),
        (lambda: Worker(None, 0, 0), "sync_every must be >= 1, got 0"),
        (lambda: Worker(None, -1), "member must be >= 0, got -1"),
        (
            lambda: Server(None, RULE, np.zeros(3), RULE.init(np.zeros(2))),
            "state must be of a model with 3 values, got 2",
        ),
        (
            lambda: RULE.push(RULE.init(np.zeros(3)), np.zeros(2)),
            "push: change must have 3 finite values, got 2",
        ),
    ],
)
def test_invalid_settings(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_nobody_comes():
    server = Server(store(), DelayedNesterov(1), np.zeros(3))
    with pytest.raises(TransportError, match=r"waited 0.02 s for a worker, got none"):
        server.serve(1, timeout=0.02)
    worker = Worker(store(), 2, timeout=0.02)
    with pytest.raises(RuntimeError, match="call join"):
        worker.step(np.zeros(3))
    with pytest.raises(TransportError, match=r"worker 2 waited 0.02 s for the server"):
        worker.join(np.zeros(3))


def test_workers_of_a_closed_server_raise_at_once():
    place = store()
    server = Server(place, DelayedNesterov(period=2), np.ones(5))
    thread = threading.Thread(target=lambda: server.serve(1, timeout=20))
    thread.start()
    worker = Worker(place, 0, sync_every=1)
    x = worker.join(np.ones(5))
    thread.join()
    server.close()
    with pytest.raises(
        TransportError, match="worker 0 cannot exchange, because the server was"
    ):
        worker.step(x)


def serve_in_thread(server, arrivals):
    thread = threading.Thread(target=lambda: server.serve(arrivals, timeout=20))
    thread.start()
    return thread


def test_a_new_server_continues_on_the_same_store():
    """The result is that of one server, also with a dead worker and a lost change."""
    rule, x = DelayedNesterov(2), np.zeros(SIZE)
    models = []
    for restarts in (False, True):
        meeting = store()
        server = Server(meeting, rule, x, grace=0.05)
        worker = Worker(meeting, 0, sync_every=1, timeout=20)
        meeting.add(
            "arrived", 1
        )  # of a worker that died: dropped, and not waited for again
        thread = serve_in_thread(server, 5)
        y = worker.join(x)
        for change in changes(3):
            y = worker.step(y - change)
        thread.join()
        if restarts:
            server.close()
            server = Server(meeting, rule, x, state=server.state, grace=0.05)
        meeting.set("6/arrival", '{"change": "change/7/1", "speed": 1}')
        meeting.add("arrived", 1)  # its change is not in the store
        thread = serve_in_thread(server, 4)
        for change in changes(3, seed=1):
            y = worker.step(y - change)
        thread.join()
        np.testing.assert_array_equal(server.model, y)
        assert server.state["arrivals"] == 6
        assert server.dropped == (1 if restarts else 2)
        models.append(y)
    np.testing.assert_array_equal(*models)


@pytest.mark.parametrize(
    ("x", "found"), [(np.zeros(5), "5 of float64"), (np.zeros(6), "6 of float64")]
)
def test_a_worker_with_another_model(x, found):
    meeting, first = store(), np.zeros(5, np.float32)
    thread = serve_in_thread(Server(meeting, DelayedNesterov(2), first), 2)
    worker = Worker(meeting, 0, sync_every=2, timeout=20)
    message = f"x must have 5 values of float32, as on the server, got {found}; pass"
    with pytest.raises(ValueError, match=message):
        worker.join(x)
    worker.join(first)
    with pytest.raises(ValueError, match=message):
        worker.step(x)
    thread.join()
