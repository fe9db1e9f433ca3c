"""Traces: one readable file for all ranks, true to the statistics, whatever happens."""

import itertools
import json
import threading
import time
from collections import Counter

import numpy as np
import pytest

import sparcml
from sparcml import Stream, TransportError
from sparcml.observe.timeline import Timeline
from sparcml.transport import ThreadTransport, bootstrap

from .mpi.jobs import mpiexec
from .traces import check, events_of, total

X = Stream(1000, np.arange(0, 1000, 50), np.ones(20, np.float32))


def work(comm):
    comm.allreduce(X)
    comm.allreduce(X, algorithm="ssar_split_allgather")
    comm.broadcast(X)
    comm.reduce(X, root=1)
    return comm.stats


def traced_work(path):
    def body(comm):
        comm.trace(path)
        return work(comm)

    return body


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_bytes_are_those_of_the_statistics(tmp_path, ranks):
    path = tmp_path / "out.json"

    def body(comm):
        comm.trace(path)
        for _ in range(2):
            comm.allreduce(X, algorithm="ssar_split_allgather")
        return comm.stats

    stats = sparcml.launch(body, ranks)
    events = events_of(path)
    for rank in range(ranks):
        assert total(events, "send", rank) == stats[rank].bytes
        assert total(events, "wait", rank) == stats[rank].received_bytes
    if ranks > 1:
        check(path, ranks)


def test_by_method_and_by_environment(tmp_path, monkeypatch):
    path = tmp_path / "method.json"
    sparcml.launch(traced_work(path), 3)
    by_method = check(path, 3)
    monkeypatch.setenv("SPARCML_TRACE", str(tmp_path / "environment.json"))
    sparcml.launch(work, 3)
    by_environment = check(tmp_path / "environment.json", 3)
    assert Counter(e["name"] for e in by_method) == Counter(
        e["name"] for e in by_environment
    )
    sparcml.launch(work, 3)  # another communicator of the same program is added
    assert len(events_of(tmp_path / "environment.json")) == 2 * len(by_environment)
    sparcml.launch(traced_work(path), 3)  # a trace that is asked for again starts anew
    assert len(events_of(path)) == len(by_method)


def test_off_by_default(tmp_path, monkeypatch):
    monkeypatch.delenv("SPARCML_TRACE", raising=False)
    monkeypatch.chdir(tmp_path)
    assert sparcml.launch(work, 2)[0].trace is None
    assert list(tmp_path.iterdir()) == []


def test_it_leaves_one_file(tmp_path):
    sparcml.launch(traced_work(tmp_path / "out.json"), 3)
    assert [p.name for p in tmp_path.iterdir()] == ["out.json"]


def test_arrows_connect_each_send_with_its_receive(tmp_path):
    path = tmp_path / "out.json"

    def body(comm):
        comm.trace(path)
        request = comm.iallreduce(X)
        work(comm)
        request.wait()
        with comm.split(comm.rank % 2) as group:
            group.allreduce(X)

    sparcml.launch(body, 4)
    begins, ends = events_of(path, "s"), events_of(path, "f")
    assert len({e["id"] for e in begins}) == len(begins)
    assert {e["id"] for e in begins} == {e["id"] for e in ends}
    by_id = {e["id"]: e for e in ends}
    sends = [e for e in events_of(path) if e["name"] == "send"]
    for begin, send in zip(begins, sends, strict=True):
        assert by_id[begin["id"]]["pid"] == send["args"]["peer"]
        assert begin["ts"] < by_id[begin["id"]]["ts"]


def test_requests_have_a_thread_of_their_own(tmp_path):
    path = tmp_path / "out.json"

    def body(comm):
        comm.trace(path)
        requests = [comm.iallreduce(X) for _ in range(5)]
        comm.allreduce(X)
        for request in requests:
            request.wait()
        return comm.stats

    stats = sparcml.launch(body, 4)
    events = check(path, 4)
    threads = {e["args"]["name"] for e in events_of(path, "M") if e["name"][0] == "t"}
    assert threads == {"caller", "progress"}
    for rank in range(4):
        assert total(events, "send", rank) == stats[rank].bytes


def test_rounds_peers_and_entries_are_told(tmp_path):
    path = tmp_path / "out.json"
    sparcml.launch(traced_work(path), 4)
    split = [e for e in events_of(path) if "split_allgather" in e["args"]["call"]]
    sends = [e["args"] for e in split if e["name"] == "send" and e["pid"] == 0]
    assert [(s["round"], s["peer"]) for s in sends] == [
        *((0, 1), (0, 2), (0, 3)),
        *((1, 1), (1, 2), (1, 3)),
    ]
    assert {e["args"]["nnz"] for e in split if e["name"] == "add"} == {20}


def test_a_rank_that_raises_leaves_a_readable_file(tmp_path):
    path = tmp_path / "out.json"

    def body(comm):
        comm.trace(path)
        comm.allreduce(X, algorithm="ssar_split_allgather")
        if comm.rank == 1:
            raise ValueError("no such luck")
        comm.allreduce(X, algorithm="ssar_split_allgather")

    with pytest.raises(ValueError, match="no such luck"):
        sparcml.launch(body, 3)
    failed = [e for e in check(path, 3) if "error" in e["args"]]
    assert {e["pid"] for e in failed} == {0, 2}
    assert all("rank 1 raised ValueError" in e["args"]["error"] for e in failed)


def test_none_ends_a_trace(tmp_path):
    path = tmp_path / "out.json"

    def body(comm):
        comm.trace(path)
        comm.allreduce(X)
        comm.trace(None)
        comm.barrier()
        return len(events_of(path))

    counts = sparcml.launch(body, 3)
    assert counts == [len(events_of(path))] * 3


def test_clocks_of_different_machines_are_shifted(tmp_path, monkeypatch):
    path = tmp_path / "out.json"

    def far():
        return threading.current_thread().name == "rank 1"

    def now(self):
        return time.perf_counter() + 1000 * far()

    monkeypatch.setattr(ThreadTransport, "now", now)
    machine = lambda: bootstrap.Machine("host", "", f"far: {far()}")  # noqa: E731
    monkeypatch.setattr(bootstrap, "this_machine", machine)
    sparcml.launch(traced_work(path), 3)
    assert all(0 <= e["ts"] < 100e6 for e in check(path, 3))


def test_adjacent_events_do_not_overlap():
    def body(comm):
        timeline = Timeline(comm._transport, zero=0.1)
        ends = 0.1 + np.cumsum(np.random.default_rng(3).random(2000) * 1e-6)
        for start, end in itertools.pairwise(ends.tolist()):
            timeline.add("wait", start, end, {})
        return [e for e in timeline.drain() if e["ph"] == "X"]

    (events,) = sparcml.launch(body, 1)
    for a, b in itertools.pairwise(events):
        assert round(1000 * a["ts"]) + round(1000 * a["dur"]) == round(1000 * b["ts"])


def test_no_such_folder(tmp_path):
    with pytest.raises((FileNotFoundError, TransportError), match="trace: folder"):
        sparcml.launch(lambda comm: comm.trace(tmp_path / "none" / "out.json"), 2)


@pytest.mark.mpi
@pytest.mark.parametrize("how", ["ends", "raises"])
def test_under_mpi(tmp_path, how):
    path = tmp_path / "out.json"
    job = mpiexec(3, "traced.py", how, SPARCML_TRACE=str(path))
    assert (job.code == 0) == (how == "ends"), job.err
    events = check(path, 3)
    for line in job.out.splitlines():
        rank, sent = json.loads(line)
        assert total(events, "send", rank) == sent
    if how == "ends":
        assert len(job.out.splitlines()) == 3
        assert len(events_of(path, "s")) == len(events_of(path, "f"))
