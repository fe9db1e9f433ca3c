"""Start the ranks of a torch job, as `mpiexec` starts those of an MPI job.

Usage: `torch_launcher.py -n RANKS COMMAND ARGUMENTS...`, with the rendezvous address in the
environment. It ends with the first rank that fails and kills the others. Torchrun would start
all ranks in one network namespace. It is started by its path.
"""

import contextlib
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_MPI_VARIABLES = ("PMI_", "PMIX_", "OMPI_", "SLURM_PROCID")  # a rank would use them


def environments(ranks: int) -> list[dict[str, str]]:
    """Return each rank's environment, with the variables that torchrun sets."""
    common = {k: v for k, v in os.environ.items() if not k.startswith(_MPI_VARIABLES)}
    common.setdefault("OMP_NUM_THREADS", "1")  # as torchrun does: ranks share the cores
    common["WORLD_SIZE"] = str(ranks)
    separate = os.environ.get("LOCAL_WORLD_SIZE") == "1"
    return [
        common | {"RANK": str(rank), "LOCAL_RANK": "0" if separate else str(rank)}
        for rank in range(ranks)
    ]


class RankProcesses:
    """The processes of all ranks, each the leader of a process group."""

    def __init__(self, ranks: int, command: list[str]) -> None:
        self._running: set[int] = set()
        self._stopped = False
        for number in _STOP_SIGNALS:
            signal.signal(number, self._on_stop)
        for environment in environments(ranks):
            pid = os.posix_spawn(command[0], command, environment, setpgroup=0)
            self._running.add(pid)

    def wait(self) -> int:
        """Wait until all ranks have ended or one has failed; return its code, or 0."""
        failure = 0
        while self._running:
            pid, status = os.wait()
            self._running.discard(pid)
            code = os.waitstatus_to_exitcode(status)
            failure = failure or (code if code >= 0 else 128 - code)
            if failure and not self._stopped:  # a rank that was asked to stop may finish
                self._signal(signal.SIGKILL)
                break
        return failure

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._stopped = True
        self._signal(number)

    def _signal(self, number: int) -> None:
        for pid in list(self._running):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, number)


def main() -> NoReturn:
    """Start the ranks and exit with their code."""
    sys.exit(RankProcesses(int(sys.argv[2]), sys.argv[3:]).wait())


if __name__ == "__main__":
    main()
