"""The experiments behind docs/claims.md, small: closed forms, and what they really run."""

import numpy as np
import pytest
from claims import dense_family, dense_latency, requantize, supports, watched

from sparcml import Communicator, Stream, TransportError
from sparcml.collectives import ALLREDUCES
from sparcml.costs import Workload
from sparcml.quantize.code import mix_seed
from sparcml.stream import range_offsets


@pytest.mark.parametrize("algorithm", supports.DENSE_TWIN)
@pytest.mark.parametrize("ranks", [2, 8])
def test_equal_supports_make_an_allreduce_and_disjoint_ones_an_allgather(algorithm, ranks):
    for kind in ("identical", "disjoint"):
        (row,) = supports.measure(kind, algorithm, ranks, size=1 << 14, k=1 << 8)
        assert row["equal"]
        assert row["entries"] == row["entries_least"] == row["closed_form"]
        extra = row["entries"] - row["twin_entries"]
        splits = (kind, algorithm) == ("disjoint", "ssar_split_allgather")
        assert extra == (256 * (ranks - 1) // ranks if splits else 0)


def test_supports_are_what_they_are_called():
    same = supports.vectors("identical", 4, 1 << 10, 1 << 6)
    assert all(np.array_equal(x.indices, same[0].indices) for x in same)
    apart = supports.vectors("disjoint", 4, 1 << 10, 1 << 6)
    assert len(np.unique(np.concatenate([x.indices for x in apart]))) == 4 << 6


@pytest.mark.parametrize("algorithm", dense_family.NAMES)
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_the_dense_family_is_counted_as_its_formulas_say(algorithm, ranks):
    row = dense_family.counted(algorithm, ranks, 960)
    row |= {"algorithm": algorithm, "ranks": ranks}
    assert dense_family.holds(row)
    assert not dense_family.holds(row | {"hops": row["hops"] + 1})
    declared = dense_family.declared(algorithm, ranks, 960)
    assert declared["out"] == pytest.approx(row["out"])
    assert (declared["fan_in"], declared["hops"]) == (row["fan_in"], row["hops"])


@pytest.mark.parametrize("algorithm", dense_family.NAMES)
def test_the_busiest_rank_is_among_those_asked(algorithm):
    workload = Workload(960, 4, (960,) * 16)
    cost = ALLREDUCES[algorithm].cost
    most = max(
        sum(load.expected for turn in cost(rank, workload) for load in turn.counts())
        for rank in range(16)
    )
    assert dense_family.declared(algorithm, 16, 960)["out"] * 960 == pytest.approx(most)


@pytest.mark.slow
def test_the_tree_is_faster_than_the_ring_from_few_ranks_on():
    for ranks in (16, 32):
        ring = dense_latency.simulated("ring", ranks)
        tree = dense_latency.simulated("double_binary_tree", ranks)
        assert ring["right"]
        assert tree["right"]
        assert tree["chain_us"] < tree["us"] < ring["us"]
        # Headers and what is computed: the chain is nearly all of it.
        assert ring["us"] == pytest.approx(ring["chain_us"], rel=0.02)


@pytest.mark.parametrize("coder", requantize.CODERS.values(), ids=requantize.CODERS)
def test_the_ring_codes_every_partial_sum_anew(coder):
    """Bit for bit what hop after hop of coding and adding gives."""
    ranks, size = 4, 4096
    inputs = requantize.vectors(ranks, [3], size)

    def body(link):
        return requantize.requantizing_ring(link, inputs[link.rank], coder)

    totals, sent = watched.run(ranks, body)
    assert all(message.formats == {coder.wire_format} for message in sent)
    edges = range_offsets(size, ranks)
    for first in range(ranks):
        span = slice(edges[first], edges[first + 1])
        part = inputs[first][span]
        for hop in range(ranks):
            rank = (first + hop) % ranks
            if hop:
                part = part + inputs[rank][span]
            owner = (rank + 1) % ranks if hop < ranks - 1 else rank  # the sum goes to all
            seed = mix_seed(1, rank, owner, hop)
            part = coder.decode(coder.encode(part, seed))
        for total in totals:
            np.testing.assert_array_equal(total[span], part)


@pytest.mark.parametrize("coder", requantize.CODERS)
def test_at_eight_ranks_the_ring_loses_more_than_the_split(coder):
    rows = requantize.measure(coder, 8, seeds=[1, 2], size=1 << 13)
    assert all(row["all_coded"] and row["same_bits"] for row in rows)
    assert {row["seed"] for row in rows} == {1, 2}
    want = requantize.predicted("ring", 8) / requantize.predicted("split", 8)
    ring, split = (
        requantize.quartiles(rows, coder, name)[8][1] for name in ("ring", "split")
    )
    assert ring / split == pytest.approx(want, rel=0.1)
    assert want > 1.5


def test_a_rank_that_raises_ends_the_run():
    def body(link):
        if link.rank == 1:
            raise RuntimeError("on purpose")
        return Communicator(link).allreduce(Stream(10, [1], [1.0]), algorithm="ring")

    with pytest.raises(TransportError, match=r"rank 1.*on purpose"):
        watched.run(3, body)
