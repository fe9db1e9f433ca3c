"""Counted messages, bytes and fan-in of the dense algorithms, if P divides the size."""

import math

import numpy as np
import pytest

import sparcml
from sparcml.collectives import ALLREDUCES
from sparcml.collectives.dense.double_binary_tree import (
    CHUNK_BYTES,
    chunk_offsets,
    two_trees,
)
from sparcml.communicator.selection import explain, supporting
from sparcml.costs import Network, Workload
from sparcml.wire.header import SIZE

N = 64 * 15  # values; P divides it for all P below
DENSE = (
    "master",
    "sharded",
    "ring",
    "recursive_double",
    "halving_doubling",
    "double_binary_tree",
)
RANKS = (2, 3, 4, 5, 8, 16)


def sent(algorithm, ranks, size=N):
    """Return (peer, values) of each message that each rank sent."""

    def body(comm):
        x = np.arange(1, size + 1, dtype=np.float32) + comm.rank
        comm.stats.sent = []
        comm.allreduce(x, algorithm=algorithm)
        return comm.stats.sent

    return [
        [(peer, (nbytes - SIZE) / 4) for peer, nbytes in of_rank]
        for of_rank in sparcml.launch(body, ranks)
    ]


def inbound(messages):
    """Return the values that each rank received, and the number of its sources."""
    values = [0.0] * len(messages)
    sources: list[set[int]] = [set() for _ in messages]
    for rank, of_rank in enumerate(messages):
        for peer, count in of_rank:
            values[peer] += count
            sources[peer].add(rank)
    return values, [len(s) for s in sources]


def traffic(messages):
    return [sum(count for _, count in of_rank) for of_rank in messages]


def peers_per_round(algorithm, ranks, size=N):
    """Return the largest number of messages that a rank receives in one round."""
    workload = Workload(size, 4, (size,) * ranks)
    rounds = [ALLREDUCES[algorithm].cost(rank, workload) for rank in range(ranks)]
    largest = 0
    for i in range(max(map(len, rounds))):
        targets = [p for of_rank in rounds for r in of_rank[i : i + 1] for p, _ in r.sends]
        largest = max([largest, *np.bincount(targets, minlength=ranks)])
    return largest


@pytest.mark.parametrize("P", RANKS)
def test_master(P):
    messages = sent("master", P)
    assert [len(m) for m in messages] == [P - 1] + [1] * (P - 1)
    assert traffic(messages) == [(P - 1) * N] + [N] * (P - 1)
    assert inbound(messages) == ([(P - 1) * N] + [N] * (P - 1), [P - 1] + [1] * (P - 1))


@pytest.mark.parametrize("P", RANKS)
def test_sharded(P):
    messages = sent("sharded", P)
    assert messages[0] == [(p, N / P) for p in range(1, P)] * 2
    assert {len(m) for m in messages} == {2 * (P - 1)}
    assert sum(traffic(messages)) == 2 * (P - 1) * N
    assert inbound(messages) == ([2 * (P - 1) * N / P] * P, [P - 1] * P)
    assert peers_per_round("sharded", P) == P - 1


@pytest.mark.parametrize("P", RANKS)
def test_ring(P):
    messages = sent("ring", P)
    assert messages == [[((r + 1) % P, N / P)] * (2 * (P - 1)) for r in range(P)]
    assert sum(traffic(messages)) == 2 * (P - 1) * N
    assert inbound(messages) == ([2 * (P - 1) * N / P] * P, [1] * P)
    assert peers_per_round("ring", P) == 1


@pytest.mark.parametrize("P", [2, 4, 8, 16])
def test_recursive_double(P):
    rounds = int(math.log2(P))
    messages = sent("recursive_double", P)
    assert messages == [[(r ^ 1 << t, N) for t in range(rounds)] for r in range(P)]
    assert inbound(messages) == ([rounds * N] * P, [rounds] * P)
    assert peers_per_round("recursive_double", P) == 1


@pytest.mark.parametrize("P", [2, 4, 8, 16])
def test_halving_doubling(P):
    rounds = int(math.log2(P))
    messages = sent("halving_doubling", P)
    halves = [N / 2**t for t in range(1, rounds + 1)]
    for rank, of_rank in enumerate(messages):
        distances = [P >> t for t in range(1, rounds + 1)]
        halving = [(rank ^ d, h) for d, h in zip(distances, halves, strict=True)]
        assert of_rank == halving + halving[::-1]
    assert traffic(messages) == [2 * (P - 1) / P * N] * P
    assert inbound(messages) == ([2 * (P - 1) / P * N] * P, [rounds] * P)
    assert peers_per_round("halving_doubling", P) == 1


@pytest.mark.parametrize("P", [3, 5, 6, 7, 12])
@pytest.mark.parametrize("algorithm", ["recursive_double", "halving_doubling"])
def test_folding_costs_one_vector_each_way(algorithm, P):
    power = 1 << (P.bit_length() - 1)
    size = power * 10
    inner = sent(algorithm, power, size)
    folded = sent(algorithm, P, size)
    for rank, of_rank in enumerate(folded):
        if rank >= 2 * (P - power):
            assert traffic([of_rank]) == traffic(inner[:1])
        elif rank % 2:
            assert traffic([of_rank]) == [traffic(inner)[0] + size]
        else:
            assert of_rank == [(rank + 1, size)]


@pytest.mark.parametrize("P", RANKS)
def test_double_binary_tree(P):
    size = 8 * CHUNK_BYTES // 4
    chunks = len(chunk_offsets(size, 4)[0]) - 1
    assert chunks == 4
    messages = sent("double_binary_tree", P, size)
    trees = two_trees(P)
    for rank, of_rank in enumerate(messages):
        links = sum((t.parents[rank] is not None) + len(t.children[rank]) for t in trees)
        assert len(of_rank) == links * chunks
        assert traffic([of_rank]) == [links * size / 2]
        if P % 2 == 0:
            assert links <= 4
    assert sum(traffic(messages)) == 2 * (P - 1) * size
    assert inbound(messages)[0] == traffic(messages)
    assert peers_per_round("double_binary_tree", P, size) <= (4 if P % 2 == 0 else 6)


@pytest.mark.parametrize("P", RANKS)
def test_chunks_are_pipelined(P):
    """One round per chunk, and two rounds per link up and down the tree."""
    size = 80 * CHUNK_BYTES // 4
    cost = ALLREDUCES["double_binary_tree"].cost(0, Workload(size, 4, (size,) * P))
    height = two_trees(P)[0].height
    assert height <= math.ceil(math.log2(P))
    assert len(cost) == 40 + 4 * height - 2


@pytest.mark.parametrize("P", [2, 3, 7, 8, 12])
@pytest.mark.parametrize("size", [2, 5 * CHUNK_BYTES])
def test_pipelined_cost_of_the_tree_has_the_same_messages(P, size):
    tree, workload = ALLREDUCES["double_binary_tree"], Workload(size, 4, (size,) * P)
    for rank in range(P):
        every, few = tree.cost(rank, workload), tree.rounds(rank, workload)
        assert len(few) <= 2 * two_trees(P)[0].height + 1
        assert sum(r.messages() for r in few) == sum(r.messages() for r in every)
        nbytes = [sum(r.expected_nbytes(4) for r in rounds) for rounds in (few, every)]
        assert nbytes[0] == pytest.approx(nbytes[1], rel=1e-9)


@pytest.mark.parametrize("ranks", range(2, 65))
def test_two_trees(ranks):
    trees = two_trees(ranks)
    for tree in trees:
        root = tree.parents.index(None)
        assert sorted(tree.subtree(root)) == list(range(ranks))
        assert all(len(children) <= 2 for children in tree.children)
        assert len(tree.children[root]) == 1
        assert all(tree.parents[c] == r for r in range(ranks) for c in tree.children[r])
    inner = [{r for r in range(ranks) if tree.children[r]} for tree in trees]
    assert len(inner[0] & inner[1]) == ranks % 2


@pytest.mark.parametrize("algorithm", DENSE)
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_the_input_is_unchanged_and_the_result_dense(algorithm, ranks):
    def body(comm):
        x = np.full(1001, 1.0 + comm.rank, np.float32)
        before = x.copy()
        first = comm.allreduce(sparcml.Stream.from_dense(x), algorithm=algorithm)
        copy = first.to_dense()
        comm.allreduce(sparcml.Stream.from_dense(x), algorithm=algorithm)
        assert first.is_dense
        np.testing.assert_array_equal(x, before)
        np.testing.assert_array_equal(first.to_dense(), copy)

    sparcml.launch(body, ranks)


@pytest.mark.parametrize("size", [2, 1000, 100_000, 4_000_000])
@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 8, 64])
def test_auto_chooses_native_for_dense_vectors(ranks, size):
    workload = Workload(size, 4, (size,) * ranks)
    explanation = explain(workload, Network(), supporting("sum", None))
    assert explanation.choice == ("native" if size > 10_000 else "ssar_recursive_double")
    assert f"auto chooses {explanation.choice}: " in str(explanation)
