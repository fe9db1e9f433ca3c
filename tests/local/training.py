"""Local methods of all types, and inner steps that depend on rank and step."""

from __future__ import annotations

import numpy as np

import sparcml
from sparcml import QSGD, Compressed, Half, PowerSGD, TopK, local

SHAPES = {
    "blocks.0.w": (12, 10),
    "blocks.1.w": (6, 20),
    "blocks.2.w": (9, 9),
    "head": (17,),
}

METHODS = {
    "local_sgd": local.LocalSGD(4),
    "local_sgd warm-up": local.LocalSGD(4, warm_up=2),
    "bmuf": local.BMUF(4),
    "bmuf classic": local.BMUF(4, nesterov=False, block_lr=0.8),
    "diloco": local.DiLoCo(4),
    "diloco topk": local.DiLoCo(4, method=Compressed(TopK(0.1), QSGD(8), dense_below=20)),
    "diloco powersgd": local.DiLoCo(4, method=PowerSGD(2)),
    "streaming": local.DiLoCo(6, fragments=3, delay=1, mix=0.5),
    "streaming half": local.DiLoCo(
        8, method=Compressed(quantize=Half()), fragments=2, delay=3
    ),
    "sparse_loco": local.SparseLoCo(4, k=4, chunk=32),
    "sparse_loco all": local.SparseLoCo(
        6, k=3, chunk=16, mean="all", decay=1, fragments=2, delay=2
    ),
    "demo": local.DeMo(k=4, side=8, outer_lr=0.01),
    "sparta": local.SPARTA(ratio=0.3),
}

assert {type(m) for m in METHODS.values()} == {*local.METHODS.values()}


def model(dtype=np.float32):
    rng = np.random.default_rng(1)
    return {n: rng.standard_normal(s).astype(dtype) for n, s in SHAPES.items()}


def inner_step(x, rank, step, scale=0.1):
    """Return the model after an optimizer step with a random gradient."""
    rng = np.random.default_rng([rank, step])
    if isinstance(x, dict):
        return {
            n: v - (scale * rng.standard_normal(v.shape)).astype(v.dtype)
            for n, v in x.items()
        }
    return x - (scale * rng.standard_normal(x.shape)).astype(x.dtype)


def train(comm, method, x, state, steps, scale=0.1):
    """Make inner steps, each followed by a step of the method."""
    for _ in range(steps):
        x = inner_step(x, comm.rank, int(state["step"]), scale)
        x, state = method.step(comm, x, state)
    return x, state


def run(method, steps, ranks, x=None, scale=0.1):
    """Return the models and states of all ranks."""
    start = model() if x is None else x

    def body(comm):
        return train(comm, method, start, method.init(start), steps, scale)

    return simulate(body, ranks)


def simulate(body, ranks):
    return sparcml.simulate(body, ranks, trace=0).results


def flat(x):
    return (
        np.concatenate([x[name].ravel() for name in sorted(x)])
        if isinstance(x, dict)
        else x
    )


def same_bits(a, b):
    """Compare models or states bit for bit."""
    assert a.keys() == b.keys()
    for key in a:
        assert (a[key].dtype, a[key].shape) == (b[key].dtype, b[key].shape), key
        assert a[key].tobytes() == b[key].tobytes(), key
