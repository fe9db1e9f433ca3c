"""Law 7 with processes of torch.distributed: every survivor raises and names the rank."""

import re

import pytest
from torch import distributed as dist

import sparcml
from sparcml.transport.gloo.transport import meet

from . import failing
from .jobs import outcomes, torchrun

pytestmark = pytest.mark.torch
TIMEOUT = 2.0

# What one rank does, and what each of the others says.
WAYS = {
    "raises": "TransportError: rank {0} raised ValueError: no such luck",
    "exits": "TransportError: rank {0} raised SystemExit: 3",
    "closes": "TransportError: rank {0} has closed its connection, and rank . still waits",
    "stalls": "TransportError: rank {0} has not answered for 2 s",
    "stops": r"TransportError: rank {0} has not answered for 2 s \(its process is stopped\)",
    "dies": "TransportError: rank {0} is gone, and rank . still waits",
    "diverges": "MismatchError: .*(rank {0} is in call 2, allgather|but rank {0} is in)",
    "differs": "MismatchError: .*(rank {0} has size 2000|rank . has size 1000)",
}


@pytest.mark.parametrize("how", WAYS)
def test_every_survivor_says_why(how):
    arguments = (how, "ssar_recursive_double", 2)
    said = outcomes(4, failing.body, *arguments, bad=2, SPARCML_TIMEOUT=str(TIMEOUT))
    del said[2]
    for word in said:
        assert re.match(WAYS[how].format(2), word or ""), said


@pytest.mark.parametrize("how", ["dies", "stops"])
@pytest.mark.parametrize("algorithm", ["auto", "ssar_split_allgather", "native"])
def test_rank_0_where_ranks_have_met(how, algorithm):
    arguments = (how, algorithm, 0)
    said = outcomes(3, failing.body, *arguments, bad=0, SPARCML_TIMEOUT=str(TIMEOUT))
    for word in said[1:]:
        assert re.match(WAYS[how].format(0), word or ""), said


def test_a_rank_that_dies_in_the_middle_of_a_long_message():
    said = outcomes(3, failing.large, 1, bad=1, SPARCML_TIMEOUT="10")
    for word in (said[0], said[2]):
        assert re.match(WAYS["dies"].format(1), word or ""), said


def test_a_message_that_is_longer_than_the_memory():
    said = outcomes(2, failing.announces_too_much, SPARCML_TIMEOUT="10")
    malformed = "WireError: rank 0 received a malformed message from rank 1 in "
    assert [(word or "").startswith(malformed) for word in said] == [True, True], said


def test_a_rank_that_never_comes():
    said = outcomes(3, failing.missing, bad=2, SPARCML_START_TIMEOUT="1")
    for rank in range(2):
        expected = (
            f"TransportError: rank {rank}: rank 2 of 3 has not opened the communicator"
        )
        assert (said[rank] or "").startswith(f"{expected} within 1 s"), said


def test_ranks_that_never_come_are_named():
    with pytest.raises(sparcml.TransportError, match="rank 0: ranks 1 and 2 of 3 have not"):
        meet(dist.HashStore(), 0, 3, seconds=0.05)


def test_ranks_that_leave_by_exit_0():
    assert outcomes(2, failing.exits_well) == ["SystemExit: 0"] * 2


def test_under_torchrun_an_error_ends_the_job():
    job = torchrun(2, "torch_engine/failing.py", "raises", SPARCML_TIMEOUT=str(TIMEOUT))
    assert job.returncode != 0
    assert "ValueError: no such luck" in job.stderr
    assert "TransportError: rank 1 raised ValueError: no such luck" in job.stderr
    assert "finished" not in job.stdout
