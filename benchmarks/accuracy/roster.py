"""Methods of the accuracy benchmark, by name.

To add a method, add a line to `ROSTER`: its title, a function from a `Setting` to the method, and
what differs from the defaults of `Spec`. `run_accuracy.py` then runs it wherever its optimizers
fit. A label such as "dgc0.1-x6" is a name and a multiple of the dense learning rate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from sparcml import (
    DGC,
    NUQSGD,
    QSGD,
    Adaptive,
    Compressed,
    Half,
    Method,
    OneBit,
    OneBitAdam,
    PowerSGD,
    Schedule,
    TernGrad,
    TopK,
    TopKAdam,
)
from sparcml.aggregate.evidence import MULTIPLES
from sparcml.aggregate.fence import LIMIT
from sparcml.torch.recommended import recommended

from .aggregators import HalfMean, LateMean, Mean
from .candidates import EF21, GMC, DeMo, Dion, LoCo

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparcml import Quantizer
    from sparcml.aggregate.frozen_adam import FrozenAdam

    from .aggregators import Aggregator
    from .workloads import Workload

DENSE, LATE = "dense", "late"
WARM_UP = 5  # warm-ups take one fifth of the steps
FROZEN = 0.15  # share of the steps of the first phase of TopKAdam and OneBitAdam
DENSE_BELOW = 1000  # values; the networks are small
DGC_MULTIPLES = (1.0, 3.0, 6.0)  # masking discards most of the momentum
MANY = 16  # ranks, under SGD only: the sum of sparse vectors fills up with ranks


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
        make: Creates the method, or an aggregator that is not a method of sparcml.
        multiples: Multiples of the dense learning rate that it runs at.
        includes_momentum: Whether the result includes momentum, so that SGD has none.
        optimizers: Optimizers of the workloads that it runs on.
        ranks: World sizes.
        at_double: Whether it also runs at twice the dense learning rate.
        networks: Names of the workloads that it runs on; empty for all.
        leaves_recurrent: Whether recurrent layers are sent uncompressed, as `compress` does.
    """

    title: str
    make: Callable[[Setting], Method | Aggregator]
    multiples: tuple[float, ...] = (1.0,)
    includes_momentum: bool = False
    optimizers: tuple[str, ...] = ("sgd", "adamw")
    ranks: tuple[int, ...] = (2, 8)
    at_double: bool = False
    networks: tuple[str, ...] = ()
    leaves_recurrent: bool = False


def _dgc(ratio: float) -> Callable[[Setting], Method]:
    return lambda s: DGC(
        ratio,
        s.work.momentum,
        nesterov=s.work.nesterov,
        warm_up=s.warm_up,
        quantize=QSGD(8),
        dense_below=DENSE_BELOW,
    )


def _topk(sparsify: TopK) -> Callable[[Setting], Method]:
    return lambda s: Compressed(
        Schedule.falling(sparsify, s.work.steps), QSGD(4), dense_below=DENSE_BELOW
    )


def _per_layer(sparsify: TopK) -> Callable[[Setting], Method]:
    return lambda s: Adaptive(
        Schedule.falling(sparsify, s.work.steps),
        QSGD(4),
        dense_below=DENSE_BELOW,
        options=MULTIPLES,
    )


def _quantized(quantize: Quantizer) -> Callable[[Setting], Method]:
    return lambda _: Compressed(
        quantize=quantize, error_feedback=False, dense_below=DENSE_BELOW
    )


def _recommended(setting: Setting, *, slow_link: bool = False) -> Method:
    model = torch.nn.Linear(1, 1)
    kind = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[setting.work.optimizer]
    optimizer = kind(model.parameters(), lr=1.0)
    return recommended(optimizer, setting.work.steps, slow_link=slow_link)


def _frozen(adam: type[FrozenAdam], **settings: Any) -> Callable[[Setting], Method]:
    return lambda s: adam(
        warm_up=round(FROZEN * s.work.steps), dense_below=DENSE_BELOW, **settings
    )


SGD, ADAMW = ("sgd",), ("adamw",)
ROSTER: dict[str, Spec] = {
    DENSE: Spec("dense", lambda s: Mean(s.ranks), ranks=(1,)),
    "recommended": Spec("recommended", _recommended, ranks=(2, 8, MANY), at_double=True),
    "qsgd4": Spec("QSGD 4 bit", _quantized(QSGD(4)), ranks=(2,)),
    "qsgd4-feedback": Spec(
        "QSGD 4 bit, error feedback",
        lambda _: Compressed(quantize=QSGD(4), dense_below=DENSE_BELOW),
        ranks=(2,),
        optimizers=SGD,
    ),
    "qsgd2-rice": Spec(
        "recommended, slow link",
        lambda s: _recommended(s, slow_link=True),
        optimizers=ADAMW,
    ),
    "falling": Spec(
        "TopK 1 % + 4 bit, falling",
        _topk(TopK(0.01)),
        networks=("fashion-mnist", "moby-dick"),
        ranks=(2,),
    ),
    "falling0.1": Spec(
        "TopK 0.1 % + 4 bit, falling",
        _topk(TopK(0.001)),
        networks=("fashion-mnist", "moby-dick"),
        ranks=(2,),
    ),
    "topk8of512-layers": Spec(
        "Adaptive TopK 8 of 512 + 4 bit, falling",
        _per_layer(TopK(k=8, bucket=512)),
        networks=("fashion-mnist",),
        ranks=(2,),
    ),
    "topk16of512-layers": Spec(
        "Adaptive TopK 16 of 512 + 4 bit, falling",
        _per_layer(TopK(k=16, bucket=512)),
        networks=("fashion-mnist",),
        ranks=(2,),
    ),
    "topk1": Spec(
        "TopK 1 %",
        lambda _: Compressed(TopK(0.01), dense_below=DENSE_BELOW),
        ranks=(2,),
    ),
    "topk1-adam": Spec(
        "TopKAdam 1 % + 4 bit",
        _frozen(TopKAdam, sparsify=TopK(0.01), quantize=QSGD(4)),
        optimizers=ADAMW,
        ranks=(2,),
    ),
    "onebit-adam": Spec("OneBitAdam", _frozen(OneBitAdam), optimizers=ADAMW, ranks=(2,)),
    "dgc0.1": Spec("DGC 0.1 %", _dgc(0.001), DGC_MULTIPLES, True, SGD, ranks=(2,)),
    "dgc1": Spec(
        "DGC 1 %",
        _dgc(0.01),
        DGC_MULTIPLES,
        includes_momentum=True,
        networks=("fashion-mnist", "moby-dick"),
        ranks=(2,),
    ),
    "powersgd4": Spec(
        "PowerSGD, rank 4", lambda _: PowerSGD(rank=4), ranks=(2,), leaves_recurrent=True
    ),
    "nuqsgd4": Spec("NUQSGD 4 bit", _quantized(NUQSGD(4)), ranks=(2,)),
    "terngrad": Spec(
        "TernGrad, fence",
        lambda _: Compressed(
            quantize=TernGrad(count_zeros=False),
            error_feedback=False,
            dense_below=DENSE_BELOW,
            fence=LIMIT,
        ),
        ranks=(2,),
        leaves_recurrent=True,
    ),
    "onebit": Spec(
        "OneBit, error feedback, fence",
        lambda _: Compressed(
            quantize=OneBit(bucket=128), dense_below=DENSE_BELOW, fence=LIMIT
        ),
        ranks=(2,),
    ),
    "half": Spec(
        "Half, error feedback",
        lambda _: Compressed(quantize=Half(), dense_below=DENSE_BELOW),
        ranks=(2,),
    ),
    "fp16": Spec(
        "fp16 (torch)",
        lambda s: HalfMean(s.ranks),
        ranks=(2,),
        networks=("gpt", "atis", "fashion-mnist"),
    ),
    LATE: Spec("dense, one step late", lambda s: LateMean(s.ranks), ranks=(1,)),
    "ef21": Spec("EF21-SGDM, TopK 1 %", EF21, ranks=(2,), networks=("moby-dick",)),
    "gmc": Spec("GMC, TopK 1 %", GMC, ranks=(2,), networks=("moby-dick",)),
    "loco4": Spec("LoCo 4 bit", LoCo, ranks=(2,), networks=("gpt", "moby-dick")),
    "demo": Spec("DeMo, 32 of 64 x 64", DeMo, (0.25,), ranks=(2,), networks=("gpt",)),
    "dion": Spec("Dion, rank 16", Dion, (4.0,), ranks=(2,), networks=("gpt",)),
}


def build(name: str, setting: Setting) -> Any:
    """Return a method or an aggregator; random numbers depend on the seed of the run."""
    method: Any = ROSTER[name].make(setting)
    if isinstance(method, Method) and hasattr(method, "seed"):
        return replace(method, seed=setting.seed)  # type: ignore[type-var]
    return method


def built(name: str, setting: Setting) -> str:
    """Return a method as text, with what is sent uncompressed; empty for aggregators."""
    method = build(name, setting)
    if not isinstance(method, Method):
        return ""
    leaves = ROSTER[name].leaves_recurrent and setting.work.recurrent
    return str(method) + (f", without {leaves}" if leaves else "")


def label(name: str, multiple: float) -> str:
    """Return the name of a method with a multiple of the learning rate."""
    return name if multiple == 1 else f"{name}-x{multiple:g}"
