"""What a user wants of `sparcml fit`, checked before anything is started."""

from __future__ import annotations

import math
from dataclasses import MISSING, asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from sparcml.communicator.arguments import check_reduction
from sparcml.linear import SCD, SGD, Constant, Exponential, Inverse, Penalty, WarmUp
from sparcml.linear.solvers.objective import loss_of
from sparcml.linear.training.methods import parse_method
from sparcml.linear.training.weights import parse_class_weight

if TYPE_CHECKING:
    from dataclasses import Field
    from pathlib import Path

    from sparcml.linear.solvers.learning_rate import Steps

SOLVERS = ("sgd", "scd")
SCHEDULES = ("constant", "inverse", "exponential")
# Passes, unless the user says otherwise; coordinate descent stops by itself.
PASSES = {"sgd": 10, "scd": 1000}
# What may differ between a run and the one that goes on from its checkpoint.
FREE = (
    "files",
    "weights",
    "epochs",
    "patience",
    "tolerance",
    "cache",
    "out",
    "checkpoint",
    "checkpoint_every",
    "resume",
)


@dataclass(frozen=True)
class Settings:
    """The options of `sparcml fit`; see there for what they mean."""

    files: tuple[Path, ...]
    out: Path
    loss: str
    solver: str
    batch: int
    epochs: int | None
    rate: float | None
    steps: str
    decay: float
    warm_up: float
    momentum: float
    block: int
    l1: float
    l2: float
    intercept: bool
    seed: int
    communication: str
    algorithm: str
    compress: str | None
    class_weight: str | None
    weights: Path | None
    held_out: float
    patience: int
    tolerance: float | None
    features: int | None
    zero_based: bool | None
    cache: bool
    checkpoint: Path | None
    checkpoint_every: float
    resume: bool

    def check(self) -> None:
        """Raise ValueError if it cannot be done."""
        for name, known in (("solver", SOLVERS), ("steps", SCHEDULES)):
            if getattr(self, name) not in known:
                one = " or ".join(known)
                raise ValueError(f"{name} must be {one}, got {getattr(self, name)!r}")
        if not 0 <= self.held_out < 1:
            raise ValueError(f"held-out must be a share in [0, 1), got {self.held_out:g}")
        if self.seed < 0:
            raise ValueError(f"seed must be >= 0, got {self.seed}")
        if self.solver == "scd" and (self.compress or self.communication != "sparse"):
            raise ValueError("scd has no gradients to compress or to sum: use sgd for that")
        if self.resume and self.checkpoint is None:
            raise ValueError("resume needs the checkpoint to go on from: --checkpoint DIR")
        check_reduction("sum", self.algorithm)
        self._check_more()
        self.made(1.0)

    def _check_more(self) -> None:
        every = self.checkpoint_every
        if not 0 <= every < math.inf or (every and self.checkpoint is None):
            raise ValueError(
                f"checkpoint-every must be seconds >= 0, and needs --checkpoint DIR, got "
                f"{every:g}"
            )
        if every and self.solver == "scd":
            raise ValueError(
                "scd keeps its state after passes only: checkpoint-every is sgd's"
            )
        if parse_class_weight(self.class_weight) and not loss_of(self.loss).signs:
            raise ValueError(f"the loss {self.loss} has no classes to weigh: class-weight")

    def made(self, rate: float) -> SGD | SCD:
        """The solver, at a rate that was found for the data if the user gave none."""
        passes = PASSES[self.solver] if self.epochs is None else self.epochs
        penalty = Penalty(self.l1, self.l2)
        stop = {} if self.tolerance is None else {"tolerance": self.tolerance}
        common: dict[str, Any] = {
            "loss": self.loss,
            "penalty": penalty,
            "epochs": passes,
            "intercept": self.intercept,
            "seed": self.seed,
            **stop,
        }
        if self.solver == "scd":
            return SCD(block=self.block, **common)
        return SGD(
            steps=self._schedule(rate if self.rate is None else self.rate),
            batch=self.batch,
            momentum=self.momentum,
            communication=self.communication,
            algorithm=self.algorithm,
            method=None if self.compress is None else parse_method(self.compress),
            patience=self.patience,
            **common,
        )

    def fixed(self) -> dict[str, Any]:
        """What must be the same to go on from a checkpoint, as JSON has it."""
        return {k: v for k, v in asdict(self).items() if k not in FREE}

    def _schedule(self, rate: float) -> Steps:
        steps: Steps
        if self.steps == "inverse":
            steps = Inverse(rate, self.decay)
        elif self.steps == "exponential":
            steps = Exponential(rate, math.exp(-self.decay))
        else:
            steps = Constant(rate)
        return WarmUp(steps, self.warm_up) if self.warm_up else steps


def brief(solver: SGD | SCD) -> str:
    """The solver, with what is not as usual."""
    told = [
        f"{f.name}={value!r}"
        for f in fields(solver)
        if (value := getattr(solver, f.name)) != _usual(f)
    ]
    return f"{type(solver).__name__}({', '.join(told)})"


def _usual(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
