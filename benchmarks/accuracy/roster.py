"""Methods of the accuracy benchmark, by name.

To add a method, add a line to `ROSTER`: its title, a function from a `Setting` to the method, and
what differs from the defaults of `Spec`. `run_accuracy.py` then runs it wherever its optimizers
fit. A label such as "dgc0.1-x6" is a name and a multiple of the dense learning rate.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from sparcml import (
    DGC,
    NUQSGD,
    QSGD,
    Adaptive,
    Compressed,
    OneBit,
    OneBitAdam,
    PowerSGD,
    Schedule,
    TernGrad,
    TopK,
    TopKAdam,
)
from sparcml.aggregate.fence import LIMIT
from sparcml.torch.recommended import MULTIPLES, recommended

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparcml import Method, Quantizer
    from sparcml.aggregate.frozen_adam import FrozenAdam

    from .workloads import Workload

# Computed without a method of sparcml.
DENSE, LATE, FP16 = "dense", "late", "fp16"
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
        make: Creates the method; None if it is computed without one.
        multiples: Multiples of the dense learning rate that it runs at.
        includes_momentum: Whether the result includes momentum, so that SGD has none.
        optimizers: Optimizers of the workloads that it runs on.
        ranks: World sizes.
        at_double: Whether it also runs at twice the dense learning rate.
        networks: Names of the workloads that it runs on; empty for all.
        leaves_recurrent: Whether recurrent layers are sent uncompressed, as `compress` does.
    """

    title: str
    make: Callable[[Setting], Method] | None
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
    DENSE: Spec("dense", None, ranks=(1,)),
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
    FP16: Spec("fp16 (torch)", None, ranks=(2,), networks=("gpt", "atis", "fashion-mnist")),
    LATE: Spec("dense, one step late", None, ranks=(1,)),
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


def built(name: str, setting: Setting) -> str:
    """Return the method as text, with what is sent uncompressed; empty if there is none."""
    spec = ROSTER[name]
    if spec.make is None:
        return ""
    leaves = spec.leaves_recurrent and setting.work.recurrent
    return str(build(name, setting)) + (f", without {leaves}" if leaves else "")


def label(name: str, multiple: float) -> str:
    """Return the name of a method with a multiple of the learning rate."""
    return name if multiple == 1 else f"{name}-x{multiple:g}"
