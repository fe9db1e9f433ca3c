"""Rosters: every collective, sparsifier, quantizer and aggregation method under test.

Every registered class is in a roster: with the variants listed here, whose settings take
different paths through the code, or else with its own examples.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from sparcml import (
    DGC,
    NUQSGD,
    QSGD,
    BlockTopK,
    Compressed,
    Dense,
    Half,
    MajorityVote,
    Natural,
    OneBit,
    PowerSGD,
    RandomK,
    Schedule,
    Sign,
    TernGrad,
    Threshold,
    TopK,
)
from sparcml import decentralized as dec
from sparcml.aggregate.base import METHODS as REGISTERED_METHODS
from sparcml.collectives import ALLREDUCES as REGISTERED
from sparcml.quantize.base import QUANTIZERS as REGISTERED_QUANTIZERS
from sparcml.sparsify.base import SPARSIFIERS as REGISTERED_SPARSIFIERS

if TYPE_CHECKING:
    from collections.abc import Callable


def examples(registry, variants):
    """Return the examples of the registered classes that have no variant, by name."""
    covered = {type(variant) for variant in variants}
    return {
        f"{name} {i}": example
        for name, cls in registry.items()
        if cls not in covered
        for i, example in enumerate(cls.examples())
    }


RANKS = (1, 2, 3, 4, 5, 7, 8)
OPS = ("sum", "min", "max", "prod")

# Allreduce algorithms by name.
ALLREDUCES = tuple(REGISTERED)
LOSSLESS = tuple(name for name, a in REGISTERED.items() if not a.lossy)
LOSSY = tuple(name for name, a in REGISTERED.items() if a.lossy)
COUNTED = tuple(n for n in REGISTERED if not REGISTERED[n].is_native)
COMPUTED = tuple(n for n in REGISTERED if REGISTERED[n].is_native)
REDUCTIONS = [(a, op) for a in COUNTED for op in OPS if op == "sum" or a not in LOSSY]


def _shifted(n, *shifts):
    """The mean over a rank and these shifts, as a matrix."""
    return sum(np.roll(np.eye(n), shift, 1) for shift in (0, *shifts)) / (1 + len(shifts))


# Topologies as functions of the number of ranks.
TOPOLOGIES: dict[str, Callable[[int], dec.Topology]] = {
    "ring": dec.ring,
    "torus": lambda n: dec.torus(2, n // 2) if n % 2 == 0 else dec.torus(1, n),
    "star": dec.star,
    "star uniform": lambda n: dec.star(n, weights="uniform"),
    "complete": dec.complete,
    "exponential": dec.exponential,
    "one_peer_exponential": dec.one_peer_exponential,
    "base_graph": dec.base_graph,
    "base_graph 2": lambda n: dec.base_graph(n, degree=2),
    "random_regular": lambda n: dec.random_regular(n, min(4, n - 1)),
    "lazy": lambda n: dec.ring(n).lazy(),
    "quarters": lambda n: dec.from_matrix(_shifted(n, 1, 0, -1)),
    "changing": lambda n: dec.from_matrix([_shifted(n, 1), _shifted(n, -1)]),
    "columns": lambda n: dec.from_matrix(
        dec.star(n, "uniform").matrix().T, stochastic="columns"
    ),
}

SPARSIFIERS = {
    "TopK ratio": TopK(0.02),
    "TopK k": TopK(k=7),
    "TopK all": TopK(1.0),
    "TopK bucket": TopK(k=4, bucket=512),
    "TopK ragged bucket": TopK(0.1, bucket=100),
    "RandomK": RandomK(0.02),
    "RandomK unscaled": RandomK(0.02, scaled=False),
    "RandomK most": RandomK(0.9, scaled=False, shared=True),
    "Threshold": Threshold(2.0),
    "Threshold adaptive": Threshold(ratio=0.02),
    "Threshold strom": Threshold(2.0, strom=True),
    "BlockTopK": BlockTopK(0.05, block=8),
    "BlockTopK k": BlockTopK(k=3, block=7),
}
SPARSIFIERS |= examples(REGISTERED_SPARSIFIERS, SPARSIFIERS.values())
# Those that send selected values unchanged.
EXACT = [
    name
    for name, sparsifier in SPARSIFIERS.items()
    if not (getattr(sparsifier, "scaled", False) or getattr(sparsifier, "strom", False))
]

# Quantizers whose expected decoded value is the value.
UNBIASED = [
    QSGD(2),
    QSGD(4),
    QSGD(8),
    QSGD(3, bucket=64, norm="l2"),
    QSGD(levels=5, bucket=None, norm="l2"),
    QSGD(levels=1, bucket=100),
    NUQSGD(2),
    NUQSGD(4),
    NUQSGD(8, bucket=None),
    NUQSGD(3, bucket=50),
    TernGrad(clip=None),
    Natural(),
]

UNBIASED += [
    quantizer
    for quantizer in examples(REGISTERED_QUANTIZERS, UNBIASED).values()
    if not quantizer.biased
]

# Aggregation methods that law 4 holds for: applied means + residuals = gradients.
CONSERVING = {
    "dense": Dense(),
    "topk": Compressed(TopK(0.02), dense_below=100),
    "topk_one": Compressed(TopK(k=1), dense_below=100),
    "topk_all": Compressed(TopK(1.0), dense_below=100),
    "bucket": Compressed(TopK(k=2, bucket=64), dense_below=100),
    "randomk": Compressed(RandomK(0.05), dense_below=100),
    "randomk_shared": Compressed(RandomK(0.05, scaled=False, shared=True), dense_below=100),
    "threshold": Compressed(Threshold(value=1.5), dense_below=100),
    "threshold_adaptive": Compressed(Threshold(ratio=0.02), dense_below=100),
    "strom": Compressed(Threshold(value=1.5, strom=True), dense_below=100),
    "blocks": Compressed(BlockTopK(0.1, block=5), dense_below=100),
    "oktopk": Compressed(TopK(0.02), algorithm="oktopk", dense_below=100),
    "gtopk": Compressed(TopK(0.02), global_topk=TopK(0.02), dense_below=100),
    "qsgd": Compressed(quantize=QSGD(bits=4, bucket=64), dense_below=100),
    "nuqsgd": Compressed(quantize=NUQSGD(bits=4, bucket=64), dense_below=100),
    "natural": Compressed(quantize=Natural(), dense_below=100),
    "half": Compressed(quantize=Half(), dense_below=100),
    "onebit": Compressed(quantize=OneBit(), dense_below=100),
    "sign": Compressed(quantize=Sign(bucket=64), dense_below=100),
    "terngrad": Compressed(quantize=TernGrad(), dense_below=100),
    "sparcml": Compressed(TopK(k=4, bucket=64), QSGD(bits=4, bucket=64), dense_below=100),
    "topk_onebit": Compressed(TopK(0.05), OneBit(), dense_below=100),
    "oktopk_half": Compressed(
        TopK(0.02), Half("bfloat16"), algorithm="oktopk", dense_below=100
    ),
    "gtopk_qsgd": Compressed(TopK(0.02), QSGD(), global_topk=TopK(0.01), dense_below=100),
    "randomk_shared_qsgd": Compressed(
        RandomK(0.05, scaled=False, shared=True), QSGD(), dense_below=100
    ),
    "schedule": Compressed(Schedule(((0, TopK(0.25)), (3, TopK(0.02)))), dense_below=100),
    "recursive": Compressed(TopK(0.02), algorithm="ssar_recursive_double", dense_below=100),
    "powersgd": PowerSGD(rank=2),
    "powersgd_cold": PowerSGD(rank=1, warm_start=False),
    "dgc_plain": DGC(ratio=0.02, momentum=0.0, dense_below=100),
}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # methods without error feedback warn
    DISCARDING = {
        "topk": Compressed(TopK(0.02), error_feedback=False, dense_below=100),
        "qsgd": Compressed(quantize=QSGD(bits=4), error_feedback=False, dense_below=100),
        "terngrad": Compressed(quantize=TernGrad(), error_feedback=False, dense_below=100),
        "powersgd": PowerSGD(rank=2, error_feedback=False),
        "dgc": DGC(ratio=0.02, dense_below=100),
        "vote": MajorityVote(),
        "signum": MajorityVote(momentum=0.9),
    }

_parts = [
    part
    for method in CONSERVING.values()
    if isinstance(method, Compressed)
    for part in (method.sparsify, method.quantize)
]
for _name, _sparsifier in examples(REGISTERED_SPARSIFIERS, _parts).items():
    CONSERVING[_name] = Compressed(_sparsifier, dense_below=100)
for _name, _quantizer in examples(REGISTERED_QUANTIZERS, _parts).items():
    CONSERVING[_name] = Compressed(quantize=_quantizer, dense_below=100)
_listed = [*CONSERVING.values(), *DISCARDING.values()]
for _name, _method in examples(REGISTERED_METHODS, _listed).items():
    _conserves = _method.keeps_residual and _method.returns_mean
    (CONSERVING if _conserves else DISCARDING)[_name] = _method
METHODS = {**CONSERVING, **{f"discarding_{k}": v for k, v in DISCARDING.items()}}
