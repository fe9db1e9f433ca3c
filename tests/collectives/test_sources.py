"""Vectors that are computed one after the other: arguments, errors, and other threads."""

import threading

import numpy as np
import pytest

import sparcml
from sparcml.stream import Stream


class Halving:
    """Three steps for `reduce_steps`."""

    dtype = np.dtype(np.float32)

    def __init__(self):
        self.x, self.made = np.float32(8), 0

    def vector(self):
        if self.made == 3:
            return None
        return Stream(1000, np.array([5], np.uint32), np.array([self.x], np.float32))

    def apply(self, result):
        self.x, self.made = np.float32(result.values[0] / 4), self.made + 1


BAD_OUTS = {
    "integers": (lambda: np.zeros(8, np.int64), "must have 8 values of float64"),
    "short": (lambda: np.zeros(7), "must have 8 values of float64, got 7"),
    "strided": (lambda: np.zeros(16)[::2], "contiguous"),
}


@pytest.mark.parametrize("name", BAD_OUTS)
def test_add_from_checks_its_array_before_a_call(name):
    make, message = BAD_OUTS[name]

    def body(comm):
        with pytest.raises(ValueError, match=message):
            comm.add_from([np.ones(8)], make())
        return float(comm.allreduce(1.0))  # still open

    assert sparcml.launch(body, 2) == [2.0, 2.0]


@pytest.mark.parametrize("ranks", [1, 2])
def test_add_from_takes_a_generator(ranks):
    def body(comm):
        out = np.zeros(3)
        comm.add_from((np.full(3, 2.0) for _ in range(4)), out)
        return out.tolist()

    assert sparcml.launch(body, ranks) == [[8.0 * ranks] * 3] * ranks


@pytest.mark.parametrize("ranks", [1, 2])
def test_reduce_steps(ranks):
    def body(comm):
        steps = Halving()
        comm.reduce_steps(steps)
        return steps.made, float(steps.x)

    assert sparcml.launch(body, ranks) == [(3, 8 * (ranks / 4) ** 3)] * ranks


def test_a_failing_thread_does_not_release_the_lock_of_another():
    def body(comm):
        x = Stream(1000, np.array([1], np.uint32), np.ones(1, np.float32))
        for _ in range(3):
            comm.allreduce(x)
        errors = []

        def fail():
            try:
                comm.allreduce(x)
            except RuntimeError as error:
                errors.append(error)

        entered = threading.Event()
        if comm.rank == 0:
            thread = threading.Thread(target=lambda: (entered.wait(), fail()))
            thread.start()
            threading.Timer(0.1, entered.set).start()
        else:
            threading.Event().wait(0.5)
        result = comm.allreduce(x)  # rank 0 waits in it while its thread fails
        if comm.rank == 0:
            thread.join()
            assert len(errors) == 1
        assert not comm._session.state.is_busy
        return float(result.values[0])

    assert sparcml.launch(body, 2) == [2.0, 2.0]


@pytest.mark.parametrize("ranks", [1, 2])
def test_internal_names_are_deprecated(ranks):
    def body(comm):
        x = Stream(1000, [1], [1.0])
        with pytest.warns(DeprecationWarning, match="meet is internal"):
            comm.meet("barrier")
        with pytest.warns(DeprecationWarning, match="pin_algorithm is internal"):
            name = comm.pin_algorithm(x)
        with pytest.warns(DeprecationWarning, match="is_compiled is internal"):
            is_compiled = comm.is_compiled
        with pytest.raises(AttributeError, match="'Communicator' has no attribute 'sum'"):
            comm.sum  # noqa: B018
        return name == comm.explain(x).choice, is_compiled

    # One rank at a time may change the filters of warnings.
    simulated = sparcml.simulate(body, ranks=ranks, network="1gbit").results
    assert [result[1] for result in simulated] == [False] * ranks
