"""Law 7 with MPI processes: the job ends non-zero, soon, names the rank, leaves nobody."""

import re

import pytest

from .jobs import left_behind, mpiexec

pytestmark = pytest.mark.mpi
TIMEOUT = 2.0

# What rank 2 does, and what the other ranks say.
WAYS = {
    "raises": "TransportError: rank 2 raised ValueError: no such luck",
    "closed_duplicate": "TransportError: rank 2 raised ValueError: no such luck",
    "exits": "TransportError: rank 2 (has ended, and rank . still waits|raised SystemExit: 3)",
    "closes": "TransportError: rank 2 has closed the communicator, and rank . still waits",
    "stops": r"TransportError: rank 2 has not answered for 2 s \(its process is stopped\)",
    "diverges": "MismatchError: rank . is in call 2.*rank . is in call 2",
    "differs": "MismatchError: rank . has size (1000|2000).*rank . has size (1000|2000)",
    "differs_auto": "MismatchError: rank 0 has size 1000.*rank 2 has size 2000",
}


@pytest.mark.parametrize(
    ("how", "style"),
    [
        *((how, []) for how in WAYS),
        *((how, ["with"]) for how in ("raises", "exits", "stops")),
    ],
)
def test_every_other_rank_says_why(how, style):
    job = mpiexec(4, "failing.py", how, *style, SPARCML_TIMEOUT=str(TIMEOUT))
    assert job.code != 0
    assert "finished" not in job.out
    assert job.seconds < 3 * TIMEOUT + 10
    said = re.findall(rf"^sparcml.errors.{WAYS[how]}", job.err, re.MULTILINE)
    assert len(said) >= 3, job.err[-3000:]
    pids = job.pids()
    assert len(pids) == 4
    assert left_behind(pids) == []


def test_ranks_that_catch_the_error_do_not_wait_for_a_stopped_one():
    job = mpiexec(4, "failing.py", "stops", "caught", SPARCML_TIMEOUT=str(TIMEOUT))
    assert job.code != 0
    assert left_behind(job.pids()) == []


@pytest.mark.parametrize(
    "how", ["never_comes", "raises_while_others_compute", "raises_after_closing", "dies"]
)
@pytest.mark.parametrize("style", [[], ["with"]], ids=["plain", "with"])
def test_the_job_ends(how, style):
    """Where the others are not waiting for the rank, or cannot hear of it."""
    limits = dict.fromkeys(("SPARCML_TIMEOUT", "SPARCML_START_TIMEOUT"), str(TIMEOUT))
    job = mpiexec(4, "failing.py", how, *style, **limits)
    assert job.code != 0
    assert "finished" not in job.out
    assert job.seconds < 3 * TIMEOUT + 10
    assert left_behind(job.pids()) == []
    if how == "never_comes":
        message = f"rank 2 of 4 has not opened the communicator within {TIMEOUT:g} s"
        assert job.err.count(f"{message} (SPARCML_START_TIMEOUT") == 3, job.err[-3000:]


@pytest.mark.parametrize("work", ["sums", "sgd", "scd"])
def test_an_interrupt_in_compiled_calls(work):
    """Rank 1 raises KeyboardInterrupt, leaves no lock behind, and rank 0 names it."""
    job = mpiexec(2, "interrupted.py", work, SPARCML_TIMEOUT="5")
    assert job.code != 0
    assert "interrupted False\n" in job.out
    assert "RuntimeError" not in job.err
    assert re.search(
        r"TransportError: rank 1 (raised KeyboardInterrupt|has ended)", job.err
    )


@pytest.mark.parametrize("form", ["python", "compiled"])
@pytest.mark.parametrize(
    "lengths",
    [("5000000",), ("5000000", "0"), (str(1 << 62), str(1 << 20)), (str(1 << 62),) * 2],
)
def test_wrong_lengths_of_segments(form, lengths):
    """No length of segments, one of 0, and more memory than there is: nothing hangs."""
    job = mpiexec(2, "bad_lengths.py", form, *lengths, SPARCML_TIMEOUT="5")
    assert job.code != 0
    assert job.seconds < 30
    assert "WireError: rank 0 received a malformed message from rank 1" in job.err


def test_a_long_wait_leaves_the_timers_of_the_thread_as_they_were():
    job = mpiexec(2, "timer_slack.py")
    assert job.out == "True\n", job.err
