"""The program that starts the ranks: mpiexec, or the torch launcher."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from sparcml.cli.launch import torch_launcher

_NAMES = ("mpiexec", "mpirun")
_OVERSUBSCRIBE = "--oversubscribe"
# MPICH's UCX warns of control messages that arrive while a rank closes.
_QUIET = {"UCX_LOG_LEVEL": "error"}
# Open MPI refuses to run as root, as in a container, without its variables: those of Open MPI
# and, from version 5 on, those of its launcher PRRTE.
_AS_ROOT = {
    f"{prefix}_ALLOW_RUN_AS_ROOT{suffix}": "1"
    for prefix in ("OMPI", "PRTE")
    for suffix in ("", "_CONFIRM")
}
_OPEN_MPI = ("open mpi", "openrte", "open-mpi", "prrte")


@dataclass(frozen=True)
class Launcher:
    """An `mpiexec` or its replacement, with the options that it needs."""

    path: str
    options: tuple[str, ...] = ()
    name: str = "mpiexec"

    @property
    def is_open_mpi(self) -> bool:
        """Whether it belongs to Open MPI."""
        return _OVERSUBSCRIBE in self.options

    def settings(self) -> dict[str, str]:
        """Return the environment variables that it needs."""
        as_root = _AS_ROOT if self.is_open_mpi and os.geteuid() == 0 else {}
        return {**_QUIET, **as_root}

    def command(self, ranks: int, program: list[str]) -> list[str]:
        """Return the command line that starts a program on `ranks` ranks."""
        return [self.path, *self.options, "-n", str(ranks), *program]


def find_launcher() -> Launcher | None:
    """Return the launcher of MPI, or None if there is none."""
    path = find_mpiexec()
    return None if path is None else Launcher(path, _options(path))


def find_torch_launcher() -> Launcher:
    """Return the launcher of ranks that connect through torch.distributed."""
    return Launcher(sys.executable, ("-S", torch_launcher.__file__), "the torch launcher")


def find_mpiexec() -> str | None:
    """Return the path of mpiexec in the folder of this Python, or else on PATH.

    The mpich wheel installs it in the folder of Python.
    """
    folder = str(Path(sys.executable).parent)
    paths = [shutil.which(name, path=folder) for name in _NAMES]
    paths += [shutil.which(name) for name in _NAMES]
    return next((path for path in paths if path), None)


def _options(path: str) -> tuple[str, ...]:
    try:
        version = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    # Open MPI refuses more ranks than cores unless this option is given.
    is_open_mpi = any(name in version.stdout.lower() for name in _OPEN_MPI)
    return (_OVERSUBSCRIBE,) if is_open_mpi else ()
