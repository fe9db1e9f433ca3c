"""A few laws on machines of their own: started by test_run_network.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import sparcml
from tests import laws, rosters

with sparcml.world() as comm:
    assert len(comm._transport.nodes.leaders) == comm.size
    for algorithm in ("auto", *rosters.LOSSLESS):
        for case in laws.CASES[:2]:
            laws.same_sum(comm, algorithm, case)
    for algorithm, op in rosters.REDUCTIONS:
        laws.same_bits(comm, algorithm, op)
    if comm.rank == 0:
        print(f"laws hold on {comm.size} machines with {comm.engine}")
