"""Where all ranks of a solver stand, in a folder that they share.

A checkpoint is a folder of its own, `pass-00012`, or `pass-00012-000000345` within the pass
that follows: a file with what is the same everywhere, and one of each rank. It is written
under another name, which it loses when all ranks are done; the one before is removed after
that. So there is a complete one at any time, whoever is killed and wherever the disk is full.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...communicator.collective_errors import together
from ...errors import DataError
from .npz import store, stored

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator
    from .respread import Respread

    Arrays = Mapping[str, NDArray[Any]]

FORMAT, VERSION = "sparcml checkpoint", 2
PREFIX, UNFINISHED = "pass-", ".unfinished-"
COMMON = "common.npz"


@dataclass(frozen=True)
class Checkpoint:
    """A folder for the newest state; all calls but `newest` are collective.

    Attributes:
        folder: Made if it is not there; on a disk that all ranks share.
    """

    folder: Path

    def newest(self) -> Path | None:
        """The complete one with the most passes."""
        return max(self.folder.glob(f"{PREFIX}*"), default=None)

    def save(
        self,
        comm: Communicator,
        passes: tuple[int, int],
        header: Mapping[str, Any],
        common: Arrays,
        own: Arrays,
    ) -> None:
        """Keep a state, instead of the one before.

        Args:
            comm: The ranks.
            passes: That are complete, and steps since.
            header: What must be the same when it is gone on from, and notes.
            common: What all ranks have, the same.
            own: What this rank has.

        Raises:
            OSError: On the rank that cannot write, and DataError on the others.
        """
        first = comm.rank == 0
        final = self.folder / _name(*passes)
        new = self.folder / f"{UNFINISHED}{final.name}"
        told = {"ranks": comm.size, "passes": passes[0], **header}
        try:
            together(comm, lambda: _begin(new) if first else None)
            together(comm, lambda: _write(new, comm.rank, told, common, own))
            together(comm, lambda: self._finish(new, final) if first else None)
        except BaseException:
            if first:
                shutil.rmtree(new, ignore_errors=True)
            raise

    def load(
        self, comm: Communicator, respread: Respread
    ) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The header and this rank's arrays of the newest one.

        Args:
            comm: The ranks.
            respread: What a rank gets of a checkpoint of another number of ranks.

        Raises:
            DataError: If there is none, or it is damaged.
        """
        return together(comm, lambda: self._load(comm.rank, comm.size, respread))

    def _load(
        self, rank: int, ranks: int, respread: Respread
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        found = self.newest()
        if found is None:
            raise DataError(f"{self.folder}: there is no checkpoint to go on from")
        header, arrays = stored(found / COMMON, FORMAT, VERSION)
        parts = _Parts(found, int(header["ranks"]))
        own = parts[rank] if len(parts) == ranks else respread(parts, rank, ranks)
        return header, {**arrays, **own}

    def _finish(self, new: Path, final: Path) -> None:
        before = list(self.folder.glob(f"{PREFIX}*"))
        new.rename(final)
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(handle)  # the name, too, is on the disk
        finally:
            os.close(handle)
        for each in before:
            shutil.rmtree(each, ignore_errors=True)


class _Parts(Sequence[Mapping[str, "NDArray[Any]"]]):
    """What each rank had for itself, read when it is asked for."""

    def __init__(self, folder: Path, ranks: int) -> None:
        self._folder, self._ranks = folder, ranks

    def __len__(self) -> int:
        return self._ranks

    def __getitem__(self, rank: Any) -> Any:
        return stored(_file(self._folder, rank), FORMAT, VERSION)[1]


def _name(passes: int, steps: int) -> str:
    return f"{PREFIX}{passes:05d}" + (f"-{steps:09d}" if steps else "")


def _write(
    new: Path, rank: int, header: Mapping[str, Any], common: Arrays, own: Arrays
) -> None:
    if rank == 0:
        store(new / COMMON, FORMAT, VERSION, header, common)
    store(_file(new, rank), FORMAT, VERSION, {}, own)


def _begin(new: Path) -> None:
    shutil.rmtree(new, ignore_errors=True)  # of a job that was killed
    new.mkdir(parents=True)


def _file(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.npz"
