"""Methods of the accuracy benchmark, by name.

To add a method, add a line to `ROSTER`: its title, a function from a `Setting` to the method, and
what differs from the defaults of `Spec`. `run_accuracy.py` then runs it wherever its optimizers
fit. A label such as "dgc0.1-x6" is a name and a multiple of the dense learning rate.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sparcml import (
    DGC,
    NUQSGD,
    QSGD,
    Compressed,
    OneBit,
    OneBitAdam,
    PowerSGD,
    TernGrad,
    TopK,
    TopKAdam,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparcml import Method

    from .workloads import Workload

DENSE, FP16 = "dense", "fp16"  # computed without a method of sparcml
WARM_UP = 5  # warm-ups take one fifth of the steps
FREEZE = 10  # first phases of Adam take one tenth
DENSE_BELOW = 1000  # values; the networks are small


class Setting(NamedTuple):
    """All that a method may depend on.

    Attributes:
        work: The workload: its optimizer, momentum, betas, weight decay and number of steps.
        ranks: World size.
        seed: Seed of the run.
        learning_rate: Maximum learning rate.
    """

    work: Workload
    ranks: int
    seed: int
    learning_rate: float

    @property
    def warm_up(self) -> int:
        """Number of steps of a warm-up."""
        return self.work.steps // WARM_UP


@dataclass(frozen=True)
class Spec:
    """A method and where it runs.

    Attributes:
        title: Name in tables.
        make: Creates the method; None for dense and fp16.
        multiple: The method's own multiple of the dense learning rate. If it is not 1, the
            method runs at the dense rate, too.
        includes_momentum: Whether the result includes momentum, so that SGD has none.
        optimizers: Optimizers of the workloads that it runs on.
        ranks: World sizes.
        at_double: Whether it also runs at twice the dense learning rate.
        networks: Names of the workloads that it runs on; empty for all.
    """

    title: str
    make: Callable[[Setting], Method] | None
    multiple: float = 1.0
    includes_momentum: bool = False
    optimizers: tuple[str, ...] = ("sgd", "adamw")
    ranks: tuple[int, ...] = (2, 8)
    at_double: bool = True
    networks: tuple[str, ...] = ()


def _dgc(ratio: float) -> Callable[[Setting], Method]:
    return lambda s: DGC(
        ratio,
        s.work.momentum,
        nesterov=s.work.nesterov,
        warm_up=s.warm_up,
        quantize=QSGD(8),
        dense_below=DENSE_BELOW,
    )


def _recommended_sgd(sparsify: TopK) -> Callable[[Setting], Method]:
    return lambda s: Compressed(
        sparsify, QSGD(8), warm_up=s.work.steps // FREEZE, dense_below=DENSE_BELOW
    )


SGD, ADAMW = ("sgd",), ("adamw",)
ROSTER: dict[str, Spec] = {
    DENSE: Spec("dense", None, ranks=(1,)),
    "qsgd4": Spec(
        "QSGD 4 bit",
        lambda _: Compressed(
            quantize=QSGD(4), error_feedback=False, dense_below=DENSE_BELOW
        ),
    ),
    "topk1": Spec("TopK 1 %", lambda _: Compressed(TopK(0.01), dense_below=DENSE_BELOW)),
    "topk1-warmup": Spec(
        "TopK 1 % + 8 bit, warm-up", _recommended_sgd(TopK(0.01)), optimizers=SGD
    ),
    "topk8of512-warmup": Spec(
        "TopK 8 of 512 + 8 bit, warm-up",
        _recommended_sgd(TopK(k=8, bucket=512)),
        networks=("fashion-mnist",),
        at_double=False,
    ),
    "topk16of512-warmup": Spec(
        "TopK 16 of 512 + 8 bit, warm-up",
        _recommended_sgd(TopK(k=16, bucket=512)),
        networks=("fashion-mnist",),
        at_double=False,
    ),
    "onebit-adam": Spec(
        "OneBitAdam",
        lambda s: OneBitAdam(warm_up=s.work.steps // FREEZE, dense_below=DENSE_BELOW),
        optimizers=ADAMW,
    ),
    "topk1-adam": Spec(
        "TopKAdam 1 % + 4 bit",
        lambda s: TopKAdam(
            TopK(0.01), QSGD(4), warm_up=s.work.steps // FREEZE, dense_below=DENSE_BELOW
        ),
        optimizers=ADAMW,
    ),
    "dgc1": Spec("DGC 1 %", _dgc(0.01), 6.0, includes_momentum=True, optimizers=SGD),
    "dgc0.1": Spec("DGC 0.1 %", _dgc(0.001), 6.0, includes_momentum=True, optimizers=SGD),
    "nuqsgd4": Spec(
        "NUQSGD 4 bit",
        lambda _: Compressed(
            quantize=NUQSGD(4), error_feedback=False, dense_below=DENSE_BELOW
        ),
        ranks=(2,),
        at_double=False,
    ),
    "terngrad": Spec(
        "TernGrad",
        lambda _: Compressed(
            quantize=TernGrad(count_zeros=False),
            error_feedback=False,
            dense_below=DENSE_BELOW,
        ),
        ranks=(2,),
        at_double=False,
    ),
    "onebit": Spec(
        "OneBit, error feedback",
        lambda _: Compressed(quantize=OneBit(), dense_below=DENSE_BELOW),
        ranks=(2,),
        at_double=False,
    ),
    "powersgd4": Spec(
        "PowerSGD, rank 4", lambda _: PowerSGD(rank=4), ranks=(2,), at_double=False
    ),
    FP16: Spec("fp16 (torch)", None, ranks=(2,), at_double=False),
}


def build(name: str, setting: Setting) -> Method:
    """Return a method; its random numbers depend on the seed of the run.

    Raises:
        KeyError: If the roster does not have the name.
        ValueError: If it is computed without a method of sparcml.
    """
    make = ROSTER[name].make
    if make is None:
        raise ValueError(f"build: name must be that of a method of sparcml, got {name!r}")
    method: Any = make(setting)
    if any(f.name == "seed" for f in fields(method)):
        method = replace(method, seed=setting.seed)
    return method  # type: ignore[no-any-return]


def label(name: str, multiple: float) -> str:
    """Return the name of a method with a multiple of the learning rate."""
    return name if multiple == 1 else f"{name}-x{multiple:g}"
