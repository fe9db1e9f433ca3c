"""Meetings of workers on a real store: two trainings on one store, and a worker that is delayed."""

import threading
import time

import numpy as np
import pytest

from sparcml.local import LocalSGD
from sparcml.local.elastic import ElasticRounds
from sparcml.local.quorum import JOINING, Quorum

torch_distributed = pytest.importorskip("torch.distributed")
pytestmark = pytest.mark.torch

GRACE = 0.2


def together(*calls):
    """Return the results of calls that wait for each other."""
    results = [None] * len(calls)

    def run(index, call):
        results[index] = call()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_two_trainings_on_one_store_do_not_meet():
    store = torch_distributed.HashStore()

    def train(name, member, optimum):
        quorum = Quorum(store, member, workers=2, minimum=2, timeout=60, name=name)
        rounds = ElasticRounds(LocalSGD(1), quorum)
        x, state = rounds.join(np.zeros(3))
        while rounds.rounds < 3:
            x, state = rounds.step(np.full(3, optimum), state)
        rounds.close()
        return x.tolist()

    # A rank of one training is as far as one of the other: without names they would average.
    wanted = [("a", 0, 1.0), ("b", 0, 5.0), ("a", 1, 3.0), ("b", 1, 7.0)]
    results = together(*(lambda one=one: train(*one) for one in wanted))
    assert results == [[2.0] * 3, [6.0] * 3, [2.0] * 3, [6.0] * 3]


def test_keys_of_a_quorum_leave_the_rest_of_the_store_alone():
    store = torch_distributed.HashStore()
    for key in ("current", "latest", "1/count", "1/members", "1/commit"):
        store.set(key, "77")  # of the application
    quorum = Quorum(store, 0, workers=1)
    meeting = quorum.meet(JOINING)
    assert (meeting.number, meeting.members) == (1, (0,))
    assert quorum.commit(meeting, succeeded=True)
    assert store.get("latest") == store.get("1/count") == b"77"


def test_a_name_is_not_empty():
    with pytest.raises(ValueError, match="Quorum: name must not be empty, got ''"):
        Quorum(torch_distributed.HashStore(), 0, workers=1, name="")


def test_a_delayed_commit_does_not_bring_an_older_meeting_back():
    store = torch_distributed.HashStore()
    fast, slow = (Quorum(store, member, 2, 1, GRACE, timeout=60) for member in range(2))
    first, same = together(lambda: fast.meet(0), lambda: slow.meet(0))
    assert first == same
    assert (
        together(*(lambda q=q: q.commit(first, True) for q in (fast, slow))) == [True] * 2
    )
    second = fast.meet(1)  # without the slow worker, after the grace period
    assert second.members == (0,)
    assert fast.commit(second, succeeded=True)
    # The slow worker was stopped after it had read that the first meeting counts.
    assert slow.commit(first, succeeded=True)

    third = []
    waiting = threading.Thread(target=lambda: third.append(slow.meet(1)))
    waiting.start()
    while slow.store.add("3/count", 0) == 0:  # the second meeting is over
        time.sleep(0.01)
    time.sleep(3 * GRACE)
    assert not third  # it is none of the last round, and must not form a group of its own
    assert fast.meet(2).members == (0, 1)
    waiting.join()
    assert third[0].members == (0, 1)
