"""Non-blocking calls: the same results, any number outstanding, errors at wait."""

import threading
import time

import numpy as np
import pytest

import sparcml
from sparcml import MismatchError, Stream, TransportError

from . import laws, rosters

X = Stream(1000, np.arange(0, 1000, 50), np.ones(20, np.float32))


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("algorithm", ["auto", *rosters.ALLREDUCES])
def test_the_same_as_blocking(algorithm, ranks):
    def body(comm):
        mine = [laws.inputs_of(case, ranks)[comm.rank] for case in laws.CASES]
        requests = [comm.iallreduce(x, algorithm=algorithm) for x in mine]
        blocking = [comm.allreduce(x, algorithm=algorithm) for x in mine]
        for request, want in zip(requests, blocking, strict=True):
            got = request.wait()
            np.testing.assert_array_equal(laws.fingerprint(got), laws.fingerprint(want))

    sparcml.launch(body, ranks)


@pytest.mark.slow
def test_a_thousand_outstanding():
    def body(comm):
        requests = [comm.iallreduce(np.full(3, i, np.float32)) for i in range(1000)]
        return [r.wait()[0] for r in reversed(requests)][::-1]

    for totals in sparcml.launch(body, 3):
        assert totals == [3 * i for i in range(1000)]


def test_two_threads_with_a_communicator_each():
    def body(comm):
        comms = [comm, comm.duplicate()]
        totals: list[list[float]] = [[], []]

        def work(which):
            requests = [
                comms[which].iallreduce(np.full(2, i, np.float32)) for i in range(500)
            ]
            totals[which] = [r.wait()[0] for r in requests]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return totals

    for totals in sparcml.launch(body, 2):
        assert totals == [[2 * i for i in range(500)]] * 2


def test_it_completes_without_the_caller():
    def body(comm):
        request = comm.iallreduce(X)
        end = time.monotonic() + 10
        while not request.test() and time.monotonic() < end:
            time.sleep(0.01)
        assert request.test()
        return request.wait().values[0]

    assert sparcml.launch(body, 3) == [3, 3, 3]


def test_as_a_context_and_gathering():
    def body(comm):
        with comm.iallgather(np.full(comm.rank, 1.0)) as request:
            pass
        assert request.test()
        with pytest.raises(RuntimeError, match="iallgather has been waited for already"):
            request.wait()

    sparcml.launch(body, 3)


def test_waiting_has_a_limit_and_can_go_on():
    def body(comm):
        comm.iallreduce(X).wait()
        if comm.rank == 1:
            time.sleep(0.5)
        request = comm.iallreduce(X)
        if comm.rank == 0:
            with pytest.raises(
                TimeoutError, match=r"iallreduce is not complete after 0.05 s"
            ):
                request.wait(0.05)
        return request.wait().values[0]

    assert sparcml.launch(body, 2) == [2, 2]


def test_errors_surface_at_wait_and_close_the_communicator():
    def body(comm):
        request = comm.iallreduce(
            Stream(10 + comm.rank, [1], [1.0]), algorithm="ssar_recursive_double"
        )
        with pytest.raises(MismatchError, match=r"size 1[01]"):
            request.wait()
        with pytest.raises(TransportError, match="closed after"):
            comm.allreduce(X)
        with pytest.raises(TransportError):
            comm.iallreduce(X).wait()

    sparcml.launch(body, 2)


def test_closing_finishes_what_is_outstanding():
    def body(comm):
        requests = [comm.iallreduce(X) for _ in range(20)]
        comm.close()
        comm.close()
        with pytest.raises(RuntimeError, match="closed"):
            comm.iallreduce(X)
        return [r.wait().values[0] for r in requests]

    assert sparcml.launch(body, 2) == [[2.0] * 20] * 2


def test_a_peer_that_stalls_ends_the_request():
    def body(comm):
        comm.iallreduce(X).wait()
        if comm.rank == 1:
            time.sleep(3)
            return
        comm.iallreduce(X).wait()

    with pytest.raises(TransportError, match=r"rank 1 has not answered for 0.5 s"):
        sparcml.launch(body, 3, timeout=0.5)


def test_bad_arguments_are_refused_at_once():
    def body(comm):
        with pytest.raises(ValueError, match="algorithm must be one of"):
            comm.iallreduce(X, algorithm="magic")
        with pytest.raises(TypeError, match="must be a Stream"):
            comm.iallreduce("text")

    sparcml.launch(body, 1)


def test_changing_the_vector_is_noticed_in_debug_mode(monkeypatch):
    monkeypatch.setenv("SPARCML_DEBUG", "1")

    def body(comm):
        comm.iallreduce(X).wait()  # the duplicate is made
        values = np.ones(5, np.float32)
        x = Stream(100, np.arange(5, dtype=np.uint32), values)
        if comm.rank == 1:
            time.sleep(0.2)  # rank 0 changes its vector while it waits for this rank
            return comm.iallreduce(x).wait()
        request = comm.iallreduce(x)
        values[0] = 2
        with pytest.raises(RuntimeError, match="iallreduce: the input changed"):
            request.wait()
        return None

    sparcml.launch(body, 2)
