"""What saves memory changes no bit: states that are overwritten, vectors sent in pieces."""

import numpy as np
import pytest

import sparcml
from sparcml.aggregate import pieces

from ..rosters import METHODS
from .gradients import SHAPES, gradient

STEPS = 4


def train(comm, method, *, overwrite):
    means, states, state = [], [], method.init(SHAPES)
    for step in range(STEPS):
        given = gradient(comm.rank, step)
        mean, state = method.aggregate(
            comm, given, state, overwrite=overwrite, overwrite_state=overwrite
        )
        means.append({n: np.array(m) for n, m in mean.items()})
        states.append({k: np.array(v) for k, v in state.items()})
    return means, states


def assert_same(found, wanted):
    for x, y in zip(found, wanted, strict=True):
        assert x.keys() == y.keys()
        for name in y:
            np.testing.assert_array_equal(x[name], y[name])


@pytest.mark.parametrize("name", METHODS)
def test_overwriting_gives_the_same_bits(name):
    def work(comm):
        plain = train(comm, METHODS[name], overwrite=False)
        return plain, train(comm, METHODS[name], overwrite=True)

    for (means, states), (others, kept) in sparcml.launch(work, 3):
        assert_same(others, means)
        assert_same(kept, states)


def test_the_state_keeps_its_arrays():
    method = sparcml.Compressed(sparcml.TopK(0.1), momentum=0.9, dense_below=100)

    def work(comm):
        _, first = method.aggregate(comm, gradient(comm.rank, 0), method.init(SHAPES))
        copies = {k: np.array(v) for k, v in first.items()}
        _, second = method.aggregate(comm, gradient(comm.rank, 1), first)
        assert_same([first], [copies])  # without permission nothing is overwritten
        _, third = method.aggregate(
            comm, gradient(comm.rank, 2), second, overwrite_state=True
        )
        return [
            np.shares_memory(third[k], second[k])
            for k in ("residual/weight", "momentum/weight")
        ]

    assert sparcml.launch(work, 2) == [[True, True]] * 2


@pytest.mark.parametrize(
    "quantizer", [sparcml.QSGD(4, bucket=256), sparcml.OneBit(), sparcml.Half()], ids=str
)
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_nothing_is_lost_in_pieces(monkeypatch, quantizer, ranks):
    monkeypatch.setattr(pieces, "PIECE", 512)
    method = sparcml.Compressed(quantize=quantizer, dense_below=100)

    def work(comm):
        means, states = train(comm, method, overwrite=True)
        return sum(m["weight"] for m in means), states[-1]["residual/weight"]

    results = sparcml.launch(work, ranks)
    applied = results[0][0]
    for other, _ in results:
        np.testing.assert_array_equal(other, applied)
    given = [gradient(r, s)["weight"] for r in range(ranks) for s in range(STEPS)]
    pending = np.mean([r for _, r in results], axis=0).reshape(applied.shape)
    np.testing.assert_allclose(
        applied + pending, np.sum(given, axis=0) / ranks, atol=2e-4, rtol=0
    )


def test_pieces_draw_their_own_random_numbers_and_scales(monkeypatch):
    """Equal pieces get different errors: their random numbers are not the same."""
    monkeypatch.setattr(pieces, "PIECE", 512)
    method = sparcml.Compressed(quantize=sparcml.QSGD(2, bucket=512), error_feedback=False)
    vector = np.tile(gradient(0, 0)["table"].reshape(-1)[:512], 4).reshape(8, 256)

    def work(comm):
        mean, _ = method.aggregate(comm, vector, method.init(vector.shape))
        return mean.reshape(4, 512)

    first, second, third, fourth = sparcml.launch(work, 2)[0]
    assert not np.array_equal(first, second)
    assert not np.array_equal(third, fourth)
    np.testing.assert_allclose(first, vector.reshape(-1)[:512], atol=4)
