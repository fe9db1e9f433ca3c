"""Starts the ranks of a torch job, as `mpiexec` does those of an MPI job.

`starter.py -n RANKS COMMAND ARGUMENTS...`: where the ranks meet is in the environment.
It ends with the first rank that fails, and the others with it; torchrun would start
all ranks in one place. Started by its path.
"""

import contextlib
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_OF_MPI = ("PMI_", "PMIX_", "OMPI_", "SLURM_PROCID")  # a rank would take them for its own


def environments(ranks: int) -> list[dict[str, str]]:
    """What each rank is told, by the names that torchrun uses."""
    common = {k: v for k, v in os.environ.items() if not k.startswith(_OF_MPI)}
    common.setdefault("OMP_NUM_THREADS", "1")  # as torchrun does: ranks share the cores
    common["WORLD_SIZE"] = str(ranks)
    apart = os.environ.get("LOCAL_WORLD_SIZE") == "1"
    return [
        common | {"RANK": str(rank), "LOCAL_RANK": "0" if apart else str(rank)}
        for rank in range(ranks)
    ]


class Group:
    """The ranks, each the head of a process group."""

    def __init__(self, ranks: int, command: list[str]) -> None:
        self._running: set[int] = set()
        self._stopped = False
        for number in _STOPS:
            signal.signal(number, self._on_stop)
        for environment in environments(ranks):
            pid = os.posix_spawn(command[0], command, environment, setpgroup=0)
            self._running.add(pid)

    def wait(self) -> int:
        """Until all have ended or one has failed: its code, or 0."""
        worst = 0
        while self._running:
            pid, status = os.wait()
            self._running.discard(pid)
            code = os.waitstatus_to_exitcode(status)
            worst = worst or (code if code >= 0 else 128 - code)
            if worst and not self._stopped:  # who was asked to stop may take its time
                self._signal(signal.SIGKILL)
                break
        return worst

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._stopped = True
        self._signal(number)

    def _signal(self, number: int) -> None:
        for pid in list(self._running):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, number)


def main() -> NoReturn:
    """Start the ranks and end with their code."""
    sys.exit(Group(int(sys.argv[2]), sys.argv[3:]).wait())


if __name__ == "__main__":
    main()
