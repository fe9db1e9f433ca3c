"""Elastic rounds on threads: all workers start again, some late, new or without a state."""

import threading
import time
from typing import Any

import numpy as np
import pytest

from sparcml.errors import TransportError
from sparcml.local import DiLoCo, LocalSGD
from sparcml.local.elastic import ElasticRounds
from sparcml.local.quorum import Quorum

torch_distributed = pytest.importorskip("torch.distributed")
pytestmark = pytest.mark.torch


def run(workers, life):
    """Return what life(quorum) returned or raised for each worker, on one store."""
    store = torch_distributed.TCPStore(
        "127.0.0.1", 0, is_master=True, wait_for_workers=False
    )
    results: dict[int, Any] = {}

    def work(member):
        own = torch_distributed.TCPStore("127.0.0.1", store.port, is_master=False)
        quorum = Quorum(
            own, member, len(workers), min(2, len(workers)), grace=2, timeout=30
        )
        try:
            results[member] = life(quorum)
        except Exception as error:
            results[member] = error

    threads = [threading.Thread(target=work, args=(member,)) for member in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_a_new_worker_among_those_that_start_again_takes_their_model():
    saves: dict[int, Any] = {}

    def train(until):
        def life(quorum):
            rounds = ElasticRounds(LocalSGD(2), quorum)
            x, state = rounds.join(np.full(4, 100.0))  # the optimum is 0
            if quorum.member in saves:
                x, state = rounds.resume(x, state, saves[quorum.member])
            seen = []
            while rounds.rounds < until:
                x, state = rounds.step(x * 0.5, state)
                seen.append(float(np.abs(state["shared"]).max()))
            saves[quorum.member] = rounds.save(x, state)
            rounds.close()
            return seen

        return life

    run([0, 1], train(6))
    for member, seen in run([0, 1, 2], train(9)).items():
        after = seen if member < 2 else seen[2:]  # after its first round
        assert max(after) < 0.1, (member, seen)


@pytest.mark.parametrize("ahead", [1, 2])
def test_a_late_worker_with_a_newer_state_joins(ahead):
    """The others have started again from older states, and have not waited for it."""
    saves: dict[int, Any] = {}

    def first(quorum):
        rounds = ElasticRounds(DiLoCo(2), quorum)
        x, state = rounds.join(np.arange(4.0))
        until = 3 if quorum.member < 2 else 3 + ahead
        while rounds.rounds < 6:
            x, state = rounds.step(x - 0.1 * (x - quorum.member), state)
            if rounds.rounds == until and int(state["step"]) == 2 * until:
                saves[quorum.member] = rounds.save(x, state)
        rounds.close()

    def second(quorum):
        rounds = ElasticRounds(DiLoCo(2), quorum)
        if quorum.member == 2:
            time.sleep(2.6)
        x, state = rounds.join(np.arange(4.0))
        x, state = rounds.resume(x, state, saves[quorum.member])
        while rounds.rounds < 12:
            time.sleep(0.2)
            x, state = rounds.step(x - 0.1 * (x - quorum.member), state)
        rounds.close()
        return rounds.members, state["shared"].tobytes()

    run([0, 1, 2], first)
    found = run([0, 1, 2], second)
    assert len({found[member] for member in range(3)}) == 1, found
    assert found[0][0] == (0, 1, 2)


def test_a_state_of_another_run_does_not_take_over():
    saves: dict[int, Any] = {}

    def old(quorum):
        rounds = ElasticRounds(LocalSGD(1), quorum)
        x, state = rounds.join(np.full(3, 7.0))
        while rounds.rounds < 9:
            x, state = rounds.step(x, state)
        saves[quorum.member] = rounds.save(x, state)
        rounds.close()

    def new(quorum):
        rounds = ElasticRounds(LocalSGD(1), quorum)
        if quorum.member == 2:
            time.sleep(2.6)
        x, state = rounds.join(np.zeros(3))
        if quorum.member == 2:
            with pytest.warns(RuntimeWarning, match="got that of another run"):
                x, state = rounds.resume(x, state, saves[2])
        while rounds.rounds < 25:
            time.sleep(0.15)
            x, state = rounds.step(x, state)
        rounds.close()
        return x.tolist()

    run([0, 1, 2], old)
    assert run([0, 1, 2], new) == dict.fromkeys(range(3), [0.0] * 3)


def test_a_worker_that_is_late_in_the_last_round_raises_at_once():
    def life(quorum):
        rounds = ElasticRounds(LocalSGD(1), quorum)
        x, state = rounds.join(np.zeros(3))
        while rounds.rounds < 3:
            if quorum.member == 2 and rounds.rounds == 2:
                time.sleep(4)
            x, state = rounds.step(x, state)
        rounds.close()
        return rounds.rounds

    start = time.monotonic()
    found = run([0, 1, 2], life)
    assert (found[0], found[1]) == (3, 3)
    assert isinstance(found[2], TransportError)
    assert "worker 2 came too late, because all other workers" in str(found[2])
    assert time.monotonic() - start < 20  # the timeout of a meeting is 30
