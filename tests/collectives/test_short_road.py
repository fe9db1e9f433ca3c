"""Allreduces without Python against the definitions: the same bits, messages, counts, errors."""

import threading
from itertools import product

import numpy as np
import pytest

import sparcml
from sparcml.collectives.compiled import ALGORITHMS
from sparcml.errors import MismatchError
from sparcml.stream import Stream
from tests.collectives.test_compiled import DTYPES, INPUTS, bits, run, vector

CASES = [case for case in INPUTS if case[0] < 1_000_000]


def counters(stats):
    calls = {name: times.calls for name, times in stats.allreduces.items()}
    return stats.messages, stats.bytes, stats.received_messages, stats.received_bytes, calls


def took_the_short_road(comm):
    """Return whether allreduces have counted their times in compiled code since the last time."""
    counted = [source() for source in comm.stats.sources]
    for counters in filter(None, counted):
        comm.stats.count_compiled(counters)
    return any(counters.allreduces for counters in filter(None, counted))


@pytest.mark.parametrize("ranks", range(1, 10))
def test_equals_the_definition(ranks):
    """Three calls of each kind: the second and third take the short road."""
    names = ("auto", *ALGORITHMS)
    cases = [
        (name, dtype, CASES[(7 * i + ranks) % len(CASES)])
        for i, (name, dtype) in enumerate(product(names, DTYPES))
    ]

    def body(comm):
        found = []
        for name, dtype, case in cases:
            x = vector(comm.rank, dtype, case)
            ops = ("sum", "mean") if x.dtype.kind == "f" else ("sum",)
            with np.errstate(all="ignore"):
                found += [bits(comm.allreduce(x, op, name)) for op in ops for _ in range(3)]
        comm.barrier()
        return found, counters(comm.stats), comm.stats._counts.seconds["add"] > 0

    defined, messages = run(body, ranks, compiled=())
    for group in (range(ranks), range(0, ranks, 2)):
        results, sent = run(body, ranks, compiled=group)
        assert [r[:2] for r in results] == [d[:2] for d in defined]
        assert sent == messages


@pytest.mark.parametrize("ranks", [2, 4, 5])
def test_choices_of_auto_end(ranks):
    """Ranks agree again after 32 calls and when results change, also if some run Python."""

    def body(comm):
        found = []
        for call in range(150):
            nnz = 40 if call < 90 else 40 + 3 * call
            x = vector(comm.rank, np.float32, (5000, 1, nnz, "spread"))
            # Another string of the same text is for Python, on one rank only.
            name = "au to".replace(" ", "") if call % 7 == comm.rank else "auto"
            found.append(bits(comm.allreduce(x, algorithm=name)))
            if call == 120:
                comm.reset_choices()
        return found, counters(comm.stats)

    defined, messages = run(body, ranks, compiled=())
    for group in (range(ranks), range(1, ranks, 2)):
        assert run(body, ranks, compiled=group) == (defined, messages)


def test_which_calls_take_the_short_road():
    """The second call is, unless it is traced, recorded, or another one."""

    def body(comm):
        x = vector(comm.rank, np.float32, INPUTS[0])
        comm.allreduce(x)
        found = [took_the_short_road(comm)]
        comm.allreduce(x)
        found.append(took_the_short_road(comm))
        comm.stats.sent = []
        comm.allreduce(x)
        found.append(took_the_short_road(comm))
        assert len(comm.stats.sent) == 1
        comm.stats.sent = None
        comm.allreduce(x, "max")
        comm.allreduce(np.ones(60, np.float32))
        found.append(took_the_short_road(comm))
        total = comm.allreduce(x)
        found.append(took_the_short_road(comm))
        assert not total.is_scratch
        assert not total.values.flags.writeable
        return found, comm.stats.allreduces["ssar_recursive_double"].calls > 3

    results, _ = run(body, 2, compiled=range(2))
    assert results == [([False, True, False, False, True], True)] * 2


@pytest.mark.parametrize("ranks", [2, 3])
def test_errors_equal_those_of_the_definition(ranks):
    """A rank that is in another call, after calls on the short road."""

    def body(comm):
        x = vector(comm.rank, np.float32, INPUTS[0])
        name = "ssar_recursive_double"
        for _ in range(3):
            comm.allreduce(x, algorithm=name)
        last = x if comm.rank else Stream(70, [3], [1.0])
        with pytest.raises(MismatchError) as raised:
            comm.allreduce(last, algorithm=name)
        assert not comm._session.state.is_busy
        return type(raised.value), "#4" in comm._transport.operation

    results, _ = run(body, ranks, compiled=range(ranks))
    assert results == [(MismatchError, True)] * ranks


def test_closed():
    def body(comm):
        x = vector(comm.rank, np.float32, INPUTS[0])
        for _ in range(3):
            comm.allreduce(x)
        after = comm._transport.operation
        comm.close()
        with pytest.raises(Exception, match="allreduce: this communicator is closed"):
            comm.allreduce(
                x, algorithm="ssar_ring", op="sum", out=np.zeros(5000, np.float32)
            )
        return after

    results, _ = run(body, 2, compiled=range(2))
    assert results == ["after ssar_recursive_double #4"] * 2


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
