"""Processes of the ranks: which are alive, stopped, dead, or on a machine that does not answer.

A rank that computes does not answer, and may hold Python's lock for long. So whether it is
alive is read from the operating system. Of ranks on other machines only their kernel answers.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections import Counter
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .bootstrap import allgather, this_machine
from .keepalive import open_links
from .timeouts import available_processors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .base import Transport
    from .link import Link

PROC = Path("/proc")
# Digest of the system, process id, start time, number of processors.
RECORD = struct.Struct("<16sqQd")


class State(Enum):
    """State of a rank's process."""

    ALIVE = "is busy"
    STOPPED = "is stopped"
    DEAD = "is dead"
    UNKNOWN = "is busy or stopped"
    UNREACHABLE = "cannot be reached"


LOST = (State.DEAD, State.UNREACHABLE)


class Process(NamedTuple):
    """A process of this machine. The start time tells it from a later one with its id."""

    pid: int
    start: int

    def state(self) -> State:
        """Return the state of the process, from the operating system."""
        try:
            letter, start = _read_stat(self.pid)
        except OSError:
            return State.DEAD
        if start != self.start or letter in "ZX":
            return State.DEAD
        return State.STOPPED if letter == "T" else State.ALIVE


class Processes:
    """The processes of all ranks.

    Args:
        processes: By rank; None if a rank is a thread or on another machine.
        links: By rank: connections to its machine; None if there are none.
        per_processor: Ranks per processor on the machine where that is highest, at least 1. It
            is the same on all ranks.
    """

    def __init__(
        self,
        processes: Sequence[Process | None],
        links: Sequence[Link | None],
        per_processor: float = 1.0,
    ) -> None:
        self._processes = processes
        self._links = links
        self.per_processor = per_processor

    @property
    def known(self) -> int:
        """Number of ranks whose processes are on this machine, at least one."""
        return max(1, sum(process is not None for process in self._processes))

    def state(self, rank: int) -> State:
        """Return the state of a rank's process."""
        link, process = self._links[rank], self._processes[rank]
        if link is not None and link.is_cut():
            return State.UNREACHABLE
        return State.UNKNOWN if process is None else process.state()

    def lost(self) -> list[int]:
        """Return the ranks whose process has ended, or whose machine does not answer.

        For errors only: a machine that is merely late would be named, too.
        """
        return [rank for rank in range(len(self._processes)) if self._is_lost(rank)]

    def _is_lost(self, rank: int) -> bool:
        link = self._links[rank]
        return (link is not None and link.is_late()) or self.state(rank) in LOST

    def subgroup(self, members: Sequence[int]) -> Processes:
        """Return the processes of some of the ranks."""
        return Processes(
            [self._processes[member] for member in members],
            [self._links[member] for member in members],
        )

    def close(self) -> None:
        """Close the connections to other machines."""
        for link in self._links:
            if link is not None:
                link.close()


def find_processes(transport: Transport) -> Processes:
    """Return the processes of all ranks, whose nodes are known. Collective."""
    try:
        _, start = _read_stat(os.getpid())
        namespace = (PROC / "self/ns/pid").stat().st_ino
    except OSError:  # not Linux
        start = namespace = 0
    system = f"{this_machine().clock}\n{namespace}".encode()
    digest = hashlib.blake2b(system, digest_size=16).digest()
    own = RECORD.pack(digest, os.getpid(), start, available_processors())
    rows = [RECORD.unpack(record) for record in allgather(transport, own)]
    ranks = Counter(row[0] for row in rows)
    return Processes(
        [Process(pid, s) if d == digest and s else None for d, pid, s, _ in rows],
        open_links(transport),
        max(1.0, *(ranks[d] / processors for d, _, _, processors in rows)),
    )


def _read_stat(pid: int) -> tuple[str, int]:
    """Return the letter of the state and the start time of a process."""
    fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return fields[0], int(fields[19])
