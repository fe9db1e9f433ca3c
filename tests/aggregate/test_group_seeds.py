"""Methods that quantize parameters in two groups round them independently of each other."""

from typing import Any

import numpy as np
import pytest

import sparcml
from sparcml import QSGD, Adaptive, Compressed, OneBitAdam

SIZE, BUCKET = 64 * 128, 128
SHAPE = (64, 128)
ONCE: Any = {"algorithm": "ssar_allgather", "dense_below": 0}  # no sum is quantized again


def halfway(levels):
    """Return values halfway between two levels; the first of each bucket is the largest."""
    below = levels - 1 if levels == 1 else 1
    values = np.full(SIZE, (below + 0.5) / levels, np.float32)
    values[::BUCKET] = 1
    return values, (below + 0.5) / levels


def beyond_the_fence(comm, own):
    method = Compressed(quantize=QSGD(2, bucket=BUCKET), fence=20.0, **ONCE)
    coarse, fine = halfway(1)[0], halfway(7)[0]
    fine[0] = 1000  # an outlier: only its bucket is lost
    state = method.init({"coarse": SHAPE, "fine": SHAPE})
    gradient = {"coarse": own * coarse, "fine": own * fine}
    gradient = {name: g.reshape(SHAPE) for name, g in gradient.items()}
    mean, state = method.aggregate(comm, gradient, state)
    assert method.describe(state) == {"fine": 4.0}
    return [(mean["coarse"], 1), (mean["fine"], 7)]


def of_other_bits(comm, own):
    method = Adaptive(quantize=QSGD(4, bucket=BUCKET), **ONCE)
    state = method.init({"coarse": SHAPE, "fine": SHAPE})
    # As after a choice, in a step that makes none.
    state |= {"step": np.array(1), "bits/coarse": np.array(2.0), "bits/fine": np.array(4.0)}
    gradient = {"coarse": own * halfway(1)[0], "fine": own * halfway(7)[0]}
    gradient = {name: g.reshape(SHAPE) for name, g in gradient.items()}
    mean, state = method.aggregate(comm, gradient, state)
    assert method.describe(state) == {"coarse": 2.0, "fine": 4.0}
    return [(mean["coarse"], 1), (mean["fine"], 7)]


def of_the_other_phase(comm, own):
    four = QSGD(4, bucket=BUCKET)
    method = OneBitAdam(four, first=four, warm_up=1, betas=(0.0, 0.9), **ONCE)
    state = method.init({"frozen": SHAPE, "late": SHAPE})
    ones = np.ones(SHAPE, np.float32)
    _, state = method.aggregate(comm, {"frozen": ones}, state)
    values = (own * halfway(7)[0]).reshape(SHAPE)
    _, state = method.aggregate(comm, {"frozen": values, "late": values}, state)
    assert method.is_frozen(state, "frozen")
    # The first moment is the mean of what was decoded, since beta1 is 0.
    return [(state[f"exp_avg/{name}"], 7) for name in ("frozen", "late")]


@pytest.mark.parametrize("two", [beyond_the_fence, of_other_bits, of_the_other_phase])
def test_two_groups_draw_different_numbers(two):
    ranks = 2

    def body(comm):
        own = np.float32(comm.rank == 0)  # the other rank sends zeros
        return two(comm, own)

    inner = np.ones(SIZE, bool)
    inner[::BUCKET] = inner[:BUCKET] = False
    rounded_up = []
    for mean, levels in sparcml.launch(body, ranks)[0]:
        decoded = np.asarray(mean).reshape(-1)[inner] * ranks
        middle = halfway(levels)[1]
        np.testing.assert_allclose(abs(decoded - middle), 0.5 / levels, rtol=1e-5)
        rounded_up.append(decoded > middle)
    spread = 5 * 0.5 / np.sqrt(inner.sum())
    for one in rounded_up:
        assert abs(one.mean() - 0.5) < spread
    assert abs((rounded_up[0] == rounded_up[1]).mean() - 0.5) < spread
