"""Measured accuracy of methods by optimizer, and the methods that are recommended for it.

`evidence.json` is the table: results of `make bench-accuracy`, as docs/training.md shows them.
`make docs` writes both. `sparcml.torch.recommended`, `sparcml plan` and its page use this module.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..collectives import ALLREDUCES
from ..planning.candidates import EXACT, KEPT, NOT_KEPT, NOT_MEASURED, Accuracy
from ..quantize import QSGD, Half
from ..sparsify import TopK
from .adaptive import Adaptive
from .compressed import Compressed
from .powersgd import PowerSGD
from .schedule import Schedule

if TYPE_CHECKING:
    from ..planning.candidates import PlannedMethod
    from .base import Method

TABLE = Path(__file__).with_name("evidence.json")
PAGE = "docs/training.md"
SGD, ADAMW, OTHER = "sgd", "adamw", "other"
# The optimizer whose measurements count; Adam is AdamW but for its weight decay.
MEASURED_WITH = {SGD: SGD, ADAMW: ADAMW, "adam": ADAMW, OTHER: None}
TITLES = {SGD: "SGD", ADAMW: "AdamW", "adam": "Adam", OTHER: "another optimizer"}

RATIO = 0.03  # in the second half of a run
MULTIPLES = (0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0, 16.0)  # of the ratio, for one layer
UNKNOWN_RATIO, WARM_UP_STEPS = 0.025, 1000  # if the number of steps is unknown
DENSE_BELOW = 1000  # values; smaller matrices are sent uncompressed
PLANNED_STEPS = 10_000  # of a run whose steps are estimated


@dataclass(frozen=True)
class Result:
    """The mean difference of a method to dense training on one network.

    Attributes:
        method: Name in the roster of the benchmark, a key of `measured_methods`.
        optimizer: Optimizer of the run: "sgd" or "adamw".
        network: Name of the network and its data.
        ranks: World size.
        difference: Mean over the seeds and its standard error, with a unit; positive is better.
        tolerance: Loss that counts as none, with a unit.
        excess: Loss / tolerance.
    """

    method: str
    optimizer: str
    network: str
    ranks: int
    difference: str
    tolerance: str
    excess: float


@cache
def results() -> tuple[Result, ...]:
    """Return the rows of the table."""
    return tuple(Result(**row) for row in json.loads(TABLE.read_text(encoding="utf-8")))


def recommended_method(
    optimizer: str, steps: int | None = None, *, slow_link: bool = False
) -> Compressed:
    """Return the recommended method; see `sparcml.torch.recommended`.

    Args:
        optimizer: "sgd"; for all others that of AdamW, which does not delay gradients.
        steps: Number of optimizer steps of the full run, if known.
        slow_link: Whether to send fewer bytes under AdamW, at more processor time.
    """
    if optimizer == SGD:
        falling = Schedule.warm_up(UNKNOWN_RATIO, WARM_UP_STEPS)
        if steps is not None:
            falling = Schedule.falling(RATIO, steps)
        return Adaptive(falling, QSGD(4), dense_below=DENSE_BELOW, options=MULTIPLES)
    quantize, small = QSGD(3, bucket=512), None
    if slow_link:
        quantize = QSGD(2, bucket=1024, coder="rice", reduced_bits=3)
        small = QSGD(8, bucket=128)
    return Compressed(
        quantize=quantize, error_feedback=False, dense_below=DENSE_BELOW, small=small
    )


@cache
def measured_methods(optimizer: str) -> dict[str, Method]:
    """Return the methods of the table by their names in it, the least lossy first.

    These are the measured methods that a plan compares.
    """
    return {
        "half": Compressed(quantize=Half()),
        "qsgd4": Compressed(quantize=QSGD(4), error_feedback=False),
        "recommended": recommended_method(optimizer, PLANNED_STEPS),
        "qsgd2-rice": recommended_method(ADAMW, slow_link=True),
        "powersgd4": PowerSGD(rank=4),
        "topk1": Compressed(TopK(0.01)),
    }


def accuracy(method: PlannedMethod, optimizer: str) -> Accuracy:
    """Return what is known of a method's accuracy under an optimizer.

    Args:
        method: The method; its algorithm, seed and limit of small gradients do not matter.
        optimizer: A key of `MEASURED_WITH`.
    """
    if method.is_exact:
        return Accuracy(EXACT, "", "the mean of dense training")
    measured_with = MEASURED_WITH[optimizer]
    if measured_with is None:
        return _UNKNOWN
    for name, known in measured_methods(measured_with).items():
        if _settings(known) == _settings(method):
            return _accuracy(name, measured_with)
    # With a smaller ratio more values are late: what is lost at a larger one stays lost.
    for name, known in measured_methods(measured_with).items():
        if _sends_less(method, known):
            found = _accuracy(name, measured_with)
            if found.verdict == NOT_KEPT:
                label = known.sparsify.label  # type: ignore[attr-defined]
                text = f"{label}, which sends more: {found.measurement}"
                return Accuracy(NOT_KEPT, f"see {label}", text)
    return _UNKNOWN


_UNKNOWN = Accuracy(NOT_MEASURED, "", "not measured with this optimizer")


def _accuracy(name: str, optimizer: str) -> Accuracy:
    found = [r for r in results() if (r.method, r.optimizer) == (name, optimizer)]
    if not found:
        return _UNKNOWN
    worst = max(found, key=lambda result: result.excess)
    networks = len({result.network for result in found})
    ranks = sorted({result.ranks for result in found})
    text = (
        f"{worst.difference} on the {worst.network} (tolerance {worst.tolerance}), the worst "
        f"of {networks} networks under {TITLES[optimizer]} on {_listed(ranks)} ranks; {PAGE}"
    )
    short = f"{worst.difference.partition(' ')[0]} {worst.difference.rpartition(' ')[2]}, "
    short += worst.network.partition(" on ")[0]
    return Accuracy(KEPT if worst.excess <= 1 else NOT_KEPT, short, text)


def _listed(ranks: list[int]) -> str:
    first = ", ".join(map(str, ranks[:-1]))
    return f"{first} and {ranks[-1]}" if first else f"{ranks[-1]}"


_IRRELEVANT: dict[str, Any] = {"dense_below": DENSE_BELOW, "seed": 0, "steps": None}


def _settings(method: Any) -> Any:
    """Return a method without the settings that do not change its accuracy."""
    names = {f.name for f in fields(method)}
    same = {name: value for name, value in _IRRELEVANT.items() if name in names}
    if "algorithm" in names and not _drops_entries(method):
        same["algorithm"] = "auto"
    return replace(method, **same)


def _drops_entries(method: Any) -> bool:
    algorithm = ALLREDUCES.get(method.algorithm)
    return algorithm is not None and algorithm.lossy


def _sends_less(method: Any, known: Any) -> bool:
    """Return whether both are TopK with error feedback, and the first has no larger ratio."""
    ratios = [
        m.sparsify.ratio or 1.0  # with k, it is not known
        for m in (method, known)
        if isinstance(m, Compressed) and isinstance(m.sparsify, TopK) and m.error_feedback
    ]
    return len(ratios) == 2 and ratios[0] <= ratios[1] < 1
