"""The roster of methods, and gradients of which all ranks know everyone's."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np

import sparcml
from sparcml import (
    DGC,
    NUQSGD,
    QSGD,
    Blocks,
    Compressed,
    Dense,
    Half,
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

RANKS = (1, 2, 3, 4, 5, 7, 8)
SHAPES = {"bias": (7,), "small": (6, 5), "table": (40, 25), "weight": (30, 6, 7)}

# Law 4 holds for all of these: a new method joins by one line.
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
    "blocks": Compressed(Blocks(0.1, block=5), dense_below=100),
    "oktopk": Compressed(TopK(0.02), algorithm="oktopk", dense_below=100),
    "gtopk": Compressed(TopK(0.02), keep=TopK(0.02), dense_below=100),
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
    "gtopk_qsgd": Compressed(TopK(0.02), QSGD(), keep=TopK(0.01), dense_below=100),
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
    warnings.simplefilter("ignore")  # what is without feedback says so
    FORGETTING = {
        "topk": Compressed(TopK(0.02), error_feedback=False, dense_below=100),
        "qsgd": Compressed(quantize=QSGD(bits=4), error_feedback=False, dense_below=100),
        "terngrad": Compressed(quantize=TernGrad(), error_feedback=False, dense_below=100),
        "powersgd": PowerSGD(rank=2, error_feedback=False),
        "dgc": DGC(ratio=0.02, dense_below=100),
        "vote": sparcml.MajorityVote(),
        "signum": sparcml.MajorityVote(momentum=0.9),
    }
EVERY = {**CONSERVING, **{f"forgetting_{k}": v for k, v in FORGETTING.items()}}


def gradient(rank, step, shapes=SHAPES, dtype=np.float32):
    rng = np.random.default_rng([rank, step])
    return {n: rng.standard_normal(s).astype(dtype) for n, s in shapes.items()}


@cache
def means(ranks, steps):
    """What all ranks owe in so many steps, divided by their number."""
    everyones = [gradient(rank, step) for rank in range(ranks) for step in range(steps)]
    return {
        n: np.sum([g[n] for g in everyones], axis=0, dtype=np.float64) / ranks
        for n in SHAPES
    }


def owed(state, name, shape):
    return state.get(f"residual/{name}", np.zeros(shape)).reshape(shape)


def conserves(comm, name, steps=4):
    """Laws 2 and 4 on any engine: the same bits everywhere, and nothing lost."""
    method, applied = EVERY[name], {n: np.zeros(s) for n, s in SHAPES.items()}
    state = method.init(SHAPES)
    for step in range(steps):
        mean, state = method.aggregate(comm, gradient(comm.rank, step), state)
        for n in SHAPES:
            applied[n] += mean[n]
    for n, shape in SHAPES.items():
        for other in comm.allgather(applied[n]):
            np.testing.assert_array_equal(other, applied[n])
        if name in CONSERVING:
            rest = comm.allreduce(owed(state, n, shape).astype(np.float64), op="mean")
            due = means(comm.size, steps)[n]
            np.testing.assert_allclose(applied[n] + rest, due, atol=2e-4, rtol=0)
