"""Which launcher starts the ranks, and how it wants to be called."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from sparcml.cli.launch import torch_launcher

_NAMES = ("mpiexec", "mpirun")
_OVERSUBSCRIBE = "--oversubscribe"
_OPEN_MPI = ("open mpi", "openrte", "open-mpi", "prrte")


@dataclass(frozen=True)
class Launcher:
    """An `mpiexec`, or what takes its place, and the options it needs."""

    path: str
    options: tuple[str, ...] = ()
    name: str = "mpiexec"

    @property
    def is_open_mpi(self) -> bool:
        """Whether it belongs to Open MPI."""
        return _OVERSUBSCRIBE in self.options

    def command(self, ranks: int, program: list[str]) -> list[str]:
        """The command line that starts a program on so many ranks."""
        return [self.path, *self.options, "-n", str(ranks), *program]


def find_launcher() -> Launcher | None:
    """The launcher beside this Python (the mpich wheel puts it there), else on PATH."""
    path = find_mpiexec()
    return None if path is None else Launcher(path, _options(path))


def torch_starter() -> Launcher:
    """Our own, for ranks that meet through torch.distributed."""
    return Launcher(sys.executable, ("-S", torch_launcher.__file__), "the starter of ranks")


def find_mpiexec() -> str | None:
    """Where the launcher is."""
    beside = str(Path(sys.executable).parent)
    found = [shutil.which(name, path=beside) for name in _NAMES]
    found += [shutil.which(name) for name in _NAMES]
    return next((path for path in found if path), None)


def _options(path: str) -> tuple[str, ...]:
    try:
        told = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    # Open MPI refuses more ranks than cores; its other dialects ignore that.
    is_open_mpi = any(name in told.stdout.lower() for name in _OPEN_MPI)
    return (_OVERSUBSCRIBE,) if is_open_mpi else ()
