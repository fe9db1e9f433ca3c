"""Checkpoints: the state of all ranks in a folder that they share.

A checkpoint is a subfolder `epoch-00012`, or `epoch-00012-000000345` within the epoch that
follows: one file with what all ranks have in common, and one per rank. It is written under a
temporary name and renamed when all ranks have finished; then the previous one is removed. There
is a complete checkpoint at any time, even if a rank is killed or the disk is full.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...aggregate.state import reshard_rank
from ...communicator.collective_errors import run_collectively
from ...errors import DataError
from ..solvers.sgd_state import INTERCEPT
from .npz import read_npz, write_npz

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator

    Arrays = Mapping[str, NDArray[Any]]
    Reshard = Callable[[Sequence[Arrays], int, int], dict[str, NDArray[Any]]]

FORMAT, VERSION = "sparcml checkpoint", 3
VERSIONS = range(2, VERSION + 1)  # 2 is that of sparcml 0.1
PREFIX, UNFINISHED = "epoch-", ".unfinished-"
PREFIXES = (PREFIX, "pass-")  # the second is that of sparcml 0.1
COMMON = "common.npz"


@dataclass(frozen=True)
class Checkpoint:
    """A folder with the newest checkpoint; all methods but `newest` are collective.

    Attributes:
        folder: The folder, on a disk that all ranks share; `save` creates it.
    """

    folder: Path

    def newest(self) -> Path | None:
        """Return the complete checkpoint with the most epochs."""
        return max(self._all(), default=None, key=lambda path: path.name.partition("-")[2])

    def _all(self) -> list[Path]:
        return [path for prefix in PREFIXES for path in self.folder.glob(f"{prefix}*")]

    def saved_batch_size(self) -> int | None:
        """Return the batch size of the newest checkpoint, if there is one."""
        newest = self.newest()
        if newest is None:
            return None
        header, _ = read_npz(newest / COMMON, FORMAT, VERSIONS)
        config = header.get("config") or header.get("settings") or {}
        value = config.get("batch_size", config.get("batch"))
        return None if value is None else int(value)

    def save(
        self,
        comm: Communicator,
        progress: tuple[int, int],
        header: Mapping[str, Any],
        common: Arrays,
        own: Arrays,
    ) -> None:
        """Write a checkpoint and remove the previous one.

        Args:
            comm: The ranks.
            progress: Completed epochs, and steps of the current one.
            header: Values for JSON.
            common: Arrays that are the same on all ranks.
            own: Arrays of this rank.

        Raises:
            OSError: On the rank that cannot write, and DataError on the others.
        """
        root = comm.rank == 0
        final = self.folder / _name(*progress)
        unfinished = self.folder / f"{UNFINISHED}{final.name}"
        header = {"ranks": comm.size, "epochs": progress[0], **header}
        try:
            run_collectively(comm, lambda: _create(unfinished) if root else None)
            run_collectively(
                comm, lambda: _write(unfinished, comm.rank, header, common, own)
            )
            run_collectively(
                comm, lambda: self._finish(unfinished, final) if root else None
            )
        except BaseException:
            if root:
                shutil.rmtree(unfinished, ignore_errors=True)
            raise

    def load(
        self, comm: Communicator, reshard: Reshard
    ) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the header and this rank's arrays of the newest checkpoint.

        Args:
            comm: The ranks.
            reshard: Computes a rank's arrays from those of another number of ranks.

        Raises:
            DataError: If there is no checkpoint, or it is damaged.
        """
        return run_collectively(comm, lambda: self._load(comm.rank, comm.size, reshard))

    def _load(
        self, rank: int, ranks: int, reshard: Reshard
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        newest = self.newest()
        if newest is None:
            raise DataError(f"{self.folder}: no checkpoint to resume from")
        header, arrays = read_npz(newest / COMMON, FORMAT, VERSIONS)
        if header["version"] == 2:
            header |= {"config": header["settings"], "elapsed": header["spent"]}
        parts = _RankFiles(newest, int(header["ranks"]))
        own = parts[rank] if len(parts) == ranks else reshard(parts, rank, ranks)
        return header, {**arrays, **own}

    def _finish(self, unfinished: Path, final: Path) -> None:
        previous = self._all()
        unfinished.rename(final)
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(handle)  # the new name must be on the disk, too
        finally:
            os.close(handle)
        for path in previous:
            shutil.rmtree(path, ignore_errors=True)


class _RankFiles(Sequence[Mapping[str, "NDArray[Any]"]]):
    """The arrays of each rank, read on access."""

    def __init__(self, folder: Path, ranks: int) -> None:
        self._folder, self._ranks = folder, ranks

    def __len__(self) -> int:
        return self._ranks

    def __getitem__(self, rank: Any) -> Any:
        return read_npz(_rank_file(self._folder, rank), FORMAT, VERSIONS)[1]


def _name(epochs: int, steps: int) -> str:
    return f"{PREFIX}{epochs:05d}" + (f"-{steps:09d}" if steps else "")


def _write(
    folder: Path, rank: int, header: Mapping[str, Any], common: Arrays, own: Arrays
) -> None:
    if rank == 0:
        write_npz(folder / COMMON, FORMAT, VERSION, header, common)
    write_npz(_rank_file(folder, rank), FORMAT, VERSION, {}, own)


def _create(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # left by a job that was killed
    folder.mkdir(parents=True)


def _rank_file(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.npz"


# Arrays of a rank's own; all others are the same on all ranks. Names are those of
# `SGDState.arrays` and `SCDState.arrays`, after the number of the target: 0/pending.
SGD_ARRAYS = ("pending", "method/")
METHOD = re.compile(r"\d+/method/")
OWN_MODEL = ("weights", "numbers")  # also, while each rank has a model of its own
SCD_ARRAYS = ("coordinates", "trust_radius")


def array_name(name: str) -> str:
    """Return a name without its target."""
    return name.partition("/")[2]


def reshard_sgd(parts: Sequence[Arrays], rank: int, ranks: int) -> dict[str, NDArray[Any]]:
    """Return a rank's arrays of SGD after a change of the world size.

    Rank r inherits from the old ranks r, r + ranks, and so on. Pending losses and residuals
    keep their sums over all ranks, since gradients are summed and not averaged.
    """
    inherited = range(rank, len(parts), ranks)
    read = {k: parts[k] for k in inherited or [rank % len(parts)]}
    like = next(iter(read.values()))
    own: dict[str, NDArray[Any]] = {}
    for name in like:
        if array_name(name) in ("pending", "measures"):  # in 0.1, after the best loss
            pending = sum(read[k][name][-1] for k in inherited)
            own[name] = np.array([*like[name][:-1], pending])
    for prefix in sorted({m[0] for name in like if (m := METHOD.match(name))}):
        states = [
            {n.removeprefix(prefix): a for n, a in part.items() if n.startswith(prefix)}
            for part in (read.get(k, {}) for k in range(len(parts)))
        ]
        state = reshard_rank(states, rank, ranks, reduction="sum")
        own |= {f"{prefix}{name}": array for name, array in state.items()}
    return own


def reshard_local(
    parts: Sequence[Arrays], rank: int, ranks: int
) -> dict[str, NDArray[Any]]:
    """Return a rank's arrays of SGD with local steps after a change of the world size.

    Within a round, all new ranks start with the mean of the weights, so that the mean change of
    the round is kept. At the end of an epoch all ranks have the same weights.
    """
    own = reshard_sgd(parts, rank, ranks)
    every = [parts[k] for k in range(len(parts))]
    for name, array in every[0].items():
        if array_name(name) == "weights":
            own[name] = np.mean([part[name] for part in every], axis=0)
        elif array_name(name) == "numbers":
            own[name] = array.copy()
            own[name][INTERCEPT] = np.mean([part[name][INTERCEPT] for part in every])
    return own


def reshard_scd(parts: Sequence[Arrays], rank: int, ranks: int) -> dict[str, NDArray[Any]]:
    """Return a rank's arrays of SCD after a change of the world size.

    Column j is on rank j modulo the world size, as in `partition_columns`.
    """
    own: dict[str, NDArray[Any]] = {}
    all_parts = [parts[k] for k in range(len(parts))]
    for name in all_parts[0]:
        full = np.empty(sum(part[name].size for part in all_parts))
        for k, part in enumerate(all_parts):
            full[k :: len(all_parts)] = part[name]
        own[name] = full[rank::ranks].copy()
    return own
