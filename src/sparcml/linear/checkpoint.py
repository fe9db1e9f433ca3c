"""Where all ranks of a solver stand, in a folder that they share.

A checkpoint is a folder of its own, `pass-00012`, with a file a rank: rank 0's has what is
the same everywhere, the others' what is theirs. It is written under another name, which it
loses when all ranks are done; the one before is removed after that. So there is a complete
one at any time, whoever is killed and wherever the disk is full.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from .stored import store, stored
from .together import together

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from ..communicator import Communicator

    Arrays = Mapping[str, NDArray[Any]]

FORMAT, VERSION = "sparcml checkpoint", 1
PREFIX, UNFINISHED = "pass-", ".unfinished-"


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
        passes: int,
        header: Mapping[str, Any],
        common: Arrays,
        own: Arrays,
    ) -> None:
        """Keep a state, instead of the one before.

        Args:
            comm: The ranks.
            passes: That are complete.
            header: What must be the same when it is gone on from, and notes.
            common: What all ranks have, the same.
            own: What this rank has.

        Raises:
            OSError: On the rank that cannot write, and DataError on the others.
        """
        first = comm.rank == 0
        final = self.folder / f"{PREFIX}{passes:05d}"
        new = self.folder / f"{UNFINISHED}{final.name}"
        told = {"ranks": comm.size, "passes": passes, **header}
        try:
            together(comm, lambda: _begin(new) if first else None)
            arrays = {**common, **own} if first else own
            together(
                comm, lambda: store(_file(new, comm.rank), FORMAT, VERSION, told, arrays)
            )
            together(comm, lambda: self._finish(new, final) if first else None)
        except BaseException:
            if first:
                shutil.rmtree(new, ignore_errors=True)
            raise

    def load(self, comm: Communicator) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The header and this rank's arrays of the newest one.

        Raises:
            DataError: If there is none, or it is of another number of ranks, or damaged.
        """
        return together(comm, lambda: self._load(comm.rank, comm.size))

    def _load(self, rank: int, ranks: int) -> tuple[dict[str, Any], dict[str, Any]]:
        found = self.newest()
        if found is None:
            raise DataError(f"{self.folder}: there is no checkpoint to go on from")
        header, arrays = stored(_file(found, 0), FORMAT, VERSION)
        if header.get("ranks") != ranks:
            raise DataError(
                f"{found}: a checkpoint of {header.get('ranks')} ranks; these are {ranks}"
            )
        if rank:
            arrays |= stored(_file(found, rank), FORMAT, VERSION)[1]
        return header, arrays

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


def _begin(new: Path) -> None:
    shutil.rmtree(new, ignore_errors=True)  # of a job that was killed
    new.mkdir(parents=True)


def _file(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.npz"
