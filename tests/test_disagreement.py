"""Arguments that differ between ranks: every rank raises and names the ranks."""

import numpy as np
import pytest

import sparcml
from sparcml import QSGD, Half, MismatchError, OneBit
from sparcml.linear import SGD, LogisticRegression, Rows

X = np.ones(64, np.float32)


def errors(body, ranks=3):
    """What each rank raises in body(comm), as text."""
    found: list[str] = [""] * ranks

    def checked(comm):
        try:
            body(comm)
            comm.barrier()
        except Exception as error:
            found[comm.rank] = f"{type(error).__name__}: {error}"

    sparcml.launch(checked, ranks, timeout=2)
    return found


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_roots_that_differ(collective):
    def body(comm):
        with pytest.raises(
            MismatchError, match=r"with root 0.*, but rank 1 is in .* with root 1"
        ):
            getattr(comm, collective)(X, root=comm.rank)
        return getattr(comm, collective)(X, root=1) is not None  # it remains usable

    assert any(sparcml.launch(body, 3, timeout=2))


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
@pytest.mark.parametrize("bad", [0, 2])
def test_a_root_that_changes_on_one_rank_only(collective, bad):
    def body(comm):
        call = getattr(comm, collective)
        call(X, root=0)
        call(X, root=1 if comm.rank == bad else 0)

    for error in errors(body, 4):
        assert error.startswith(("MismatchError", "TransportError"))
        assert f"rank {bad}" in error


def test_a_root_is_agreed_on_once():
    def body(comm):
        counts = []
        for root in (1, 1, 1, 2, 2):
            before = comm.stats.messages
            comm.broadcast(X, root=root)
            counts.append(comm.stats.messages - before)
        return np.array(counts)

    calls = np.sum(sparcml.launch(body, 3), axis=0).tolist()
    assert calls == [8, 2, 2, 8, 2]  # two messages, and two rounds of headers before them


def test_another_rooted_collective():
    def body(comm):
        comm.reduce(X) if comm.rank else comm.broadcast(X)

    for error in errors(body):
        assert error.startswith(
            "MismatchError: rank 0 is in broadcast with root 0, but rank 1"
        )
        assert "is in reduce with root 0, sum, size 64, float32" in error


@pytest.mark.parametrize(
    "arguments",
    [(X[:9], 0, "sum"), (X.astype(np.float64), 0, "sum"), (X, 0, "max"), (1.0, 0, "sum")],
)
def test_reductions_to_a_root_that_differ(arguments):
    def body(comm):
        comm.reduce(*(arguments if comm.rank == 1 else (X, 0, "sum")))

    for error in errors(body):
        assert error.startswith(
            "MismatchError: rank 0 is in reduce with root 0, sum, size 64"
        )
        assert "rank 1 is in reduce with root 0" in error


SETTINGS = [
    {"C": 2.0},
    {"solver": "scd"},
    {"tol": 0.1},
    {"max_iter": 7},
    {"batch_size": 9},
    {"class_weight": "balanced"},
]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_settings_of_estimators_that_differ(setting):
    def body(comm):
        own = {"solver": "sgd", "max_iter": 5} | (setting if comm.rank == 2 else {})
        labels = np.arange(6) % 2
        LogisticRegression(comm=comm, **own).fit(np.eye(6), labels)

    (name,) = setting
    for error in errors(body):
        assert error.startswith("MismatchError: LogisticRegression: rank 0 has " + name)
        assert f"but rank 2 has {name}={setting[name]!r}" in error


def test_settings_of_solvers_that_differ():
    def body(comm):
        rows = Rows.of(np.eye(6), np.ones(6))
        SGD(batch_size=5 + comm.rank).run(comm, rows)

    for error in errors(body):
        assert "SGD: rank 0 has batch_size=5, but rank 1 has batch_size=6" in error


@pytest.mark.parametrize("algorithm", ["auto", "ssar_split_allgather", "oktopk"])
@pytest.mark.parametrize("other", [None, QSGD(8), QSGD(4, bucket=512), Half()])
def test_quantizers_that_differ(algorithm, other):
    def body(comm):
        quantize = other if comm.rank == 1 else QSGD(4)
        comm.allreduce(X, algorithm=algorithm, quantize=quantize)

    for error in errors(body):
        assert error.startswith("MismatchError")
        assert "rank 1 has quantize=" + repr(other) in error
        assert "has quantize=QSGD(bits=4, bucket=256" in error


def test_a_setting_that_is_not_sent_is_compared_by_auto():
    def body(comm):
        mean = OneBit(bucket=64, threshold="mean" if comm.rank else "zero")
        comm.allreduce(X, quantize=mean)

    assert all("threshold='mean'" in error for error in errors(body))


@pytest.mark.parametrize("algorithm", ["auto", "ring", "ssar_recursive_double"])
def test_an_allreduce_against_a_barrier(algorithm):
    def body(comm):
        if comm.rank == 1:
            return comm.barrier()
        return comm.allreduce(X, algorithm=algorithm)

    for error in errors(body):
        assert "rank 1 is in call 1, barrier" in error
        assert "is in call 1, allreduce (sum)" in error
        assert "size 0" not in error


@pytest.mark.parametrize("place", ["X", "y"])
def test_a_value_that_is_not_finite_on_one_rank_of_fit(place):
    data = np.random.default_rng(0).standard_normal((20, 3))
    labels = np.arange(20.0) % 2

    def body(comm):
        bad = {"X": data.copy(), "y": labels.copy()}
        if comm.rank == 1:
            bad[place][3] = np.nan
        LogisticRegression(comm=comm).fit(**bad)

    found = errors(body)
    assert found[0].startswith(f"DataError: rank 1: Input {place} contains NaN")
    assert len(set(found)) == 1
