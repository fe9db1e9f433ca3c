"""What ranks know of the processes of the others."""

import threading

import pytest

from sparcml.collectives import ALLREDUCES
from sparcml.communicator.selection import choose
from sparcml.costs import Network
from sparcml.costs.network import COMPUTE_COSTS
from sparcml.costs.workload import Workload
from sparcml.transport import ThreadGroup, ThreadTransport
from sparcml.transport.processes import find_processes
from sparcml.transport.timeouts import available_processors


@pytest.mark.parametrize("ranks", [1, 3, 9])
def test_all_ranks_know_how_many_share_a_processor(ranks):
    group, found = ThreadGroup(ranks), {}

    def work(rank):
        found[rank] = find_processes(ThreadTransport(group, rank, 20.0))

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    want = max(1.0, ranks / available_processors())
    assert [found[rank].per_processor for rank in range(ranks)] == [want] * ranks
    assert {found[rank].known for rank in range(ranks)} == {ranks}


def test_ranks_that_share_processors_choose_what_computes_less():
    """8 ranks at 1 Gbit/s, 1 M values at 1 %: measured on 2 processors in docs/benchmarks.md."""
    alone, shared = Network(), Network().with_shared_processors(4)
    assert all(getattr(shared, c) == 4 * getattr(alone, c) for c in COMPUTE_COSTS)
    assert (shared.latency, shared.seconds_per_byte) == (
        alone.latency,
        alone.seconds_per_byte,
    )
    names = tuple(ALLREDUCES)
    many, few = Workload(1_000_000, 4, (10_000,) * 8), Workload(1_000_000, 4, (1000,) * 8)
    assert (
        choose(many, alone, names) == choose(few, shared, names) == "ssar_recursive_double"
    )
    assert choose(many, shared, names) == "ssar_split_allgather"
