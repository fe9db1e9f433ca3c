"""What a message costs: latency, bytes, and whoever is before it on the way."""

import numpy as np
import pytest

import sparcml
from sparcml.costs import Network

NET = Network(
    latency=1e-3,
    overhead=1e-4,
    seconds_per_byte=1e-6,
    seconds_per_encoded=0.0,
    seconds_per_merged=0.0,
    seconds_per_written=0.0,
)
FAST = Network(
    latency=1e-5,
    overhead=0.0,
    seconds_per_byte=1e-8,
    seconds_per_encoded=0.0,
    seconds_per_merged=0.0,
    seconds_per_written=0.0,
)
KB = np.zeros(1000, np.uint8)  # takes 1 ms


def times(sends, ranks=4, **options):
    """When each message is there, if (source, target) all start at once."""

    def work(comm):
        link = comm._transport
        for source, target in sends:
            if source == comm.rank:
                link.isend(target, KB)
        found = {}
        for source, target in sends:
            if target == comm.rank:
                link.receive(source)
                found[source, target] = comm.now() * 1e3
        return found

    sim = sparcml.simulate(work, ranks, NET, **options)
    together = {}
    for found in sim.results:
        together.update(found)
    return [together[send] for send in sends]


def test_a_message_takes_latency_and_bytes():
    assert times([(0, 1)]) == pytest.approx([2.0])


def test_both_directions_at_once():
    assert times([(0, 1), (1, 0)]) == pytest.approx([2.0, 2.0])


def test_one_after_the_other_from_a_sender():
    assert times([(0, 1), (0, 2), (0, 3)]) == pytest.approx([2.0, 3.1, 4.2])


def test_one_after_the_other_at_a_receiver():
    assert times([(1, 0), (2, 0), (3, 0)]) == pytest.approx([2.0, 3.1, 4.2])


def test_pairs_do_not_disturb_each_other():
    assert times([(0, 1), (2, 3)]) == pytest.approx([2.0, 2.0])


def test_a_slow_rank_and_a_slow_way():
    assert times([(0, 1), (2, 3)], slow={0: 3.0}) == pytest.approx([4.0, 2.0])
    assert times([(0, 1), (2, 3)], slow={1: 3.0}) == pytest.approx([4.0, 2.0])
    slow = {(0, 1): 3.0}
    assert times([(0, 1), (1, 0), (2, 3)], slow=slow) == pytest.approx([4.0, 2.0, 2.0])


def test_what_is_slow_elsewhere_leaves_the_ports_to_others():
    sends = [(1, 0), (2, 0), (1, 3)]
    assert times(sends, slow={2: 5.0}) == pytest.approx([2.0, 6.0, 3.1])
    assert times([(1, 0), (1, 3)], slow={(1, 0): 5.0}) == pytest.approx([6.0, 3.1])
    assert times([(1, 0), (1, 0)], slow={(1, 0): 5.0})[1] == pytest.approx(11.1)


def test_ranks_of_a_node_share_its_link():
    node = {"ranks_per_node": 2, "intra_node": FAST}
    assert times([(0, 1), (2, 3)], **node) == pytest.approx([0.02, 0.02])
    assert times([(0, 2), (1, 3)], **node) == pytest.approx([2.0, 3.1])
    assert times([(0, 2), (1, 0)], **node) == pytest.approx([2.0, 0.02])


def test_computing_takes_what_the_rank_needs_for_it():
    def work(comm):
        comm.advance(1.0)

    sim = sparcml.simulate(work, 3, NET, speed={1: 2.0})
    assert sim.rank_seconds == (1.0, 0.5, 1.0)
    assert sparcml.simulate(work, 3, NET, speed=[1, 4, 0.5]).rank_seconds == (1, 0.25, 2)
    assert sparcml.simulate(work, 2, NET, speed=2).seconds == 0.5


def test_a_slow_rank_adds_more_slowly():
    def work(comm):
        comm.allreduce(np.ones(1000, np.float32), algorithm="recursive_double")

    network = Network(
        1e-3,
        1e-4,
        1e-6,
        seconds_per_encoded=0.0,
        seconds_per_merged=0.0,
        seconds_per_written=1e-6,
    )
    usual = sparcml.simulate(work, 2, network).seconds
    sim = sparcml.simulate(work, 2, network, speed={1: 0.5})
    # It copies a thousand values to the wire, and from it, and adds them.
    assert sim.rank_seconds == pytest.approx((usual, usual + 3e-3))


def test_messages_are_passed_by_reference_and_read_only():
    def work(comm):
        if comm.rank == 0:
            comm._transport.send(1, KB)
            return None
        got = comm._transport.receive(0)
        assert not got.flags.writeable
        return np.shares_memory(got, KB)

    assert sparcml.simulate(work, 2, NET).results == [None, True]


def test_bytes_and_messages_are_counted():
    def work(comm):
        comm.allreduce(np.ones(100, np.float32), algorithm="ring")
        return comm.stats.bytes, comm.stats.messages

    sim = sparcml.simulate(work, 4, "10gbit")
    assert list(zip(sim.rank_bytes, sim.rank_messages, strict=True)) == sim.results
    assert sim.bytes == sum(sim.rank_bytes)
    assert sim.messages == 4 * 6


@pytest.mark.parametrize(
    "bad",
    [
        {"ranks": 0}, {"ranks_per_node": 3}, {"ranks_per_node": 0}, {"speed": 0.0},
        {"speed": [1.0]}, {"speed": {9: 1.0}}, {"slow": {9: 2.0}}, {"slow": {(0, 9): 2.0}},
        {"slow": {0: -1.0}}, {"network": "string"}, {"timeout": 0},
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        sparcml.simulate(lambda comm: None, **{"ranks": 4, **bad})


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_time_goes_forward(bad):
    with pytest.raises(ValueError, match="advance: seconds"):
        sparcml.simulate(lambda comm: comm.advance(bad), 2)


def test_on_real_ranks_advance_does_nothing():
    def work(comm):
        start = comm.now()
        comm.advance(1000.0)
        return comm.now() - start < 500

    assert all(sparcml.launch(work, 2))
