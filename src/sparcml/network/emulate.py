"""A cluster on one machine: ranks apart from each other, behind links of a given rate."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Self

from sparcml.network import namespaces, wiring

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

MOST_RANKS = 250  # files in one message of the kernel, and addresses in one network
SECONDS = 60.0  # for the commands that lay the links, on a busy machine too

# Engines would find out that all ranks share a machine, and talk past the links.
_SETTINGS = {
    "MPIR_CVAR_NOLOCAL": "1",
    "UCX_TLS": "tcp,self",
    "UCX_NET_DEVICES": wiring.LINK,
    "GLOO_SOCKET_IFNAME": wiring.LINK,
    "MASTER_ADDR": wiring.address(0),
    "MASTER_PORT": str(wiring.PORT),
    "LOCAL_WORLD_SIZE": "1",
}


class Cluster:
    """Links between namespaces that live as long as a process uses them.

    This process holds them by open files and the ranks by being inside: whoever dies,
    however, the kernel tidies up. There are no names, so clusters do not meet.

    Args:
        ranks: How many; each is a machine of its own.
        rate: Bits per second of each link, either way.
    """

    def __init__(self, ranks: int, rate: int) -> None:
        if ranks > MOST_RANKS:
            raise OSError(
                f"an emulated network has at most {MOST_RANKS} ranks, not {ranks}"
            )
        self._ranks = ranks
        self._rate = rate
        self._files: list[int] = []

    def __enter__(self) -> Self:
        steps = json.dumps(self._steps())
        here, there = socket.socketpair()
        with here, there:
            maker = subprocess.Popen(
                [*_program("make"), str(there.fileno())],
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                pass_fds=[there.fileno()],
                process_group=0,  # a terminal's Ctrl-C comes to us alone
            )
            try:
                _, said = maker.communicate(steps, SECONDS)
            except subprocess.TimeoutExpired:
                raise OSError(f"no emulated network after {SECONDS:g} s") from None
            finally:
                maker.kill()
                maker.wait()
            if maker.returncode:
                raise OSError(_word(said))
            _, self._files, _, _ = socket.recv_fds(here, 1, MOST_RANKS + 2)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in self._files:
            os.close(file)

    @property
    def settings(self) -> dict[str, str]:
        """Environment variables that make the engines use the links."""
        return dict(_SETTINGS)

    def prefix(self, variables: Sequence[str]) -> list[str]:
        """What to put before a rank's command: it then starts in the rank's namespace.

        This process has to be there still: the files are looked up with it.

        Args:
            variables: Names of environment variables; the first that is set has the rank.
        """
        _, *files = [f"/proc/{os.getpid()}/fd/{file}" for file in self._files]
        names = [wiring.name(rank, self._rate) for rank in range(self._ranks)]
        places = {
            "variables": variables,
            "networks": files[: self._ranks],
            "owner": "".join(files[self._ranks :]),
            "names": names,
            "hosts": wiring.hosts(names),
        }
        return [*_program("enter"), json.dumps(places)]

    def _steps(self) -> list[list[tuple[list[str], str]]]:
        ip = [_tool("ip"), "-batch", "-"]
        tc = [_tool("tc"), "-batch", "-"]
        first = namespaces.FIRST_FILE + 1
        files = [f"/proc/self/fd/{first + rank}" for rank in range(self._ranks)]
        switch = [
            (ip, wiring.switch_links(files)),
            (tc, wiring.switch_queues(self._ranks, self._rate)),
        ]
        ranks = [
            [(ip, wiring.rank_links(rank)), (tc, wiring.rank_queue(self._rate))]
            for rank in range(self._ranks)
        ]
        return [switch, *ranks]


def _program(name: str) -> list[str]:
    return [sys.executable, "-I", "-S", namespaces.__file__, name]


def _tool(name: str) -> str:
    """Where a command is; ordinary users often do not have it on their PATH."""
    places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    if path := shutil.which(name, path=places):
        return path
    raise OSError(
        f"an emulated network needs ip and tc, and {name} is missing; install them with: "
        "apt-get install iproute2 (elsewhere the package is iproute)"
    )


# What ip and tc say about kernels without the pieces, and what helps.
_REMEDIES = {
    "qdisc kind is unknown": "; this kernel has no tbf queue, try: modprobe sch_tbf",
    "Unknown device type": "; this kernel has no veth or bridge, try: modprobe veth bridge",
    "answers: Operation not permitted": "; CAP_NET_ADMIN is missing, run it as root",
}


def _word(said: str) -> str:
    line = (said.splitlines() or ["no reason given"])[-1]
    remedy = next((text for words, text in _REMEDIES.items() if words in line), "")
    return f"cannot emulate a network: {line}{remedy}"
