"""An emulated cluster: who sees whom, and how fast."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparcml.cli.launch.emulate import MAX_RANKS, EmulatedCluster, address, burst

from ..network.machine import AS_USER, needs_emulation, needs_user, our_links

HERE = Path(__file__).parent
RATE = 40_000_000


def ask(cluster, rank, code):
    """What Python answers on a rank."""
    command = [*cluster.prefix(["R"]), sys.executable, "-c", code]
    environment = os.environ | {"R": str(rank)}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


@needs_emulation
def test_ranks_are_machines_of_their_own():
    code = """
import os, socket
name = socket.gethostname()
print(name, socket.gethostbyname(name), *sorted(os.listdir("/sys/class/net")))
"""
    with EmulatedCluster(3, 10**9) as cluster:
        for rank in range(3):
            seen = ask(cluster, rank, code).split()
            assert seen == [f"node{rank}-1gbit", f"10.79.0.{rank + 1}", "eth0", "lo"]
        assert our_links() == []


@needs_emulation
def test_two_clusters_do_not_meet():
    code = "import os; print(os.readlink('/proc/self/ns/net'))"
    with EmulatedCluster(2, 10**9) as one, EmulatedCluster(2, 10**9) as other:
        places = {ask(cluster, rank, code) for cluster in (one, other) for rank in (0, 1)}
    places.add(str(Path("/proc/self/ns/net").readlink()))
    assert len(places) == 5


@needs_emulation
def test_the_user_stays_the_same():
    code = "import os; print(os.getuid(), os.getgid(), os.getcwd())"
    with EmulatedCluster(1, 10**9) as cluster:
        assert ask(cluster, 0, code) == f"{os.getuid()} {os.getgid()} {Path.cwd()}"


@needs_user
def test_a_user_without_rights_can_have_one():
    done = subprocess.run(
        [*AS_USER, sys.executable, HERE / "as_user.py"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["1000", "0000000000000000", "1000", "0000000000000000"]


@needs_emulation
@pytest.mark.parametrize("senders", [1, 2], ids=["what is sent", "what is received"])
def test_no_link_is_faster_than_its_rate(senders):
    """Two ranks that send to one share its link. A slow machine may take longer."""
    amount = 2_000_000
    with EmulatedCluster(1 + senders, RATE) as cluster:
        command = [*cluster.prefix(["R"]), sys.executable, str(HERE / "pour.py")]
        ranks = [
            subprocess.Popen(
                [*command, address(0), str(senders), str(amount)],
                env=os.environ | {"R": str(rank)},
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(1 + senders)
        ]
        said, *_ = [process.communicate(timeout=60)[0] for process in ranks]
    arrived, seconds = said.split()
    assert int(arrived) == senders * amount
    # Each queue on the way lets its burst pass at once.
    least = (int(arrived) - 2 * senders * burst(RATE)) * 8 / RATE
    assert float(seconds) > least > 0.1


def test_too_many_ranks_are_refused():
    with pytest.raises(OSError, match=f"at most {MAX_RANKS} ranks, got 1000"):
        EmulatedCluster(1000, 10**9)
