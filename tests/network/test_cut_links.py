"""Links that are cut are reported; links that heal, and ranks that compute, are not."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from ..cli.ranks import RUN, each_engine
from .machine import needs_emulation

PROGRAM = Path(__file__).with_name("cut.py")
pytestmark = [
    needs_emulation,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can cut a link"),
]


def run(engine: tuple[str, ...], *arguments: str, **environment: str) -> list[str]:
    """Return what the ranks have printed, in their order."""
    done = subprocess.run(
        [*RUN, "-n", "3", "--network", "1gbit", *engine, str(PROGRAM), *arguments],
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "SPARCML_TIMEOUT": "4", **environment},
    )
    assert done.returncode == (arguments[0] == "cut"), done.stderr[-3000:]
    assert "keep-alive" not in done.stderr
    return sorted(done.stdout.splitlines())


@each_engine
def test_both_sides_of_a_cut_link_name_the_ranks_beyond_it(engine):
    lines = run(engine, "cut")
    beyond = ["rank 1", "rank 0 and rank 2", "rank 1"]
    for rank, (line, names) in enumerate(zip(lines, beyond, strict=True)):
        assert re.match(
            rf"rank {rank} raised after .*: {names} cannot be reached \(a link is cut, or a "
            rf"machine is down\), and rank \d still waits in \w+ #\d+, receive from",
            line,
        ), line


@each_engine
def test_a_link_that_heals_in_time_costs_nothing(engine):
    assert run(engine, "heal", "2") == [f"rank {rank} finished 60" for rank in range(3)]


@each_engine
def test_a_link_that_has_healed_before_a_rank_waits_is_no_error(engine):
    """The kernel has ended the connections across it by then."""
    lines = run(engine, "outage", "8")
    assert lines == [f"rank {rank} finished 60" for rank in range(3)]


@each_engine
def test_a_rank_that_computes_is_waited_for(engine):
    lines = run(engine, "compute", "60", SPARCML_TIMEOUT="2")
    assert lines == [f"rank {rank} finished 60" for rank in range(3)]
