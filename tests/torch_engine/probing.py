"""What each rank does in test_probe.py."""

import os
from unittest.mock import patch

import numpy as np

import sparcml
from sparcml.costs import COSTS
from sparcml.network import probe_algorithms

# Agreement does not depend on the size.
FEW_POINTS = patch.object(probe_algorithms, "POINTS", probe_algorithms.POINTS[:3])


@FEW_POINTS
def agree_on_what_they_find():
    with sparcml.world() as comm:
        assert comm.network.source == "assumed"
        found = comm.recalibrate()
        costs = np.array([getattr(found, name) for name in COSTS])
        assert (costs >= 0).all()
        for other in comm.allgather(costs):
            np.testing.assert_array_equal(other, costs)
        assert found.source.endswith(f"{comm.size} ranks on torch")
        assert {c.algorithm for c in found.calibration} >= {"ring", "ssar_ring"}
        assert comm.allreduce(np.ones(10, np.float32))[0] == comm.size


def take_the_network_of_rank_0():
    rank = int(os.environ["RANK"])
    os.environ["SPARCML_NETWORK"] = ["100mbit", "10gbit", "nonsense"][rank]
    with sparcml.world() as comm:
        assert comm.network == sparcml.network.network("100mbit")
        assert comm.network.source == "100mbit"


def hear_of_a_wrong_name():
    rank = int(os.environ["RANK"])
    os.environ["SPARCML_NETWORK"] = "1gbit" if rank else "nonsense"
    sparcml.world()
