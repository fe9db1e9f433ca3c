"""What all parts of a run of `sparcml fit` share, and how it is kept and gone on from."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from sparcml.communicator.collective_errors import gather, together
from sparcml.errors import DataError
from sparcml.linear import SGD, SCDState, SGDState
from sparcml.linear.training.checkpoint import Checkpoint
from sparcml.linear.training.early_stopping import BestModel
from sparcml.linear.training.history import EpochRecord, History
from sparcml.linear.training.respread import DESCENDED, STEPPED, bare, descended, stepped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from sparcml import Communicator
    from sparcml.linear import SCD
    from sparcml.linear.training.bar import Bar
    from sparcml.linear.training.config import TrainingConfig
    from sparcml.linear.training.dataset import Data


@dataclass
class Work:
    """A run: one state for each target, and what has been spent on them.

    Attributes:
        comm: The ranks.
        settings: What the user wants.
        data: To learn from.
        solver: That does it.
        bar: Where to tell.
        states: One a target; empty before the first pass.
        best: With held-out rows and sgd, the best model of each target.
        history: Of complete passes.
        spent: On the present pass, in targets that are through with it or within it.
        stopped: Why it ended, if not because all passes are made.
    """

    comm: Communicator
    settings: TrainingConfig
    data: Data
    solver: SGD | SCD
    bar: Bar
    states: list[Any] = field(default_factory=list)
    best: list[BestModel] = field(default_factory=list)
    history: History = field(default_factory=History)
    spent: EpochRecord | None = None
    stopped: str = ""

    def __post_init__(self) -> None:
        folder = self.settings.checkpoint
        self.checkpoint = None if folder is None else Checkpoint(folder)
        self.fixed = json.loads(json.dumps(self.settings.resume_key() | self.data.about()))
        self.kept_at = self.comm.now()
        self.by_gradients = isinstance(self.solver, SGD)

    def spend(self, cost: EpochRecord) -> None:
        """Count it for the present pass."""
        self.spent = cost.after(self.spent)

    def passed(self, loss: float, held_out: float | None) -> None:
        """All targets are through with a pass."""
        assert self.spent is not None  # a pass costs something
        done = self.spent.ended(loss, held_out)
        self.spent = None
        self.history.passes.append(done)
        self.bar.passed(done)
        self.keep(len(self.history.passes), 0, None)

    # ---- checkpoints ----

    def due(self) -> bool:
        """Whether it is time for a checkpoint within a pass; a collective call."""
        seconds = self.settings.checkpoint_every
        if self.checkpoint is None or not seconds:
            return False
        late = self.comm.now() - self.kept_at >= seconds
        return bool(gather(self.comm, late)[0, 0])  # rank 0's clock counts

    def keep(self, passes: int, steps: int, spent: EpochRecord | None) -> None:
        """Write a checkpoint, if that is wanted; a collective call."""
        if self.checkpoint is None:
            return
        own: dict[str, NDArray[Any]] = {}
        common: dict[str, NDArray[Any]] = {}
        mine = STEPPED if self.by_gradients else DESCENDED
        for k, state in enumerate(self.states):
            kept = state.arrays() | (self.best[k].arrays() if self.best else {})
            for name, array in kept.items():
                (own if name.startswith(mine) else common)[f"{k}/{name}"] = array
        header = {
            "settings": self.fixed,
            "history": self.history.kept(),
            "spent": None if spent is None else asdict(spent),
        }
        self.checkpoint.save(self.comm, (passes, steps), header, common, own)
        self.kept_at = self.comm.now()

    def resume(self) -> None:
        """Go on from the checkpoint, if that is wanted; a collective call."""
        if self.checkpoint is None:
            return
        newest = together(self.comm, self.checkpoint.newest)
        if not self.settings.resume:
            if newest is not None:
                raise DataError(
                    f"{newest}: there is a checkpoint already: go on with --resume, or take "
                    f"another folder"
                )
            folder = self.checkpoint.folder  # a place that cannot be had shows now
            first = self.comm.rank == 0
            together(
                self.comm,
                lambda: folder.mkdir(parents=True, exist_ok=True) if first else None,
            )
            return
        respread = stepped if self.by_gradients else descended
        header, arrays = self.checkpoint.load(self.comm, respread)
        _compare(f"{newest}", _renamed(header.get("settings", {})), self.fixed)
        self.history = History.of(header["history"])
        self.spent = None if header["spent"] is None else EpochRecord(**header["spent"])
        for k in range(self.data.targets):
            found = {bare(n): a for n, a in arrays.items() if n.startswith(f"{k}/")}
            self.states.append((SGDState if self.by_gradients else SCDState).of(found))
            if self.by_gradients and self.data.held_out is not None:
                self.best.append(BestModel.of(found))


# Names of options in checkpoints of version 0.1.
RENAMED = {
    "batch": "batch_size",
    "rate": "learning_rate",
    "steps": "schedule",
    "warm_up": "warmup_epochs",
    "block": "block_size",
    "held_out": "validation_fraction",
}


def _compare(where: str, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for name, value in now.items():
        if then.get(name) != value:
            raise DataError(
                f"{where}: made with {name.replace('_', '-')} {then.get(name)}, which is now "
                f"{value}: go on with what it was made with"
            )


def _renamed(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {RENAMED.get(name, name): value for name, value in settings.items()}
