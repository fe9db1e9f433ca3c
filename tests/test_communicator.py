"""What a user calls: kinds of vectors, operations, groups, statistics, bad arguments."""

import sys
import threading

import numpy as np
import pytest

import sparcml
from sparcml import Stream
from sparcml.collectives import ALLREDUCES
from sparcml.communicator.selection import Explanation
from sparcml.costs import Network, Workload
from sparcml.costs.estimate import Estimate

from . import rosters

X = Stream(1000, np.arange(0, 1000, 50), np.ones(20, np.float32))


def on(ranks, body):
    return sparcml.launch(body, ranks, timeout=10)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("op", ["sum", "mean", "min", "max", "prod"])
@pytest.mark.parametrize("algorithm", ["auto", *rosters.LOSSLESS])
def test_arrays_come_back_as_arrays(ranks, op, algorithm):
    """Also where zeros take part, which a stream would leave out."""
    inputs = [np.array([[0, r - 1, 2], [r, 0, -r]], np.float32) for r in range(ranks)]
    want = {"mean": np.mean}.get(op, getattr(np, op))(inputs, axis=0)
    for got in on(ranks, lambda c: c.allreduce(inputs[c.rank], op=op, algorithm=algorithm)):
        np.testing.assert_allclose(got, want, rtol=1e-6)
        assert got.shape == (2, 3)
        assert got.dtype == np.float32
        assert not got.flags.writeable


def test_torch_tensors_come_back_as_tensors():
    torch = pytest.importorskip("torch")

    def body(comm):
        dense = torch.zeros(4, 5)
        dense[comm.rank] = 1
        rows = torch.sparse_coo_tensor(
            [[comm.rank, 7]], torch.ones(2, 3), (9, 3), check_invariants=True
        )
        return comm.allreduce(dense), comm.allreduce(rows, op="mean")

    for dense, rows in on(2, body):
        assert dense.tolist() == [[1] * 5, [1] * 5, [0] * 5, [0] * 5]
        assert rows.is_sparse
        assert rows.shape == (9, 3)
        assert rows.to_dense()[7].tolist() == [1, 1, 1]


def test_scipy_rows_come_back_as_rows():
    sparse = pytest.importorskip("scipy.sparse")
    row = sparse.csr_array(np.array([[0, 1, 0, 2] + [0] * 20], np.float64))
    for got in on(3, lambda c: c.allreduce(row)):
        assert got.shape == row.shape
        np.testing.assert_array_equal(got.toarray(), 3 * row.toarray())


def test_what_is_absent_is_the_neutral_element():
    def body(comm):
        x = Stream(10, [comm.rank, 5], np.array([-1.0, comm.rank], np.float32))
        return [
            comm.allreduce(x, op=op).to_dense()[[0, 5, 9]] for op in ("min", "max", "prod")
        ]

    for smallest, largest, product in on(2, body):
        assert smallest.tolist() == [-1, 0, np.inf]
        assert largest.tolist() == [-1, 1, -np.inf]
        assert product.tolist() == [-1, 0, 1]


def test_nan_and_infinity_stay():
    def body(comm):
        x = Stream(6, [0, 1, 2], np.array([np.nan, np.inf, -np.inf], np.float32))
        y = Stream(6, [1, 2, 4], np.array([np.inf, np.inf, np.nan], np.float32))
        return comm.allreduce(x if comm.rank == 0 else y).to_dense()

    for total in on(2, body):
        np.testing.assert_array_equal(total, [np.nan, np.inf, np.nan, 0, np.nan, 0])


def test_the_result_never_aliases_the_input():
    values = np.ones(5, np.float32)

    def body(comm):
        return comm.allreduce(Stream(99, np.arange(5, dtype=np.uint32), values))

    (alone,) = on(1, body)
    both = on(2, body)
    values[:] = 7
    assert alone.values.tolist() == [1] * 5
    assert all(y.values.tolist() == [2] * 5 for y in both)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_allgather_of_unequal_sizes(ranks):
    def body(comm):
        streams = comm.allgather(Stream(10 + comm.rank, [comm.rank], [1.0 + comm.rank]))
        arrays = comm.allgather(np.full(comm.rank, comm.rank, np.float64))
        return streams, arrays

    for streams, arrays in on(ranks, body):
        assert [s.size for s in streams] == list(range(10, 10 + ranks))
        assert [s.values[0] for s in streams] == list(range(1, 1 + ranks))
        assert [a.tolist() for a in arrays] == [[r] * r for r in range(ranks)]


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_broadcast_from_every_root(ranks):
    def body(comm):
        got = []
        for root in range(comm.size):
            mine = root == comm.rank
            got += [
                comm.broadcast(X if mine else None, root),
                comm.broadcast(np.array([root, 2], np.float64) if mine else None, root),
                comm.broadcast(np.full((2, 3), comm.rank, np.float32), root),
            ]
        return got

    for got in on(ranks, body):
        for root in range(ranks):
            stream, array, shaped = got[3 * root : 3 * root + 3]
            assert isinstance(stream, Stream)
            assert stream.nnz == X.nnz
            assert array.tolist() == [root, 2]
            assert shaped.tolist() == [[root] * 3] * 2


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("op", ["sum", "mean", "min", "max", "prod"])
def test_reduce_and_reduce_scatter(ranks, op):
    inputs = [np.arange(-3, 30, dtype=np.float64) * (r + 1) for r in range(ranks)]
    want = {"mean": np.mean}.get(op, getattr(np, op))(inputs, axis=0)

    def body(comm):
        mine = inputs[comm.rank]
        at_roots = [comm.reduce(mine, root, op) for root in range(ranks)]
        return (
            at_roots,
            comm.reduce_scatter(mine, op),
            comm.ireduce_scatter(mine, op).wait(),
        )

    everyone = on(ranks, body)
    for rank, (at_roots, part, later) in enumerate(everyone):
        assert [r for r in range(ranks) if at_roots[r] is not None] == [rank]
        np.testing.assert_array_equal(at_roots[rank], want)
        np.testing.assert_array_equal(part, later)
    np.testing.assert_array_equal(np.concatenate([part for _, part, _ in everyone]), want)


def test_groups_duplicates_and_barrier():
    def body(comm):
        other = comm.duplicate()
        group = comm.split(color=comm.rank % 2, key=-comm.rank)
        comm.barrier()
        total = group.allreduce(np.array([comm.rank], np.float32))[0]
        return group.rank, group.size, total, other.allreduce(np.array([1], np.float32))[0]

    ranks = on(5, body)
    assert [r[:2] for r in ranks] == [(2, 3), (1, 2), (1, 3), (0, 2), (0, 3)]
    assert [r[2] for r in ranks] == [6, 4, 6, 4, 6]
    assert [r[3] for r in ranks] == [5] * 5


def test_statistics_count_and_reset():
    def body(comm):
        comm.allreduce(X, algorithm="ssar_recursive_double")
        first = comm.stats.messages, comm.stats.bytes, comm.stats.received_bytes
        assert comm.stats.seconds["encode"] > 0
        comm.stats.reset()
        return first, comm.stats.messages, comm.stats.bytes

    for (messages, sent, received), *after in on(4, body):
        assert messages == 2
        assert sent == received > 2 * 32
        assert after == [0, 0]


def test_explain_says_what_auto_takes():
    def body(comm):
        rng = np.random.default_rng(comm.rank)
        dense = rng.random(200_000).astype(np.float32)
        small = comm.explain(X)
        large = comm.explain(dense)
        comm.stats.reset()
        comm.allreduce(dense)
        return small, large, comm.stats.bytes, comm.stats.computed_bytes

    for small, large, sent, computed in on(4, body):
        assert small.choice == "ssar_recursive_double"
        assert large.choice == "native"
        assert computed == 1_200_000  # by the engine
        assert sent - computed < 1000  # the agreement before the call
        flat = {
            name for name, a in ALLREDUCES.items() if not (a.multi_node or a.quantized_only)
        }
        assert {e.algorithm for e in small.estimates} == flat
        assert "auto chooses ssar_recursive_double" in str(small)


@pytest.mark.parametrize(
    ("ahead", "why"),
    [
        ("ssar_ring", "within 3% of the best, ssar_ring"),
        ("ring", "the engine has the dense"),
    ],
)
def test_explain_gives_the_reason_for_native(ahead, why):
    workload = Workload(1000, 4.0, (400, 400))
    estimates = (Estimate(ahead, 2, 1e4, 1.00e-3), Estimate("native", 2, 1e4, 1.02e-3))
    text = str(Explanation(workload, Network(), estimates, "native", 1e-4, 1e-4))
    assert why in text.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "error", "why"),
    [
        (
            {"algorithm": "magic"},
            ValueError,
            "one of auto, ssar_recursive_double, .*'magic'",
        ),
        ({"op": "xor"}, ValueError, "op must be one of sum, .*mean, got 'xor'"),
        ({"x": "text"}, TypeError, "must be a Stream, a NumPy array.*got str"),
        ({"x": np.ones(3, np.uint16)}, TypeError, "int32 or int64, got uint16"),
    ],
)
def test_bad_arguments_change_nothing(arguments, error, why):
    def body(comm):
        with pytest.raises(error, match=why):
            comm.allreduce(**{"x": X, **arguments})
        return comm.allreduce(X).values[0]

    assert on(3, body) == [3, 3, 3]


@pytest.mark.parametrize("algorithm", ALLREDUCES)
def test_a_fill_of_minus_zero_on_one_rank_changes_no_bit(algorithm):
    values = np.where(np.arange(1000) % 2, 0.0, 1.0).astype(np.float32)

    def body(comm):
        x = Stream.from_dense(values, fill=-0.0 if comm.rank == 0 else 0.0)
        return comm.allreduce(x, algorithm=algorithm).to_dense().tobytes()

    assert set(on(3, body)) == {(3 * values).tobytes()}


def test_results_of_min_cannot_be_summed_by_mistake():
    def body(comm):
        least = comm.allreduce(X, op="min")
        with pytest.raises(
            ValueError, match="the fill of a sparse stream must be 0 for op sum, got inf"
        ):
            comm.allreduce(least)
        comm.allreduce(least, op="min")

    on(2, body)


def test_a_closed_communicator_says_so():
    comm = sparcml.world()
    comm.close()
    comm.close()
    with pytest.raises(
        sparcml.TransportError, match="allreduce: this communicator is closed"
    ):
        comm.allreduce(X)


def test_two_threads_on_one_communicator():
    def body(comm):
        if comm.rank == 1:
            entered.wait(5)
            return comm.allreduce(X).values[0]
        failures = []

        def intrude():
            while not comm._session.state.is_busy:
                pass
            try:
                comm.allreduce(X)
            except RuntimeError as error:
                failures.append(str(error))
            entered.set()

        thread = threading.Thread(target=intrude)
        thread.start()
        total = comm.allreduce(X).values[0]
        thread.join()
        assert "duplicate()" in failures[0]
        return total

    entered = threading.Event()
    assert on(2, body) == [2, 2]


def test_launch_and_timeouts_want_numbers(monkeypatch):
    with pytest.raises(ValueError, match="ranks must be >= 1, got 0"):
        sparcml.launch(lambda comm: None, 0)
    monkeypatch.setenv("SPARCML_TIMEOUT", "soon")
    with pytest.raises(ValueError, match=r"SPARCML_TIMEOUT: value must be .* got 'soon'"):
        sparcml.world()


def test_under_torchrun_there_is_no_silent_world_of_one(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    with pytest.raises(sparcml.TransportError, match="torchrun"):
        sparcml.world()


def test_alone_means_a_world_of_one():
    with sparcml.world() as comm:
        assert (comm.rank, comm.size) == (0, 1)
        assert "mpi4py" not in sys.modules or comm.engine == "threads"
