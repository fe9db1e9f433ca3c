"""AD-PSGD: the sum is kept, no schedule deadlocks, and a slow rank slows no other."""

import numpy as np
import pytest

import sparcml
from sparcml import TransportError
from sparcml import decentralized as dec

from .training import chain, random_models, simulate, spread, train

GRAPHS = [dec.ring(2), dec.ring(4), dec.star(5), chain(3), dec.torus(2, 4)]


@pytest.mark.parametrize("topology", GRAPHS, ids=str)
def test_200_random_schedules_end_and_keep_the_sum(topology):
    """Five graphs make 1,000 schedules: every step of every rank takes a random time."""
    start = np.random.default_rng(0).integers(-1000, 1000, (topology.size, 3))
    method = dec.ADPSGD(topology)

    def body(comm):
        rng = np.random.default_rng([topology.size, comm.rank])
        x = start[comm.rank].astype(np.float64)
        state = method.init(x)
        sums = []
        for _ in range(200):
            for _ in range(rng.integers(1, 5)):
                comm.advance(rng.exponential(1e-4 if rng.random() < 0.8 else 2e-3))
                x, state = method.step(comm, x, np.zeros(3), state, lr=0.1)
            x, state = method.flush(comm, x, state)
            assert not len(state["in_flight"])
            sums.append(x)
        return sums

    sums = np.sum(simulate(body, topology.size), axis=0)
    np.testing.assert_allclose(sums, np.tile(start.sum(0), (200, 1)), atol=1e-8)


@pytest.mark.parametrize("repeat", range(3))
def test_threads_that_race_keep_the_sum(repeat):
    models = random_models(6, 500)
    method = dec.ADPSGD(dec.ring(6), seed=repeat)

    def body(comm):
        x, state = models[comm.rank], method.init(models[comm.rank])
        for _ in range(20 + 10 * comm.rank):  # different numbers of steps
            x, state = method.step(comm, x, np.zeros(500), state, lr=0.1)
        x, state = method.flush(comm, x, state)
        return x, method.mean(comm, x, state)

    results = sparcml.launch(body, 6)
    averaged = np.array([x for x, _ in results])
    np.testing.assert_allclose(averaged.mean(0), models.mean(0), atol=1e-12)
    np.testing.assert_allclose(results[0][1], models.mean(0), atol=1e-12)


def test_an_undisturbed_pair_takes_the_average():
    method = dec.ADPSGD(dec.ring(2))
    start = np.array([[2.0, 8.0], [4.0, -8.0]])

    def body(comm):
        x = start[comm.rank]
        state = method.init(x)
        comm.advance(1e-3 if comm.rank == 0 else 1.0)  # the request arrives before
        x, state = method.step(comm, x, np.zeros(2), state, lr=0.1)
        return method.flush(comm, x, state)[0]

    np.testing.assert_array_equal(simulate(body, 2), [[3, 0], [3, 0]])


def test_what_an_active_rank_did_during_the_flight_stays():
    """The paper's order: average, then the gradient of the model before."""
    method = dec.ADPSGD(dec.ring(2))

    def body(comm):
        x = np.array([0.0, 8.0])[comm.rank : comm.rank + 1]
        state = method.init(x)
        if comm.rank == 1:
            comm.advance(1.0)
            x, state = method.step(comm, x, np.zeros(1), state, lr=1.0)
        else:
            for g in (0.0, -10.0):  # a request, then a gradient while it is in flight
                x, state = method.step(comm, x, np.array([g]), state, lr=1.0)
            assert x[0] == 10
            assert list(state["in_flight"]) == [1]
        return method.flush(comm, x, state)[0][0]

    assert simulate(body, 2) == [14.0, 4.0]


def steps_made(method, slow, seconds=1.0):
    """Return the steps of each rank in a time, if a gradient takes 1 ms, or `slow` ms."""

    def body(comm):
        x = np.ones(1000, np.float32)
        state = method.init(x)
        x, state = method.step(comm, x, x, state, lr=0.01)  # opens the channel
        start = comm.now()
        while comm.now() - start < seconds:
            comm.advance(1e-3 * (slow if comm.rank == 3 else 1))
            x, state = method.step(comm, x, x, state, lr=0.01)
        return int(method.flush(comm, x, state)[1]["step"])

    return np.array(simulate(body, 8))


def test_a_slow_rank_does_not_slow_the_others():
    method = dec.ADPSGD(dec.ring(8))
    alone, beside = steps_made(method, 1, 0.2), steps_made(method, 20, 0.2)
    fast = np.arange(8) != 3
    assert (beside[fast] > 0.9 * alone[fast]).all()
    assert beside[3] < 0.1 * alone[3]


def test_trains_different_data_to_the_neighbourhood_of_the_optimum():
    method = dec.ADPSGD(dec.ring(8))

    def body(comm):
        rng = np.random.default_rng(comm.rank)
        x, state = np.zeros(1), method.init(np.zeros(1))
        for _ in range(150):
            comm.advance(rng.uniform(0.5e-3, 1.5e-3))
            x, state = method.step(comm, x, x - comm.rank % 4, state, lr=0.05)
        x, state = method.flush(comm, x, state)
        return method.mean(comm, x, state)[0], method.consensus_distance(comm, x)

    mean, distance = simulate(body, 8)[0]
    assert mean == pytest.approx(1.5, abs=0.1)
    assert distance < 0.7  # it is 1.12 for ranks that train alone


def test_repeated_averages_reach_the_mean():
    models = random_models(8)

    def body(comm):
        method, x = dec.ADPSGD(dec.torus(2, 4)), models[comm.rank]
        state = method.init(x)
        for _ in range(100):
            comm.advance(1e-3)
            x, state = method.step(comm, x, np.zeros(20), state, lr=0.1)
        return method.flush(comm, x, state)[0]

    mixed = np.array(simulate(body, 8))
    np.testing.assert_allclose(mixed.mean(0), models.mean(0), atol=1e-13)
    assert spread(mixed) < 1e-3 * spread(models)


def test_simulated_runs_give_the_same_bits():
    def body(comm):
        method, x = dec.ADPSGD(dec.ring(4)), random_models(4)[comm.rank]
        state = method.init(x)
        for step in range(30):
            comm.advance(1e-3 * (1 + (step + comm.rank) % 3))
            x, state = method.step(comm, x, x, state, lr=0.05)
        return method.flush(comm, x, state)[0]

    np.testing.assert_array_equal(simulate(body, 4), simulate(body, 4))


def test_averages_in_flight_must_be_completed():
    def body(comm):
        method, x = dec.ADPSGD(dec.ring(2)), np.zeros(4)
        _, state = method.step(comm, x, x, method.init(x), lr=0.1)
        if comm.rank == 0:
            with pytest.raises(ValueError, match=r"change_topology: .* call flush first"):
                method.change_topology(dec.star(2), state)
        method.mean(comm, x, state)

    with pytest.raises(ValueError, match=r"mean: state must have no averages in flight"):
        sparcml.launch(body, 2)


def test_a_state_that_was_saved_in_flight_is_refused():
    def body(comm):
        method, x = dec.ADPSGD(dec.ring(2)), np.zeros(4)
        state = {**method.init(x), "in_flight": np.array([1 - comm.rank])}
        method.step(comm, x, x, state, lr=0.1)

    with pytest.raises(ValueError, match="call flush before a state is saved or replaced"):
        sparcml.launch(body, 2)


def test_a_rank_that_raises_ends_the_others():
    def body(comm):
        method, x = dec.ADPSGD(dec.ring(4)), np.zeros(4)
        x, state = train(comm, method, x, np.zeros_like, 3, 0.1)
        if comm.rank == 2:
            raise KeyError("broken")
        with pytest.raises(TransportError, match="rank 2 raised KeyError"):
            train(comm, method, x, np.zeros_like, 10**9, 0.1, state)

    with pytest.raises(KeyError, match="broken"):
        sparcml.launch(body, 4)


@pytest.mark.parametrize("topology", [dec.ring(3), dec.complete(4), dec.ring(5)], ids=str)
def test_graphs_that_are_not_bipartite_are_refused(topology):
    with pytest.raises(
        ValueError, match=r"ADPSGD: topology must be bipartite, .* use a ring"
    ):
        dec.ADPSGD(topology)


def test_roles_alternate_on_a_ring():
    method = dec.ADPSGD(dec.ring(6))
    assert [method.is_active(rank) for rank in range(6)] == [True, False] * 3
