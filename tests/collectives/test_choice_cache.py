"""`auto` agrees in the first of many calls, and again when results change."""

import numpy as np
import pytest

import sparcml
from sparcml import MismatchError, Stream
from sparcml.communicator.selection import estimated_nnz
from sparcml.costs import Network
from sparcml.kernels._core import Case, ChoiceCache
from sparcml.quantize import QSGD

MIN_CALLS, SIMILAR_CALLS = ChoiceCache.MIN_CALLS, ChoiceCache.SIMILAR_CALLS
MAX_CASES, SAMPLE = ChoiceCache.MAX_CASES, ChoiceCache.SAMPLE


def vector(rank, size, nnz):
    rng = np.random.default_rng([rank, size, nnz])
    indices = np.sort(rng.choice(size, nnz, replace=False))
    return Stream(size, indices, rng.integers(1, 9, nnz).astype(np.float32))


def messages_of(comm, x, **options):
    comm.stats.reset()
    comm.allreduce(x, **options)
    return comm.stats.messages


def test_later_calls_send_no_agreement():
    def body(comm):
        x = vector(comm.rank, 100_000, 500)
        choice = comm.explain(x).choice
        unagreed = messages_of(comm, x, algorithm=choice)
        return unagreed, [messages_of(comm, x) for _ in range(7 * MIN_CALLS + 1)]

    for unagreed, counts in sparcml.launch(body, 4):
        first = unagreed + 2  # log2(4) messages of the agreement
        agreed = [i for i, count in enumerate(counts) if count == first]
        assert agreed == [
            0,
            MIN_CALLS,
            3 * MIN_CALLS,
            7 * MIN_CALLS,
        ]  # each holds twice as long
        assert set(counts) == {first, unagreed}


def test_another_density_is_agreed_on_again():
    def body(comm):
        few, many = (vector(comm.rank, 1 << 20, nnz) for nnz in (20, 200_000))
        choice = comm.explain(few).choice
        assert choice != comm.explain(many).choice == "native"
        unagreed = messages_of(comm, few, algorithm=choice)
        return unagreed, [messages_of(comm, x) for x in (few, few, many, many, many)]

    for unagreed, counts in sparcml.launch(body, 4):
        # The third call detects larger results. From then on the engine's allreduce is
        # chosen, and only the 2 messages of the agreement are counted.
        assert counts == [unagreed + 2, unagreed, unagreed, 2, 2]


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_results_are_those_of_a_fresh_communicator(ranks):
    def body(comm):
        sizes = [(1000, 10), (1000, 600), (5000, 10), (1000, 30), (1000, 900)]
        for size, nnz in sizes * 3:
            x = vector(comm.rank, size, nnz)
            expected = sum(vector(r, size, nnz).to_dense() for r in range(comm.size))
            np.testing.assert_array_equal(comm.allreduce(x).to_dense(), expected)

    sparcml.launch(body, ranks)


def test_a_duplicate_has_its_own_cache():
    def body(comm):
        x = vector(comm.rank, 10_000, 50)
        before = messages_of(comm, x)
        with comm.duplicate() as other:
            return before, messages_of(comm, x), messages_of(other, x)

    for first, later, other in sparcml.launch(body, 2):
        assert first == other > later


def test_a_mismatch_is_reported_in_later_calls():
    def body(comm):
        comm.allreduce(vector(comm.rank, 1000, 10))
        comm.allreduce(vector(comm.rank, 1000 + comm.rank // 2, 10))

    with pytest.raises(MismatchError, match=r"size 1000.*size 1001|size 1001.*size 1000"):
        sparcml.launch(body, 3)


def case(size, quantizer=None):
    return Case(size, block=1, dtype=1, op=0, quantizer=quantizer)


def test_the_number_of_cached_cases_is_limited():
    cache = ChoiceCache()
    for size in range(MAX_CASES + 10):
        cache.store(case(size), 15)
    assert [cache.choice(case(size)) for size in (9, 10)] == [None, 15]
    cache.store(case(10), 4)  # the newest now
    cache.store(case(0), 15)
    assert [cache.choice(case(size)) for size in (10, 11)] == [4, None]


def test_equal_quantizers_are_one_case():
    cache = ChoiceCache()
    cache.store(case(7, QSGD(4)), 4)
    choices = [cache.choice(case(7, q)) for q in (QSGD(4), QSGD(8), None)]
    assert choices == [4, None, None]


def test_the_native_allreduce_is_agreed_on_in_every_call():
    cache = ChoiceCache()
    cache.store(case(1), None)
    assert cache.choice(case(1)) is None
    many = [vector(rank, 1 << 20, 200_000) for rank in range(4)]
    for counts in sparcml.launch(
        lambda comm: [messages_of(comm, many[comm.rank]) for _ in range(3)], 4
    ):
        assert counts == [2, 2, 2]  # of the agreement


def test_a_pinned_choice_holds_until_the_choices_are_reset():
    def body(comm):
        x = vector(comm.rank, 100_000, 500)
        comm.stats.reset()
        counts, names = [], []
        for step in range(4):
            if step == 2:
                comm.reset_choices()
            names.append(comm._pin_algorithm(x))
            counts.append(comm.stats.messages)
        return names, counts, comm.explain(x).choice

    for names, counts, choice in sparcml.launch(body, 4):
        assert names == [choice] * 4
        assert counts == [2, 2, 4, 4]


def test_reset_choices_makes_calls_independent_of_earlier_ones():
    def body(comm):
        x = vector(comm.rank, 10_000, 50)
        first = messages_of(comm, x)
        later = messages_of(comm, x)
        comm.reset_choices()
        return first, later, messages_of(comm, x)

    for first, later, again in sparcml.launch(body, 2):
        assert first == again > later


def test_alternating_densities_agree_for_a_while():
    def body(comm):
        few, many = (vector(comm.rank, 1 << 20, nnz) for nnz in (20, 20_000))
        choices = [comm.explain(x).choice for x in (few, many)]
        unagreed = [
            messages_of(comm, x, algorithm=c)
            for x, c in zip((few, many), choices, strict=True)
        ]
        counts = [messages_of(comm, x) for x in (few, many) * 10]
        return unagreed, counts

    for (few, many), counts in sparcml.launch(body, 4):
        # The second call uses the choice of the first; then every call agrees.
        assert counts == [few + 2, few] + [few + 2, many + 2] * 9


def test_after_a_change_some_calls_agree():
    def body(comm):
        few, many = (vector(comm.rank, 1 << 20, nnz) for nnz in (20, 20_000))
        unagreed = messages_of(comm, many, algorithm=comm.explain(many).choice)
        comm.allreduce(few)
        comm.allreduce(many)
        return unagreed, [messages_of(comm, many) for _ in range(MIN_CALLS)]

    for unagreed, counts in sparcml.launch(body, 4):
        later = MIN_CALLS - SIMILAR_CALLS
        assert counts == [unagreed + 2] * SIMILAR_CALLS + [unagreed] * later


@pytest.mark.parametrize("ranks", [2, 3, 4, 5])
def test_a_mismatch_is_reported_before_the_timeout(ranks):
    def body(comm):
        comm.allreduce(vector(comm.rank, 1000, 10))
        comm.allreduce(vector(comm.rank, 500 if comm.rank == 0 else 1000, 10))

    with pytest.raises(
        MismatchError, match=r"size 500, .*size 1000, |size 1000, .*size 500, "
    ):
        sparcml.launch(body, ranks, timeout=1000)


@pytest.mark.parametrize("algorithm", ["auto", "ring", "ssar_split_allgather"])
def test_mean_and_sum_are_a_mismatch(algorithm):
    def body(comm):
        op = "mean" if comm.rank == 0 else "sum"
        comm.allreduce(vector(comm.rank, 1000, 10), op, algorithm)

    with pytest.raises(MismatchError, match="mean"):
        sparcml.launch(body, 3)


def calls_by_name(comm):
    return {name: times.calls for name, times in comm.stats.allreduces.items()}


@pytest.mark.parametrize("in_python", [range(0), range(0, 8, 2), range(8)], ids=len)
def test_a_lower_density_ends_the_choice_of_an_algorithm_with_dense_results(in_python):
    def body(comm):
        comm._set_network(Network())
        if comm.rank in in_python:
            comm._session.use_python()
        many, few = (vector(comm.rank, 100_000, nnz) for nnz in (10_000, 1000))
        assert comm.explain(many).choice == "dsar_split_allgather"
        choice = comm.explain(few).choice
        assert choice != "dsar_split_allgather"
        for _ in range(MIN_CALLS + 3):  # the choice holds for twice as many calls now
            assert comm.allreduce(many).is_dense
        comm.stats.reset()
        for _ in range(20):
            comm.allreduce(few)
        return choice, calls_by_name(comm)

    for choice, calls in sparcml.launch(body, 8):
        # The first call detects that the result has fewer nonzeros.
        assert calls == {"dsar_split_allgather": 1, choice: 19}


def test_dense_results_of_similar_density_keep_the_choice():
    def body(comm):
        comm._set_network(Network())
        rng = np.random.default_rng(comm.rank)
        counts = []
        for _ in range(3 * MIN_CALLS + 1):
            nnz = int(rng.integers(9000, 11_000))
            indices = np.sort(rng.choice(100_000, nnz, replace=False))
            counts.append(messages_of(comm, Stream(100_000, indices, np.ones(nnz, "f4"))))
        return counts

    for counts in sparcml.launch(body, 8):
        agreed = [i for i, count in enumerate(counts) if count == counts[0]]
        assert agreed == [0, MIN_CALLS, 3 * MIN_CALLS]


@pytest.mark.parametrize("size", [1, 300, SAMPLE, SAMPLE + 1, 100_000, 3_000_001])
@pytest.mark.parametrize("block", [1, 4])
@pytest.mark.parametrize("fill", [0.0, np.inf])
def test_the_estimated_nnz_of_dense_results(size, block, fill):
    rng, size = np.random.default_rng(size), size * block
    for density in (0.0, 0.02, 0.3, 1.0):
        stored = np.repeat(rng.random(size // block) < density, block)
        values = np.where(stored, 1, fill).astype(np.float32)
        found = estimated_nnz(Stream.unchecked(size, None, values, block, fill))
        nnz = int(stored.sum()) // block
        if size <= SAMPLE or density in (0.0, 1.0):
            assert found == nnz
        else:
            assert 0.6 * nnz < found < 1.6 * nnz
    sparse = Stream(size, [0], np.ones(block, np.float32), block=block)
    assert estimated_nnz(sparse) == 1


@pytest.mark.parametrize("row", [3, 64, 75, 1000, 4096])
def test_the_sample_has_no_period(row):
    values = np.zeros((2_000_000 // row, row), np.float32)
    values[:, 0] = 1  # one column
    found = estimated_nnz(Stream.unchecked(values.size, None, values.reshape(-1)))
    assert found < 2 * values.size / row + values.size / 500
