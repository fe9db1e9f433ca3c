"""What a plan compares: methods, the collectives each may use, and what they take.

The names of methods are only written here: `aggregate` is above this folder.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..collectives import ALLREDUCES
from ..costs import CostTerms, Workload
from ..costs.lower_bound import lower_bound
from ..costs.network import cost_terms

if TYPE_CHECKING:
    from ..costs import Network
    from .models import Model

# Seconds a value takes on one core (AMD EPYC, AVX2) outside of sums: the whole step of
# `method.aggregate` on one rank, 4 M float32, medians of 9 runs.
DENSE = 1.1e-9
SELECT, SELECTED = 0.95e-9, 9e-9  # TopK: a value, and one that is selected
CODE = 1.7e-9
POWERSGD = 9.6e-9  # rank 4
# Coding and decoding once: QSGD 0.38 + 0.17, Half 0.25 + 0.20.
QUANTIZE = 0.55e-9

SUMS = ("native", "ring", "halving_doubling")  # trees are for small vectors
SPARSE = (
    "ssar_recursive_double",
    "ssar_split_allgather",
    "dsar_split_allgather",
    "ssar_ring",
)
SPLIT = ("ssar_split_allgather", "dsar_split_allgather")
BUCKET = 1024  # values that share a norm of 4 bytes
RATIOS = (0.01, 0.001)


@dataclass(frozen=True)
class Candidate:
    """One method.

    Attributes:
        name: For people.
        line: Python that makes it; `{}` is where a collective goes.
        collectives: Those it may use.
        work: Seconds of its own a value.
        ratio: The part of the values that each rank sends.
        each: Bytes that a value takes.
        rank: PowerSGD's, or 0.
    """

    name: str
    line: str
    collectives: tuple[str, ...]
    work: float
    ratio: float = 1.0
    each: float = 4.0
    rank: int = 0

    @property
    def dense(self) -> bool:
        """Whether it sends everything as it is."""
        return self.ratio == 1 and self.each == 4 and not self.rank

    @property
    def lossy(self) -> bool:
        """Whether only the largest sums come back."""
        return self.collectives == ("oktopk",)

    def code(self, collective: str) -> str:
        """The Python expression that makes it, with this collective."""
        if self.dense and collective == "native":
            return "sparcml.Dense()"
        return self.line.format(f'algorithm="{collective}"')

    def sent(self, model: Model) -> int:
        """Values that each rank selects."""
        return max(1, math.floor(self.ratio * model.large + 0.5))

    def takes(
        self, model: Model, collective: str, ranks: int, network: Network
    ) -> CostTerms:
        """What its sums take; small tensors travel as they are, in a sum of their own."""
        if self.rank:
            parts = [(n, n, 4.0, collective) for n in model.factors(self.rank)]
        elif self.dense:
            parts = [(model.parameters, model.parameters, 4.0, collective)]
        else:
            parts = [
                (model.large, self.sent(model), self.each, collective),
                (model.small, model.small, 4.0, "native"),
            ]
        total = CostTerms()
        for values, sent, each, name in parts:
            total += cost_terms(ALLREDUCES[name], ranks, values, sent, each, network)
        return total

    def bound(self, model: Model, ranks: int) -> CostTerms:
        """What no algorithm could do with less; all sums may share their latencies.

        PowerSGD's cannot: its second factor depends on the sum of the first.
        """

        def of(values: int, sent: int, each: float) -> CostTerms:
            if not values:
                return CostTerms()
            return lower_bound(Workload(values, each, (sent,) * ranks), lossy=self.lossy)

        if self.rank:
            return sum((of(n, n, 4.0) for n in model.factors(self.rank)), CostTerms())
        parts = [of(model.large, self.sent(model), self.each)]
        parts.append(of(model.small, model.small, 4.0))
        rounds = max(part.rounds for part in parts)
        return replace(sum(parts, CostTerms()), rounds=rounds)


def candidates(ratios: tuple[float, ...] = RATIOS) -> tuple[Candidate, ...]:
    """The mildest first: what changes the gradient least."""
    found = [
        Candidate("dense", "sparcml.Compressed({})", SUMS, DENSE),
        Candidate(
            "float16",
            "sparcml.Compressed(quantize=sparcml.Half(), {})",
            ("dsar_split_allgather",),
            CODE,
            each=2.0,
        ),
        Candidate(
            "QSGD 4 bits",
            "sparcml.Compressed(quantize=sparcml.QSGD(bits=4), {})",
            ("dsar_split_allgather",),
            CODE,
            each=4 / 8 + 4 / BUCKET,
        ),
        Candidate(
            "PowerSGD rank 4", "sparcml.PowerSGD(rank=4)", ("native",), POWERSGD, rank=4
        ),
    ]
    falling = sorted(ratios, reverse=True)
    for ratio in falling:
        found += _sparse(ratio)
    return (*found, *(_largest(ratio) for ratio in falling))


def _largest(ratio: float) -> Candidate:
    """Last, since it leaves out sums too: `auto` never takes it unasked."""
    line = f"sparcml.Compressed(sparsify=sparcml.TopK(ratio={ratio:g}), {{}})"
    work = SELECT + SELECTED * ratio
    return Candidate(f"Ok-TopK {100 * ratio:g} %", line, ("oktopk",), work, ratio)


def _sparse(ratio: float) -> list[Candidate]:
    select = f"sparsify=sparcml.TopK(ratio={ratio:g})"
    code = "quantize=sparcml.QSGD(bits=8)"
    work = SELECT + SELECTED * ratio
    each = 1 + 4 / BUCKET
    name = f"TopK {100 * ratio:g} %"
    with_code = f"sparcml.Compressed({select}, {code}, {{}})"
    return [
        Candidate(name, f"sparcml.Compressed({select}, {{}})", SPARSE, work, ratio),
        Candidate(
            f"{name}, 8 bits", with_code, SPLIT, work + 2 * QUANTIZE * ratio, ratio, each
        ),
    ]
