"""Options of a training run.

`sparcml fit` derives its command line from the fields of `TrainingConfig`: a field's name,
type, default and metadata are written here and nowhere else.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path  # noqa: TC003  # resolved by get_type_hints
from typing import TYPE_CHECKING, Any

from ...aggregate import Compressed
from ...aggregate.parse import method_syntax, parse_method
from ...communicator.arguments import check_reduction
from ...decentralized.parse import method_syntax as neighbor_syntax
from ..data.labels import parse_class_weight
from ..solvers.learning_rate import Constant, ExponentialDecay, InverseDecay, WarmUp
from ..solvers.objective import LOSSES, Penalty, loss_of
from ..solvers.scd import SCD
from ..solvers.sgd import SGD
from .neighbors import check_neighbors, neighbor_method
from .options import check_effective, check_local_steps

if TYPE_CHECKING:
    from ...aggregate import Method
    from ..solvers.learning_rate import LearningRate

SOLVERS = ("sgd", "scd")
SCHEDULES = ("constant", "inverse", "exponential")
SINGLE_BATCH = 32
RANK_BATCH = 256  # rows per rank and step whose gradient takes longer than a message
MIN_STEPS = 100  # per epoch; with fewer, training takes more epochs
DEFAULT_EPOCHS = {"sgd": 10, "scd": 1000}  # scd stops when it has converged


def _option(text: str, **more: Any) -> dict[str, Any]:
    """Return a field's metadata.

    Args:
        text: Help text.
        more: `metavar`, `flag` (explicit option name or names), `argument` (a positional
            argument), `solver` (the only one that reads it), and `resumable` (may change when
            a run resumes from a checkpoint).
    """
    return {"help": text, **more}


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Options of `sparcml fit`; each field's metadata has its help text."""

    files: list[Path] = field(
        metadata=_option(
            "LIBSVM files, plain or compressed, folders of them, or - for standard input.",
            argument=True,
            resumable=True,
        )
    )
    out: Path = field(metadata=_option("Model file to write.", resumable=True))
    loss: str = field(default="logistic", metadata=_option(f"Loss: {', '.join(LOSSES)}."))
    solver: str = field(
        default="sgd",
        metadata=_option(
            "sgd (mini-batch gradient descent) or scd (coordinate descent to the optimum)."
        ),
    )
    batch_size: int | None = field(
        default=None,
        metadata=_option(
            "sgd: rows per step, over all ranks. Default: 32 on one rank, more on several.",
            solver="sgd",
        ),
    )
    epochs: int | None = field(
        default=None,
        metadata=_option(
            "Number of epochs. Default: 10 (sgd), at most 1000 (scd).", resumable=True
        ),
    )
    learning_rate: float | None = field(
        default=None,
        metadata=_option(
            "sgd: initial learning rate. Default: from the row norms.", solver="sgd"
        ),
    )
    schedule: str = field(
        default="constant",
        metadata=_option(
            f"sgd: learning rate schedule: {', '.join(SCHEDULES)}.", solver="sgd"
        ),
    )
    decay: float = field(
        default=1.0,
        metadata=_option(
            "inverse: learning rate / (1 + decay * epochs); exponential: learning rate * "
            "exp(-decay * epochs).",
            solver="sgd",
        ),
    )
    warmup_epochs: float = field(
        default=0.0,
        metadata=_option("sgd: epochs of linear learning rate warm-up.", solver="sgd"),
    )
    momentum: float = field(default=0.0, metadata=_option("sgd: momentum.", solver="sgd"))
    block_size: int = field(
        default=100,
        metadata=_option("scd: coordinates per rank and round.", solver="scd"),
    )
    l1: float = field(default=0.0, metadata=_option("L1 penalty: l1 * |w|."))
    l2: float = field(default=0.0, metadata=_option("L2 penalty: l2 / 2 * |w|^2."))
    intercept: bool = field(default=True, metadata=_option("Fit an intercept."))
    seed: int = field(default=0, metadata=_option("Random seed."))
    communication: str = field(
        default="sparse",
        metadata=_option(
            "sgd: sparse allreduce, or dense: the engine's own, for comparison.",
            solver="sgd",
        ),
    )
    algorithm: str = field(
        default="auto",
        metadata=_option(
            "sgd: allreduce algorithm: auto, or a name from docs/algorithms.md.",
            solver="sgd",
        ),
    )
    compress: str | None = field(
        default=None,
        metadata=_option(
            f"sgd: lossy gradient compression with error feedback: {method_syntax()}.",
            metavar="METHOD",
            solver="sgd",
        ),
    )
    topology: str | None = field(
        default=None,
        metadata=_option(
            "sgd: train with neighbours instead of all ranks: ring, torus, exponential, ... or a "
            "matrix in an .npy file.",
            metavar="NAME",
            solver="sgd",
        ),
    )
    method: str | None = field(
        default=None,
        metadata=_option(
            f"Method of --topology: {neighbor_syntax()}. Default: dpsgd. --compress is its "
            f"sparsifier or quantizer.",
            metavar="METHOD",
            solver="sgd",
        ),
    )
    local_steps: int | None = field(
        default=None,
        metadata=_option(
            "sgd: steps of each rank on its own rows before the ranks average the changes of "
            "their weights, which --compress is then of. Default: gradients in every step.",
            solver="sgd",
        ),
    )
    class_weight: str | None = field(
        default=None,
        metadata=_option("Class weights: balanced, or LABEL:WEIGHT,...", metavar="RULE"),
    )
    weights: Path | None = field(
        default=None,
        metadata=_option(
            "Row weights: one number per line.", metavar="FILE", resumable=True
        ),
    )
    validation_fraction: float = field(
        default=0.0,
        metadata=_option("Fraction of the rows in the validation set, for early stopping."),
    )
    patience: int = field(
        default=3,
        metadata=_option(
            "sgd: epochs without a better validation loss before stopping.",
            solver="sgd",
            resumable=True,
        ),
    )
    tol: float | None = field(
        default=None,
        metadata=_option(
            "Relative improvement that counts. Default: 1e-4 (sgd), 1e-8 (scd).",
            resumable=True,
        ),
    )
    features: int | None = field(
        default=None, metadata=_option("Number of columns. Default: from the text.")
    )
    zero_based: bool | None = field(
        default=None,
        metadata=_option(
            "First index in the text. Default: 0 if the text has an index 0.",
            flag="--zero-based/--one-based",
        ),
    )
    cache: bool = field(
        default=False,
        metadata=_option(
            "Cache the rows in a binary file.", flag="--cache", resumable=True
        ),
    )
    checkpoint: Path | None = field(
        default=None,
        metadata=_option(
            "Folder for a checkpoint after each epoch.", metavar="DIR", resumable=True
        ),
    )
    checkpoint_every: float = field(
        default=0.0,
        metadata=_option(
            "sgd: also write one after this many seconds within an epoch; 0: never.",
            metavar="SECONDS",
            solver="sgd",
            resumable=True,
        ),
    )
    resume: bool = field(
        default=False,
        metadata=_option("Resume from the checkpoint.", flag="--resume", resumable=True),
    )

    def check(self, ranks: int | None = None) -> None:
        """Raise ValueError for options that are invalid or do not fit together.

        Args:
            ranks: Number of ranks, if it is known.
        """
        for name, choices in (("solver", SOLVERS), ("schedule", SCHEDULES)):
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"fit: {name} must be {' or '.join(choices)}, got {getattr(self, name)!r}"
                )
        if not 0 <= self.validation_fraction < 1:
            raise ValueError(
                f"fit: validation-fraction must be in [0, 1), got {self.validation_fraction:g}"
            )
        if self.seed < 0:
            raise ValueError(f"fit: seed must be >= 0, got {self.seed}")
        check_reduction("fit", "sum", self.algorithm)
        check_effective(self)
        if self.topology is not None:
            check_neighbors(self, ranks)
        if self.local_steps is not None:
            check_local_steps(self, self.local_steps, ranks)
        self._check_checkpoint()
        if parse_class_weight(self.class_weight) and not loss_of(self.loss).signs:
            raise ValueError(
                f"fit: class-weight must be left out with the loss {self.loss}, which has "
                f"no classes"
            )
        self.build_solver(1.0, ranks)

    def _check_checkpoint(self) -> None:
        every = self.checkpoint_every
        if self.resume and self.checkpoint is None:
            raise ValueError("fit: resume needs a checkpoint; add --checkpoint DIR")
        if not 0 <= every < math.inf or (every and self.checkpoint is None):
            raise ValueError(
                f"fit: checkpoint-every must be seconds >= 0 and needs --checkpoint DIR, "
                f"got {every:g}"
            )

    def aggregation(self) -> Method | None:
        """Return the aggregation method of `compress`."""
        if self.compress is None or self.topology is not None:
            return None
        try:
            method = parse_method(self.compress)
        except ValueError as error:
            reason = str(error).removeprefix("parse_method: ").removeprefix("text ")
            raise ValueError(f"fit: --compress {reason}") from None
        if self.algorithm == "auto" or not isinstance(method, Compressed):
            return method
        return replace(method, algorithm=self.algorithm)

    def build_solver(
        self, default_learning_rate: float, ranks: int | None = None
    ) -> SGD | SCD:
        """Return the solver.

        Args:
            default_learning_rate: Learning rate if none is configured.
            ranks: Number of ranks, for the topology; None leaves it out.
        """
        common: dict[str, Any] = {
            "loss": self.loss,
            "penalty": Penalty(self.l1, self.l2),
            "epochs": DEFAULT_EPOCHS[self.solver] if self.epochs is None else self.epochs,
            "intercept": self.intercept,
            "seed": self.seed,
            **({} if self.tol is None else {"tol": self.tol}),
        }
        if self.solver == "scd":
            return SCD(block_size=self.block_size, **common)
        initial = (
            default_learning_rate if self.learning_rate is None else self.learning_rate
        )
        return SGD(
            learning_rate=self._schedule(initial),
            batch_size=SINGLE_BATCH if self.batch_size is None else self.batch_size,
            momentum=self.momentum,
            communication=self.communication,
            algorithm=self.algorithm,
            method=self.aggregation() or neighbor_method(self, ranks),
            local_steps=1 if self.local_steps is None else self.local_steps,
            patience=self.patience,
            **common,
        )

    def _schedule(self, initial: float) -> LearningRate:
        schedule: LearningRate
        if self.schedule == "inverse":
            schedule = InverseDecay(initial, self.decay)
        elif self.schedule == "exponential":
            schedule = ExponentialDecay(initial, math.exp(-self.decay))
        else:
            schedule = Constant(initial)
        return WarmUp(schedule, self.warmup_epochs) if self.warmup_epochs else schedule

    def resume_key(self) -> dict[str, Any]:
        """Return the options that must not change when a run resumes."""
        resumable = {f.name for f in fields(self) if f.metadata.get("resumable")}
        return {k: v for k, v in asdict(self).items() if k not in resumable}


def default_batch_size(ranks: int, rows: int) -> int:
    """Return the default number of rows per step: on several ranks, messages must pay."""
    if ranks == 1:
        return SINGLE_BATCH
    return max(SINGLE_BATCH, min(RANK_BATCH * ranks, rows // MIN_STEPS))
