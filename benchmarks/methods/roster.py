"""Methods of the experiment behind docs/methods.md: settings, theorem and test."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from harness import plugins  # noqa: F401  # registers Ok-Topk

from sparcml import (
    DGC,
    NUQSGD,
    QSGD,
    BlockTopK,
    Compressed,
    Dense,
    Half,
    MajorityVote,
    Method,
    Natural,
    OneBit,
    PowerSGD,
    RandomK,
    Sign,
    TernGrad,
    Threshold,
    TopK,
)

CONTRACTS = "contraction: Stich 2018, Karimireddy 2019"
UNBIASED = "unbiased, bounded variance: Alistarh 2017"


@dataclass(frozen=True)
class Entry:
    """One row of the table.

    Attributes:
        name: Name in the table.
        method: Aggregation method with its settings.
        theorem: Convergence theorem, or "none".
        test: Test that checks the theorem's assumptions.
        rate: Multiple of the dense learning rate, for methods that do not return a mean.
    """

    name: str
    method: Method
    theorem: str
    test: str
    rate: float = 1.0


def without_feedback(**parts: object) -> Compressed:
    """Return a method without error feedback, without its warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Compressed(**parts, error_feedback=False)  # type: ignore[arg-type]


LAWS = "aggregate/test_laws"
SPARSE, CODES = "sparsify", "quantize"

ROSTER = (
    Entry("Dense", Dense(), "SGD itself", LAWS),
    Entry("TopK 1 %", Compressed(TopK(0.01)), CONTRACTS, SPARSE),
    Entry("TopK 1 %, no feedback", without_feedback(sparsify=TopK(0.01)), "none", SPARSE),
    Entry("TopK 4 of 512", Compressed(TopK(k=4, bucket=512)), CONTRACTS, SPARSE),
    Entry(
        "TopK 4 of 512 + QSGD 4 bits",
        Compressed(TopK(k=4, bucket=512), QSGD(bits=4, bucket=1024)),
        "Alistarh 2018; SparCML, theorem 4.1",
        LAWS,
    ),
    Entry("Threshold 1 %", Compressed(Threshold(ratio=0.01)), CONTRACTS, SPARSE),
    Entry("RandomK 1 %", Compressed(RandomK(0.01, scaled=False)), CONTRACTS, SPARSE),
    Entry(
        "RandomK 10 %, scaled",
        Compressed(RandomK(0.1, shared=True), error_feedback=False),
        UNBIASED,
        SPARSE,
    ),
    Entry("Blocks 1 % of 16", Compressed(BlockTopK(0.01, block=16)), CONTRACTS, SPARSE),
    Entry("Ok-Topk 1 %", Compressed(TopK(0.01), algorithm="oktopk"), "Li 2022", LAWS),
    Entry("gTop-k 1 %", Compressed(TopK(0.01), global_topk=TopK(0.01)), "Shi 2019", LAWS),
    Entry("DGC 1 %", DGC(ratio=0.01), "none", "aggregate/test_dgc", 0.1),
    Entry(
        "QSGD 8 bits",
        Compressed(quantize=QSGD(bits=8, bucket=1024), error_feedback=False),
        UNBIASED,
        CODES,
    ),
    Entry(
        "QSGD 4 bits",
        Compressed(quantize=QSGD(bits=4, bucket=1024), error_feedback=False),
        UNBIASED,
        CODES,
    ),
    Entry(
        "QSGD 2 bits",
        Compressed(quantize=QSGD(bits=2, bucket=1024), error_feedback=False),
        UNBIASED,
        CODES,
    ),
    Entry(
        "NUQSGD 4 bits",
        Compressed(quantize=NUQSGD(bits=4, bucket=1024), error_feedback=False),
        "unbiased: Ramezani-Kebrya 2019",
        CODES,
    ),
    Entry(
        "TernGrad",
        without_feedback(quantize=TernGrad()),
        "unbiased except for clipping: Wen 2017",
        CODES,
    ),
    Entry(
        "Natural",
        Compressed(quantize=Natural(), error_feedback=False),
        "unbiased, omega = 1/8: Horvath 2019",
        CODES,
    ),
    Entry("1-bit", Compressed(quantize=OneBit()), CONTRACTS, CODES),
    Entry("1-bit, no feedback", without_feedback(quantize=OneBit()), "none", CODES),
    Entry("Sign", Compressed(quantize=Sign()), CONTRACTS, CODES),
    Entry("Sign, no feedback", without_feedback(quantize=Sign()), "none", CODES),
    Entry(
        "MajorityVote",
        MajorityVote(),
        "if noise is unimodal and symmetric: Bernstein 2018",
        "aggregate/test_majority",
        0.01,
    ),
    Entry("bfloat16", Compressed(quantize=Half("bfloat16")), CONTRACTS, CODES),
    Entry("PowerSGD rank 4", PowerSGD(rank=4), "none", "aggregate/test_powersgd"),
)
