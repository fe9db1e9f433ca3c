"""Collectives whose names are deprecated: they warn, and do the same as before."""

import numpy as np
import pytest

import sparcml
from sparcml.stream import Stream


class Halving:
    """Three steps for `reduce_steps`."""

    def __init__(self):
        self.x, self.made = np.float32(8), 0

    def vector(self):
        if self.made == 3:
            return None
        return Stream(1000, np.array([5], np.uint32), np.array([self.x], np.float32))

    def apply(self, result):
        self.x, self.made = np.float32(result.values[0] / 4), self.made + 1


def launched(body, ranks, name):
    """Return the results of all ranks, which warn of a name."""
    with pytest.warns(DeprecationWarning, match=f"Communicator.{name} is deprecated"):
        return sparcml.launch(body, ranks)


BAD_OUTS = {
    "integers": (lambda: np.zeros(8, np.int64), "must have 8 values of float64"),
    "short": (lambda: np.zeros(7), "must have 8 values of float64, got 7"),
    "strided": (lambda: np.zeros(16)[::2], "contiguous"),
}


@pytest.mark.parametrize("name", BAD_OUTS)
def test_arrays_are_checked_before_the_call(name):
    make, message = BAD_OUTS[name]

    def body(comm):
        with pytest.raises(ValueError, match=message):
            comm.allgather_add(np.ones(8), make())
        return float(comm.allreduce(1.0))  # still open

    assert launched(body, 2, "allgather_add") == [2.0, 2.0]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_vectors_that_depend_on_those_before(ranks):
    def body(comm):
        out = np.ones(3)
        assert comm.add_from((out.copy() for _ in range(4)), out) is out
        return out.tolist()

    assert launched(body, ranks, "add_from") == [[(1.0 + ranks) ** 4] * 3] * ranks


@pytest.mark.parametrize("ranks", [1, 2])
def test_steps(ranks):
    def body(comm):
        steps = Halving()
        comm.reduce_steps(steps)
        return steps.made, float(steps.x)

    assert launched(body, ranks, "reduce_steps") == [(3, 8 * (ranks / 4) ** 3)] * ranks


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
        with pytest.raises(
            AttributeError, match="'Communicator' object has no attribute 'sum'"
        ):
            comm.sum  # noqa: B018
        return name == comm.explain(x).choice, is_compiled

    # One rank at a time may change the filters of warnings.
    simulated = sparcml.simulate(body, ranks=ranks, network="1gbit").results
    assert [result[1] for result in simulated] == [False] * ranks
