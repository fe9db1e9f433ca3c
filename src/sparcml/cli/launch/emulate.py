"""An emulated cluster on one machine: each rank in a network namespace behind its own link.

A virtual Ethernet pair connects each rank's namespace to a bridge, the switch. A token bucket
filter (tbf) limits each direction of each link to the bandwidth.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sparcml.cli.launch import namespaces
from sparcml.units import format_bandwidth

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

MAX_RANKS = 250  # limited by files per kernel message and by addresses per network
SETUP_SECONDS = 60.0  # timeout of the commands that create the links

LINK = "eth0"  # name of every rank's own link
PORT = 29500  # rendezvous port of torch; free, since each namespace has its own ports
_QUEUE = "100ms"  # longer waiting packets are dropped, as by a switch


def address(rank: int) -> str:
    """Return the address of a rank."""
    return f"10.79.0.{rank + 1}"


def burst(bandwidth: int) -> int:
    """Return the bytes that an idle link lets pass at once.

    They are two of the kernel's largest packets; at low bandwidths at most 10 ms of traffic,
    but no less than two packets of the wire; at high bandwidths the traffic of 0.25 ms, by
    which the kernel's timer may be late.
    """
    bytes_per_second = bandwidth / 8
    low = min(128 * 1024, 0.01 * bytes_per_second)
    return round(max(3000, low, 0.00025 * bytes_per_second))


class EmulatedCluster:
    """Links between network namespaces, which exist while a process uses them.

    This process holds the namespaces by open files and the ranks by running inside, so that
    the kernel removes them when all have ended, however they end. They have no names, so
    that several clusters do not interfere.

    Args:
        ranks: Number of ranks; each appears as a machine of its own.
        bandwidth: Bits per second of each link, in each direction.
    """

    def __init__(self, ranks: int, bandwidth: int) -> None:
        if ranks > MAX_RANKS:
            raise OSError(f"an emulated network has at most {MAX_RANKS} ranks, got {ranks}")
        self._ranks = ranks
        self._bandwidth = bandwidth
        self._files: list[int] = []

    def __enter__(self) -> Self:
        commands = json.dumps(self._commands())
        here, there = socket.socketpair()
        with here, there:
            creator = subprocess.Popen(
                [*_program("make"), str(there.fileno())],
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                pass_fds=[there.fileno()],
                process_group=0,  # a terminal's Ctrl-C reaches this process only
            )
            try:
                _, errors = creator.communicate(commands, SETUP_SECONDS)
            except subprocess.TimeoutExpired:
                raise OSError(f"no emulated network after {SETUP_SECONDS:g} s") from None
            finally:
                creator.kill()
                creator.wait()
            if creator.returncode:
                raise OSError(_explain(errors))
            _, self._files, _, _ = socket.recv_fds(here, 1, MAX_RANKS + 2)
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in self._files:
            os.close(file)

    @property
    def settings(self) -> dict[str, str]:
        """Environment variables that make MPI and gloo use the links.

        Both would otherwise notice that all ranks share a machine and bypass the links.
        """
        return {
            "MPIR_CVAR_NOLOCAL": "1",
            "UCX_TLS": "tcp,self",
            "UCX_NET_DEVICES": LINK,
            "GLOO_SOCKET_IFNAME": LINK,
            "MASTER_ADDR": address(0),
            "MASTER_PORT": str(PORT),
            "LOCAL_WORLD_SIZE": "1",
        }

    @property
    def has_user_namespace(self) -> bool:
        """Whether ranks run in a user namespace of their own."""
        return len(self._files) > self._ranks + 1

    def prefix(self, variables: Sequence[str]) -> list[str]:
        """Return the prefix of a command that starts it in the namespace of its rank.

        This process must still run then, since the files are opened through it.

        Args:
            variables: Names of environment variables; the first that is set has the rank.
        """
        _, *files = [f"/proc/{os.getpid()}/fd/{file}" for file in self._files]
        # Host names differ between bandwidths, because measured networks are stored by them.
        suffix = format_bandwidth(self._bandwidth)
        names = [f"node{rank}-{suffix}" for rank in range(self._ranks)]
        places = {
            "variables": variables,
            "networks": files[: self._ranks],
            "owner": "".join(files[self._ranks :]),
            "names": names,
            "hosts": _hosts(names),
        }
        return [*_program("enter"), json.dumps(places)]

    def _commands(self) -> list[list[tuple[list[str], str]]]:
        """Return the commands and their input for the switch and for each rank."""
        ip = [_tool("ip"), "-batch", "-"]
        tc = [_tool("tc"), "-batch", "-"]
        first = namespaces.FIRST_FILE + 1
        files = [f"/proc/self/fd/{first + rank}" for rank in range(self._ranks)]
        ports = [f"port{rank}" for rank in range(self._ranks)]
        limits = _batch([_limit(port, self._bandwidth) for port in ports])
        switch = [(ip, _switch_links(ports, files)), (tc, limits)]
        limit = _batch([_limit(LINK, self._bandwidth)])
        ranks = [[(ip, _rank_link(rank)), (tc, limit)] for rank in range(self._ranks)]
        return [switch, *ranks]


def _hosts(names: list[str]) -> str:
    """Return the text of /etc/hosts, so that no name server is asked.

    IPv6 sockets, which torch opens, use the same addresses in their mapped form.
    """
    lines = ["127.0.0.1 localhost"]
    for prefix in ("", "::ffff:"):
        lines += [f"{prefix}{address(rank)} {name}" for rank, name in enumerate(names)]
    return _batch(lines)


def _switch_links(ports: list[str], files: list[str]) -> str:
    """Return input of `ip` for a bridge with a link into the namespace of each file."""
    lines = ["link add bridge type bridge", _up("bridge")]
    for port, file in zip(ports, files, strict=True):
        lines.append(f"link add {port} type veth peer name {LINK} netns {file}")
        lines += [f"link set {port} master bridge", _up(port)]
    return _batch(lines)


def _rank_link(rank: int) -> str:
    """Return input of `ip` for the address of a rank."""
    lines = ["link set lo up", f"address add {address(rank)}/24 dev {LINK}", _up(LINK)]
    return _batch(lines)


def _up(link: str) -> str:
    """Return the line that activates a link without IPv6 addresses, which take a second."""
    quiet = " addrgenmode none" if Path("/proc/net/if_inet6").exists() else ""
    return f"link set {link} up{quiet}"


def _limit(link: str, bandwidth: int) -> str:
    shape = f"rate {bandwidth}bit burst {burst(bandwidth)} latency {_QUEUE}"
    return f"qdisc add dev {link} root tbf {shape}"


def _batch(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def _program(name: str) -> list[str]:
    return [sys.executable, "-I", "-S", namespaces.__file__, name]


def _tool(name: str) -> str:
    """Return the path of a system command, which may not be on an ordinary user's PATH."""
    places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    if path := shutil.which(name, path=places):
        return path
    raise OSError(
        f"an emulated network needs ip and tc, and {name} is missing; install them with: "
        "apt-get install iproute2 (elsewhere the package is iproute)"
    )


# Messages of ip and tc on kernels without a module, and the remedy.
_REMEDIES = {
    "qdisc kind is unknown": "; this kernel has no tbf queue, try: modprobe sch_tbf",
    "Unknown device type": "; this kernel has no veth or bridge, try: modprobe veth bridge",
    "answers: Operation not permitted": "; CAP_NET_ADMIN is missing, run it as root",
}


def _explain(errors: str) -> str:
    line = (errors.splitlines() or ["no reason given"])[-1]
    remedy = next((text for words, text in _REMEDIES.items() if words in line), "")
    return f"cannot emulate a network: {line}{remedy}"
